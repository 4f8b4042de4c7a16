"""Adam, cross entropy and trained embeddings: the numbers worked out apart from this code (R4, R7, R8)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.theory.test_growth import fixed
from topicscope.theory import Growth, entry_steps
from topicscope.theory.growth import ESCAPE, AdamClock, adam_clock, embedding_clock, mask_first
from topicscope.world import Dirichlet, Masking, TopicModel


def eigenvalue(growth: Growth) -> float:
    return growth.shares.contrast * growth.masking.k**2 / growth.v


def adam(growth: Growth, eps: float, noise: float = 1.0, *, bias: bool = False, scale: float = 1e-3) -> AdamClock:
    return adam_clock(
        growth,
        eigenvalue(growth),
        attention_dim=growth.topics * growth.v + 1,
        init_scale=scale,
        lr=1e-3,
        eps=eps,
        batch_noise=noise,
        output_bias=bias,
    )


@pytest.mark.parametrize(
    ("sizes", "eps", "noise", "bias", "value", "attention"),
    [
        ((5, 4, 2), 1e-20, 1.0, False, 195, 256),
        ((6, 3, 3), 1e-20, 1.0, False, 248, 284),
        ((10, 10, 3), 1e-20, 1.0, False, 68, 215),
        ((10, 10, 3), 1e-20, 0.96, True, 58, 224),
        ((10, 10, 3), 1e-8, 0.96, True, 58, 238),
    ],
)
def test_adams_two_clocks(
    sizes: tuple[int, int, int], eps: float, noise: float, bias: bool, value: int, attention: int
) -> None:
    clock = adam(fixed(*sizes), eps, noise, bias=bias)
    assert (round(clock.value), round(clock.attention or 0)) == (value, attention)


def test_epsilon_delays_attention_long_before_value() -> None:
    dirichlet = Growth.of(TopicModel(), Dirichlet())
    clock = adam(dirichlet, 1e-4, 0.44, bias=True)
    assert round(clock.value) == 67
    assert clock.epsilon == pytest.approx(240_000, rel=0.01)  # 'no second stage'
    assert clock.attention == pytest.approx(clock.value + (clock.sign or 0) + (clock.epsilon or 0))
    delays, rules = clock.delays_attention_from or 0, clock.rules_attention_from or 0
    assert delays < rules < clock.delays_value_from
    half, start = dirichlet.plateau_norm(101) / (2 * 101), 1e-3 * math.sqrt(9 / 202)
    assert rules / delays == pytest.approx(half / start)
    per_fold = (adam(dirichlet, 1e-6, scale=1e-3 / math.e).epsilon or 0) - (adam(dirichlet, 1e-6).epsilon or 0)
    assert per_fold == pytest.approx(347.6, rel=1e-3)  # steps per e-fold


def test_averaged_outputs_are_a_larger_epsilon() -> None:
    growth = fixed(5, 4, 2)
    settings = {"attention_dim": 21, "init_scale": 1e-3, "lr": 1e-3}
    averaged = adam_clock(growth, eigenvalue(growth), eps=1e-6, loss_scale=1 / 21, **settings)  # type: ignore[arg-type]
    larger = adam_clock(growth, eigenvalue(growth), eps=21e-6, **settings)  # type: ignore[arg-type]
    assert averaged == pytest.approx(larger)


def test_without_a_second_stage_adam_has_one_clock() -> None:
    for clock in (adam(fixed(4, 3, 1), 1e-8), adam(fixed(4, 3, 2, Masking(p_correct=0.0)), 1e-8)):
        assert clock.value > 0
        assert clock.attention is None


@pytest.mark.parametrize(
    ("sizes", "lr", "eps", "steps", "runs"),
    [  # runs: half-way steps of full-batch Adam from .001, one to three seeds
        ((5, 4, 2), 1e-3, 1e-10, 179, (174, 184)),
        ((6, 3, 3), 1e-3, 1e-10, 194, (189, 198)),
        ((5, 4, 2), 1e-3, 1e-6, 314, (327, 339)),
        ((6, 3, 3), 1e-3, 1e-5, 681, (768, 773)),
        ((5, 4, 2), 1e-3, 1e-4, 4415, (4491, 4518)),
        ((10, 10, 3), 1e-3, 1e-20, 141, (157, 157)),
        ((5, 4, 2), 1e-2, 1e-8, 33, (35, 35)),  # the formula says 26: momentum
    ],
)
def test_an_entry_followed_with_adam_s_own_averages(
    sizes: tuple[int, int, int], lr: float, eps: float, steps: int, runs: tuple[int, int]
) -> None:
    growth = fixed(*sizes)
    settings = {"attention_dim": sizes[0] * sizes[1] + 1, "init_scale": 1e-3, "lr": lr, "eps": eps}
    value = adam_clock(growth, eigenvalue(growth), **settings).value  # type: ignore[arg-type]
    found = entry_steps(growth, value=value, **settings)  # type: ignore[arg-type]
    assert found == pytest.approx(steps, abs=max(1, steps / 200))
    assert 0.9 < runs[0] / steps < runs[1] / steps + 1e-9 < 1.15


def test_gradients_that_grow_as_a_power_lengthen_adam_s_steps() -> None:
    """sqrt(2 p + 1) times the rate: with a value matrix that is there from the start the entry grows evenly, p = 1."""
    growth = fixed(10, 10, 3)
    half = math.sqrt(growth.l_star / 4 * 9 / (100 * math.sqrt(101)))
    found = entry_steps(growth, value=1e-9, attention_dim=101, init_scale=1e-6, lr=1e-4, eps=0.0, output_bias=True)
    assert half / 1e-4 / (found or 0) == pytest.approx(math.sqrt(3), rel=0.15)  # the force falls as attention grows


def test_an_entry_that_nothing_starts_is_not_followed() -> None:
    settings = {"value": 200.0, "attention_dim": 13, "lr": 1e-3, "eps": 1e-8}
    assert entry_steps(fixed(4, 3, 1), init_scale=1e-3, **settings) is None  # type: ignore[arg-type]
    assert entry_steps(fixed(4, 3, 2), init_scale=0.0, **settings) is None  # type: ignore[arg-type]
    assert entry_steps(fixed(4, 3, 2), init_scale=10.0, **settings) is None  # type: ignore[arg-type]  # above half-way
    assert entry_steps(fixed(4, 3, 2), init_scale=1e-3, **settings | {"eps": 1.0}) is None  # type: ignore[arg-type]


def test_under_cross_entropy_mask_is_first() -> None:
    growth = fixed(5, 4, 2)
    first = mask_first(growth, eigenvalue(growth), 21)
    assert round(first.time, 0) == 513  # 512.6
    assert first.force == pytest.approx(0.0064, rel=5e-3)
    gained = first.force * first.speed * first.time**2 / (2 * math.sqrt(21))
    assert math.exp(gained) == pytest.approx(3 * math.sqrt(2 * 21))


def test_a_trained_embedding_waits_in_proportion_to_1_over_s() -> None:
    growth = fixed(4, 3, 2)
    clocks = [
        embedding_clock(growth, eigenvalue(growth), squared=True, width=13, attention_dim=13, init_scale=scale)
        for scale in (0.1, 0.01, 0.001)
    ]
    assert [round(clock.attention or 0) for clock in clocks][1:] == [6888, 14433]
    assert clocks[2].escape / clocks[1].escape == pytest.approx(10)
    assert clocks[0].square == pytest.approx(1.3878, abs=5e-5)
    ratios = [(clock.attention or 0) / clock.escape for clock in clocks]
    assert ratios[0] > ratios[1] > ratios[2]  # the smaller the start, the nearer the stages: opposite to one-hot words
    entropy = [
        embedding_clock(growth, eigenvalue(growth), squared=False, width=13, attention_dim=13, init_scale=scale)
        for scale in (0.1, 0.03, 0.01)
    ]
    assert [round(clock.escape) for clock in entropy] == [96, 322, 965]
    assert all(clock.attention is None for clock in entropy)


def blow_up(dim: int, seed: int) -> float:
    """When e' = (B + B')e, B' = ee' from |e| = 1, entries of B of variance 1 / d, is 1e4 long: midpoint steps."""
    rng = np.random.default_rng(seed)
    e, b, time = rng.standard_normal(dim), rng.standard_normal((dim, dim)) / math.sqrt(dim), 0.0
    e /= np.linalg.norm(e)
    while (size := float(np.linalg.norm(e))) < 1e4:
        step = 0.01 / (1 + size)
        middle, half = e + step / 2 * (b + b.T) @ e, b + step / 2 * np.outer(e, e)
        e, b = e + step * (half + half.T) @ middle, b + step * np.outer(middle, middle)
        time += step
    return time


def test_the_constant_of_the_escape() -> None:
    times = [blow_up(150, seed) for seed in range(4)]
    error = np.std(times, ddof=1) / 2
    assert error < 0.03
    assert np.mean(times) == pytest.approx(ESCAPE, abs=0.06)  # neither 1.11, without B's start, nor another law
