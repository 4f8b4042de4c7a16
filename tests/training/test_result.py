"""A finished run: its sentences, tables and facts, and how it comes back from its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sealed import rewrite
from tests.training.settings import SMALL
from topicscope import InputError, RunConfig, Runs, read, train
from topicscope.training import Run, stored_configs
from topicscope.training.result import read_run


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
    for results in ([], {"status": "done", "steps": 4}, "done"):
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
