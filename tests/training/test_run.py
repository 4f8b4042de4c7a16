"""Training from Python: one run and several, folders, resuming; and what training has to reach."""

from __future__ import annotations

import dataclasses
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

SMALL = ANY_RUN | {"steps": 3, "dtype": "float64"}


def small(**more: Any) -> RunConfig:
    return RunConfig.of(SMALL | more)


def test_packs_give_the_runs_in_the_order_of_their_configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = [
        dataclasses.replace(small(seed=seed), optimizer=dataclasses.replace(small().optimizer, lr=lr))
        for seed, lr in ((4, 0.3), (1, 0.1), (7, 0.2), (1, 0.4), (2, 0.1))
    ]
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


@pytest.mark.parametrize("optimizer", [{"name": "sgd", "lr": 12.0}])
def test_training_reaches_theorem_2_on_infinite_documents(optimizer: dict[str, object]) -> None:
    """Uniform attention, squared loss, a small L2 penalty: gradient descent ends at the closed form."""
    config = RunConfig.of(
        {
            "steps": 1500,
            "dtype": "float64",
            "device": "cpu",
            "batch_size": 120,
            "documents": {"kind": "infinite", "topics_per_document": 3},
            "data": {"documents": 120, "dev_documents": 120},
            "objective": {"loss": "squared", "l2": {"value": 1e-9}},
            "optimizer": optimizer,
            "model": {"key": "zero", "query": "zero", "prediction_bias": "none", "init_scale": 0.0},
        }
    )
    run = train(config)
    exact = theorem2(Setting(config.topic_model, 3, config.masking)).matrix()
    assert np.abs(run.weights["value"] - exact).max() < 1e-6
    assert 0 <= run.results["above_floor"]["least_squares"] < 1e-9
    # without looking at the own word, uniform attention is already Bayes-optimal on infinite documents: 1 - 1 / (tau v)
    assert run.results["floors"]["bayes_topics"]["loss"] == pytest.approx(1 - 1 / 30, rel=1e-12)
    assert run.results["dev_loss"] == pytest.approx(1 - 1 / 30, rel=1e-9)


def test_no_run_is_better_than_its_floors() -> None:
    config = RunConfig.of(
        {
            "steps": 2000,
            "objective": {"loss": "squared"},
            "model": {"key": "zero", "query": "zero"},
            "optimizer": {"lr": 0.001},
            "device": "cpu",
        }
    )
    above = train(config).results["above_floor"]
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
