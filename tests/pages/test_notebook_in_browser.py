"""Results as a notebook's browser shows them: one element per cell, and nothing from anywhere else."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser import complaints, needs_browser, script, window
from tests.notebooks import answer_all, inside, write_notebook
from tests.pages import samples
from tests.pages.test_texts import EVIL, small_text
from tests.test_reading import make_sweep
from topicscope.pages import Figure, Heat, NotebookView, Section, notebook_view
from topicscope.pages.notebook import library

pytestmark = [pytest.mark.browser, needs_browser]

PLOTS = sum(len(figure.panels) for figure in samples.figures())
HEADS = Figure("heads", "Heads", "Layers by heads", [Heat("", [[0.1] * 8, [0.2] * 8], shown_in="here")])


def view_of(sections: list[Section]) -> Any:
    return notebook_view(samples.Sample(sections), sections)


@pytest.fixture(scope="module")
def views() -> list[Any]:
    heads = Section("Heads", figures=[HEADS], texts=[replace(small_text(), map="here")])
    return [view_of(samples.sections()), view_of([heads])]


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    with window() as driver:
        yield driver


def show(browser: webdriver.Chrome, folder: Path, *views: Any, background: str = "white") -> None:
    """A notebook with these views, all of which are drawn."""
    write_notebook(folder / "notebook.html", *views, background=background)
    browser.get((folder / "notebook.html").as_uri())
    for view in views:
        until(browser, lambda view=view: drawn(browser, view))


def until(browser: webdriver.Chrome, what: Any) -> Any:
    return WebDriverWait(browser, 120).until(lambda _: what())


def drawn(browser: webdriver.Chrome, view: Any) -> bool:
    """Whether every plot of a view is there."""
    has = "[...root.querySelectorAll('.plot')].every((plot) => plot.querySelector('svg.main-svg, canvas'))"
    cell = script(browser, "return !!document.getElementById(arguments[0])?.firstElementChild", view.model_id)
    return bool(cell and inside(browser, view, f"return root.host.dataset.drawn === '' && {has}"))


@pytest.mark.parametrize(("background", "theme"), [("white", "light"), ("rgb(17, 17, 17)", "dark")])
def test_results_are_drawn_in_the_theme_of_the_notebook(
    browser: webdriver.Chrome, tmp_path: Path, views: list[Any], background: str, theme: str
) -> None:
    show(browser, tmp_path, *views, background=background)
    assert inside(browser, views[0], "return root.querySelectorAll('svg.main-svg').length") >= PLOTS
    assert script(browser, "return window.asked") == [library().model_id]  # two results, one plotly
    assert script(browser, "return window.sent") == []  # they wait for nothing: the kernel may be busy
    ink = inside(browser, views[0], "return getComputedStyle(root.querySelector('.notebook')).color")
    assert ink == {"light": "rgb(27, 31, 36)", "dark": "rgb(228, 231, 235)"}[theme]
    label = inside(browser, views[0], "return getComputedStyle(root.querySelector('.plot .xtick text')).fill")
    assert label == ink
    place = inside(browser, views[0], "return getComputedStyle(root.querySelector('svg.main-svg')).position")
    assert place == "absolute"  # plotly's own styles are there
    assert complaints(browser) == []


def test_the_theme_and_the_width_are_followed(browser: webdriver.Chrome, tmp_path: Path, views: list[Any]) -> None:
    first, second = views[1], views[0]
    show(browser, tmp_path, first, second)
    width = "return root.querySelector('svg.main-svg').clientWidth"
    before = inside(browser, first, width)
    script(browser, "document.querySelector('.cell').style.width = '400px'")
    until(browser, lambda: inside(browser, first, width) < min(before, 400))
    theme = "return root.host.dataset.theme"
    script(browser, "document.body.style.background = '#111'; document.body.dataset.jpThemeLight = 'false'")
    until(browser, lambda: [inside(browser, view, theme) for view in (first, second)] == ["dark", "dark"])
    script(browser, "document.querySelector('.cell').end()")  # the first is gone; it would be told before the second
    script(browser, "document.body.style.background = '#fff'; document.body.dataset.jpThemeLight = 'true'")
    until(browser, lambda: inside(browser, second, theme) == "light")
    assert inside(browser, first, theme) == "dark"
    assert complaints(browser) == []


def test_styles_and_text_stay_inside_and_clicks_are_answered(
    browser: webdriver.Chrome, tmp_path: Path, views: list[Any]
) -> None:
    show(browser, tmp_path, *views)
    assert script(browser, "return document.querySelectorAll('section, .plot').length") == 0
    assert script(browser, "return getComputedStyle(document.body).fontSize") == "16px"
    assert inside(browser, views[0], "return getComputedStyle(root.querySelector('.notebook')).fontSize") == "14px"
    assert script(browser, "return window.hacked === undefined")
    assert samples.EVIL in inside(browser, views[0], "return root.querySelector('.notebook').textContent")
    assert EVIL in inside(browser, views[1], "return root.querySelector('.pieces').textContent")
    assert inside(browser, views[1], "return root.querySelectorAll('img, .pieces b').length") == 0
    last = "const last = [...root.querySelectorAll('nav a')].at(-1);"
    inside(browser, views[0], last + "last.click()")
    top = last + "return root.getElementById(last.getAttribute('href').slice(1)).getBoundingClientRect().top"
    until(browser, lambda: inside(browser, views[0], top) < 800)
    assert inside(browser, views[0], "return root.querySelector('.notebook').scrollTop") > 1000
    assert browser.current_url.endswith("notebook.html")
    at = inside(
        browser,
        views[1],
        "const plot = root.querySelector('.plot'), {xaxis, yaxis} = plot._fullLayout;"
        "plot.scrollIntoView({block: 'center'}); const box = plot.getBoundingClientRect();"
        "return [box.x + xaxis._offset + xaxis.d2p(7), box.y + yaxis._offset + yaxis.d2p(1)]",
    )
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        place = {"x": at[0], "y": at[1], "button": "left", "clickCount": 1}
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, **place})
    said = "return root.querySelector('.head-choice [role=status]').textContent"
    until(browser, lambda: "Layer 1, head 7, difference 0.2" in inside(browser, views[1], said))
    inside(browser, views[1], "root.querySelector('.pieces').children[0].click()")
    found = inside(browser, views[1], "return root.querySelector('.chooser output').textContent")
    assert found == f"boat → {EVIL} 64.0%, anchor 16.0%"  # layer 1, head 7
    assert complaints(browser) == []


@pytest.mark.process
def test_a_sweep_asks_the_kernel_for_the_curves_of_a_point(browser: webdriver.Chrome, tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path)
    view = notebook_view(sweep, sweep.sections())
    show(browser, tmp_path, view)
    assert inside(browser, view, "return root.querySelectorAll('#map svg.main-svg').length") > 0
    choose = "root.getElementById('point').value = 1; root.getElementById('point').dispatchEvent(new Event('change'))"
    inside(browser, view, choose)
    assert answer_all(browser, view) == ["curves"]
    until(browser, lambda: inside(browser, view, "return root.querySelectorAll('#curves .plot').length"))
    loss = inside(browser, view, "return root.querySelector('#curves .plot').data[0].y")
    np.testing.assert_array_equal(np.float32(loss), np.float32(sweep.curves_of(1)["loss"]))
    assert complaints(browser) == []


def test_without_plotly_the_texts_are_there_and_a_line_says_why(browser: webdriver.Chrome, tmp_path: Path) -> None:
    view = NotebookView("sections", '<div class="notebook"><p>A sentence.</p><div class="plot"></div></div>')
    view.library = "gone"
    write_notebook(tmp_path / "notebook.html", view)
    browser.get((tmp_path / "notebook.html").as_uri())
    until(browser, lambda: script(browser, "return document.querySelector('.cell').firstElementChild"))
    until(browser, lambda: inside(browser, view, "return root.querySelector('.wrong')"))
    text = inside(browser, view, "return root.querySelector('.notebook').textContent")
    assert "The figures cannot be drawn" in text
    assert "Run the cell again." in text
    assert "A sentence." in text
