"""An explorer and a browser for the tests of a file; `space` is its workspace, which a file may fill."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.browser import complaints, window
from tests.explorer.serving import Served, explorer
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("space") / "runs"


@pytest.fixture(scope="module")
def served(space: Path) -> Iterator[Served]:
    with explorer(space) as one:
        yield one


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[Chrome]:
    with window() as driver:
        driver.get(served.url)
        yield driver


@pytest.fixture
def silent(browser: Chrome) -> Iterator[None]:
    """The console of the browser stays empty."""
    complaints(browser)
    yield
    assert complaints(browser) == []


@pytest.fixture
def no_run_left(served: Served) -> Iterator[None]:
    """No run of a test goes on after it: runs outlive the server."""
    yield
    for place in served.json("/api/folders"):
        if place["state"] == "running":
            served.ask(f"/api/runs/{place['id']}/stop", method="POST", body={})
    assert wait_until(lambda: all(place["state"] != "running" for place in served.json("/api/folders")))
