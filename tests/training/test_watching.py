"""A run as it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from topicscope.ground import METRICS, InputError, Interrupted, read_metrics
from topicscope.training import Ensemble, RunConfig, WatchedRun, ask_to_pause, ask_to_stop, read_run, train

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
    assert same(watched.columns, read_metrics(finished))


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
    assert np.array_equal(watched.columns["step"], np.arange(200.0))


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
    asked: list[int] = []

    def progress(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        if done >= 150 and not asked:
            asked.append(int(done))
            ask_to_pause(folder)

    with pytest.raises(Interrupted, match=r"paused at step 150; "):
        train(CONFIG, folder, progress=progress)
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

    def slow(configs: Sequence[RunConfig]) -> Ensemble:
        ask_to_pause(tmp_path / "run")
        return Ensemble(configs)

    monkeypatch.setattr("topicscope.training.run.Ensemble", slow)
    with pytest.raises(Interrupted, match=r"paused at step 50; "):
        train(CONFIG, tmp_path / "run")
