"""Training from Python: runs, folders, progress, checkpoints, results; and what training has to reach."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.settings import SMALL as ANY_RUN
from topicscope import InputError, RunConfig, Runs, read, train
from topicscope.ground import flat
from topicscope.theory import Setting, theorem2
from topicscope.training import Ensemble, config as config_module, run as run_module
from topicscope.training.data import RunData
from topicscope.training.run import block_means

SMALL = ANY_RUN | {"steps": 3, "dtype": "float64"}


def small(**more: Any) -> RunConfig:
    return RunConfig.of(SMALL | more)


def test_packs_give_the_runs_in_the_order_of_their_configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = ((4, 0.3), (1, 0.1), (7, 0.2), (1, 0.4), (2, 0.1))
    configs = [small(seed=seed, optimizer={"lr": lr}) for seed, lr in rates]
    monkeypatch.setattr(run_module, "TOGETHER", 2)
    runs, stored = train(configs, with_floors=False), train(configs, tmp_path, with_floors=False)
    assert [run.config for run in runs] == [run.config for run in stored] == configs
    assert [run.config for run in read(tmp_path)] == configs
    assert (runs.folder, stored.folder) == (None, tmp_path)
    for config, run in zip(configs, runs, strict=True):
        alone = train(config, with_floors=False)
        assert run.weights["value"] == pytest.approx(alone.weights["value"], rel=1e-10)


def test_one_config_is_a_run_and_a_list_of_one_is_a_list(tmp_path: Path) -> None:
    one, several = train(small(), tmp_path / "one"), train([small()], tmp_path / "several")
    assert isinstance(several, Runs)
    assert one.folder == tmp_path / "one"
    assert (tmp_path / "several" / "run-000" / "weights.safetensors").exists()
    assert np.array_equal(one.weights["value"], several[0].weights["value"])
    assert {"floors", "above_floor"} <= set(one.results)  # computed unless told otherwise


def test_a_folder_is_neither_resumed_nor_replaced_unasked(tmp_path: Path) -> None:
    train(small(), tmp_path, with_floors=False)
    with pytest.raises(InputError):
        train(small(), tmp_path, with_floors=False)
    again = train(small(seed=1), tmp_path, force=True, with_floors=False)
    assert again.config.seed == 1


def test_resuming_runs_only_the_packs_that_are_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two runs one is finished and the other is not: the pack is run whole, and ends in the same bytes."""
    configs = small().with_seeds(2)
    train(configs, tmp_path, with_floors=False)
    before = {path: path.read_bytes() for path in tmp_path.glob("run-*/results.json")}
    made: list[int] = []
    exact = Ensemble

    def counted(given: Sequence[RunConfig], _data: RunData) -> Ensemble:
        made.append(len(given))
        return exact(given)

    monkeypatch.setattr(run_module, "Ensemble", counted)
    (tmp_path / "about.json").write_text((tmp_path / "about.json").read_text().replace('"done"', '"running"'))
    again = train(configs, tmp_path, resume=True, with_floors=False)
    assert made == []
    assert [run.config for run in again] == configs
    for name in ("about.json", "run-001/about.json"):
        path = tmp_path / name
        path.write_text(path.read_text().replace('"done"', '"running"'))
    (tmp_path / "run-001" / "results.json").unlink()
    train(configs, tmp_path, resume=True, with_floors=False)
    assert made == [2]
    assert {path: path.read_bytes() for path in before} == before


def test_data_files_are_read_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the data file .*none\.txt cannot be read: No such file"):
        train(small(data={"train_file": str(tmp_path / "none.txt")}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


WORLD_FILES = [
    ("topic_model.matrix", [[0.5, 0.0], [0.3, 0.2], [0.2, 0.8]], [[0.1, 0.0], [0.7, 0.2], [0.2, 0.8]]),
    ("documents.proportions", [[0.5, 0.2, 0.3], [0.1, 0.6, 0.3]], [[0.2, 0.5, 0.3], [0.1, 0.6, 0.3]]),
    ("documents.covariance", [[1.0, 0.5, 0], [0.5, 1, 0], [0, 0, 1]], [[2.0, 0.5, 0], [0.5, 2, 0], [0, 0, 2]]),
]


@pytest.mark.parametrize(("name", "numbers", "others"), WORLD_FILES, ids=[name for name, _, _ in WORLD_FILES])
def test_a_run_does_not_depend_on_the_files_of_its_world(
    tmp_path: Path, name: str, numbers: list[list[float]], others: list[list[float]]
) -> None:
    """The file is changed and then deleted: the run in the folder is still the one that was trained."""
    file, (section, key) = tmp_path / "A.csv", name.split(".")
    np.savetxt(file, numbers, delimiter=",", fmt="%.17g")
    kind = {"proportions": {"kind": "given"}, "covariance": {"kind": "logistic-normal"}}.get(key, {})
    world = {"topic_model": SMALL["topic_model"], "documents": SMALL["documents"] | kind}
    world[section] = {key: str(file)} if section == "topic_model" else world[section] | {key: str(file)}
    config = RunConfig.of(SMALL | world)
    run = train(config.with_seeds(2), tmp_path / "run", with_floors=False)[1]
    same = train(config.changed({name: numbers, "seed": 1}), with_floors=False)
    assert np.array_equal(run.weights["value"], same.weights["value"])
    np.savetxt(file, others, delimiter=",", fmt="%.17g")
    assert flat(read(tmp_path / "run")[1].config.as_dict())[name] == numbers
    with pytest.raises(InputError, match="another config"):
        train(RunConfig.of(SMALL | world).with_seeds(2), tmp_path / "run", resume=True)
    file.unlink()
    assert read(tmp_path / "run")[1].config == same.config
    assert flat(run.config.as_dict())[name] == numbers


def test_a_file_that_a_config_cannot_hold_is_refused_before_work_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savetxt(tmp_path / "A.csv", np.full((4, 3), 0.25), delimiter=",")
    config = RunConfig.of(SMALL | {"topic_model": {"matrix": str(tmp_path / "A.csv")}})
    monkeypatch.setattr(config_module, "MOST_NUMBERS", 11)
    with pytest.raises(InputError, match=r"A.csv has 12 numbers; .* at most 11 per file"):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    monkeypatch.setattr(config_module, "MOST_NUMBERS", 12)
    assert train(config, tmp_path / "run", with_floors=False).status == "done"


def test_training_reaches_theorem_2_on_infinite_documents() -> None:
    """Uniform attention, squared loss, a small L2 penalty: gradient descent ends at the closed form."""
    settings = {
        "documents": {"kind": "infinite", "topics_per_document": 3},
        "data": {"documents": 120, "dev_documents": 120},
        "objective": {"loss": "squared", "l2": {"value": 1e-9}},
        "optimizer": {"name": "sgd", "lr": 12.0},
        "model": {"key": "zero", "query": "zero", "prediction_bias": "none", "init_scale": 0.0},
    }
    config = RunConfig.of(settings, steps=1500, dtype="float64", device="cpu", batch_size=120)
    run = train(config)
    exact = theorem2(Setting(config.topic_model, 3, config.masking)).matrix()
    assert np.abs(run.weights["value"] - exact).max() < 1e-6
    assert 0 <= run.results["above_floor"]["least_squares"] < 1e-9
    # without looking at the own word, uniform attention is already Bayes-optimal on infinite documents: 1 - 1 / (tau v)
    assert run.results["floors"]["bayes_topics"]["loss"] == pytest.approx(1 - 1 / 30, rel=1e-12)
    assert run.results["dev_loss"] == pytest.approx(1 - 1 / 30, rel=1e-9)


def test_no_run_is_better_than_its_floors() -> None:
    settings = {"objective": {"loss": "squared"}, "model": {"key": "zero", "query": "zero"}, "optimizer": {"lr": 0.001}}
    above = train(RunConfig.of(settings, steps=2000, device="cpu")).results["above_floor"]
    assert 0 < above["least_squares"] < 0.002
    assert above["bayes"] > above["bayes_topics"] > -0.001


def test_the_papers_run_ends_below_3_30_with_clear_blocks() -> None:
    """T = v = 10, 10,000 documents, batch 40, 5,000 steps, cross entropy, Adam .01, one-hot, attention trained."""
    run = train(RunConfig.of({"device": "cpu"}))
    assert run.results["steps"] == 5000
    assert run.results["dev_loss"] < 3.30
    assert run.results["dev_loss"] > run.results["floors"]["bayes"]["loss"]
    value, topic = run.weights["value"][1:, 1:], run.config.topic_model.topic_of_word[1:]
    same = topic[:, None] == topic
    # blocks: nearly every same-topic entry is above nearly every other one
    assert np.quantile(value[same], 0.05) > np.quantile(value[~same], 0.95)


RECORDED: dict[str, Any] = SMALL | {
    "steps": 120,
    "evaluate_every": 40,
    "checkpoint_every": 50,
    "data": {"documents": 40, "dev_documents": 10},
}
DIVERGING: dict[str, Any] = {"optimizer": {"name": "sgd", "lr": 1e3}, "objective": {"loss": "squared"}}


def recorded(**more: Any) -> RunConfig:
    return RunConfig.of(RECORDED | more)


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
    calls = progress_of(recorded().with_seeds(3))
    training = [call for call in calls if call[0] == "training"]
    # (the first pack: two models; the second: one more)
    assert [call[1] for call in training] == [0, 100, 200, 240, 240, 290, 340, 360]
    assert {call[2] for call in training} == {360}
    assert [call[:3] for call in calls if call[0] == "floors"] == [("floors", 0, 2), ("floors", 1, 2), ("floors", 0, 1)]
    assert all(re.fullmatch("loss .* steps/s", note) for _, done, _, note in training if done not in (0, 240))
    assert training[0][3] == ""
    assert not [call for call in progress_of(recorded(floors=False)) if call[0] == "floors"]
    assert not [call for call in progress_of(recorded(), with_floors=False) if call[0] == "floors"]


def test_the_loss_shown_is_that_of_the_models_still_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.perf_counter", iter(range(100)).__next__)
    runs = train(recorded(steps=50).with_seeds(2), with_floors=False)
    last = float(np.mean([run.metrics["loss"][49] for run in runs]))
    notes = [call[3] for call in progress_of(recorded(steps=50).with_seeds(2), with_floors=False)]
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
    train(recorded(**more), tmp_path / "run", with_floors=False)
    assert saved == [(tmp_path / "run" / "checkpoint.safetensors", step) for step in steps]
    saved.clear()
    train(recorded(**more), with_floors=False)
    assert saved == []


def test_a_pack_has_one_checkpoint_in_its_first_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = set()
    monkeypatch.setattr(run_module, "save_checkpoint", lambda path, *_: saved.add(path))
    rates = (0.03, 0.01, 0.02)  # run-000 is the last by learning rate
    train([recorded(optimizer={"lr": lr}) for lr in rates], tmp_path, with_floors=False)
    assert saved == {tmp_path / "run-000" / "checkpoint.safetensors"}


def test_the_environment_says_how_the_run_was_made(tmp_path: Path) -> None:
    train(recorded().with_seeds(2), tmp_path, with_floors=False)
    for name in ("run-000", "run-001"):
        about = json.loads((tmp_path / name / "environment.json").read_text())
        assert (about["device"], about["models"], about["resumed_at"]) == ("cpu", 2, None)
        assert 0 < about["wall_seconds"] < 300
        assert 0 < about["cpu_seconds"] < 300
        assert not (tmp_path / name / "checkpoint.safetensors").exists()


def test_results_against_the_figures_and_the_floors() -> None:
    run = train(recorded(steps=230))
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
    run = train(recorded(steps=400, patience=1, evaluate_every=10, optimizer={"lr": 0.3}), with_floors=False)
    assert run.status == "stopped"
    assert run.results["loss"] == pytest.approx(run.metrics["loss"][-100:].mean(), rel=1e-12)


def test_without_floors_nothing_is_said_about_them() -> None:
    for found in (train(recorded(floors=False)), train(recorded(), with_floors=False), train(recorded(**DIVERGING))):
        assert not {"floors", "above_floor"} & set(found.results)


def test_block_means_are_none_where_there_is_no_such_pair() -> None:
    matrix = np.arange(9.0).reshape(3, 3)
    assert block_means(np.array([0, 1, 2]), matrix) == {"same": None, "different": 6.0, "diagonal": 6.0}
    assert block_means(np.array([0, 1, 1]), matrix) == {"same": 6.0, "different": None, "diagonal": 6.0}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_run_that_diverges_at_once_has_no_figures(tmp_path: Path) -> None:
    """Weights so large that the first loss is no number: they are kept, and the tables are empty."""
    config = recorded(model={"init_scale": 1e6, "embedding": "trained"}, objective={"loss": "squared"}, dtype="float32")
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
    base = recorded(steps=1, optimizer={"name": "sgd"}, **settings)
    wild, tame = train([base.changed({"optimizer.lr": lr}) for lr in (1e6, 0.01)], tmp_path)
    assert (wild.status, tame.status) == ("diverged", "done")
    assert (wild.results["steps"], wild.results["dev_step"], len(wild.metrics["loss"])) == (1, 0, 1)
    start = base.model.initial(7, seed=0)
    for name, values in start.items():
        assert np.array_equal(wild.weights[name], values.astype(np.float32))
        assert not np.array_equal(tame.weights[name], values.astype(np.float32))
    assert read(tmp_path)[0].results == wild.results
    assert list(wild.results["norms"]) == ["embedding", "key", "query", "value", "prediction_bias"]


def test_snapshots_of_each_member_are_its_own(tmp_path: Path) -> None:
    configs = recorded(steps=20, snapshots=[0, 7]).with_seeds(2)
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
