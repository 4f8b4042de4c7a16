from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from topicscope import InputError, RunConfig, Schedule
from topicscope.ground import gather, load_settings
from topicscope.training import Phase


def test_a_written_config_reads_back_the_same(tmp_path: Path) -> None:
    config = RunConfig.of(
        {"optimizer": {"lr": 0.3}, "objective": {"l2": {"value": 1e-3}}, "documents": {"kind": "infinite"}, "steps": 7},
        schedule="two-stage",
    )
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config.as_dict()))
    assert RunConfig.of(load_settings(tmp_path / "config.yaml")) == config
    assert config.documents.length == "infinite"


def test_assignments_reach_every_section() -> None:
    settings = gather(
        None,
        {"steps": 5},
        [
            "optimizer.lr=1e-3",
            "documents.length=[3, 9]",
            "topic_model.word_probabilities=[0.5,0.5]",
            "topic_model.words_per_topic=2",
        ],
    )
    config = RunConfig.of(settings)
    assert (config.steps, config.optimizer.lr, config.documents.length, config.topic_model.word_probabilities) == (
        5,
        0.001,
        (3, 9),
        [0.5, 0.5],
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimiser": {}}, "unknown key 'optimiser'; did you mean 'optimizer'"),
        ({"optimizer": {"learning_rate": 1}}, "unknown key 'optimizer.learning_rate'"),
        ({"topic_model": {"word_per_topic": 1}}, "did you mean 'words_per_topic'"),
        ({"masking": {"p_mask": 0}}, "masking.p_mask = 0"),
        ({"masking": {"p_correct": 0.6, "p_random": 0.6}}, "p_correct \\+ p_random = 1.2 is more than 1"),
        ({"topic_model": {"words_per_topic": 0}}, "words_per_topic = 0"),
        (
            {"documents": {"kind": "fixed", "topics_per_document": 11}},
            "topics_per_document = 11 is more than topics = 10",
        ),
        ({"model": {"dim": 5}}, "needs dim = topics \\* words_per_topic \\+ 1 = 101"),
        ({"version": 1, "new_key": 1}, "version 1: this topicscope reads version 2"),
        ({"steps": 3, "epochs": 1}, "both given"),
        ({"objective": {"l2": {"embedding": 1}}}, "part 'embedding' is not trained"),
        ({"objective": {"loss": "hinge"}}, "objective.loss = 'hinge'"),
        ({"schedule": {"phases": [{"parts": ["values"]}]}}, "unknown part 'values'; did you mean 'value'"),
        ({"schedule": {"phases": [{"parts": ["value"]}, {"parts": ["key"], "steps": 2}]}}, "only the last phase"),
        ({"documents": {"kind": "given"}}, "proportions"),
        ({"documents": {"length": [5, 3]}}, "length"),
        ({"topic_model": {"word_probabilities": [0.5, 0.5]}}, "shape"),
        (
            {"model": {"key": "zero", "query": "zero", "value": "identity", "prediction_bias": "none"}},
            "every part of the model is frozen",
        ),
        ({"device": "tpu"}, "device = 'tpu'"),
    ],
)
def test_bad_settings_get_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        RunConfig.of(settings)
    assert "\n" not in str(error.value)


def test_schedules_are_data() -> None:
    trained = ("key", "query", "value")
    two = RunConfig.of({"steps": 10}, schedule="two-stage").schedule
    assert [two.active(s, trained) for s in (0, 4, 5, 9, 99)] == [
        ("value",),
        ("value",),
        ("key", "query"),
        ("key", "query"),
        ("key", "query"),
    ]
    turn = Schedule([Phase(["value"], 2), Phase(["key", "query"], 1)], repeat=True)
    assert [turn.active(s, trained) for s in range(5)] == [
        ("value",),
        ("value",),
        ("key", "query"),
        ("value",),
        ("value",),
    ]
    assert turn.groups(trained) == [("key", "query"), ("value",)]
    assert Schedule().groups(trained) == [trained]
    with pytest.raises(InputError, match="needs a trained key or query"):
        RunConfig.of({"model": {"key": "zero", "query": "zero"}}, schedule="two-stage")


def test_steps_and_epochs() -> None:
    assert RunConfig().total_steps == 5000
    assert dataclasses.replace(RunConfig(), epochs=2).total_steps == 500
    assert dataclasses.replace(RunConfig(), steps=3).total_steps == 3
