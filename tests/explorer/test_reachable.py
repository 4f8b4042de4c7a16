"""Every room by keyboard and with a screen reader: names, focus, order, words for pictures."""

from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from tests.browser import script
from tests.explorer.in_browser import IN_BROWSER, drawn_folder, every, find, folder_id, go, until
from tests.explorer.serving import PREDICTED, Served
from topicscope.explorer.app import LOOKING_AT, ROOMS
from topicscope.paper import Context, chosen, reproduce
from topicscope.sweeps import build_grid, sweep
from topicscope.training import RunConfig, sandbox_timeline, train

pytestmark = IN_BROWSER

SETTINGS = PREDICTED | {"steps": 40}
FOLDERS = {"live": "run", "time": "run", "maps": "grid", "paper": "paper"}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("space") / "runs"
    train(RunConfig.of(SETTINGS | {"snapshots": "log"}), runs / "run")
    sandbox_timeline(runs / "run", runs / "timeline", bootstrap=20)
    axes = {"optimizer.lr": [0.1, 1.0], "model.init_scale": [0.01, 0.1]}
    sweep(build_grid({"kind": "train", "base": SETTINGS, "axes": axes}), runs / "grid", engine="serial")
    reproduce(chosen(["figure7"]), Context("quick", 0), runs / "paper")
    return runs


def open_room(browser: Chrome, served: Served, room: str) -> None:
    identity = folder_id(served, FOLDERS[room]) if room in FOLDERS else ""
    go(browser, served, f"/{room}?id={identity}" if identity else f"/{room}")
    if room == "live":
        until(browser, lambda: script(browser, "return document.querySelector('.run')?.dataset.state") == "done")
    elif identity:
        drawn_folder(browser, identity)
    elif room == "theory":
        until(browser, lambda: script(browser, "return document.body.dataset.drawn") == "")
    if room == "maps":
        until(browser, lambda: "predicted" in find(browser, "#panels").text)


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_everything_has_a_name_and_pictures_have_words(browser: Chrome, served: Served, room: str) -> None:
    open_room(browser, served, room)
    controls = "input, select, button, textarea, summary, a[href], progress, [tabindex='0']"
    unnamed = script(
        browser,
        "const named = (one) => (one.getAttribute('aria-label') || one.textContent || '').trim()"
        " || [...(one.labels ?? [])].some((label) => label.textContent.trim());"
        "return [...document.querySelectorAll(arguments[0])].filter((one) => !one.closest('[hidden]') && !named(one))"
        ".map((one) => one.outerHTML.slice(0, 200))",
        controls,
    )
    assert unnamed == []
    wordless = script(
        browser,
        "return [...document.querySelectorAll('.plot')].filter((plot) => plot.getAttribute('role') !== 'img'"
        " || (plot.getAttribute('aria-label') ?? '').length < 20).map((plot) => plot.className)",
    )
    assert wordless == []
    assert (
        script(browser, "return [...document.querySelectorAll('[tabindex]')].filter(e => e.tabIndex > 0).length") == 0
    )
    assert len(every(browser, "h1")) == 1
    assert len(every(browser, "main, nav")) == 2
    assert every(browser, "[role=status], [role=alert], [aria-live]")
    ids = script(browser, "return [...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_tab_goes_through_all_controls_in_order_and_shows_where_it_is(
    browser: Chrome, served: Served, room: str
) -> None:
    open_room(browser, served, room)
    can = (
        "[...document.querySelectorAll('a[href], input, select, button, textarea, summary, [tabindex=\"0\"]')]"
        ".filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0 && !one.closest('.plot'))"
    )
    expected = int(script(browser, f"return {can}.length"))
    script(browser, "document.activeElement.blur(); window.scrollTo(0, 0)")
    seen: list[int] = []
    faint: list[str] = []
    limit = min(expected, 70)  # of the paper's long list of claims the first ones
    for _ in range(limit):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        place, outline, what = script(
            browser,
            f"const one = document.activeElement, style = getComputedStyle(one); return [{can}.indexOf(one),"
            " style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1, one.outerHTML.slice(0, 120)]",
        )
        seen.append(place)
        if not outline:
            faint.append(what)
    assert seen == list(range(limit))
    assert faint == []


def test_a_run_says_what_is_happening_and_is_looked_back_at_by_keys(browser: Chrome, served: Served) -> None:
    open_room(browser, served, "live")
    sentence = find(browser, ".run .happening")
    assert sentence.get_attribute("role") == "status"
    assert sentence.text
    find(browser, ".run .scrub input").send_keys(Keys.HOME)
    until(browser, lambda: "at step 0" in find(browser, ".run .matrices").text)
    until(browser, lambda: every(browser, ".run .matrices .keep a"))
    links = [str(link.get_attribute("href")) for link in every(browser, ".matrices .keep a")]
    assert [link.split("?")[0].rsplit(".", 1)[1] for link in links] == ["png", "svg", "csv"]
    assert all(link.endswith("&step=0") for link in links)


def test_every_room_says_what_is_seen_there(served: Served) -> None:
    assert set(LOOKING_AT) == set(ROOMS)
    for room in ROOMS:
        page = served.ask(f"/{room}")[1].decode()
        assert "What am I looking at?" in page
        assert len(LOOKING_AT[room]) < 800


def test_the_view_of_a_run_can_be_kept(served: Served) -> None:
    identity = folder_id(served, "run")
    status, page, headers = served.ask("/api/keep/live", {"id": identity, "step": 0})
    assert status == 200
    assert "attachment" in headers["content-disposition"]
    assert b"Matrices at step 0" in page
    assert served.ask("/api/keep/live/curves.png", {"id": identity})[1].startswith(b"\x89PNG")
    assert served.ask("/api/keep/live/matrices.csv", {"id": identity, "step": 0})[1].startswith(b"PK")
