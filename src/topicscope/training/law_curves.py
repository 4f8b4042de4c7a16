"""Norms that the laws of learning give for a run at each of its steps, for `predicted_phase`.

In closed form for the squared loss and one-hot words: W(t) and the growth of attention (R1, R3), Adam's clocks (R4).
Cross entropy and trained embeddings follow the flow of topics, from the run's own start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from topicscope.ground import refuse
from topicscope.measure import risen
from topicscope.model import initial
from topicscope.theory import Dynamics, TopicPopulation, adam_clock, curvature, dynamics, gradient_flow, optimum
from topicscope.training.config import RunConfig

FLOW_TOLERANCE = 1e-3
ENTRIES = 400  # points of Adam's curve
CURVATURES = 10  # states of a flow at which the stability of SGD is looked at
LINEAR = 0.5  # e-folds up to which key and query grow at one rate, whatever follows

Curve = Float[np.ndarray, " S"]
Curves = dict[str, Curve]


def scale_of(config: RunConfig) -> float:
    scale = config.model.init_scale
    return 1 / math.sqrt(config.topic_model.vocabulary) if scale == "usual" else float(scale)


def loss_scale(config: RunConfig) -> float:
    return 1 / config.topic_model.vocabulary if config.objective.loss == "squared-mean" else 1.0


def time_of(config: RunConfig) -> float:
    """The whole of a run in units of gradient flow: rate x steps."""
    return config.optimizer.lr * loss_scale(config) * config.total_steps


def law_of(config: RunConfig) -> Dynamics:
    """`dynamics` of the same world with infinite documents; W_V with its own."""
    model, vocabulary = config.model, config.topic_model.vocabulary
    found = dynamics(
        config.topic_model,
        replace(config.documents, length="infinite"),
        config.masking,
        attention_dim=model.attention_dim or model.width(vocabulary),
        init_scale=scale_of(config),
    )
    return found.changed(best=optimum(config))


def closed_norms(config: RunConfig, found: Dynamics, batch_noise: float) -> Curves:
    """Squared loss: InputError where the law that is needed has nothing to say."""
    steps = np.arange(config.total_steps + 1.0)
    if config.optimizer.name == "adam":
        return adam_norms(config, found, steps, batch_noise)
    times = config.optimizer.lr * loss_scale(config) * steps
    norms = found.norms(times)
    return named(norms["value"], norms["key"] if "key" in norms else early_key(norms["value"], found, times))


def named(value: Curve, key: Curve) -> Curves:
    """Query is as key."""
    return {"norm_value": value, "norm_key": key, "norm_query": key}


def early_key(value: Curve, found: Dynamics, times: Curve) -> Curve:
    """|W_K| where its half-time is not known: at one rate for LINEAR e-folds. It does not matter if value never rises.

    W_K + W_Q grows in topic contrasts and W_K - W_Q dies out, so the square of either has the factor cosh.
    """
    dim, scale, e_fold = found.training.attention_dim, found.training.init_scale, found.attention.e_fold
    never = math.isnan(risen(value))
    late = e_fold is None or times[-1] > LINEAR * e_fold
    refuse((late and not never, "; ".join(found.not_covered) or "the growth of key and query is not known"))
    growing = 0.0 if e_fold is None or late else (found.attention.rank or 0) * (np.cosh(2 * times / e_fold) - 1)
    return np.sqrt(scale**2 * dim * (found.best.vocabulary + growing) * np.ones_like(times))


def adam_norms(config: RunConfig, found: Dynamics, steps: Curve, batch_noise: float) -> Curves:
    """R4: W_V goes its way at the rate; an entry of key and query by lr g / (|g| + eps), up to the second plateau."""
    growth, rate, optimizer, scaled = found.growth, found.value.rate, config.optimizer, loss_scale(config)
    refuse((growth is None or rate is None or growth.reason is not None, "; ".join(found.not_covered)))
    assert growth is not None
    assert rate is not None
    dim, vocabulary, scale = found.training.attention_dim, found.best.vocabulary, found.training.init_scale
    clock = adam_clock(
        growth,
        rate / 2,
        attention_dim=dim,
        init_scale=scale,
        lr=optimizer.lr,
        eps=optimizer.eps,
        loss_scale=scaled,
        batch_noise=batch_noise,
        output_bias=config.model.prediction_bias == "trained",
    )
    refuse((clock.value < 1, f"Adam at rate {optimizer.lr:g}: its first step is longer than half of the way of W_V"))
    done = np.minimum(steps / (2 * clock.value), 1.0)
    left = scale**2 * vocabulary * (1 - done) ** 2
    value = np.sqrt(np.sum([mode.norm**2 * done**2 + mode.count * left for mode in found.best.modes], 0))
    pull, size = growth.sigma / math.sqrt(dim), math.sqrt(dim * vocabulary)
    start, end = scale * math.sqrt((growth.topics - 1) / (2 * vocabulary)), growth.plateau_norm(dim) / size
    refuse((not 0 < start < end, f"Adam from a start of {scale:g}: key and query do not start below their plateau"))
    entries = np.geomspace(start, end, ENTRIES)
    waiting = (clock.attention or 0.0) - (clock.sign or 0.0) - (clock.epsilon or 0.0)  # for value, if epsilon rules
    slow = optimizer.eps / scaled / pull * np.log(entries / start)
    reached = np.interp(steps, waiting + ((entries - start) / batch_noise + slow) / optimizer.lr, entries)
    return named(value, size * np.sqrt(scale**2 + reached**2 - start**2))


@dataclass(frozen=True)
class TopicCourse:
    """A flow of topics: squared norms of W_V, W_K and W_Q at its times, with what the start has outside of it.

    `curvatures`: time and largest eigenvalue of the Hessian at some of them.
    """

    times: Float[np.ndarray, " n"]
    squares: dict[str, Float[np.ndarray, " n"]]
    curvatures: list[tuple[float, float]]

    def norms(self, config: RunConfig) -> Curves:
        """At every step of a run."""
        at = config.optimizer.lr * loss_scale(config) * np.arange(config.total_steps + 1.0)
        return {f"norm_{part}": np.sqrt(np.interp(at, self.times, square)) for part, square in self.squares.items()}

    def unstable(self, config: RunConfig) -> bool:
        """Whether SGD leaves the flow before the run ends: the rate times the curvature passes 2."""
        rate, until = config.optimizer.lr * loss_scale(config), time_of(config)
        return rate * max(curved for time, curved in self.curvatures if time <= until) >= 2


def topic_course(config: RunConfig, until: float) -> TopicCourse:
    """From the run's own start."""
    embedded = config.model.embedding == "trained"
    world = TopicPopulation.of_topics(
        config.topic_model,
        config.documents,
        config.masking,
        "cross-entropy" if config.objective.loss == "cross-entropy" else "squared",
        embedded=embedded,
        bias=config.model.prediction_bias == "trained",
    )
    drawn = initial(config.model, config.topic_model.vocabulary, config.seed)
    whole = {name: part.astype(float) for name, part in drawn.items()}
    start = world.alike(whole["value"], whole["key"], whole["query"], whole["embedding"] if embedded else None)
    flow = gradient_flow(world, start, until, tolerance=FLOW_TOLERANCE, keep=True)
    parts = {
        "value": [world.value_part(state) for state in flow.states],
        "key": [state.key for state in flow.states],
        "query": [state.query for state in flow.states],
    }
    squares = {name: np.array([np.vdot(part, part) for part in every]) for name, every in parts.items()}
    outside = {name: np.vdot(whole[name], whole[name]) - square[0] for name, square in squares.items()}
    looked_at = np.unique(np.linspace(0, len(flow.states) - 1, CURVATURES).astype(int))
    return TopicCourse(
        np.array(flow.times),
        {name: square + outside[name] for name, square in squares.items()},
        [(flow.times[i], curvature(world, flow.states[i])) for i in looked_at],
    )
