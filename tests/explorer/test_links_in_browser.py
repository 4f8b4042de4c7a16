"""Links to what is not there: one line says so, nothing else is opened in its place, and the console stays empty."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from tests.browser import script
from tests.explorer.in_browser import IN_BROWSER, drawn_folder, every, find, folder_id, go, until
from tests.explorer.serving import PREDICTED, Served
from tests.explorer.test_models_in_browser import SMALL
from tests.language.samples import corpus_file, model_folder
from topicscope.language import ProbeConfig, probe
from topicscope.sweeps import build_grid, sweep
from topicscope.training import RunConfig, train

pytestmark = [*IN_BROWSER, pytest.mark.model]

BASE: dict[str, Any] = PREDICTED | {"steps": 20, "topic_model": {"topics": 2, "words_per_topic": 2}}
FEW: dict[str, Any] = SMALL | {"iterations": 20, "documents": 10, "bootstrap": 5, "shuffles": 5, "show_documents": 1}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("data")
    runs = home / "runs"
    train(RunConfig.of(BASE | {"snapshots": [0, 20]}), runs / "run")
    axes = {"optimizer.lr": [0.01, 0.1, 1.0], "seed": [0, 1]}
    sweep(build_grid({"kind": "train", "base": BASE, "axes": axes}), runs / "grid", engine="serial")
    probe(ProbeConfig(str(model_folder(home)), str(corpus_file(home)), random=False, **FEW), runs / "probe")
    return runs


def line(browser: Chrome) -> str:
    until(browser, lambda: every(browser, "#view .ignored"))
    (found,) = every(browser, "#view .ignored")
    return found.text


@pytest.mark.parametrize("room", ["models", "maps", "time", "paper"])
def test_a_folder_that_is_not_there_is_said(browser: Chrome, served: Served, room: str) -> None:
    go(browser, served, f"/{room}?id=zzz")
    assert line(browser).startswith("The folder of this link (zzz) is not here")
    assert browser.current_url.endswith(f"/{room}?id=zzz")  # no other folder in its place
    assert script(browser, "return document.body.dataset.drawn") is None
    buttons = every(browser, "#folders button")
    if room == "paper":
        assert "Nothing has been measured yet" in find(browser, "#view").text
    else:
        (button,) = buttons
        button.click()
        drawn_folder(browser, str(button.get_attribute("data-id")))
        assert every(browser, "#view .ignored") == []
        assert re.search(r"id=[0-9a-f]{16}", browser.current_url)


def test_a_step_and_a_second_folder_that_are_not_there_are_said(browser: Chrome, served: Served) -> None:
    run, probed = folder_id(served, "run"), folder_id(served, "probe")
    go(browser, served, f"/time?id={run}&step=7")
    drawn_folder(browser, run)
    assert "Nothing is kept of the step" in line(browser)
    assert browser.current_url.endswith("step=20")
    go(browser, served, f"/models?id={probed}&beside=zzz")
    drawn_folder(browser, probed)
    assert "The folder to compare with is not here" in line(browser)
    assert "beside" not in browser.current_url


def test_a_model_that_is_not_there_is_said(browser: Chrome, served: Served) -> None:
    probed = folder_id(served, "probe")
    for number in ("99", "abc"):
        go(browser, served, f"/models?id={probed}&model={number}")
        drawn_folder(browser, probed)
        assert "The model of this link is not in this folder" in line(browser)
        assert every(browser, "[data-name^=probe-heads]")
        assert "model=" not in browser.current_url


@pytest.mark.parametrize(
    ("room", "kind", "damaged"),
    [("models", "probe", "results.json"), ("maps", "grid", "sweep.json"), ("time", "run", "metrics.jsonl")],
)
def test_a_damaged_folder_is_said_on_the_page_alone(
    browser: Chrome, served: Served, space: Path, room: str, kind: str, damaged: str
) -> None:
    folder = space / f"damaged-{kind}"
    shutil.copytree(space / kind, folder)
    (folder / damaged).write_text("x")
    go(browser, served, f"/{room}?id={folder_id(served, folder.name)}")
    until(browser, lambda: every(browser, "#view [role=alert]"))
    assert find(browser, "#view [role=alert]").text
    shutil.rmtree(folder)


def test_others_than_pages_are_refused_as_before(served: Served) -> None:
    for headers, expected in (({}, 400), ({"x-topicscope": "page"}, 200)):
        status, content, answered = served.ask("/api/models/zzz", headers=headers)
        assert (status, answered.get("x-topicscope")) == (expected, "refused" if headers else None)
        assert "no such folder" in content.decode()
    assert served.ask("/api/models/zzz", headers={"x-topicscope": "page"}, token=None)[0] == 403
