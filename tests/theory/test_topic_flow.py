"""The flow of topics: its gradient against differences of the loss, and against the flow of all words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from topicscope.ground import InputError
from topicscope.theory import (
    Population,
    TiedPopulation,
    TopicPopulation,
    Weights,
    WordPopulation,
    curvature,
    descent,
    gradient_flow,
    optimum,
    tied_start,
)
from topicscope.world import Dirichlet, Fixed, Masking, TopicModel

WORLD = TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking()
LOSSES = ["squared", "cross-entropy"]


def drawn(world: TopicPopulation, width: int) -> Weights:
    rng = np.random.default_rng(0)
    value, key, query = rng.standard_normal((width, width)), *rng.standard_normal((2, 6, width))
    weights = world.alike(value, key, query, rng.standard_normal((width, 13)) if world.embedded else None)
    weights.value[: len(world.sizes), -1] = rng.standard_normal(len(world.sizes))
    return weights


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("embedded", [False, True])
def test_the_gradient_is_that_of_the_loss(loss: Any, embedded: bool) -> None:
    world = TopicPopulation.of_topics(*WORLD, loss, embedded=embedded)
    weights, rng = drawn(world, 7 if embedded else 13), np.random.default_rng(1)
    assert world.fits(weights)
    gradient = world.gradient(weights)[1]
    for part in Weights._fields:
        direction = Weights(*(np.zeros_like(one) for one in weights))
        getattr(direction, part)[:] = rng.standard_normal(getattr(weights, part).shape)
        ends = [
            world.loss(Weights(*(w + h * d for w, d in zip(weights, direction, strict=True)))) for h in (1e-6, -1e-6)
        ]
        slope = np.vdot(getattr(gradient, part), getattr(direction, part))
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-7)
        assert abs(slope) > 1e-3


@pytest.mark.parametrize("loss", LOSSES)
def test_words_of_a_topic_that_start_alike_stay_alike(loss: Any) -> None:
    """Loss and gradient are those of all words, and the gradient of all words has nothing else."""
    topics = TopicPopulation.of_topics(*WORLD, loss, bias=False)
    words, basis, rng = Population.of(*WORLD, loss), topics.basis, np.random.default_rng(2)
    value, key, query = rng.standard_normal((5, 5)), *rng.standard_normal((2, 6, 5))
    whole = Weights(basis @ value @ basis.T, key @ basis.T, query @ basis.T)
    few = topics.alike(*whole)
    assert few.value[:, :-1] == pytest.approx(value)
    (loss_few, slope), (loss_all, slope_all) = topics.gradient(few), words.gradient(whole)
    assert loss_few == pytest.approx(loss_all, abs=1e-12)
    assert not slope.value[:, -1].any()  # no bias
    assert basis @ slope.value[:, :-1] @ basis.T == pytest.approx(slope_all.value, abs=1e-12)
    assert slope.key @ basis.T == pytest.approx(slope_all.key, abs=1e-12)
    assert slope.query @ basis.T == pytest.approx(slope_all.query, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_norms_from_a_small_start_are_those_of_all_words(loss: Any) -> None:
    topics, words = TopicPopulation.of_topics(*WORLD, loss, bias=False), Population.of(*WORLD, loss)
    start = Weights.gaussian(13, 13, 0.01, seed=0)
    few = topics.alike(*start)
    short, long = gradient_flow(topics, few, 2000.0), gradient_flow(words, start, 2000.0)
    parts: tuple[Any, ...] = Weights._fields
    for part in parts:
        whole, inside = getattr(start, part), getattr(few, part)
        outside = np.vdot(whole, whole) - np.vdot(inside, inside)
        assert np.sqrt(short.squares[part][-1] + outside) == pytest.approx(long.norm(part)[-1], rel=5e-3)


def test_a_law_with_many_documents_is_drawn_with_equal_topics() -> None:
    world = TopicPopulation.of_topics(TopicModel(5, 2), Dirichlet(alpha=0.1), Masking())
    assert world.true.shape == (100, 6)
    assert world.probability @ world.true == pytest.approx([0, *[0.2] * 5])
    assert world.shown.sum(1) == pytest.approx(1)
    assert world.queries.sum(1) == pytest.approx(1)


@pytest.mark.parametrize("loss", LOSSES)
def test_all_words_from_any_start(loss: Any) -> None:
    """The gradient is that of `Population`; a bias is the same as a number added to each column of W_V."""
    world, words = WordPopulation.of_topics(*WORLD, loss), Population.of(*WORLD, loss)
    weights = drawn(world, 13)
    bias = weights.value[:, -1:]
    cost, gradient = world.gradient(weights)
    wanted_cost, wanted = words.gradient(weights._replace(value=weights.value[:, :-1] + bias))
    assert cost == pytest.approx(wanted_cost, abs=1e-12)
    assert gradient.value[:, :-1] == pytest.approx(wanted.value, abs=1e-12)
    assert gradient.value[:, -1] == pytest.approx(wanted.value.sum(1), abs=1e-12)
    assert gradient.key == pytest.approx(wanted.key, abs=1e-12)
    assert np.abs(bias).min() > 1e-3


def test_all_words_with_an_embedding() -> None:
    world = WordPopulation.of_topics(*WORLD, "cross-entropy", embedded=True, bias=False)
    words = TiedPopulation.of(*WORLD, "cross-entropy")
    start = tied_start(vocabulary=13, width=20, attention_dim=6, scale=1.0, seed=0)
    embedding, value = start.value[:, :13], start.value[:, 13:]
    (cost, gradient), (wanted_cost, wanted) = (
        world.gradient(world.alike(value, start.key, start.query, embedding)),
        words.gradient(start),
    )
    assert cost == pytest.approx(wanted_cost, rel=1e-12)
    assert gradient.value[:, :-1] == pytest.approx(wanted.value, rel=1e-9, abs=1e-9)
    assert gradient.query == pytest.approx(wanted.query, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("rate", "blows_up"), [(12.0, False), (16.0, True)])
def test_descent_blows_up_from_two_over_the_curvature_on(rate: float, blows_up: bool) -> None:
    """At zero the squared loss has the curvature 2 g, g the largest mode: 1 / g = 14.6 is the limit."""
    world, start = Population.of(*WORLD), Weights.gaussian(13, 13, 1e-3, seed=0)
    assert 12.0 < 1 / max(mode.eigenvalue for mode in optimum(*WORLD).modes) < 16.0
    steps = [*descent(world, start, rate, 200)]
    assert (len(steps) < 201) is blows_up
    (first, before), (_, after) = steps[:2]
    assert first == world.loss(start)
    assert after.value == pytest.approx(before.value - rate * world.gradient(before)[1].value, abs=1e-15)


def test_topics_that_are_not_alike_have_no_such_flow() -> None:
    with pytest.raises(InputError, match="equally many"):
        TopicPopulation.of_topics(TopicModel(3, 3, zipf=1.0), Dirichlet(), Masking())


def test_the_curvature_at_zero_is_that_of_bias_and_value_matrix() -> None:
    """At zero the Hessian is 2 E[(x, 1)(x, 1)'] for the squared loss: 2 (1 + g) with g the mode of the mean."""
    world = TopicPopulation.of_topics(*WORLD)
    zero = world.alike(np.zeros((13, 13)), np.zeros((6, 13)), np.zeros((6, 13)))
    g = next(mode.eigenvalue for mode in optimum(*WORLD).modes if mode.name == "mean")
    assert curvature(world, zero) == pytest.approx(2 * (1 + g), rel=0.02)
    without = TopicPopulation.of_topics(*WORLD, bias=False)
    assert curvature(without, zero) == pytest.approx(2 * g, rel=0.02)
