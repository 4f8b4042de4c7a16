"""Sweeps: the same bytes on every engine and after every interruption, with nothing lost."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.language import tiny
from tests.language.samples import corpus_file, model_folder
from tests.sweeps.samples import BASE, files, small
from topicscope import InputError, RunConfig, read, train
from topicscope.ground import read_about
from topicscope.language import probe, probe_point
from topicscope.measure import PHASES
from topicscope.sweeps import Sweep, build_grid, read_sweep, sweep
from topicscope.sweeps.run import npz, read_point


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """The small grid, swept without a fault; tests read it."""
    return sweep(small(), tmp_path_factory.mktemp("sweeps") / "whole")


def test_a_point_is_what_training_it_gives(whole: Sweep) -> None:
    grid, found = whole.grid, whole
    assert found.counts == {"done": 12, "failed": 0, "missing": 0}
    alone = train(RunConfig.of(grid.points[3].config), with_floors=False)
    row = found.rows[3]
    assert row["dev_loss"] == pytest.approx(alone.results["dev_loss"], rel=1e-5)
    assert row["contrast"] == pytest.approx(
        alone.results["value"]["same"] - alone.results["value"]["different"], rel=1e-3, abs=1e-6
    )
    assert (row["optimizer.lr"], row["model.init_scale"], row["seed"]) == (0.001, 0.1, 1)
    _, result = read_point(whole.folder, grid.points[3])
    np.testing.assert_allclose(result.curves["norm_value"], alone.metrics["norm_value"], rtol=1e-4)


def test_every_engine_gives_the_same_bytes_and_nothing_is_run_twice(tmp_path: Path, whole: Sweep) -> None:
    sweep(small(), tmp_path / "local", "local", workers=2)
    assert files(tmp_path / "local") == files(whole.folder)
    stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "local").rglob("result.json")}
    sweep(small(), tmp_path / "local")
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "local").rglob("result.json")} == stamps


def test_interrupted_and_damaged_points_are_made_again(tmp_path: Path, whole: Sweep) -> None:
    grid, out = whole.grid, tmp_path / "cut"

    def stop(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        if phase == "running points" and done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(grid, out, progress=stop)
    assert len(list((out / "points").iterdir())) == 8
    homes = sorted((out / "points").iterdir())
    (homes[0] / "result.json").write_bytes((homes[0] / "result.json").read_bytes()[:100])  # cut off
    (homes[1] / "curves.npz").write_bytes((homes[1] / "curves.npz").read_bytes()[:-20])
    found = json.loads((homes[2] / "result.json").read_text())
    found["measures"]["loss"] += 0.001
    (homes[2] / "result.json").write_text(json.dumps(found))  # whole, but not what was written
    with np.load(homes[4] / "curves.npz") as kept:
        (homes[4] / "curves.npz").write_bytes(npz({name: kept[name] + 1 for name in kept.files}))
    (homes[3] / "curves.npz").unlink()
    states = [read_point(out, point)[0] for point in grid.points]
    assert (states.count("damaged"), states.count("done"), states.count("missing")) == (5, 3, 4)
    assert sweep(grid, out).counts["done"] == 12
    assert files(out) == files(whole.folder)


def test_trouble_of_the_machine_is_no_fault_of_a_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("topicscope.training.train", full)
    with pytest.raises(OSError, match="No space left"):
        sweep(small(), tmp_path / "sweep")
    assert read_sweep(tmp_path / "sweep").counts == {"done": 0, "failed": 0, "missing": 12}
    about = read_about(tmp_path / "sweep")
    assert about is not None
    assert about.status == "running"


def test_a_point_that_diverges_is_done_and_says_so(tmp_path: Path) -> None:
    base = {**BASE, "objective": {"loss": "squared"}, "optimizer": {"name": "sgd"}}
    rows = sweep({"base": base, "axes": {"optimizer.lr": [0.01, 1e6]}}, tmp_path / "sweep").rows
    assert [row["phase"] == "diverged" for row in rows] == [False, True]
    assert rows[1]["separation" if "separation" in rows[1] else "status"] in (None, "diverged")


def test_pretraining_can_be_swept(tmp_path: Path) -> None:
    from tests.pretraining import small as texts

    (tmp_path / "texts.txt").write_text("\n".join(texts.texts()))
    base = texts.config(str(tmp_path / "texts.txt"), steps=12, snapshots="none").as_dict()
    grid = build_grid({"kind": "pretrain", "base": base, "axes": {"model.init_scale": [0.001, "usual"]}})
    found = sweep(grid, tmp_path / "sweep")
    assert found.counts["done"] == 2
    assert found.rows[0]["loss"] != found.rows[1]["loss"]
    assert {"separation_0", "separation_1"} <= set(found.rows[0])
    (tmp_path / "texts.txt").write_text("\n".join(texts.texts()[:40]))
    again = sweep(grid, tmp_path / "sweep")  # another text: another run, in a folder of its own
    assert again.counts["done"] == 2
    assert again.rows[0]["loss"] != found.rows[0]["loss"]


def test_a_sweep_reads_back_as_what_it_returned(tmp_path: Path) -> None:
    grid = small(**{"optimizer.lr": [0.001, 0.1], "seed": [0]})
    made = sweep(grid, tmp_path / "sweep")
    stored = read(tmp_path / "sweep")
    assert type(stored) is type(made)
    assert (stored.grid, stored.rows, stored.folder) == (made.grid, made.rows, made.folder)
    assert stored.summary() == made.summary() == ["Points: 2 done, 0 failed."]
    assert stored.table().column("optimizer.lr").to_pylist() == [0.001, 0.1]
    assert [list(curves["step"]) for curves in stored.curves()] == [list(range(61))] * 2
    assert repr(stored) == "Sweep(2 points of train: 2 done)"
    written = json.loads((tmp_path / "sweep" / "results.json").read_text())
    assert written == {"counts": made.counts, "rows": made.rows}
    [section] = stored.sections()
    assert section.figures[0].panels[0].z == [[PHASES.index(row["phase"]) for row in made.rows]]
    assert section.tables[0].rows[1][:3] == [made.rows[1]["point"], "0.1", "0"]


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="holds something else"):
        sweep(small(), tmp_path / "mine")
    train(RunConfig.of(BASE, device="cpu"), tmp_path / "run")
    with pytest.raises(InputError, match="holds a train folder, not a sweep folder"):
        sweep(small(), tmp_path / "run")
    with pytest.raises(InputError, match="expected serial, local, ray"):
        sweep(small(), tmp_path / "new", "spark")  # type: ignore[arg-type]


def test_probing_can_be_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of files are relative, and a point's figures are those of the probe itself."""
    monkeypatch.chdir(tmp_path)
    model_folder(tmp_path)
    corpus_file(tmp_path)
    few = dict.fromkeys(("iterations", "documents", "bootstrap", "shuffles"), 20)
    base = {"models": "model", "corpus": ["corpus.jsonl"], "topics": 4} | few
    base["thresholds"] = 6.5 / len(tiny.tokenizer("wordpiece"))
    grid = build_grid({"kind": "probe", "base": base, "axes": {"embedding": ["matrix", "layer"]}})
    found = sweep(grid, "sweep")
    assert found.counts == {"done": 2, "failed": 0, "missing": 0}
    for row, point in zip(found.rows, grid.points, strict=True):
        trained, fresh = (found_row.as_dict() for found_row in probe(probe_point(point.config)).rows)
        assert row["attention_ratio"] == trained["attention"]["ratio"]
        assert row["cosine_interval_low"] == trained["cosine"]["interval"][0]
        assert row["random_attention_difference"] == fresh["attention"]["difference"]
        assert row["attention_matched_difference"] == trained["attention"]["matched"]["difference"]
        assert (row["word_count"], row["topic_count"]) == (trained["words"], trained["topics"])
    assert found.rows[0]["cosine_same"] != found.rows[1]["cosine_same"]
    stamps = {path: path.stat().st_mtime_ns for path in Path("sweep/points").rglob("result.json")}
    sweep(grid, "sweep")
    assert {path: path.stat().st_mtime_ns for path in Path("sweep/points").rglob("result.json")} == stamps
    text = Path("corpus.jsonl").read_text().splitlines()
    Path("corpus.jsonl").write_text("\n".join(text[:60]) + "\n")  # the same name, another text
    assert Sweep.of(grid, "sweep", fresh=True).counts["missing"] == 2
    assert read_sweep("sweep").counts["done"] == 2  # what was measured can still be looked at
    again = sweep(grid, "sweep")
    assert again.rows[0]["attention_same"] != found.rows[0]["attention_same"]
    alone = probe(probe_point(grid.points[0].config)).rows[0].as_dict()
    assert again.rows[0]["attention_ratio"] == alone["attention"]["ratio"]
