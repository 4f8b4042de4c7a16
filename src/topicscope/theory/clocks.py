"""Clocks other than gradient flow on one-hot words: Adam (R4), cross entropy (R7), a trained embedding (R8).

They are numerical laws, less exact than the flow's: each function says how far measurements were from it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from topicscope.theory.forces import mask_force
from topicscope.theory.growth import Growth

ESCAPE = 0.836
"""Time at which e' = (B + B')e, B' = ee' blows up from |e| = 1 and B of entries N(0, 1/d): .836 +- .009 at d = 600."""

FEWEST_STEPS = 10
"""Of Adam, below which its clocks do not hold: so many gradients are in its first mean, 1 / (1 - beta_1). Key at 8.5
and 9.5 predicted steps was half-way after 18 and 17."""

THREEFOLD = 3.0  # growth of |W_K| after which attention has left its start


class AdamClock(NamedTuple):
    """Steps to half of the plateau, and where epsilon matters: as epsilon over the scale of the loss."""

    value: float
    attention: float | None
    sign: float | None  # part of `attention` in which entries move by the rate at every step
    epsilon: float | None  # part in which they move in proportion to their gradient
    delays_attention_from: float | None
    rules_attention_from: float | None
    delays_value_from: float
    followed: float | None = None  # `attention` of an entry followed with Adam's own averages, for full batches


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
    """An entry moves by lr g / (|g| + eps) at each step.

    `batch_noise` is |mean| / rms of a batch's gradient, 1 for full batches. Measured with full batches: value within
    13%; attention within 16% where epsilon rules it, .62 to 1 of this where it does not (growing gradients make Adam's
    steps longer: `entry_steps` follows them), up to 1.4 at lr = .01 (momentum). `attention` is None where nothing
    starts it.
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
    waiting = value if slow > sign else 0.0
    return AdamClock(value, sign + slow + waiting, sign, slow, pull * start, pull * half, slow_value)


class MaskFirst(NamedTuple):
    """Cross entropy: [MASK] learns not to look at [MASK] while topic contrasts of W_V still grow evenly."""

    speed: float  # at which W_V grows on topic contrasts
    force: float  # on the [MASK] query, per unit of W_V
    time: float  # at which |W_K| is three times its start


def mask_first(growth: Growth, eigenvalue: float, attention_dim: int) -> MaskFirst:
    """W_K gains exp(force speed t^2 / (2 sqrt(d_a))) in one direction of its V.

    In (T, v, tau) = (5, 4, 2) the time is 512; measured were 683 and 687, since W_V slows down meanwhile.
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
    k = growth.masking.k
    pull = (2 if squared else 1) * eigenvalue / k
    escape = ESCAPE / (pull * init_scale * math.sqrt(width))
    square = 2 ** (1 / 3) * k ** (-2 / 3)  # from |e|^2 - 2 b^2 = const and |e|^2 b = 1 / k
    if not squared or growth.reason is not None:
        return EmbeddingClock(escape, square, None)
    return EmbeddingClock(escape, square, escape + growth.e_fold(attention_dim) / square * math.log(1 / init_scale))
