"""The norms that theory predicts for a run, from its own start: drawn over the measured ones.

predicted_norms(read("runs/small").config).norms["key"]

W_V follows W(t) (R1) and, as attention grows, its best factor at that attention; key and query follow dl/dt from the
start's own part in topic contrasts (R3).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, refuse
from topicscope.theory import Dynamics, Growth, dynamics, topic_contrasts
from topicscope.training.config import RunConfig

POINTS = 60  # of a curve: evenly, and as many on a logarithmic scale for its start
HALF_POINTS = 80  # at which |W(t)| is looked for its half-way point
SLOWEST = 1e-9  # rates below this share of the fastest are never learnt
MOST_WORDS = 600  # whose W(t) is made at every point

Curve = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class PredictedNorms:
    """The norms that theory predicts for a run, as curves.

    Attributes:
        steps: Steps of the run at which the norms are given (n).
        norms: Frobenius norms (n) by part.
        half_way: The step at which each part is half-way to its plateau.

    Example:
        See `predicted_norms`.
    """

    steps: Curve
    norms: dict[str, Curve]
    half_way: dict[str, float]


def predicted_norms(config: RunConfig) -> PredictedNorms:
    """The norms that theory predicts for a run, from its own start (R1 and R3).

    Args:
        config: Config of the run: squared loss, one-hot words, SGD, infinite documents.

    Returns:
        Curves by part, and half-way steps.

    Raises:
        InputError: The theory does not cover this run; the message says why.

    Example:
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
    found = run_dynamics(config)
    rate = config.optimizer.lr * found.training.loss_scale
    start = config.model.initial(config.topic_model.vocabulary, config.seed)
    ends = (1, config.total_steps, POINTS)
    steps = np.unique(np.concatenate([[0.0], np.geomspace(*ends), np.linspace(*ends)]))
    times, factor = rate * steps, np.zeros_like(steps)
    norms: dict[str, Curve] = {}
    half_way = value_half_way(found, start["value"], rate)
    if found.growth is not None and {"key", "query"} <= set(start) and found.attention.half_time is not None:
        growth, dim = found.growth, found.training.attention_dim
        first = growth.realised_start(start["key"], start["query"])
        course = growth.course(times, dim, first)
        norms = attention_norms(growth, start["key"], start["query"], course, times)
        half_way |= dict.fromkeys(("key", "query"), growth.half_time(dim, first) / rate)
        factor = np.array([best_factor(growth, ell) - best_factor(growth, 0.0) for ell in course])
    return PredictedNorms(steps, {"value": value_norms(found, start["value"], factor, times)} | norms, half_way)


def value_half_way(found: Dynamics, start: Float[np.ndarray, "V V"], rate: float) -> dict[str, float]:
    """The step at which |W(t)| is half-way from its start to its plateau, where it rises.

    Earlier than half of the topic contrasts (`value.half_time`): the mean is learnt first.
    """
    rates = [mode.eigenvalue for mode in found.best.modes if mode.eigenvalue > SLOWEST * found.best.modes[0].eigenvalue]
    times = np.concatenate([[0.0], np.geomspace(1e-3 / max(rates), 20 / min(rates), HALF_POINTS)])
    norm = value_norms(found, start, np.zeros_like(times), times)
    half = (norm[0] + norm[-1]) / 2
    if not norm[-1] > norm[0]:
        return {}
    after = int(np.argmax(norm >= half))
    return {"value": float(np.interp(half, norm[after - 1 : after + 1], times[after - 1 : after + 1]) / rate)}


def run_dynamics(config: RunConfig) -> Dynamics:
    """`dynamics` of a run with squared loss, one-hot words, SGD and infinite documents."""
    model, optimizer, objective = config.model, config.optimizer, config.objective
    biases = (model.key_bias, model.query_bias, model.value_bias, model.prediction_bias)
    vocabulary = config.topic_model.vocabulary
    refuse(
        (config.documents.length != "infinite", "W(t) beside attention is known for infinite documents"),
        (objective.loss == "cross-entropy", "norms are predicted for the squared loss"),
        (bool(objective.l2), "norms are predicted without an L2 penalty"),
        (optimizer.name != "sgd" or optimizer.momentum > 0, "norms are predicted for SGD without momentum"),
        (model.embedding != "one-hot" or model.head == "untied", "norms are predicted for one-hot words"),
        (model.value != "trained", "the value matrix is frozen"),
        (any(bias not in ("none", 0) for bias in biases), "norms are predicted without biases"),
        (model.key != model.query, "key and query are predicted together"),
        (model.hide_masked, "attention does not see masked positions (model.hide_masked)"),
        (bool(config.schedule.phases), "norms are predicted where all parts train throughout"),
        (vocabulary > MOST_WORDS, f"{vocabulary:,} words: W(t) is drawn up to {MOST_WORDS:,}"),
    )
    return dynamics(
        config,
        attention_dim=model.attention_width(vocabulary),
        init_scale=model.start_scale(vocabulary),
        loss_scale=objective.scale(vocabulary),
        optimizer="sgd",
        lr=optimizer.lr,
    )


def best_factor(growth: Growth, ell: float) -> float:
    """a of W_V = a Pi + u 1' at L = l Pi."""
    moments = growth.moments(ell)
    return moments.joint / moments.square


def value_norms(found: Dynamics, start: Float[np.ndarray, "V V"], factor: Curve, times: Curve) -> Curve:
    """|W(t)|, with `factor` more of topic contrasts once attention has grown."""
    if not factor.any():
        return np.array([np.linalg.norm(found.best.value_at(time, start)) for time in times])
    topics = found.best.settings.topics
    pi = topic_contrasts(topics, found.best.settings.words // topics)
    return np.array(
        [np.linalg.norm(found.best.value_at(time, start) + more * pi) for time, more in zip(times, factor, strict=True)]
    )


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


def prediction_or_none(config: RunConfig) -> PredictedNorms | None:
    """As `predicted_norms`, but None where the theory does not cover the run. Recent answers are kept.

    Args:
        config: Config of the run.

    Returns:
        The predicted norms, or None.

    Example:
        >>> prediction_or_none(RunConfig()) is None  # finite documents, Adam and cross entropy
        True
    """
    return _prediction(json.dumps(config.as_dict(), sort_keys=True))


@lru_cache(maxsize=16)
def _prediction(settings: str) -> PredictedNorms | None:
    try:
        return predicted_norms(RunConfig.of(json.loads(settings)))
    except InputError:
        return None
