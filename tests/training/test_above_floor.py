"""The distance to a floor: the same documents for both, and its error document by document."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.training.settings import SMALL
from topicscope import RunConfig, train
from topicscope.model import Weights
from topicscope.theory import bayes_loss
from topicscope.training import RunData, data
from topicscope.world import InfiniteDocuments, MaskedDocuments, stack

ZIPF = {"topics": 3, "words_per_topic": 4, "zipf": 1.0}
OVERLAP = {"topics": 3, "words_per_topic": 4, "overlap": 0.25}


def losses_one_by_one(run: Any, count: int) -> list[float]:
    """The model on dev sets of one document each."""
    config, of = run.config, RunData(run.config)
    dev, trained = of.task.dev, config.model.trained_shapes(config.topic_model.vocabulary)
    assert isinstance(dev, MaskedDocuments)
    frozen = {name: part for name, part in run.weights.items() if name not in trained}
    weights = Weights([{name: run.weights[name] for name in trained}], frozen, dtype=torch.float64)
    losses = []
    for i in range(count):
        single = MaskedDocuments(dev.documents.take(slice(i, i + 1)), dev.masks.take(np.array([i])))
        (rows,) = single.batches(
            config.topic_model, config.masking, np.dtype("float64"), **config.model.layout._asdict()
        )
        losses.append(config.model.loss(weights, config.objective, stack([rows], torch.float64)).item())
    return losses


@pytest.mark.parametrize("loss", ["cross-entropy", "squared", "squared-mean"])
@pytest.mark.parametrize(
    "model", [{}, {"key": "zero", "query": "zero"}, {"embedding": "trained", "dim": 3, "prediction_bias": 0.2}]
)
def test_losses_of_documents_are_those_of_dev_sets_of_one(loss: str, model: dict[str, Any]) -> None:
    run = train(RunConfig.of(SMALL | {"model": model, "objective": {"loss": loss}}, dtype="float64"), with_floors=False)
    found = RunData(run.config).task.dev_losses(run.weights, 10)
    assert found == pytest.approx(losses_one_by_one(run, 10), rel=1e-12)
    assert found.mean() == pytest.approx(run.results["dev_loss"], rel=1e-12)
    assert found.std() > 0


@pytest.mark.parametrize(("topic_model", "few"), [(ZIPF, "UNEQUAL_DOCUMENTS"), (OVERLAP, "ESTIMATED_DOCUMENTS")])
def test_a_floor_of_few_documents_is_compared_with_the_loss_on_them(
    monkeypatch: pytest.MonkeyPatch, topic_model: dict[str, Any], few: str
) -> None:
    monkeypatch.setattr(data, few, 4)
    run = train(RunConfig.of(SMALL | {"topic_model": topic_model}, dtype="float64"))
    config, dev, found = run.config, RunData(run.config).task.dev, run.results
    assert isinstance(dev, MaskedDocuments)
    own = np.array(losses_one_by_one(run, 4))
    for name, own_word in (("bayes", True), ("bayes_topics", False)):
        floor = bayes_loss(
            "cross-entropy", config.topic_model, config.documents, config.masking, dev.first(4), own_word=own_word
        )
        assert floor.costs is not None
        assert floor.costs.mean() == pytest.approx(floor.loss, rel=1e-12)
        assert found["above_floor"][name] == pytest.approx((own - floor.costs).mean(), rel=1e-9)
        assert found["above_floor_error"][name] == pytest.approx(np.std(own - floor.costs) / 2, rel=1e-9)
    assert found["floor_dev_loss"] == pytest.approx(own.mean(), rel=1e-12)
    # the whole dev set would have given another difference
    assert abs(found["dev_loss"] - found["floors"]["bayes"]["loss"] - found["above_floor"]["bayes"]) > 1e-3
    (sentence, *_) = run.summary()
    assert "on the first 4 dev documents; standard error " in sentence
    assert ("numerical error of the estimated floor" in sentence) == (few == "ESTIMATED_DOCUMENTS")


def test_where_the_floor_has_all_documents_the_difference_is_that_of_the_losses() -> None:
    run = train(RunConfig.of(SMALL, dtype="float64"))
    found = run.results
    assert found["above_floor"]["bayes"] == found["dev_loss"] - found["floors"]["bayes"]["loss"]
    assert "floor_dev_loss" not in found
    assert found["above_floor_error"]["bayes"] > 0
    assert run.facts()["standard error of the gap"] == found["above_floor_error"]["bayes"]


@pytest.mark.parametrize("model", [{}, {"key": "zero", "query": "zero"}])
def test_infinite_documents_differ_too(monkeypatch: pytest.MonkeyPatch, model: dict[str, Any]) -> None:
    """Their loss is known exactly, but they are drawn: another dev set would have given another mean."""
    run = train(RunConfig.of(SMALL | {"model": model, "documents": {"length": "infinite"}}, dtype="float64"))
    of, found = RunData(run.config), run.results
    config, dev = run.config, of.task.dev
    assert isinstance(dev, InfiniteDocuments)
    own = of.task.dev_losses(run.weights, len(dev))
    assert own.mean() == pytest.approx(found["dev_loss"], rel=1e-12)
    for name, own_word in (("bayes", True), ("bayes_topics", False)):
        each = np.array(
            [
                bayes_loss(
                    "cross-entropy",
                    config.topic_model,
                    config.documents,
                    config.masking,
                    dev.take(slice(i, i + 1)),
                    own_word=own_word,
                ).loss
                for i in range(len(dev))
            ]
        )
        floor = found["floors"][name]
        assert floor["loss"] == pytest.approx(each.mean(), rel=1e-12)
        assert floor["standard_error"] == pytest.approx(each.std() / len(each) ** 0.5, rel=1e-9)
        assert found["above_floor_error"][name] == pytest.approx((own - each).std() / len(each) ** 0.5, rel=1e-9)
    assert "; standard error " in run.summary()[0]
    # of many, the first few show the spread
    monkeypatch.setattr(data, "ENDLESS_DOCUMENTS", 5)
    of.task.floors()
    few = of.task.above_floors(run.weights, found["dev_loss"], found["floors"])
    spread = (own[:5] - of.task.floor_costs["bayes"][:5]).std()
    assert few["above_floor_error"]["bayes"] == pytest.approx(spread / len(dev) ** 0.5, rel=1e-9)
    assert few["above_floor"] == found["above_floor"]
