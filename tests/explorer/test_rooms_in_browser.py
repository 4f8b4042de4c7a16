"""The rooms, as a person uses them in a browser that can reach nothing but the server."""

import re
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from tests.browser import script
from tests.explorer.in_browser import IN_BROWSER, every, find, go, until
from tests.explorer.serving import Served
from topicscope.explorer.theory_room import question
from topicscope.theory import Setting, ValueMatrix, dynamics, optimum, second_stage, theorem2
from topicscope.training import RunConfig
from topicscope.world import Fixed, Masking, TopicModel

pytestmark = IN_BROWSER

HOLD = """
window.asked = [];
const fetchNow = window.fetch;
window.release = () => {};
const held = new Promise((done) => { window.release = done; });
window.fetch = async (path, options) => {
  window.asked.push(path);
  if (path.includes('topics=4')) await held;
  return fetchNow(path, { ...options, signal: undefined });
};
"""


def drawn(browser: Chrome, query: str) -> None:
    until(browser, lambda: script(browser, "return document.body.dataset.drawn") == query)


def opened(browser: Chrome, served: Served, query: str = "") -> None:
    go(browser, served, f"/theory?{query}")
    drawn(browser, query)


def box(browser: Chrome, name: str) -> Any:
    return find(browser, f"[id='{name}']")


def put(browser: Chrome, name: str, text: str) -> None:
    box(browser, name).send_keys(Keys.CONTROL, "a", Keys.NULL, text)


def is_refused(browser: Chrome, name: str) -> bool:
    """Whether a bad value is said and marked, and what is shown of an older one is told apart from it."""
    wrong, train = box(browser, "wrong"), box(browser, "train")
    marks = [
        wrong.is_displayed() and f"{name} = " in wrong.text,
        box(browser, name).get_attribute("aria-invalid") == "true",
        script(browser, "return 'stale' in document.getElementById('parts').dataset"),
        train.get_attribute("href") is None and train.get_attribute("aria-disabled") == "true",
        not box(browser, "share").is_enabled() and not box(browser, "keep").is_enabled(),
    ]
    assert len(set(marks)) == 1, marks
    return marks[0]


def part_text(browser: Chrome, part: str) -> str:
    return str(script(browser, f"return document.querySelector('[data-part={part}]').innerText"))


def test_the_first_page_offers_three_things(browser: Chrome, served: Served) -> None:
    assert browser.current_url == f"http://127.0.0.1:{served.port}/"  # the token is gone from the address
    links = [link.get_attribute("href") for link in every(browser, ".things a")]
    assert [urlsplit(str(link)).path for link in links] == ["/theory", "/live", "/paper"]
    until(browser, lambda: "Nothing yet" in find(browser, "#folders").text)


def test_theory_follows_its_controls(browser: Chrome, served: Served) -> None:
    opened(browser, served)
    assert f"{theorem2(Setting.of(10, 10)).numbers()['same_topic']:.5f}" in part_text(browser, "theorems")
    put(browser, "topics", "6")
    drawn(browser, "topics=6")
    setting = Setting.of(6, 10)
    assert f"{theorem2(setting).numbers()['same_topic']:.5f}" in part_text(browser, "theorems")
    half = dynamics(setting).value.half_time
    assert f"{half:.5g}" in part_text(browser, "dynamics")
    until(browser, lambda: browser.current_url.endswith("/theory?topics=6"))
    shown = script(browser, "return document.querySelector('[data-part=value] .plot').data[0].z.length")
    assert shown == 61
    opened(browser, served, "topics=6")
    assert find(browser, "#topics").get_attribute("value") == "6"


def test_a_slider_moves_by_keys_and_draws_anew(browser: Chrome, served: Served) -> None:
    opened(browser, served)
    slider = find(browser, "[data-name=p_mask] [type=range]")
    before = find(browser, "#p_mask").get_attribute("value")
    slider.send_keys(Keys.PAGE_UP)
    value = find(browser, "#p_mask").get_attribute("value")
    assert float(str(value)) > float(str(before))
    drawn(browser, f"p_mask={value}")
    number = theorem2(Setting.of(p_mask=float(str(value)))).numbers()["same_topic"]
    assert f"{number:.5f}" in part_text(browser, "theorems")


def test_documents_become_infinite_at_the_end_of_their_slider(browser: Chrome, served: Served) -> None:
    opened(browser, served, "topics=4&words_per_topic=3&topics_per_document=2")
    slider = find(browser, "[data-name=length] [type=range]")
    slider.send_keys(Keys.END)
    assert find(browser, "#length").get_attribute("value") == "infinite"
    assert slider.get_attribute("aria-valuetext") == "infinite"
    drawn(browser, "topics=4&words_per_topic=3&topics_per_document=2&length=infinite")
    slider.send_keys(Keys.HOME)
    assert find(browser, "#length").get_attribute("value") == "2"
    width = find(browser, "[data-name=attention_dim] [type=range]")
    width.send_keys(Keys.PAGE_UP)
    value = find(browser, "#attention_dim").get_attribute("value")
    drawn(browser, f"topics=4&words_per_topic=3&topics_per_document=2&length=2&attention_dim={value}")


@pytest.mark.parametrize(("value_matrix", "bounded"), [("blocks", "gamma"), ("diagonal", "beta")])
def test_the_landscape_has_its_minimum_and_the_ends_of_the_interval(
    browser: Chrome, served: Served, value_matrix: ValueMatrix, bounded: str
) -> None:
    query = f"topics=20&topics_per_document=5{'' if value_matrix == 'blocks' else '&value_matrix=diagonal'}"
    opened(browser, served, query)
    setting = Setting.of(20, 10, 5)
    stage = second_stage(setting, value_matrix)
    assert stage.theorem is not None
    landscape = "document.querySelector('[data-part=attention] .plot').data"
    until(browser, lambda: script(browser, f"return {landscape} !== undefined"))  # below the others: drawn after them
    marks = script(
        browser,
        f"return {landscape}.slice(1)"
        ".flatMap(({x, y, text, type}) => type === 'scatter' ? x.map((_, i) => [x[i], y[i], [].concat(text)[i]]) : [])",
    )
    places = {text: (beta, alpha) for beta, alpha, text in marks}
    for end in stage.theorem.bounds[bounded]:
        beta, alpha = next(at for name, at in places.items() if name.endswith(f" {end:.3g}"))
        assert (setting.gamma(alpha, beta) if bounded == "gamma" else beta) == pytest.approx(end, rel=1e-5)
    lowest = places["lowest" if value_matrix == "blocks" else "lowest, beyond the edge"]  # there alpha goes to 0
    assert lowest[0] == pytest.approx(stage.optimum.beta, rel=1e-3)


@pytest.mark.parametrize(
    "query",
    [
        *("prior=dirichlet&alpha=0.5", "prior=groups&groups=2&rho=0.8", "prior=logistic-normal&covariance=2"),
        *("zipf=1", "overlap=0.25", "common_words=3&common_share=0.2"),
    ],
)
def test_other_worlds_have_their_optimum(browser: Chrome, served: Served, query: str) -> None:
    small = "topics=4&words_per_topic=4&topics_per_document=2"
    go(browser, served, f"/theory?{small}&{query}")
    until(browser, lambda: script(browser, "return document.body.dataset.drawn") is not None)
    asked = question(dict(part.split("=") for part in f"{small}&{query}".split("&")))
    best = optimum(RunConfig.of(asked.world))
    assert f"{best.loss:.6g}" in part_text(browser, "value")
    assert "Not covered" in part_text(browser, "theorems")
    shown = script(browser, "return document.querySelector('[data-part=value] .plot').data[0].z.length")
    assert shown == best.vocabulary
    assert RunConfig.of(asked.run).topic_model.topics == 4  # 'train this' would start it


def test_a_run_is_started_watched_and_looked_back_at(browser: Chrome, served: Served) -> None:
    opened(browser, served, "topics=3&words_per_topic=2&topics_per_document=2&length=infinite")
    script(browser, "document.getElementById('train').click()")
    until(browser, lambda: script(browser, "return document.getElementById('preset')?.value") == "from theory")
    assert find(browser, "[id='topic_model.topics']").get_attribute("value") == "3"
    put(browser, "steps", "600")
    put(browser, "more", "data.documents=50\ndata.dev_documents=20\nfloors=false\nmodel.prediction_bias=none")
    find(browser, "#settings [type=submit]").click()
    until(browser, lambda: script(browser, "return document.querySelector('.run')?.dataset.state") == "done")
    run = find(browser, ".run")
    assert "step 600 of 600" in find(run, ".state").text
    assert find(run, ".happening").text
    until(browser, lambda: script(browser, "return document.querySelectorAll('.run .plot svg.main-svg').length") >= 5)
    slider = find(run, ".scrub input")
    slider.send_keys(Keys.HOME)
    until(browser, lambda: "at step 0" in find(run, ".matrices").text)
    slider.send_keys(Keys.END)
    until(browser, lambda: "at step 600" in find(run, ".matrices").text)
    assert re.search(r"\?id=[0-9a-f]{16}$", browser.current_url)


@pytest.mark.parametrize("room", ["", "theory", "live", "models", "maps", "time", "paper"])
@pytest.mark.parametrize("width", [1400, 800])
def test_rooms_fit_and_say_nothing_on_the_console(browser: Chrome, served: Served, room: str, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    go(browser, served, f"/{room}")
    until(browser, lambda: script(browser, "return document.readyState") == "complete")
    for theme in ("light", "dark"):
        script(browser, "document.documentElement.dataset.theme = arguments[0]", theme)
        assert script(browser, "return document.documentElement.scrollWidth") <= width
    if room in ("models", "maps"):  # of which nothing is there
        until(browser, lambda: " --out " in find(browser, "#folders code").text)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_late_answer_does_not_clear_a_newer_error(browser: Chrome, served: Served) -> None:
    opened(browser, served)
    assert not is_refused(browser, "topics")
    script(browser, HOLD)
    put(browser, "topics", "4")
    until(browser, lambda: len(script(browser, "return window.asked")) == 4)
    box(browser, "topics").send_keys(".5")
    assert is_refused(browser, "topics")
    assert "Below is the last valid setting." in box(browser, "wrong").text
    script(browser, "window.release()")
    drawn(browser, "topics=4")
    assert is_refused(browser, "topics")
    assert all(path.endswith("topics=4") for path in script(browser, "return window.asked"))
    put(browser, "topics", "5")
    drawn(browser, "topics=5")
    assert not is_refused(browser, "topics")
    assert box(browser, "train").get_attribute("href").endswith("/live?topics=5")


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("topics", ["0", "-1", "4.5", "abc", "1e3", "010", "10000000000", "[1]", "true"]),
        ("p_mask", ["1.1", "-0.1", "nan", "1e", "0.5.5", "0x1", "inf", "{a: b}"]),
        ("lr", ["0", "1e7", "1e999"]),
        ("length", ["0", "5-3", "5-", "many", "12.5", "10000001"]),
    ],
)
def test_bad_values_are_not_sent(browser: Chrome, served: Served, name: str, texts: list[str]) -> None:
    opened(browser, served, "optimizer=sgd")
    script(browser, HOLD)
    for text in texts:
        script(
            browser,
            "const box = document.getElementById(arguments[0]);"
            "box.value = arguments[1]; box.dispatchEvent(new Event('input'))",
            name,
            text,
        )
        assert is_refused(browser, name), text
        assert f"{name} = {text}: expected " in box(browser, "wrong").text
    assert script(browser, "return window.asked") == []


def test_a_link_with_a_bad_value_shows_the_error_and_no_figures(browser: Chrome, served: Served) -> None:
    go(browser, served, "/theory?topics=0")
    until(browser, lambda: box(browser, "wrong").is_displayed())
    assert is_refused(browser, "topics")
    assert "last valid" not in box(browser, "wrong").text
    put(browser, "topics", "3")
    drawn(browser, "topics=3")
    assert not is_refused(browser, "topics")


def test_a_bad_value_in_a_box_that_is_hidden_then_counts_no_more(browser: Chrome, served: Served) -> None:
    opened(browser, served, "prior=dirichlet")
    assert not box(browser, "topics_per_document").is_displayed()
    put(browser, "alpha", "0")
    assert is_refused(browser, "alpha")
    box(browser, "prior").send_keys("fixed")
    drawn(browser, "")
    assert not is_refused(browser, "alpha")
    assert box(browser, "topics_per_document").is_displayed()


@pytest.mark.parametrize(
    ("name", "start", "keys"),
    [
        ("topics", "7", [("ARROW_RIGHT", "8"), ("PAGE_UP", "10"), ("ARROW_LEFT", "9"), ("PAGE_DOWN", "7")]),
        ("words_per_topic", "100", [("PAGE_UP", "125"), ("ARROW_UP", "126"), ("ARROW_DOWN", "125")]),
        ("topics_per_document", "1", [("ARROW_LEFT", "1"), ("ARROW_RIGHT", "2"), ("PAGE_UP", "7")]),
        ("common_words", "0", [("ARROW_RIGHT", "1"), ("PAGE_UP", "11"), ("PAGE_DOWN", "1"), ("PAGE_DOWN", "0")]),
        ("length", "999", [("ARROW_RIGHT", "1000"), ("ARROW_RIGHT", "infinite"), ("ARROW_LEFT", "1000")]),
        ("topics", "300", [("ARROW_RIGHT", "300"), ("ARROW_LEFT", "299")]),
        ("attention_dim", "", [("ARROW_RIGHT", "2")]),
    ],
)
def test_one_key_moves_a_whole_number_by_one(
    browser: Chrome, served: Served, name: str, start: str, keys: list[tuple[str, str]]
) -> None:
    query = f"{name}={start}" if start not in ("", "0") else ""
    opened(browser, served, query)
    slider = find(browser, f"[data-name={name}] [type=range]")
    for key, value in keys:
        slider.send_keys(getattr(Keys, key))
        assert box(browser, name).get_attribute("value") == value, key
        assert slider.get_attribute("aria-valuetext") == value
    drawn(browser, f"{name}={keys[-1][1]}" if keys[-1][1] != "0" else "")


def test_what_a_run_will_use_is_said_beside_its_link(browser: Chrome, served: Served) -> None:
    opened(browser, served)
    assert "SGD with learning rate 1, which approximates gradient flow" in box(browser, "training").text
    assert not box(browser, "lr").is_displayed()  # flow has none
    box(browser, "optimizer").send_keys("adam")
    drawn(browser, "optimizer=adam")
    assert box(browser, "lr").is_displayed()
    assert "Adam with learning rate 0.01," in box(browser, "training").text
    opened(browser, served, "topics=6")
    script(browser, "document.getElementById('train').click()")
    until(browser, lambda: script(browser, "return document.getElementById('preset')?.value") == "from theory")
    shown = {name: box(browser, name).get_attribute("value") for name in ("optimizer.name", "optimizer.lr", "steps")}
    assert shown == {"optimizer.name": "sgd", "optimizer.lr": "1", "steps": str(question({"topics": "6"}).run["steps"])}


def test_what_a_link_has_too_much_is_said(browser: Chrome, served: Served) -> None:
    opened(browser, served)
    assert not box(browser, "ignored").is_displayed()
    go(browser, served, "/theory?prior=nonsense&foo=<b>bar</b>&topics=6")
    drawn(browser, "topics=6")
    expected = "prior = nonsense (expected one of: fixed, dirichlet, groups, logistic-normal)"
    assert box(browser, "ignored").text == f"Ignored from the link: foo (no such setting); {expected}."
    assert box(browser, "prior").get_attribute("value") == "fixed"


COUNT = """
window.redrawn = [];
const react = Plotly.react;
Plotly.react = (plot, ...rest) => {
  window.redrawn.push([...document.querySelectorAll('.plot')].indexOf(plot));
  return react(plot, ...rest);
};
window.before = [...document.querySelectorAll('.plot')];
"""
MOVE = """
const [name, values] = arguments, box = document.getElementById(name);
for (const value of values) { box.value = value; box.dispatchEvent(new Event('input')); }
"""
MATRIX = "return [...document.querySelectorAll('.plot')[arguments[0]].data[0].z].map((row) => [...row])"


@pytest.fixture
def room(browser: Chrome, served: Served) -> Chrome:
    """The room of theory, all pictures drawn once."""
    browser.set_window_size(1400, 900)
    go(browser, served, "/theory")
    until(browser, lambda: script(browser, "return document.body.dataset.drawn") == "")
    until(browser, lambda: script(browser, "return document.querySelectorAll('.plot .main-svg').length > 0"))
    until(browser, lambda: script(browser, "return [...document.querySelectorAll('.plot')].every((plot) => plot.data)"))
    script(browser, COUNT)
    return browser


def matrices(browser: Chrome) -> list[Any]:
    return [np.array(script(browser, MATRIX, place)) for place in range(3)]


def test_only_what_changes_is_drawn_anew(room: Chrome) -> None:
    _, limit, theorem = matrices(room)
    script(room, MOVE, "length", ["60"])
    drawn(room, "length=60")
    assert script(room, "return window.redrawn") == [0]  # W*; limit, Theorem 2, stages and landscape know no length
    best = optimum(TopicModel(), Fixed(topics_per_document=3, length=60), Masking()).matrix()
    shown = matrices(room)
    np.testing.assert_allclose(shown[0], best, atol=1e-6)
    np.testing.assert_array_equal(shown[1], limit)
    np.testing.assert_array_equal(shown[2], theorem)
    same = "return [...document.querySelectorAll('.plot')].every((plot, i) => plot === window.before[i])"
    assert script(room, same)


def test_pictures_in_view_come_before_the_others(room: Chrome) -> None:
    seen = script(
        room,
        "return [...document.querySelectorAll('.plot')].map((plot) => plot.getBoundingClientRect())"
        ".map(({top, bottom}) => bottom > 0 && top < innerHeight)",
    )
    assert seen[:3] == [True] * 3
    script(room, "document.body.style.paddingBottom = '3000px'; scrollTo(0, document.body.scrollHeight)")
    script(room, MOVE, "p_mask", ["0.3"])  # nothing is in view: all come, one by one
    drawn(room, "p_mask=0.3")
    assert sorted(script(room, "return window.redrawn")) == list(range(len(seen)))
    assert script(room, "return performance.getEntriesByName('in-view').length") == 0
    script(room, "scrollTo(0, 0); window.redrawn = []")
    script(room, MOVE, "p_mask", ["0.4"])
    drawn(room, "p_mask=0.4")
    order = script(room, "return window.redrawn")
    assert sorted(order) == list(range(len(seen)))
    assert script(room, "return performance.getEntriesByName('in-view').length") >= 1


def test_of_many_moves_the_last_is_drawn_and_few_are_asked_for(room: Chrome) -> None:
    script(room, "performance.clearResourceTimings()")
    values = [f"{0.11 + 0.005 * i:.3f}" for i in range(40)]
    script(room, MOVE, "p_mask", values)
    drawn(room, f"p_mask={values[-1]}")
    asked = script(
        room,
        "return performance.getEntriesByType('resource').filter((one) => "
        "one.name.includes('/view/theory/value')).length",
    )
    assert 1 <= asked <= 2  # the first, and the last of those that came while it was drawn
    best = optimum(TopicModel(), Fixed(topics_per_document=3, length=125), Masking(p_mask=float(values[-1]))).matrix()
    np.testing.assert_allclose(matrices(room)[0], best, atol=1e-6)
    until(room, lambda: room.current_url.endswith(f"/theory?p_mask={values[-1]}"))
