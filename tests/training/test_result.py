"""A run that is finished, from its folder and in words; and one that goes on."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sealed import rewrite
from tests.training.settings import SMALL, paused
from topicscope import InputError, RunConfig, Runs, read, train
from topicscope.ground import METRICS, Interrupted, read_metrics
from topicscope.measure import stage_bands, stages
from topicscope.training import (
    Ensemble,
    Run,
    RunData,
    WatchedRun,
    ask_to_pause,
    ask_to_stop,
    read_run,
    stored_configs,
)
from topicscope.training.result import MOST_ROWS, HeldRows


def run_with(results: dict[str, Any], status: str = "done", seed: int = 0) -> Run:
    return Run(RunConfig(seed=seed), status, {"steps": 1500, "loss": 1.0} | results, {"step": np.arange(2.0)}, {})


def test_facts_are_those_that_the_run_has() -> None:
    run = run_with({"dev_loss": 3.0, "value": {"same": 0.5, "different": None}, "course": {"t50_key": 7}})
    assert run.facts() == {
        "steps": 1500,
        "training loss (last 100 steps)": 1.0,
        "dev loss": 3.0,
        "W_V, same topic": 0.5,
        "half of key's rise at step": 7,
    }


def test_sentences_of_one_run() -> None:
    assert run_with({"dev_loss": 3.25}, seed=4).summary() == ["Seed 4: dev loss 3.25 after 1,500 steps."]
    assert run_with({"dev_loss": 3.25, "above_floor": {"bayes": 0.125}}).summary() == [
        "Seed 0: dev loss 3.25 after 1,500 steps, 0.125 above the best possible (Bayes)."
    ]
    (diverged,) = run_with({}, "diverged", 2).summary()
    assert diverged.startswith("Seed 2 diverged at step 1500: loss or weights are no longer finite.")
    whole = train(RunConfig.of(SMALL))
    assert whole.course is not None
    assert whole.summary()[1:] == [whole.course.sentence]


def test_sentences_of_several_runs() -> None:
    runs = [run_with({"dev_loss": loss}, seed=i) for i, loss in enumerate((1.0, 2.0, 6.0))]
    assert Runs(runs).summary() == ["3 runs: dev loss 3 on average (sd 2.6)."]
    assert Runs(runs[:2]).summary() == ["2 runs: dev loss 1.5 on average (sd 0.71)."]
    assert Runs(runs[:1]).summary() == runs[0].summary()
    lost = run_with({"dev_loss": 50.0}, "diverged", 9)  # of its start: no loss of a run's end
    assert Runs([*runs, lost]).summary() == ["4 runs: dev loss 3 on average (sd 2.6).", *lost.summary()]
    assert Runs([runs[0], lost]).summary() == [*runs[0].summary(), *lost.summary()]


def test_tables_and_short_names() -> None:
    runs = Runs(run_with({"dev_loss": 1.5}, seed=seed) for seed in range(7))
    assert runs.table().to_pylist()[6] == {"seed": 6} | runs[6].facts()
    assert runs[0].table().to_pydict() == {"step": [0.0, 1.0]}
    assert repr(runs) == "Runs(7 runs, seeds 0, 1, 2, 3, 4, ...)"
    assert repr(runs[3]) == "Run(seed 3, done, 1,500 steps)"
    assert runs.folder is None


def test_no_course_where_key_query_and_value_are_not_all_trained() -> None:
    for model in ({"key": "zero"}, {"query": "zero"}, {"value": "identity"}):
        run = train(RunConfig.of(SMALL | {"model": model}), with_floors=False)
        assert run.course is None
        assert "course" not in run.results


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_run_comes_back_from_its_folder(tmp_path: Path, dtype: str) -> None:
    """Every figure exactly: a float of 32 bits needs 9 digits, one of 64 bits 17."""
    run = train(RunConfig.of(SMALL | {"steps": 12, "dtype": dtype, "snapshots": [0, 4]}), tmp_path)
    back = read_run(tmp_path)
    assert isinstance(back, Run)
    assert (back.config, back.status, back.results, back.folder) == (run.config, "done", run.results, tmp_path)
    real = np.dtype(dtype)
    assert set(back.metrics) == set(run.metrics)
    for name, values in run.metrics.items():
        exact = name not in ("rotation", "dev_loss")  # worked out in 64 bits
        stored = back.metrics[name].astype(real)
        np.testing.assert_allclose(stored, values.astype(real), rtol=0 if exact else 1e-8)
    assert all(np.array_equal(back.weights[name], values) for name, values in run.weights.items())
    assert set(back.weights) == set(run.weights)
    assert list(back.snapshots) == [0, 4]
    first = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[0], parse_float=str)
    written = (
        figure.partition("e")[0].replace(".", "").lstrip("-0") for figure in first.values() if isinstance(figure, str)
    )
    assert max(map(len, written)) == {"float32": 9, "float64": 17}[dtype]


def test_several_runs_come_back_in_order(tmp_path: Path) -> None:
    configs = RunConfig.of(SMALL).with_seeds(3)
    train(configs, tmp_path, with_floors=False)
    back = read(tmp_path)
    assert isinstance(back, Runs)
    assert [run.config.seed for run in back] == [0, 1, 2]
    assert back.folder == tmp_path
    assert stored_configs(tmp_path) == configs
    assert stored_configs(tmp_path / "run-001") == configs[1]


def test_damaged_results_are_refused_and_the_least_is_enough(tmp_path: Path) -> None:
    run = train(RunConfig.of(SMALL), tmp_path, with_floors=False)
    damaged: list[Any] = [[], {"status": "done", "steps": 4}, "done"]
    for results in damaged:
        rewrite(tmp_path, "results.json", json.dumps(results))
        with pytest.raises(InputError, match="is damaged: it holds no results of a run; train again"):
            read_run(tmp_path)
    least = {"status": "done", "steps": 4, "loss": 1.0}
    rewrite(tmp_path, "results.json", json.dumps(least))
    assert read(tmp_path).results == least
    (tmp_path / "results.json").write_text(json.dumps(run.results | {"loss": 0.0}))
    with pytest.raises(InputError, match=r"results\.json is damaged: it is not what topicscope wrote; make"):
        read_run(tmp_path)


def test_configs_are_of_runs_that_were_begun(tmp_path: Path) -> None:
    config = RunConfig.of(SMALL)
    with pytest.raises(InputError, match=r"holds no run to resume; leave resume \(--resume\) out to start one there"):
        stored_configs(tmp_path)
    train(config, tmp_path / "run", with_floors=False)
    assert stored_configs(tmp_path / "run") == config
    about = tmp_path / "run" / "about.json"
    whole = json.loads(about.read_text())
    changes = {"status": ("starting", "holds no run to resume"), "kind": ("sweep", "was made by 'topicscope sweep'")}
    for name, (value, said) in changes.items():
        about.write_text(json.dumps(whole | {name: value}))
        with pytest.raises(InputError, match=said):
            stored_configs(tmp_path / "run")
    about.write_text(json.dumps(whole | {"status": "running"}))
    assert stored_configs(tmp_path / "run") == config


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


def test_a_file_that_was_cut_back_is_read_anew_and_damaged_lines_are_refused(finished: Path, tmp_path: Path) -> None:
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
    (tmp_path / METRICS).write_bytes(b'{"step": 0, "loss": 1}\n{"step": oh}\n')
    with pytest.raises(InputError, match="is damaged"):
        watched.update()


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
