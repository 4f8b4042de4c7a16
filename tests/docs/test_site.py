"""The built documentation, opened from disk: it loads nothing from elsewhere, and its search works.

`make docs` builds it and then runs these; without a built site they are skipped.
"""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait
from tools.reference import api, commands

from tests.browser import complaints, needs_browser, script, window
from tests.docs.pages import DOCS

SITE = DOCS / "_build" / "html"
pytestmark = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="'make docs' builds the site and runs these")
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Resources(HTMLParser):
    """What a page loads, besides what it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADED.get(tag, ""))
        if address:
            self.addresses.append(address)


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    with window() as driver:
        yield driver


def test_pages_load_nothing_from_elsewhere() -> None:
    pages = sorted(SITE.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        resources = Resources()
        resources.feed(page.read_text(encoding="utf-8"))
        assert resources.addresses, page
        for address in resources.addresses:
            assert not re.match(r"(\w+:)?//", address), (page, address)
            path = (page.parent / address.split("?")[0].split("#")[0]).resolve()
            assert address.startswith("data:") or path.exists(), (page, address)


def test_every_command_and_every_public_name_is_in_the_built_reference() -> None:
    for path in commands.commands():
        if len(path) == 1:
            assert (SITE / "reference" / "commands" / f"{path[0]}.html").exists()
    for door in api.DOORS:
        page = (SITE / "reference" / "api" / f"{door}.html").read_text(encoding="utf-8")
        for name in api.public_names(door):
            assert f">{name}<" in page, (door, name)


@needs_browser
@pytest.mark.parametrize(
    ("words", "page"),
    [("theorem2", "reference/commands/theory.html"), ("half-time", "dynamics.html"), ("RunConfig", "reference/api/")],
)
def test_search_works_from_disk(browser: webdriver.Chrome, words: str, page: str) -> None:
    browser.get(f"{(SITE / 'search.html').as_uri()}?q={words}")
    found = "return [...document.querySelectorAll('#search-results li a')].map(link => link.href)"
    WebDriverWait(browser, 60).until(lambda _: any(page in address for address in script(browser, found)))
    assert complaints(browser) == []


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_fit_the_window_in_both_themes(browser: webdriver.Chrome, theme: str) -> None:
    for name in (
        "index",
        "reference/gallery",
        "reference/paper",
        "reference/commands/train",
        "reference/api/topicscope",
    ):
        browser.get((SITE / f"{name}.html").as_uri())
        script(browser, "document.body.dataset.theme = arguments[0]", theme)
        assert script(browser, "return document.documentElement.scrollWidth <= window.innerWidth"), name
        colours = "return [...getComputedStyle(document.body).backgroundColor.matchAll(/\\d+/g)].map(Number)"
        assert (sum(script(browser, colours)[:3]) > 3 * 128) == (theme == "light"), name
        broken = "return [...document.images].filter(image => image.complete && !image.naturalWidth).length"
        assert script(browser, broken) == 0, name
        assert complaints(browser) == []
