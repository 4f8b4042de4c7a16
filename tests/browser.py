"""Pages as a headless browser shows them: one browser for all tests of a process, with a window for each user."""

import atexit
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM, DRIVER = "/usr/bin/chromium", shutil.which("chromedriver")
SIZE = 1200, 900
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
    f"--window-size={SIZE[0]},{SIZE[1]}",
)
ONLY_HERE = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
needs_browser = pytest.mark.skipif(
    not (Path(CHROMIUM).exists() and DRIVER), reason="needs /usr/bin/chromium and chromedriver"
)


@contextmanager
def browsing(profile: Path, *flags: str) -> Iterator[webdriver.Chrome]:
    """A browser that keeps what its console says."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}", *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


@cache
def shared() -> webdriver.Chrome:
    """The browser of this process, which can reach nothing but this machine."""
    until_end = ExitStack()
    atexit.register(until_end.close)
    return until_end.enter_context(browsing(Path(until_end.enter_context(TemporaryDirectory())), ONLY_HERE))


@contextmanager
def window() -> Iterator[webdriver.Chrome]:
    """A new window of the shared browser; its user finds an empty console, and goes back to the window before."""
    driver = shared()
    before = driver.current_window_handle
    complaints(driver)
    driver.switch_to.new_window("window")
    driver.set_window_size(*SIZE)
    try:
        yield driver
    finally:
        driver.close()
        driver.switch_to.window(before)


@contextmanager
def opened(page: Path, plots: int) -> Iterator[webdriver.Chrome]:
    """A browser with the page open and so many plots drawn."""
    with window() as driver:
        driver.get(page.as_uri())
        WebDriverWait(driver, 120).until(lambda _: drawn(driver) == plots)
        yield driver
        script(driver, "localStorage.clear()")  # all files are of one origin: the next page has no theme chosen


def script(browser: webdriver.Chrome, code: str, *arguments: Any) -> Any:
    return browser.execute_script(code, *arguments)


def drawn(browser: webdriver.Chrome) -> int:
    """How many plots are there without any scrolling."""
    return int(
        script(
            browser,
            "return [...document.querySelectorAll('.plot')]"
            ".filter(plot => plot.querySelector('svg.main-svg, canvas')).length",
        )
    )


def complaints(browser: webdriver.Chrome) -> list[Any]:
    """Errors and warnings in the console since the last call."""
    entries = browser.get_log("browser")  # type: ignore[no-untyped-call]
    return [entry for entry in entries if entry["level"] in ("SEVERE", "WARNING")]
