"""The page, as a browser shows it."""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser import complaints, drawn, needs_browser, opened, script
from tests.pages import samples
from topicscope.pages import Section, TableData
from topicscope.pages.page import write_page

pytestmark = needs_browser

TITLE = f"The reproduction {samples.EVIL}"
PLOTS = sum(len(figure.panels) for figure in samples.figures())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(path, TITLE, f"First.\n\nSecond: {samples.EVIL}", samples.sections())
    return path


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[webdriver.Chrome]:
    with opened(page, PLOTS) as driver:
        yield driver


def each(browser: webdriver.Chrome, selector: str, what: str = "textContent") -> list[str]:
    """An attribute, or the text, of every element."""
    of_one = f"one.{what}" if what == "textContent" else f"one.getAttribute('{what}')"
    return list(
        script(browser, f"return [...document.querySelectorAll(arguments[0])].map((one) => {of_one})", selector)
    )


def resize(browser: webdriver.Chrome, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}  # narrower than any window
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def test_every_figure_is_drawn_without_errors_and_injected_text_is_not_run(browser: webdriver.Chrome) -> None:
    assert drawn(browser) == PLOTS
    assert complaints(browser) == []
    assert script(
        browser,
        "return [...document.querySelectorAll('.plot')]"
        ".every(plot => plot.clientWidth > 150 && plot.clientHeight > 150)",
    )
    assert script(browser, "return window.hacked === undefined")
    assert browser.title == TITLE
    assert script(browser, "return document.querySelector('h1').textContent") == TITLE
    assert script(browser, "return document.querySelectorAll('main b').length") == 0
    shown = script(
        browser, "return [...document.querySelectorAll('.lines .legendtext')].map(text => text.textContent).join('|')"
    )
    assert "<script>window.hacked=1</script>" in shown
    assert "<b>$x$</b> %{y}" in shown


def test_contents_lead_to_sections_and_verdicts_come_first_in_words(browser: webdriver.Chrome) -> None:
    links = each(browser, "nav a, .verdicts a", "href")
    assert len(links) == 1 + 2 * len(samples.sections())
    assert all(script(browser, "return document.querySelectorAll(arguments[0]).length", link) == 1 for link in links)
    ids = script(
        browser,
        "return [...document.querySelectorAll('main [id], header [id]')].map(element => element.id)"
        ".filter(id => !id.includes('js-plotly'))",
    )
    named = [name for name in ids if name.startswith("section-")]
    assert len(named) == len(set(named))
    rows = script(
        browser,
        "return [...document.querySelectorAll('.verdicts tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.textContent.trim()))",
    )
    assert rows[0] == ["figure-2", "", "✓ reproduced", "-", "-", "-", "63"]
    assert [row[2] for row in rows] == ["✓ reproduced", "✗ not reproduced", "– skipped"]
    assert script(browser, "return document.querySelector('main > section').id") == "verdicts"
    figures = [figure for section in samples.sections() for figure in section.figures]
    assert each(browser, ".panels", "aria-label") == [f.alt for f in figures]
    assert each(browser, "figcaption") == [f.alt for f in figures]
    labels = each(browser, ".plot", "aria-label")
    assert labels == [f"{panel.title}. {f.alt}" for f in figures for panel in f.panels]
    assert script(browser, "return document.documentElement.lang") == "en"
    assert script(
        browser, "return [...document.querySelectorAll('th')].every(cell => ['row', 'col'].includes(cell.scope))"
    )


def hover(browser: webdriver.Chrome, plot: str, right: float, down: float) -> str:
    """What is shown at a place of a plot, given in parts of its width and height."""
    script(browser, "document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    area = browser.find_element("css selector", f"{plot} .nsewdrag")
    size = area.rect
    ActionChains(browser).move_to_element_with_offset(
        area, round((right - 0.5) * size["width"]), round((down - 0.5) * size["height"])
    ).perform()
    look = (
        "return [...document.querySelectorAll(`${arguments[0]} .hoverlayer .hovertext`)]"
        ".map(label => label.textContent).join('|')"
    )
    return str(WebDriverWait(browser, 5).until(lambda _: script(browser, look, plot)))


@pytest.mark.parametrize(
    ("row", "column", "expected"),
    [
        (2, 11, "word 2 (topic 1) × word 11 (topic 4): "),
        (9, 7, "word 9 (topic 3) × word 7 (topic 3): "),
        (0, 3, "[MASK] × word 3 (topic 1): "),
    ],
)
def test_a_heat_map_names_words_topics_and_value(
    browser: webdriver.Chrome, row: int, column: int, expected: str
) -> None:
    place = (column + 0.5) / samples.SIZE, (row + 0.5) / samples.SIZE
    shown = hover(browser, "#section-figure-2-figure-1 .panel:nth-child(1) .plot", *place)
    assert shown == f"{expected}{samples.value(row, column):.3g}"


def test_curves_and_points_tell_their_numbers(browser: webdriver.Chrome) -> None:
    curve = "#section-figure-4-figure-1 .panel:nth-child(1) .plot"
    x_axis, y_axis = script(
        browser,
        "const full = document.querySelector(arguments[0])._fullLayout;"
        "return [full.xaxis.range.slice(), full.yaxis.range.slice()]",
        curve,
    )
    place = (200 - x_axis[0]) / (x_axis[1] - x_axis[0]), 1 - (0 - y_axis[0]) / (y_axis[1] - y_axis[0])
    assert re.fullmatch(r"(key|query), seed \dstep: \d+0\.?\d*e?-?\d*", hover(browser, curve, *place))
    points = "#section-figure-4-figure-2 .plot"
    y_axis = script(browser, "return document.querySelector(arguments[0])._fullLayout.yaxis.range.slice()", points)
    shown = hover(browser, points, (1 - 0.18 + 0.5) / 3, 1 - (0.12 - y_axis[0]) / (y_axis[1] - y_axis[0]))
    assert shown == "same topicAdam & friends0.12 (0.1 to 0.15)"


def test_the_theme_can_be_switched(browser: webdriver.Chrome) -> None:
    look = (
        "return [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
        " getComputedStyle(document.querySelector('.plot .cbaxis text')).fill,"
        " getComputedStyle(document.querySelector('.plot .xtick text')).fill]"
    )
    light = script(browser, look)
    button = browser.find_element("id", "theme")
    button.click()
    dark = script(browser, look)
    button.click()
    assert script(browser, look) == light
    assert light[0] == "rgb(255, 255, 255)"
    assert all(before != after for before, after in zip(light, dark, strict=True))
    assert light[1:] == [light[1]] * 3
    assert dark[1:] == [dark[1]] * 3


@pytest.mark.parametrize("width", [400, 1200])
def test_the_body_does_not_scroll_sideways(browser: webdriver.Chrome, width: int) -> None:
    resize(browser, width, 900)
    right = "[...document.querySelectorAll('.plot .main-svg')].map(svg => svg.getBoundingClientRect().right)"
    fits = f"return Math.max(...{right}) <= innerWidth"
    try:
        WebDriverWait(browser, 10).until(lambda _: script(browser, fits))
        assert script(browser, "return innerWidth") == width
        assert (
            script(
                browser,
                "return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
                " - document.documentElement.clientWidth",
            )
            == 0
        )
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_prints_light(browser: webdriver.Chrome) -> None:
    script(browser, "document.documentElement.dataset.theme = 'dark'")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        look = (
            "return [getComputedStyle(document.body).backgroundColor,"
            " getComputedStyle(document.querySelector('button')).display]"
        )
        assert script(browser, look) == ["rgb(255, 255, 255)", "none"]
        printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        assert len(printed["data"]) > 50_000
        assert script(browser, "return document.querySelectorAll('svg.main-svg[viewBox]').length") == 0
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        script(browser, "delete document.documentElement.dataset.theme")


def test_contours_are_drawn_from_the_numbers_of_the_map(browser: webdriver.Chrome) -> None:
    places = "#section-figure-2-figure-2 .plot"
    kinds = script(
        browser, f"return [...document.querySelectorAll('{places}')].map(plot => plot.data.map(one => one.type))"
    )
    assert kinds == [["heatmap", "contour", "scatter"]] * 4
    assert script(browser, f"return document.querySelectorAll('{places} .contour path').length") > 4
    symbols = f"return document.querySelector('{places}').data[2].marker.symbol"
    assert script(browser, symbols) == ["star", "triangle-right", "circle"]
    ranges = f"const full = document.querySelector('{places}')._fullLayout; return [full.xaxis.range, full.yaxis.range]"
    assert script(browser, ranges) == [pytest.approx([-2.125, 4.125])] * 2  # the map fills the axes


def test_a_page_without_judgements_has_no_verdicts(tmp_path: Path) -> None:
    sections = [
        Section("Is it early?", "What is to be seen.", "topicscope probe", [samples.map_figure()]),
        Section(samples.EVIL, tables=[TableData("Numbers", ["a"], [["1"]])]),
    ]
    write_page(tmp_path / "page.html", "A probe", "Intro.", sections)
    with opened(tmp_path / "page.html", 1) as driver:
        assert complaints(driver) == []
        assert script(driver, "return document.querySelectorAll('#verdicts, .badge, dl').length") == 0
        assert script(driver, "return document.body.innerText.match(/verdict|skipped|seconds/i)") is None
        headings = each(driver, "main h2")
        assert headings == ["Is it early?", samples.EVIL]
        links = each(driver, ".skip, nav a", "href")
        assert links[0] == links[1] == "#section-Is-it-early"
        assert all(script(driver, "return document.querySelectorAll(arguments[0]).length", link) == 1 for link in links)
        assert each(driver, "pre code") == ["topicscope probe"]
        keys = "return [...document.querySelectorAll('.keys li')].map(item => item.textContent)"
        assert script(driver, keys) == ["early", "late"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_shadow_shows_where_a_wide_table_goes_on(tmp_path: Path, theme: str) -> None:
    wide = TableData("A wide table", [f"column {i}" for i in range(20)], [[f"{i / 7:.6f}" for i in range(20)]])
    narrow = TableData("A narrow table", ["model", "number"], [["bert", "1"]])
    write_page(tmp_path / "page.html", "Tables", "", [Section("Tables", tables=[wide, narrow])])
    with opened(tmp_path / "page.html", 0) as browser:
        resize(browser, 800, 900)
        script(browser, "document.documentElement.dataset.theme = arguments[0]", theme)
        first, second = browser.find_elements("css selector", ".scroll")

        def shadows(table: WebElement) -> tuple[bool, bool]:
            """Whether the left and the right edge, in the line of the caption, differ from the page."""
            picture = Image.open(io.BytesIO(table.screenshot_as_png)).convert("RGB")
            plain = picture.getpixel((picture.width // 2, 2))
            return picture.getpixel((0, 2)) != plain, picture.getpixel((picture.width - 2, 2)) != plain

        found = [shadows(first)]
        for place in (200, 10_000):
            script(browser, "arguments[0].scrollLeft = arguments[1]", first, place)
            found.append(shadows(first))
        assert found == [(False, True), (True, True), (True, False)]
        assert shadows(second) == (False, False)
