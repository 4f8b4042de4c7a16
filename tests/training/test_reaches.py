"""What training has to reach: the closed form, the floors, and the paper's run."""

from __future__ import annotations

import numpy as np
import pytest

from topicscope import RunConfig, train
from topicscope.theory import Setting, theorem2


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
