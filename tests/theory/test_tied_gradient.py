"""The gradient with a trained embedding, against differences of the loss and against `train`."""

from __future__ import annotations

import numpy as np
import pytest

from topicscope import InputError
from topicscope.theory import Loss, Population, TiedPopulation, Weights, gradient_flow, tied_start, word_tables
from topicscope.training import RunConfig, train
from topicscope.world import Fixed, Masking, TopicModel

WIDTH, DIM, VOCABULARY = 5, 4, 7


def population(loss: Loss = "squared") -> Population:
    return TiedPopulation.of(TopicModel(3, 2), Fixed(topics_per_document=2, length="infinite"), Masking(), loss)


@pytest.mark.parametrize("loss", ["squared", "cross-entropy"])
def test_gradient_is_the_slope_of_the_loss(loss: Loss) -> None:
    world, at = population(loss), tied_start(VOCABULARY, WIDTH, DIM, 0.5, seed=3)
    rng, h = np.random.default_rng(0), 1e-5
    for part in range(3):
        way = [np.zeros_like(matrix) for matrix in at]
        way[part] = rng.standard_normal(at[part].shape)
        ends = [Weights(*(m + sign * h * w for m, w in zip(at, way, strict=True))) for sign in (1, -1)]
        slope = (world.loss(ends[0]) - world.loss(ends[1])) / (2 * h)
        assert np.vdot(world.gradient(at)[1][part], way[part]) == pytest.approx(slope, rel=1e-7, abs=1e-9)


def test_loss_is_that_of_the_word_tables() -> None:
    at = tied_start(VOCABULARY, WIDTH, DIM, 0.5, seed=1)
    one_hot = Population.of(TopicModel(3, 2), Fixed(topics_per_document=2, length="infinite"), Masking())
    assert population().loss(at) == pytest.approx(one_hot.loss(word_tables(at, VOCABULARY)), rel=1e-14)


@pytest.mark.parametrize("loss", ["squared", "cross-entropy"])
def test_steps_are_those_of_train(loss: Loss) -> None:
    """Ten explicit steps from the same start: SGD over all documents at once."""
    rate, steps, world = 0.5, 10, population(loss)
    at = tied_start(VOCABULARY, WIDTH, DIM, 0.3, seed=2)
    for _ in range(steps):
        at = Weights(*(m - rate * g for m, g in zip(at, world.gradient(at)[1], strict=True)))
    support = Fixed(topics_per_document=2, length="infinite").support(3)
    assert support is not None
    config = RunConfig.of(
        {
            "device": "cpu",
            "dtype": "float64",
            "evaluate_every": None,
            "seed": 2,
            "steps": steps,
            "batch_size": 3,
            "topic_model": {"topics": 3, "words_per_topic": 2},
            "documents": {"kind": "given", "proportions": support[0].tolist(), "length": "infinite"},
            "data": {"documents": 3, "dev_documents": 3},
            "model": {
                "embedding": "trained",
                "dim": WIDTH,
                "attention_dim": DIM,
                "init_scale": 0.3,
                "prediction_bias": "none",
            },
            "objective": {"loss": loss},
            "optimizer": {"name": "sgd", "lr": rate},
        }
    )
    (run,) = train([config], with_floors=False)
    trained = {name: np.asarray(run.weights[name]) for name in ("embedding", "value", "key", "query")}
    assert np.hstack([trained["embedding"], trained["value"]]) == pytest.approx(at.value, abs=1e-10)
    assert trained["key"] == pytest.approx(at.key, abs=1e-10)
    assert trained["query"] == pytest.approx(at.query, abs=1e-10)


def test_only_starts_that_fit_flow() -> None:
    start = tied_start(VOCABULARY, WIDTH, DIM, 0.1, seed=0)
    assert gradient_flow(population(), start, 1.0).times[-1] == 1.0
    with pytest.raises(InputError, match="shapes"):
        gradient_flow(population(), Weights.gaussian(VOCABULARY, DIM, 0.1, 0), 1.0)
