"""A run as it goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.training.settings import paused
from topicscope.ground import METRICS, InputError, Interrupted, read_metrics
from topicscope.measure import stage_bands, stages
from topicscope.training import Ensemble, RunConfig, WatchedRun, ask_to_pause, ask_to_stop, read_run, train
from topicscope.training.data import RunData
from topicscope.training.result import MOST_ROWS, HeldRows

CONFIG = RunConfig.of(
    topic_model={"topics": 3, "words_per_topic": 2},
    data={"documents": 40, "dev_documents": 20},
    batch_size=5,
    steps=400,
    evaluate_every=100,
    snapshots=[0, 100, 400],
    floors=False,
    device="cpu",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watched") / "run"
    train(CONFIG, folder)
    return folder


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return set(one) == set(other) and all(np.array_equal(one[name], other[name], equal_nan=True) for name in one)


@pytest.mark.parametrize("cuts", [[], [1, 7, 8, 5000], list(range(0, 60_000, 997))])
def test_however_the_file_grows_it_is_read_as_a_whole(finished: Path, tmp_path: Path, cuts: list[int]) -> None:
    content = (finished / METRICS).read_bytes()
    (tmp_path / "config.yaml").write_bytes((finished / "config.yaml").read_bytes())
    watched = WatchedRun(tmp_path)
    assert not watched.update()
    for end in [*(cut for cut in cuts if cut < len(content)), len(content)]:
        (tmp_path / METRICS).write_bytes(content[:end])
        watched.update()
    assert not watched.update()
    assert watched.steps == 400
    assert same(watched.held.columns, read_metrics(finished))


def test_a_file_that_was_cut_back_is_read_anew(finished: Path, tmp_path: Path) -> None:
    content = (finished / METRICS).read_bytes()
    lines = content.splitlines(keepends=True)
    (tmp_path / "config.yaml").write_bytes((finished / "config.yaml").read_bytes())
    (tmp_path / METRICS).write_bytes(b"".join(lines[:300]))
    watched = WatchedRun(tmp_path)
    watched.update()
    (tmp_path / METRICS).write_bytes(b"".join(lines[:200]))
    assert watched.update()
    assert watched.steps == 199
    assert np.array_equal(watched.held.columns["step"], np.arange(200.0))


def line(step: int, loss: float, norm: float, dev: float | None = None) -> str:
    measured = "" if dev is None else f', "dev_loss": {dev}'
    return f'{{"step": {step}, "loss": {loss}, "norm_value": {norm}{measured}}}'


@pytest.mark.parametrize("block", [7, 1000, 30_000])
def test_of_a_long_run_a_bounded_number_of_rows_is_held(block: int) -> None:
    """All that is left out lies between the rows that are held, in steps and in losses."""
    losses = np.random.default_rng(0).normal(size=30_001).round(6)
    losses[12_345], losses[20_501] = 50.0, -40.0
    lines = [
        line(step, loss, 0.5 * step, 1.0 + step if step % 1000 == 0 else None).encode()
        for step, loss in enumerate(losses)
    ]
    held = HeldRows(most=1001)
    for start in range(0, len(lines), block):
        held.add(lines[start : start + block])
        assert len(held) <= 1001
        assert len(held.waiting) < held.group
    columns = held.columns
    steps = columns["step"].astype(int)
    assert held.count == 30_001
    assert 500 < len(steps) <= 1002
    assert (steps[0], steps[-1]) == (0, 30_000)
    assert {12_345, 20_501} <= set(steps)  # what sticks out
    assert (np.diff(steps) > 0).all()
    assert np.diff(steps).max() < 2 * held.group
    np.testing.assert_array_equal(columns["loss"], losses[steps])
    np.testing.assert_array_equal(columns["norm_value"], 0.5 * steps)
    measured = np.isfinite(columns["dev_loss"])
    assert list(steps[measured]) == list(range(0, 30_001, 1000))  # no dev loss is lost
    np.testing.assert_array_equal(columns["dev_loss"][measured], 1.0 + steps[measured])


def test_a_group_without_losses_keeps_two_rows() -> None:
    held = HeldRows(most=9)
    held.add([f'{{"step": {step}}}'.encode() for step in range(40)])
    steps = held.columns["step"]
    assert (steps[0], steps[-1]) == (0.0, 39.0)
    assert len(steps) <= 10
    assert np.isnan(held.columns["dev_loss"]).all()


def test_stages_of_held_rows_are_those_of_the_run(tmp_path: Path) -> None:
    """Norms that rise at known steps, over more rows than are held; what is shown names steps, not rows."""
    (tmp_path / "config.yaml").write_text("steps: 40000\n")
    steps = np.arange(40_001)
    value, key = 1 + 9 / (1 + np.exp((4000 - steps) / 300)), 1 + 9 / (1 + np.exp((20_000 - steps) / 300))
    columns = {"step": steps, "loss": 2 - 1e-6 * steps, "norm_value": value, "norm_key": key, "norm_query": key}
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    (tmp_path / METRICS).write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows))
    watched = WatchedRun(tmp_path)
    assert watched.update()
    run = watched.run()
    assert run.results["steps"] == 40_000
    assert len(run.metrics["step"]) <= MOST_ROWS + 1
    assert run.results["loss"] == pytest.approx(columns["loss"][-100:].mean(), rel=1e-12)
    full, held = stages(columns), stages(run.metrics)
    assert full.value == pytest.approx(4000, abs=1)
    assert held.value == pytest.approx(full.value, abs=watched.held.group)
    assert held.key == pytest.approx(full.key, abs=watched.held.group)
    (_, begins, _), (_, end, _) = stage_bands(run.metrics)
    assert begins == pytest.approx(stages(columns, 0.1).key, abs=watched.held.group)
    assert end == 40_000
    assert run.course is not None
    assert run.course.phase == "two-stage"


def test_damaged_lines_are_an_input_error(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes((finished / "config.yaml").read_bytes())
    (tmp_path / METRICS).write_bytes(b'{"step": 0, "loss": 1}\n{"step": oh}\n')
    with pytest.raises(InputError, match="is damaged"):
        WatchedRun(tmp_path).update()


def test_it_shows_the_weights_of_a_step(finished: Path) -> None:
    watched, whole = WatchedRun(finished), read_run(finished)
    watched.update()
    assert watched.snapshot_steps() == [0, 100, 400]
    assert np.array_equal(watched.run(100).weights["value"], whole.snapshots[100]["value"])  # type: ignore[union-attr]
    assert watched.run(100).shown_step == 100
    assert watched.run().shown_step is None
    assert np.array_equal(watched.run().weights["value"], whole.weights["value"])  # type: ignore[union-attr]
    with pytest.raises(InputError, match="no weights are kept of step 50"):
        watched.run(50)


def test_a_run_that_is_paused_and_resumed_ends_in_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    paused(CONFIG, folder, 150)
    assert not (folder / "pause").exists()
    ask_to_pause(folder)  # of a run that is not going on: the next one does not mind
    train(CONFIG, folder, resume=True)
    for name in (METRICS, "weights.safetensors", "results.json"):
        assert (folder / name).read_bytes() == (finished / name).read_bytes(), name
    assert not (folder / "checkpoint.safetensors").exists()


def test_a_run_that_is_stopped_is_the_run_of_so_many_steps(tmp_path: Path) -> None:
    """It ends for good, with results; the steps until then are those of the whole run."""
    folder = tmp_path / "run"

    def progress(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        if done == 150:
            ask_to_stop(folder)

    stopped = train(CONFIG, folder, progress=progress)
    shorter = train(CONFIG.changed({"steps": 150, "snapshots": [0, 100]}), tmp_path / "shorter")
    assert (stopped.status, shorter.status) == ("stopped", "done")
    assert (folder / METRICS).read_bytes() == (tmp_path / "shorter" / METRICS).read_bytes()
    assert stopped.results | {"status": "done"} == shorter.results
    assert not (folder / "stop").exists()
    assert not (folder / "checkpoint.safetensors").exists()
    assert read_run(folder).status == "stopped"  # type: ignore[union-attr]


def test_a_wish_that_comes_before_the_first_step_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is there, and its data are being made."""

    def slow(configs: Sequence[RunConfig], _data: RunData) -> Ensemble:
        ask_to_pause(tmp_path / "run")
        return Ensemble(configs)

    monkeypatch.setattr("topicscope.training.run.Ensemble", slow)
    with pytest.raises(Interrupted, match=r"paused at step 50; "):
        train(CONFIG, tmp_path / "run")
