"""Clocks other than gradient flow on one-hot words: Adam (R4), cross entropy (R7), a trained embedding (R8).

They are numerical laws, less exact than the flow's: each function says how far measurements were from it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from topicscope.theory.forces import mask_force
from topicscope.theory.growth import Growth

ESCAPE = 0.836
"""Time at which e' = (B + B')e, B' = ee' blows up from |e| = 1 and B of entries N(0, 1/d): .836 +- .009 at d = 600."""

FEWEST_STEPS = 10
"""Of Adam, below which its clocks do not hold: so many gradients are in its first mean, 1 / (1 - beta_1). Key at 8.5
and 9.5 predicted steps was half-way after 18 and 17."""

THREEFOLD = 3.0  # growth of |W_K| after which attention has left its start


class AdamClock(NamedTuple):
    """When Adam reaches half of each plateau, in steps (R4), and at which epsilon (over the loss's scale) this changes.

    Attributes:
        value: Steps of W_V.
        attention: Steps of key and query; None where nothing starts them.
        sign: Part of `attention` in which entries move by the learning rate at every step.
        epsilon: Part of it in which they move in proportion to their gradient.
        delays_attention_from: Epsilon from which on attention is delayed.
        rules_attention_from: Epsilon from which on it decides the time of attention.
        delays_value_from: Epsilon from which on W_V is delayed.
        followed: `attention` of an entry followed with Adam's own averages, for full batches (`entry_steps`).

    Example:
        See `adam_clock`.
    """

    value: float
    attention: float | None
    sign: float | None
    epsilon: float | None
    delays_attention_from: float | None
    rules_attention_from: float | None
    delays_value_from: float
    followed: float | None = None


def adam_clock(
    growth: Growth,
    eigenvalue: float,
    *,
    attention_dim: int,
    init_scale: float,
    lr: float,
    eps: float,
    loss_scale: float = 1.0,
    batch_noise: float = 1.0,
    output_bias: bool = False,
) -> AdamClock:
    """When Adam reaches half of each plateau (R4): an entry moves by lr g / (|g| + eps) at each step.

    Measured with full batches: value within 13%; attention within 16% where epsilon rules it, .62 to 1 of this where it
    does not (growing gradients make Adam's steps longer: `entry_steps` follows them), up to 1.4 at lr = .01 (momentum).
    `attention` is None where nothing starts it.

    Args:
        growth: How attention grows in this world.
        eigenvalue: Eigenvalue of E[xx'] on topic contrasts.
        attention_dim: d_a.
        init_scale: Standard deviation of the initial weights.
        lr: Learning rate.
        eps: Epsilon of Adam.
        loss_scale: The loss is multiplied by it: 1 / V where outputs are averaged.
        batch_noise: |mean| / rms of a batch's gradient; 1 for full batches.
        output_bias: Whether the output has a trained bias.

    Returns:
        Steps, and where epsilon matters.

    Example:
        >>> from topicscope.theory import Setting, first_stage_rates
        >>> from topicscope.world import Fixed, TopicModel
        >>> growth = Growth.of(TopicModel(4, 3), Fixed(topics_per_document=2))
        >>> rate = first_stage_rates(Setting.of(4, 3, 2)).topics
        >>> clock = adam_clock(growth, rate, attention_dim=13, init_scale=0.001, lr=0.001, eps=1e-8)
        >>> round(clock.value), round(clock.attention)
        (276, 264)
    """
    k, v, vocabulary, eps = growth.masking.k, growth.v, growth.topics * growth.v + 1, eps / loss_scale
    to_go = 1 / (2 * k * v) + (0 if output_bias else 1 / (growth.topics * v))
    value = (to_go + eps * math.log(2) / (2 * eigenvalue)) / lr
    slow_value = eigenvalue / (k * v)
    if growth.reason is not None or init_scale <= 0:
        return AdamClock(value, None, None, None, None, None, slow_value)
    pull = growth.sigma / math.sqrt(attention_dim)  # gradient of an entry over the entry
    half = growth.plateau_norm(attention_dim) / (2 * math.sqrt(attention_dim * vocabulary))
    start = init_scale * math.sqrt((growth.topics - 1) / (2 * vocabulary))
    sign = half / (lr * batch_noise)
    slow = eps / (lr * pull) * max(math.log(half / start), 0.0)
    attention = sign + slow + (value if slow > sign else 0.0)  # where epsilon rules, key and query wait for value
    return AdamClock(value, attention, sign, slow, pull * start, pull * half, slow_value)


class MaskFirst(NamedTuple):
    """Cross entropy (R7): [MASK] learns not to attend [MASK] while topic contrasts of W_V still grow evenly.

    Attributes:
        speed: Growth of W_V on topic contrasts, per unit of time.
        force: On the [MASK] query, per unit of W_V.
        time: When |W_K| is three times its start.

    Example:
        See `mask_first`.
    """

    speed: float
    force: float
    time: float


def mask_first(growth: Growth, eigenvalue: float, attention_dim: int) -> MaskFirst:
    """When [MASK] learns not to attend [MASK] under cross entropy (R7).

    W_K gains exp(force speed t^2 / (2 sqrt(d_a))) in one direction of its V. In (T, v, tau) = (5, 4, 2) the time is
    513; measured were 683 and 687, since W_V slows down meanwhile.

    Args:
        growth: How attention grows in this world.
        eigenvalue: Eigenvalue of E[xx'] on topic contrasts.
        attention_dim: d_a.

    Returns:
        Speed, force and time.

    Example:
        >>> from topicscope.theory import Setting, first_stage_rates
        >>> from topicscope.world import Fixed, TopicModel
        >>> growth = Growth.of(TopicModel(5, 4), Fixed(topics_per_document=2))
        >>> round(mask_first(growth, first_stage_rates(Setting.of(5, 4, 2)).topics, attention_dim=21).time)
        513
    """
    vocabulary, speed = growth.topics * growth.v + 1, eigenvalue / growth.masking.k
    force = mask_force(growth.shares, growth.v, growth.masking).size
    exponent = math.log(THREEFOLD * math.sqrt(2 * vocabulary))
    return MaskFirst(speed, force, math.sqrt(2 * exponent * math.sqrt(attention_dim) / (force * speed)))


class EmbeddingClock(NamedTuple):
    """A trained embedding, used for words in and out: value and embedding leave a cubic saddle together."""

    escape: float  # t50 of the topic contrast of W_E' W_V W_E
    square: float  # |W_E c|^2 of a topic contrast c afterwards
    attention: float | None  # t50 of key and query; None under cross entropy


def embedding_clock(
    growth: Growth, eigenvalue: float, *, squared: bool, width: int, attention_dim: int, init_scale: float
) -> EmbeddingClock:
    """t_esc = C / (f s sqrt(d)), f = 2 lambda / k (squared loss) or lambda / k (cross entropy): 1/s, not ln 1/s.

    Measured: .90 to 1.12 of it at d = 60, .94 to 1.43 at d = 13 to 21; under cross entropy .58 to .79. Key and query
    then grow |W_E c|^2 times as fast as on one-hot words; c = 1 is assumed, which was 9% and 33% late.
    """
    pull = (2 if squared else 1) * eigenvalue / growth.masking.k
    escape = ESCAPE / (pull * init_scale * math.sqrt(width))
    square = 2 ** (1 / 3) * growth.masking.k ** (-2 / 3)  # from |e|^2 - 2 b^2 = const and |e|^2 b = 1 / k
    if not squared or growth.reason is not None:
        return EmbeddingClock(escape, square, None)
    return EmbeddingClock(escape, square, escape + growth.e_fold(attention_dim) / square * math.log(1 / init_scale))


BETAS = (0.9, 0.999)  # of Adam
MOST_STEPS = 20_000  # later epsilon rules, and the formula of `adam_clock` is as good
GRID = 200  # values of l up to a quarter of l*, where the norm is half of the plateau's


def entry_steps(
    growth: Growth,
    *,
    value: float,
    attention_dim: int,
    init_scale: float,
    lr: float,
    eps: float,
    loss_scale: float = 1.0,
    output_bias: bool = False,
) -> int | None:
    """Steps until |W_K| is half of its plateau, for full batches; None: not within MOST_STEPS, or no way to go.

    Topic contrasts of W_V rise evenly once the mean is learnt, which takes 1 / (T v) over the rate where no output bias
    learns it. Measured: .84 to 1.15 of it in four worlds, at rates from .0003 to .01 and epsilons from 1e-20 to 1e-4.
    """
    if growth.reason is not None or init_scale <= 0:
        return None
    topics, words, (first, second) = growth.topics, growth.topics * growth.v, BETAS
    waits = 0.0 if output_bias else 1 / (words * lr)
    entries = words * math.sqrt(attention_dim) / (topics - 1)  # l over the square of an entry; [MASK] does not move
    half = math.sqrt(growth.l_star / 4 / entries)
    at = growth.moments(np.linspace(0, growth.l_star / 4, GRID + 1))
    joint, square, best = at.joint_slope.tolist(), at.square_slope.tolist(), at.best.tolist()
    entry = init_scale * math.sqrt((topics - 1) / (2 * words))
    if entry >= half:
        return None
    pull, small, mean, mean_square = 1 / ((topics - 1) * math.sqrt(attention_dim)), eps / loss_scale, 0.0, 0.0
    for step in range(1, MOST_STEPS + 1):
        place = round(min(entry / half, 1.0) ** 2 * GRID)
        a = best[place] * min(max((step - waits) / (2 * (value - waits)), 0.0), 1.0)
        gradient = entry * pull * (2 * a * joint[place] - a**2 * square[place])
        mean = first * mean + (1 - first) * gradient
        mean_square = second * mean_square + (1 - second) * gradient**2
        root = math.sqrt(mean_square / (1 - second**step)) + small
        entry += lr * mean / (1 - first**step) / root if root > 0 else 0.0
        if entry >= half:
            return step
    return None
