"""Folders that version 0.2.0 wrote, one small example of each kind, are still read, shown and drawn.

The archive was written by the makers of `test_reading.py` at that version. Its numbers are those of that version, too.
"""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from topicscope import read
from topicscope.ground import parse_json, read_text
from topicscope.reading import READERS

ARCHIVE = Path(__file__).parent / "data" / "folders-0.2.0.tar.xz"
FOLDERS = {
    "train": "train",
    "runs": "train",
    "pretrain": "pretrain",
    "probe": "probe",
    "topics": "topics",
    "timeline": "timeline",
    "words": "words",
    "sweep": "sweep",
    "landscape": "landscape",
    "reproduction": "reproduce",
}
"""Folders of the archive, and the kind of each."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("old")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(place, filter="data")
    return place


def stored(folder: Path) -> Any:
    return parse_json(read_text(folder / "results.json"), "results")


def test_every_kind_is_there() -> None:
    assert set(FOLDERS.values()) == set(READERS)


@pytest.mark.parametrize("name", FOLDERS)
def test_an_old_folder_is_read(home: Path, name: str) -> None:
    result = read(home / name)
    assert result.kind == FOLDERS[name] == json.loads((home / name / "about.json").read_text())["kind"]
    assert result.summary()
    assert result.table().num_rows > 0
    assert any(section.figures for section in result.sections())


def test_numbers_are_those_that_were_written(home: Path) -> None:
    run, model, sweep = read(home / "train"), read(home / "pretrain"), read(home / "sweep")
    assert run.results == stored(home / "train")
    assert run.metrics["loss"][0] == json.loads((home / "train" / "metrics.jsonl").read_text().splitlines()[0])["loss"]
    assert set(run.weights) == {"key", "query", "value", "prediction_bias"}
    written = stored(home / "pretrain")
    assert (model.results.loss, model.results.held_out_loss) == (written["loss"], written["held_out_loss"])
    assert sweep.table().num_rows == 2
    assert [step.measure for step in read(home / "timeline").rows] == [
        row["measure"] for row in stored(home / "timeline")["timeline"]
    ]
