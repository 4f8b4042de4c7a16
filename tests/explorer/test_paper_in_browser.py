"""The room of the paper: verdicts as the page has them, and claims that are run from there."""

import re
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.browser import complaints, script
from tests.explorer.in_browser import IN_BROWSER, drawn_folder, every, find, folder_id, go, until
from tests.explorer.serving import Served, explorer
from tests.waiting import wait_until
from topicscope.paper import EXPERIMENTS, Context, chosen, read_reproduction, reproduce

pytestmark = IN_BROWSER


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("space") / "runs"
    reproduce(chosen(["figure7"]), Context("quick", 3), home / "seed-3")
    return home


def verdicts(browser: Chrome) -> dict[str, list[str]]:
    """By claim the cells of its row. Read at once: the page may be renewed at any time."""
    rows = script(
        browser,
        "return [...document.querySelectorAll('.verdicts tbody tr')].map(row =>"
        " [...row.cells].map(cell => cell.innerText.trim()))",
    )
    return {name: cells for name, *cells in rows}


def test_a_missing_claim_is_run_and_its_verdict_turns_up(browser: Chrome, served: Served, space: Path) -> None:
    identity = folder_id(served, "seed-3")
    go(browser, served, f"/paper?id={identity}")
    drawn_folder(browser, identity)
    assert list(verdicts(browser)) == ["figure7"]
    missing = [row.text for row in every(browser, ".missing th")]
    assert missing == [name for name in EXPERIMENTS if name != "figure7"]
    find(browser, "[aria-label='Run theorem1']").click()
    said = find(browser, ".missing .state")
    until(browser, lambda: said.text.startswith("Running: "))
    until(browser, lambda: "theorem1" in verdicts(browser))
    found = read_reproduction(space / "seed-3")
    assert found.context.seed == 3
    shown = verdicts(browser)["theorem1"]
    number = found.compared("theorem1")
    assert found.outcomes["theorem1"].verdict in shown[1]
    assert shown[2:5] == [number.name, number.paper, number.ours]
    assert [row.text for row in every(browser, ".missing th")] == [
        name for name in EXPERIMENTS if name not in ("figure7", "theorem1")
    ]


def test_without_a_folder_a_new_one_is_begun(tmp_path: Path, browser: Chrome) -> None:
    with explorer(tmp_path / "runs") as served:
        browser.get(served.url)
        go(browser, served, "/paper")
        until(browser, lambda: every(browser, "[aria-label='Run figure8']"))
        find(browser, "[aria-label='Run figure8']").click()
        until(browser, lambda: "figure8" in verdicts(browser))
        assert list(read_reproduction(tmp_path / "runs" / "reproduce-1").outcomes) == ["figure8"]
        assert script(browser, "return document.querySelectorAll('.verdicts img[src^=data]').length") == 1
        assert re.search(r"\?id=[0-9a-f]{16}$", browser.current_url)
        assert complaints(browser) == []


def test_read_only_runs_nothing(space: Path, tmp_path: Path, browser: Chrome) -> None:
    with explorer(space, "--read-only") as served:
        browser.get(served.url)
        identity = folder_id(served, "seed-3")
        go(browser, served, f"/paper?id={identity}")
        drawn_folder(browser, identity)
        assert every(browser, ".missing th")
        assert every(browser, ".missing button") == []
        body = {"name": "figure8", "id": identity}
        assert "read-only" in served.refusal("/api/paper/run", method="POST", body=body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"name": "figure99"}, "no experiment 'figure99'"),
        ({"name": ["figure8"]}, "expected the name of a claim"),
        ({"name": "--help"}, "no experiment '--help'"),
        ({"name": "figure8", "id": "../../etc"}, "no such folder"),
    ],
)
def test_bad_questions_get_one_line(served: Served, body: dict[str, object], why: str) -> None:
    said = served.refusal("/api/paper/run", method="POST", body=body)
    assert why in said
    assert "\n" not in said


def test_the_verdicts_can_be_kept_as_one_page(served: Served) -> None:
    status, page, _ = served.ask("/api/keep/paper", {"id": folder_id(served, "seed-3")})
    assert status == 200
    assert b'<section id="verdicts">' in page
    assert page.count(b'<section class="part"') >= 1


def test_one_claim_at_a_time_in_a_folder_and_another_server_follows_it(served: Served, space: Path) -> None:
    with explorer(space) as other:
        body = {"name": "figure8", "id": folder_id(other, "seed-3")}
        started = other.json("/api/paper/run", method="POST", body=body)
        assert "wait until it is done" in other.refusal("/api/paper/run", method="POST", body=body)
        assert wait_until(lambda: served.json("/api/paper", {"id": started["id"]})["running"])
        assert wait_until(lambda: not served.json(f"/api/paper/run/{started['id']}")["running"])
        assert wait_until(lambda: not other.json(f"/api/paper/run/{started['id']}")["running"])
    assert "figure8" in read_reproduction(space / "seed-3").outcomes
    assert "no such folder" in served.refusal("/api/paper/run/0000000000000000")
