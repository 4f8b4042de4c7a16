"""When a setting of theory moves, only what changes is drawn anew, what is in view comes first, and the last wins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from selenium import webdriver

from tests.browser import complaints, needs_browser, script
from tests.explorer.in_browser import go, until
from tests.explorer.serving import Served
from topicscope.theory import optimum
from topicscope.world import Fixed, Masking, TopicModel

pytestmark = [pytest.mark.process, pytest.mark.browser, needs_browser]

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
def room(browser: webdriver.Chrome, served: Served) -> webdriver.Chrome:
    """The room of theory, all pictures drawn once."""
    browser.set_window_size(1400, 900)
    go(browser, served, "/theory")
    until(browser, lambda: script(browser, "return document.body.dataset.drawn") == "")
    until(browser, lambda: script(browser, "return document.querySelectorAll('.plot .main-svg').length > 0"))
    until(browser, lambda: script(browser, "return [...document.querySelectorAll('.plot')].every((plot) => plot.data)"))
    script(browser, COUNT)
    return browser


def drawn(browser: webdriver.Chrome, query: str) -> None:
    until(browser, lambda: script(browser, "return document.body.dataset.drawn") == query)


def matrices(browser: webdriver.Chrome) -> list[Any]:
    return [np.array(script(browser, MATRIX, place)) for place in range(3)]


def test_only_what_changes_is_drawn_anew(room: webdriver.Chrome) -> None:
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
    assert complaints(room) == []


def test_pictures_in_view_come_before_the_others(room: webdriver.Chrome) -> None:
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


def test_of_many_moves_the_last_is_drawn_and_few_are_asked_for(room: webdriver.Chrome) -> None:
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
