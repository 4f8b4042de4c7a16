"""Marked texts: escaped, readable without scripts, and, as a browser shows them, with links from piece to piece."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser import complaints, needs_browser, opened, script
from topicscope.pages import MarkedText, Section
from topicscope.pages.page import write_page

EVIL = "</script><img src=x onerror=window.hacked=1><!--"
WORDS = ["boat", EVIL, "anchor", "bread", "the"]
LARGE, LARGE_KEYS, LARGE_LINKS = 512, 10, 29  # pieces, keys and tables of a large text; five take 3 MB


def links(targets: list[list[int]], weights: list[list[float]]) -> str:
    levels = np.rint(255 * np.sqrt(weights)).astype(np.uint8)
    return base64.b64encode(np.array(targets, "<u2").tobytes() + levels.tobytes()).decode()


def small_text(title: str = f"A text {EVIL}") -> MarkedText:
    pieces = [(" ", word, group) for word, group in zip(WORDS, (0, 8, 0, 1, None), strict=True)]
    groups = [(f"sea {EVIL}", f"sea: boat, anchor {EVIL}"), ("food", "food: bread")]
    groups += [(f"group {number}", f"more on {number}") for number in range(3, 10)]
    forward = links([[(i + 1) % 5, (i + 2) % 5] for i in range(5)], [[0.64, 0.16]] * 5)
    back = links([[(i - 1) % 5, i] for i in range(5)], [[0.25, 0.0]] * 5)
    tables = [("0", "mean", back), ("1", "mean", back), ("1", "7", forward)]
    return MarkedText(title, f"A note {EVIL}", pieces, groups, tables, 2, ("layer", "head"), first=2)


def large_text(number: int) -> MarkedText:
    rng = np.random.default_rng(number)
    pieces = [(" ", f"word{i}", int(i % 9) if i % 3 == 0 else None) for i in range(LARGE)]
    groups = [(f"group {k}", f"group {k}: some, words, of, it") for k in range(9)]
    bytes_of = [rng.integers(0, 256, LARGE * LARGE_KEYS, dtype=np.uint8).tobytes() for _ in range(LARGE_LINKS)]
    targets = rng.integers(0, LARGE, LARGE * LARGE_KEYS).astype("<u2").tobytes()
    tables = [("0", f"{i}", base64.b64encode(targets + one).decode()) for i, one in enumerate(bytes_of)]
    return MarkedText(f"Large {number}", "", pieces, groups, tables, LARGE_KEYS, ("layer", "head"))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "report.html"
    texts = [small_text(), *(large_text(number) for number in range(5)), MarkedText("Bare", "", [], [])]
    write_page(path, "Texts", "", [Section("Documents", texts=texts)])
    return path


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[webdriver.Chrome]:
    with opened(page, 0) as driver:
        yield driver


def test_texts_are_escaped_and_coloured_without_scripts(page: Path) -> None:
    html = page.read_text()
    assert EVIL not in html
    assert "<img src=x" not in html
    text = html[html.index('class="pieces"') : html.index("</div>", html.index('class="pieces"'))]
    assert re.findall(r'<span class="g(\d)" data-n="(\d)"', text) == [("0", "1"), ("7", "9"), ("0", "1"), ("1", "2")]
    assert 'title="2: food: bread">bread</span>' in text
    assert "<span>the</span>" in text
    assert html.count("<details") == 7
    assert html.count('<details class="marked" id="section-Documents-text-1" open>') == 1


def test_five_large_texts_take_few_bytes(page: Path) -> None:
    html = page.read_text()
    plotly = max(re.findall(r"<script>(.*?)</script>", html, re.DOTALL), key=len)
    assert 2.5e6 < len(html) - len(plotly) < 4e6
    assert "https://" not in html.replace(plotly, "")


def filled(browser: webdriver.Chrome) -> dict[str, str]:
    return dict(
        script(
            browser,
            "return [...document.querySelectorAll('.marked[open] .pieces span')]"
            ".filter(piece => piece.style.getPropertyValue('--fill'))"
            ".map(piece => [piece.textContent, piece.style.getPropertyValue('--fill')])",
        )
    )


@needs_browser
def test_a_chosen_word_shows_where_it_leads(browser: webdriver.Chrome) -> None:
    assert script(browser, "return window.hacked === undefined")
    assert script(browser, "return document.querySelectorAll('main img').length") == 0
    assert complaints(browser) == []
    outer, inner = browser.find_elements("css selector", "#section-Documents-text-1 select")
    assert [outer.get_attribute("value"), inner.get_attribute("value")] == ["1", "7"]
    pieces = browser.find_elements("css selector", "#section-Documents-text-1 .pieces span")
    assert [piece.text for piece in pieces] == WORDS
    pieces[2].click()
    assert filled(browser) == {"bread": "100%", "the": "25%"}
    said = browser.find_element("css selector", "#section-Documents-text-1 output")
    assert said.text == "anchor → bread 64.0%, the 16.0%"
    box = browser.find_element("css selector", "#section-Documents-text-1 .pieces")
    box.send_keys(Keys.ARROW_RIGHT)
    assert said.text == "bread → the 64.0%, boat 16.0%"
    ActionChains(browser).move_to_element(pieces[0]).perform()
    assert said.text.startswith("bread →")  # it was chosen to stay
    script(browser, "const [, head] = document.querySelectorAll('select'); head.value = 'mean';"
           "head.dispatchEvent(new Event('change'))")  # fmt: skip
    assert filled(browser) == {"anchor": "100%"}
    assert said.text == "bread → anchor 25.2%"
    box.send_keys(Keys.ESCAPE)
    assert filled(browser) == {}
    ActionChains(browser).move_to_element(pieces[4]).perform()
    assert filled(browser) == {"bread": "100%"}
    assert complaints(browser) == []


@needs_browser
def test_a_folded_text_is_made_ready_when_it_opens(browser: webdriver.Chrome) -> None:
    place = "#section-Documents-text-3"
    assert not browser.find_element("css selector", f"{place} .pieces").is_displayed()
    browser.find_element("css selector", f"{place} summary").click()
    said = browser.find_element("css selector", f"{place} output")
    WebDriverWait(browser, 10).until(lambda _: said.is_displayed())  # the browser says a moment later that it opened
    browser.find_element("css selector", f"{place} .pieces").send_keys(Keys.ARROW_DOWN)
    # which word it is depends on what lies under the pointer
    assert re.fullmatch(r"word\d+ → word\d+ [\d.]+%, .*", said.text)
    ready = "return [...document.querySelectorAll('.chooser')].map(one => one.hidden)"
    assert script(browser, ready) == [False, True, False, True, True, True]


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_can_be_read_in_both_themes(browser: webdriver.Chrome, theme: str) -> None:
    """Contrast of text to its group's colour, by the formula of WCAG 2: at least 4.5."""
    script(browser, "document.documentElement.dataset.theme = arguments[0]", theme)
    found = script(
        browser,
        """
        const paint = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
        const light = (colour) => {
          paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1);
          const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) => value / 255)
            .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        return [...document.querySelectorAll('#section-Documents-text-2 .groups span')].map((key) => {
          const style = getComputedStyle(key), [one, two] = [light(style.color), light(style.backgroundColor)];
          return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
        });
        """,
    )
    script(browser, "delete document.documentElement.dataset.theme")
    assert len(found) == 8
    assert min(found) >= 4.5
