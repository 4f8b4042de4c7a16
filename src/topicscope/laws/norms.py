"""The norms that theory predicts for a run, from its own start: drawn over the measured ones.

predicted_norms(read("runs/small").config).norms["key"]

W_V follows W(t) (R1) and, as attention grows, its best factor at that attention; key and query follow dl/dt from the
start's own part in topic contrasts (R3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError
from topicscope.laws.coverage import LAWS, RunSettings
from topicscope.theory import Dynamics, Growth, dynamics, topic_contrasts

POINTS = 60  # of a curve: evenly, and as many on a logarithmic scale for its start
HALF_POINTS = 80  # at which |W(t)| is looked for its half-way point
SLOWEST = 1e-9  # rates below this share of the fastest are never learnt

Curve = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class PredictedNorms:
    """Steps of a run, Frobenius norms at them by part, and the step at which each part is half-way to its plateau."""

    steps: Curve
    norms: dict[str, Curve]
    half_way: dict[str, float]


def predicted_norms(run: RunSettings) -> PredictedNorms:
    """The norms that theory predicts for a run, from its own start (R1 and R3); InputError where it does not cover it.

    >>> from topicscope.training import RunConfig
    >>> settings = {
    ...     "topic_model": {"topics": 5, "words_per_topic": 4},
    ...     "documents": {"kind": "infinite", "topics_per_document": 2},
    ...     "objective": {"loss": "squared"},
    ...     "model": {"prediction_bias": "none", "init_scale": 0.001},
    ...     "optimizer": {"name": "sgd", "lr": 1.0},
    ... }
    >>> predicted = predicted_norms(RunConfig.of(settings, steps=100_000))
    >>> {part: round(step) for part, step in predicted.half_way.items()}  # first value, then key and query
    {'value': 19, 'key': 40251, 'query': 40251}
    """
    LAWS["norms"].require(run)
    vocabulary = run.world.topic_model.vocabulary
    dim, scale, lr = run.model.attention_width(vocabulary), run.objective.scale(vocabulary), run.optimizer.lr
    start_scale, rate = run.model.start_scale(vocabulary), lr * scale
    stages = dynamics(run.world, attention_dim=dim, init_scale=start_scale, loss_scale=scale, optimizer="sgd", lr=lr)
    start, growth = run.model.initial(vocabulary, run.seed), stages.growth
    ends = (1, run.total_steps, POINTS)
    steps = np.unique(np.concatenate([[0.0], np.geomspace(*ends), np.linspace(*ends)]))
    times, factor = rate * steps, np.zeros_like(steps)
    norms: dict[str, Curve] = {}
    half_way = value_half_way(stages, start["value"], rate)
    if growth is not None and {"key", "query"} <= set(start) and stages.attention.half_time is not None:
        first = growth.realised_start(start["key"], start["query"])
        course = growth.course(times, dim, first)
        norms = attention_norms(growth, start["key"], start["query"], course, times)
        half_way |= dict.fromkeys(("key", "query"), growth.half_time(dim, first) / rate)
        factor = np.array([growth.moments(ell).best - growth.moments(0.0).best for ell in course])
    return PredictedNorms(steps, {"value": value_norms(stages, start["value"], factor, times)} | norms, half_way)


def value_half_way(stages: Dynamics, start: Float[np.ndarray, "V V"], rate: float) -> dict[str, float]:
    """The step at which |W(t)| is half-way from its start to its plateau, where it rises.

    Earlier than half of the topic contrasts (`value.half_time`): the mean is learnt first.
    """
    modes = stages.best.modes
    rates = [mode.eigenvalue for mode in modes if mode.eigenvalue > SLOWEST * modes[0].eigenvalue]
    times = np.concatenate([[0.0], np.geomspace(1e-3 / max(rates), 20 / min(rates), HALF_POINTS)])
    norm = value_norms(stages, start, np.zeros_like(times), times)
    half = (norm[0] + norm[-1]) / 2
    if not norm[-1] > norm[0]:
        return {}
    after = int(np.argmax(norm >= half))
    return {"value": float(np.interp(half, norm[after - 1 : after + 1], times[after - 1 : after + 1]) / rate)}


def value_norms(stages: Dynamics, start: Float[np.ndarray, "V V"], factor: Curve, times: Curve) -> Curve:
    """|W(t)|, with `factor` more of topic contrasts once attention has grown."""
    best, topics = stages.best, stages.best.settings.topics
    pi = topic_contrasts(topics, best.settings.words // topics) if factor.any() else 0.0
    grown = zip(times, factor, strict=True)
    return np.array([np.linalg.norm(best.value_at(time, start) + more * pi) for time, more in grown])


def attention_norms(
    growth: Growth, key: Float[np.ndarray, "d V"], query: Float[np.ndarray, "d V"], course: Curve, times: Curve
) -> dict[str, Curve]:
    """In topic contrasts W_K + W_Q grows with l and W_K - W_Q dies out; the rest of both stands still."""
    pi, dim, modes = topic_contrasts(growth.topics, growth.v), len(key), growth.topics - 1
    both, apart = (key + query) @ pi / 2, (key - query) @ pi / 2
    shrunk = np.exp(-2 * times / growth.e_fold(dim)) * np.sum(apart**2)
    grown = math.sqrt(dim) * modes * course
    return {
        name: np.sqrt(np.sum((part - part @ pi) ** 2) + grown + shrunk + sign * 2 * np.sum(both * apart))
        for name, part, sign in (("key", key, 1), ("query", query, -1))
    }


def prediction_or_none(run: RunSettings) -> PredictedNorms | None:
    """As `predicted_norms`, but None where the theory does not cover the run. Recent answers are kept."""
    parts = (run.world, run.model, run.objective, run.optimizer, run.schedule, run.seed, run.total_steps)
    return _prediction(Asked(repr(parts), run))


@dataclass(frozen=True)
class Asked:
    """A run, and what its norms depend on: runs that are equal in it have one answer."""

    key: str
    run: RunSettings = field(compare=False)


@lru_cache(maxsize=16)
def _prediction(asked: Asked) -> PredictedNorms | None:
    try:
        return predicted_norms(asked.run)
    except InputError:
        return None
