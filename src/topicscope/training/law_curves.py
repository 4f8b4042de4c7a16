"""Norms that the laws of learning give for a run at each of its steps, for `predicted_phase`.

In closed form, for the squared loss and one-hot words: W(t) and the growth of attention (R1, R3), Adam's clocks (R4).
Runs with cross entropy or a trained embedding are in `flow_curves`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from topicscope.ground import refuse
from topicscope.measure import risen
from topicscope.theory import FEWEST_STEPS, Dynamics, adam_clock, dynamics, optimum
from topicscope.training.config import RunConfig

ENTRIES = 400  # points of Adam's curve
LINEAR = 0.5  # e-folds up to which key and query grow at one rate, whatever follows

Curve = Float[np.ndarray, " S"]
Curves = dict[str, Curve]


def time_per_step(config: RunConfig) -> float:
    """In units of gradient flow: SGD's rate, for the loss summed over the outputs."""
    return config.optimizer.lr * config.objective.scale(config.topic_model.vocabulary)


def time_of(config: RunConfig) -> float:
    """The whole of a run in units of gradient flow."""
    return time_per_step(config) * config.total_steps


def law_of(config: RunConfig) -> Dynamics:
    """`dynamics` of the same world with infinite documents; W_V with its own."""
    model, vocabulary = config.model, config.topic_model.vocabulary
    found = dynamics(
        config.topic_model,
        replace(config.documents, length="infinite"),
        config.masking,
        attention_dim=model.attention_width(vocabulary),
        init_scale=model.start_scale(vocabulary),
    )
    return found.changed(best=optimum(config))


def closed_norms(config: RunConfig, found: Dynamics, batch_noise: float) -> Curves:
    """Squared loss: InputError where the law that is needed has nothing to say."""
    steps = np.arange(config.total_steps + 1.0)
    if config.optimizer.name == "adam":
        return adam_norms(config, found, steps, batch_noise)
    times = time_per_step(config) * steps
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
    growth, rate, optimizer = found.growth, found.value.rate, config.optimizer
    refuse((growth is None or rate is None or growth.reason is not None, "; ".join(found.not_covered)))
    assert growth is not None
    assert rate is not None
    dim, vocabulary, scale = found.training.attention_dim, found.best.vocabulary, found.training.init_scale
    scaled = config.objective.scale(vocabulary)
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
    refuse(
        (
            clock.value < FEWEST_STEPS,
            f"Adam at rate {optimizer.lr:g}: W_V is half-way before {FEWEST_STEPS} steps, which its first mean spans",
        )
    )
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
