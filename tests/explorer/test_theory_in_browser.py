"""The room of theory, as a person uses it: bad values, keys, links."""

from __future__ import annotations

from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser import complaints, needs_browser, script
from tests.explorer.in_browser import go, until
from tests.explorer.serving import Served
from topicscope.explorer.theory_room import question

pytestmark = [pytest.mark.process, pytest.mark.browser, needs_browser]

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


def drawn(browser: webdriver.Chrome, query: str) -> None:
    until(browser, lambda: script(browser, "return document.body.dataset.drawn") == query)


def opened(browser: webdriver.Chrome, served: Served, query: str = "") -> webdriver.Chrome:
    go(browser, served, f"/theory?{query}")
    drawn(browser, query)
    complaints(browser)  # of the pages before
    return browser


def box(browser: webdriver.Chrome, name: str) -> Any:
    return browser.find_element(By.ID, name)


def put(browser: webdriver.Chrome, name: str, text: str) -> None:
    """Type a text in place of the old one."""
    box(browser, name).send_keys(Keys.CONTROL, "a", Keys.NULL, text)


def is_refused(browser: webdriver.Chrome, name: str) -> bool:
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


def test_a_late_answer_does_not_clear_a_newer_error(browser: webdriver.Chrome, served: Served) -> None:
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
    assert complaints(browser) == []


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("topics", ["0", "-1", "4.5", "abc", "1e3", "010", "10000000000", "[1]", "true"]),
        ("p_mask", ["1.1", "-0.1", "nan", "1e", "0.5.5", "0x1", "inf", "{a: b}"]),
        ("lr", ["0", "1e7", "1e999"]),
        ("length", ["0", "5-3", "5-", "many", "12.5", "10000001"]),
    ],
)
def test_bad_values_are_not_sent(browser: webdriver.Chrome, served: Served, name: str, texts: list[str]) -> None:
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
    assert complaints(browser) == []


def test_a_link_with_a_bad_value_shows_the_error_and_no_figures(browser: webdriver.Chrome, served: Served) -> None:
    go(browser, served, "/theory?topics=0")
    until(browser, lambda: box(browser, "wrong").is_displayed())
    assert is_refused(browser, "topics")
    assert "last valid" not in box(browser, "wrong").text
    put(browser, "topics", "3")
    drawn(browser, "topics=3")
    assert not is_refused(browser, "topics")
    assert complaints(browser) == []


def test_a_bad_value_in_a_box_that_is_hidden_then_counts_no_more(browser: webdriver.Chrome, served: Served) -> None:
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
    browser: webdriver.Chrome, served: Served, name: str, start: str, keys: list[tuple[str, str]]
) -> None:
    query = f"{name}={start}" if start not in ("", "0") else ""
    opened(browser, served, query)
    slider = browser.find_element(By.CSS_SELECTOR, f"[data-name={name}] [type=range]")
    for key, value in keys:
        slider.send_keys(getattr(Keys, key))
        assert box(browser, name).get_attribute("value") == value, key
        assert slider.get_attribute("aria-valuetext") == value
    drawn(browser, f"{name}={keys[-1][1]}" if keys[-1][1] != "0" else "")


def test_what_a_run_will_use_is_said_beside_its_link(browser: webdriver.Chrome, served: Served) -> None:
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
    assert complaints(browser) == []


def test_what_a_link_has_too_much_is_said(browser: webdriver.Chrome, served: Served) -> None:
    opened(browser, served)
    assert not box(browser, "ignored").is_displayed()
    go(browser, served, "/theory?prior=nonsense&foo=<b>bar</b>&topics=6")
    drawn(browser, "topics=6")
    expected = "prior = nonsense (expected one of: fixed, dirichlet, groups, logistic-normal)"
    assert box(browser, "ignored").text == f"Ignored from the link: foo (no such setting); {expected}."
    assert box(browser, "prior").get_attribute("value") == "fixed"
    assert complaints(browser) == []
