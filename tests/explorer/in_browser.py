"""What the tests of all rooms do in a browser that can reach nothing but the server."""

from collections.abc import Callable
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser import needs_browser, script
from tests.explorer.serving import Served

IN_BROWSER = [pytest.mark.process, pytest.mark.browser, needs_browser, pytest.mark.usefixtures("silent")]


def find(within: Chrome | WebElement, selector: str) -> WebElement:
    return within.find_element(By.CSS_SELECTOR, selector)


def every(within: Chrome | WebElement, selector: str) -> list[WebElement]:
    return within.find_elements(By.CSS_SELECTOR, selector)


def until(browser: Chrome, what: Callable[[], Any]) -> Any:
    return WebDriverWait(browser, 240).until(lambda _: what())


def go(browser: Chrome, served: Served, path: str) -> None:
    browser.get(f"http://127.0.0.1:{served.port}{path}")


def folder_id(served: Served, name: str) -> str:
    return next(str(place["id"]) for place in served.json("/api/folders") if place["name"] == name)


def drawn_folder(browser: Chrome, identity: str) -> None:
    """Until a room shows this folder."""
    until(browser, lambda: script(browser, "return document.body.dataset.drawn") == identity)


def click_point(browser: Chrome, plot: str, x: float, y: float) -> None:
    """Click into a plot (a CSS selector) at a place in the units of its axes, as a mouse does."""
    script(browser, "document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", plot)
    until(browser, lambda: script(browser, "return !!document.querySelector(arguments[0])._fullLayout", plot))
    at = script(
        browser,
        "const plot = document.querySelector(arguments[0]), {xaxis, yaxis} = plot._fullLayout,"
        " box = plot.getBoundingClientRect();"
        "return [box.x + xaxis._offset + xaxis.d2p(arguments[1]), box.y + yaxis._offset + yaxis.d2p(arguments[2])]",
        plot,
        x,
        y,
    )
    place = {"x": at[0], "y": at[1], "button": "left", "clickCount": 1}
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, **place})
