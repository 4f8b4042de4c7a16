"""What a run leaves behind: progress, checkpoints, and its results."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from topicscope import RunConfig, Runs, read, train
from topicscope.training import run as run_module
from topicscope.training.run import block_means

SMALL: dict[str, Any] = {
    "steps": 120,
    "evaluate_every": 40,
    "checkpoint_every": 50,
    "device": "cpu",
    "batch_size": 4,
    "topic_model": {"topics": 3, "words_per_topic": 2},
    "documents": {"length": 9},
    "data": {"documents": 40, "dev_documents": 10},
    "dtype": "float64",
}
DIVERGING: dict[str, Any] = {"optimizer": {"name": "sgd", "lr": 1e3}, "objective": {"loss": "squared"}}


def small(**more: Any) -> RunConfig:
    return RunConfig.of(SMALL | more)


def with_rates(config: RunConfig, *rates: float) -> list[RunConfig]:
    return [dataclasses.replace(config, optimizer=dataclasses.replace(config.optimizer, lr=lr)) for lr in rates]


def progress_of(configs: Any, **more: Any) -> list[tuple[Any, ...]]:
    """What is reported, as (phase, done, total, note). What is not told is as `Progress` has it."""
    calls: list[tuple[Any, ...]] = []

    def note_down(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        calls.append((phase, done, total, note))

    train(configs, progress=note_down, **more)
    return calls


def test_progress_counts_the_steps_of_all_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three models in packs of two: 3 x 120 model-steps, reported after each block of 50."""
    monkeypatch.setattr(run_module, "TOGETHER", 2)
    calls = progress_of(small().with_seeds(3))
    training = [call for call in calls if call[0] == "training"]
    # (the first pack: two models; the second: one more)
    assert [call[1] for call in training] == [0, 100, 200, 240, 240, 290, 340, 360]
    assert {call[2] for call in training} == {360}
    assert [call[:3] for call in calls if call[0] == "floors"] == [("floors", 0, 2), ("floors", 1, 2), ("floors", 0, 1)]
    for phase, done, _, note in training:
        if done not in (0, 240):
            assert phase == "training"
            assert note.startswith("loss ")
            assert note.endswith(" steps/s")
    assert training[0][3] == ""
    assert not [call for call in progress_of(small(floors=False)) if call[0] == "floors"]
    assert not [call for call in progress_of(small(), with_floors=False) if call[0] == "floors"]


def test_the_loss_shown_is_that_of_the_models_still_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.perf_counter", iter(range(100)).__next__)
    runs = train(small(steps=50).with_seeds(2), with_floors=False)
    last = float(np.mean([run.metrics["loss"][49] for run in runs]))
    notes = [call[3] for call in progress_of(small(steps=50).with_seeds(2), with_floors=False)]
    assert notes[1].split(", ")[0] == f"loss {last:.4f}"
    assert notes[1].split(", ")[1] == "100 steps/s"  # 2 x 50 steps, and a second between two looks at the clock


@pytest.mark.parametrize(
    ("more", "steps"),
    [
        ({}, [50, 100]),
        ({"checkpoint_every": 51}, [100]),
        ({"checkpoint_every": 100, "steps": 250}, [100, 200]),
        ({"checkpoint_every": 1, "steps": 100}, [50]),  # none at the end: the run is whole then
        ({"checkpoint_every": None}, []),
        (DIVERGING, []),  # nor where nothing runs any more
    ],
)
def test_checkpoints_are_saved_when_they_are_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], steps: list[int]
) -> None:
    saved: list[tuple[Path, int]] = []
    monkeypatch.setattr(run_module, "save_checkpoint", lambda path, ensemble, _: saved.append((path, ensemble.step)))
    train(small(**more), tmp_path / "run", with_floors=False)
    assert saved == [(tmp_path / "run" / "checkpoint.safetensors", step) for step in steps]
    saved.clear()
    train(small(**more), with_floors=False)
    assert saved == []


def test_a_pack_has_one_checkpoint_in_its_first_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = set()
    monkeypatch.setattr(run_module, "save_checkpoint", lambda path, *_: saved.add(path))
    train(with_rates(small(), 0.03, 0.01, 0.02), tmp_path, with_floors=False)  # run-000 is the last by learning rate
    assert saved == {tmp_path / "run-000" / "checkpoint.safetensors"}


def test_the_environment_says_how_the_run_was_made(tmp_path: Path) -> None:
    train(small().with_seeds(2), tmp_path, with_floors=False)
    for name in ("run-000", "run-001"):
        about = json.loads((tmp_path / name / "environment.json").read_text())
        assert (about["device"], about["models"], about["resumed_at"]) == ("cpu", 2, None)
        assert 0 < about["wall_seconds"] < 300
        assert 0 < about["cpu_seconds"] < 300
        assert not (tmp_path / name / "checkpoint.safetensors").exists()


def test_results_against_the_figures_and_the_floors() -> None:
    run = train(small(steps=230))
    found = run.results
    assert (found["status"], found["seed"], found["steps"]) == ("done", 0, 230)
    assert found["loss"] == pytest.approx(run.metrics["loss"][130:230].mean(), rel=1e-12)  # the last 100 steps
    dev = {step: loss for step, loss in enumerate(run.metrics["dev_loss"].tolist()) if not np.isnan(loss)}
    assert list(dev) == [0, 40, 80, 120, 160, 200, 230]
    assert (found["dev_loss"], found["dev_step"]) == (dev[230], 230)
    assert found["best_dev_loss"] == min(dev.values())
    assert dev[found["best_step"]] == found["best_dev_loss"]
    assert found["norms"] == {
        name: pytest.approx(np.linalg.norm(run.weights[name])) for name in ("key", "query", "value", "prediction_bias")
    }
    for name in ("bayes", "bayes_topics"):
        assert found["above_floor"][name] == dev[230] - found["floors"][name]["loss"]
    assert "floor_dev_loss" not in found  # the floor has all documents
    assert run.facts()["standard error of the gap"] == found["above_floor_error"]["bayes"] > 0
    assert found["course"]["sentence"] == run.course.sentence if run.course is not None else "course" not in found
    assert "gram" not in found
    assert run.metrics["step"].tolist() == list(range(231))


def test_a_run_that_stops_early_has_its_last_hundred_losses() -> None:
    """Its last row has a loss too, since the step was begun; the mean is over the last hundred all the same."""
    run = train(small(steps=400, patience=1, evaluate_every=10, optimizer={"lr": 0.3}), with_floors=False)
    assert run.status == "stopped"
    assert run.results["loss"] == pytest.approx(run.metrics["loss"][-100:].mean(), rel=1e-12)


def test_without_floors_nothing_is_said_about_them() -> None:
    for found in (train(small(floors=False)), train(small(), with_floors=False), train(small(**DIVERGING))):
        assert not {"floors", "above_floor"} & set(found.results)


def test_block_means_are_none_where_there_is_no_such_pair() -> None:
    matrix = np.arange(9.0).reshape(3, 3)
    assert block_means(np.array([0, 1, 2]), matrix) == {"same": None, "different": 6.0, "diagonal": 6.0}
    assert block_means(np.array([0, 1, 1]), matrix) == {"same": 6.0, "different": None, "diagonal": 6.0}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_run_that_diverges_at_once_has_no_figures(tmp_path: Path) -> None:
    """Weights so large that the first loss is no number: they are kept, and the tables are empty."""
    config = small(model={"init_scale": 1e6, "embedding": "trained"}, objective={"loss": "squared"}, dtype="float32")
    run = train(config, tmp_path)
    assert (run.status, run.results["steps"], run.results["loss"]) == ("diverged", 0, None)
    assert "dev_loss" not in run.results
    assert all(len(column) == 0 for column in run.metrics.values())
    assert np.isfinite(run.weights["value"]).all()
    assert min(run.results["norms"][name] for name in ("key", "query", "value")) > 1e6
    assert read(tmp_path).results == run.results


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_run_whose_last_step_is_one_too_far_keeps_the_weights_before_it(tmp_path: Path) -> None:
    # a penalty as large as it may be takes the weights beyond all numbers of float32 in one step
    settings = {"objective": {"loss": "squared", "l2": 1e6}, "model": {"embedding": "trained"}, "dtype": "float32"}
    base = small(steps=1, optimizer={"name": "sgd"}, **settings)
    wild, tame = train(with_rates(base, 1e6, 0.01), tmp_path)
    assert (wild.status, tame.status) == ("diverged", "done")
    assert (wild.results["steps"], wild.results["dev_step"], len(wild.metrics["loss"])) == (1, 0, 1)
    start = base.model.initial(7, seed=0)
    for name, values in start.items():
        assert np.array_equal(wild.weights[name], values.astype(np.float32))
        assert not np.array_equal(tame.weights[name], values.astype(np.float32))
    assert read(tmp_path)[0].results == wild.results
    assert list(wild.results["norms"]) == ["embedding", "key", "query", "value", "prediction_bias"]


def test_snapshots_of_each_member_are_its_own(tmp_path: Path) -> None:
    configs = small(steps=20, snapshots=[0, 7]).with_seeds(2)
    kept, stored = train(configs, with_floors=False), train(configs, tmp_path, with_floors=False)
    again = read(tmp_path)
    assert isinstance(again, Runs)
    for i, run in enumerate(kept):
        names = sorted(path.name for path in (tmp_path / f"run-00{i}" / "snapshots").iterdir())
        assert names == ["step-000000.safetensors", "step-000007.safetensors"]
        for step in (0, 7):
            for other in (stored[i], again[i]):
                assert np.array_equal(run.snapshots[step]["value"], other.snapshots[step]["value"])
    assert not np.array_equal(kept[0].snapshots[7]["value"], kept[1].snapshots[7]["value"])
