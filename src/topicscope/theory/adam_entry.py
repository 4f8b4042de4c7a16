"""One entry of key and query under Adam, step by step: how far growing gradients lengthen Adam's steps.

Adam divides the mean of the last gradients by the root of the mean of all squared ones. While W_V rises and the entry
with it, gradients grow, so that the newest is larger than that root: the steps are longer than the rate. A gradient
that grows as t^p makes them sqrt(2 p + 1) times as long. So the entry is followed with Adam's own averages. It feels
the force of R3 at l, the scores that the entry has reached by then, with W_V on its way:

    gradient = q (2 a A'(l) - a^2 B'(l)) / ((T - 1) sqrt(d_a)),  a from 0 to A / B, once the mean of words is learnt.

>>> from topicscope.theory.growth import Growth
>>> from topicscope.world import Fixed, TopicModel
>>> growth = Growth.of(TopicModel(5, 4), Fixed(topics_per_document=2, length="infinite"))
>>> entry_steps(growth, value=194.5, attention_dim=21, init_scale=1e-3, lr=1e-3, eps=1e-10)  # runs: 174 to 184
179
"""

from __future__ import annotations

import math

import numpy as np

from topicscope.theory.growth import Growth

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

    Args:
        growth: How attention grows in this world.
        value: The half-way step of W_V.
        attention_dim: d_a.
        init_scale: Standard deviation of the initial weights.
        lr: Learning rate.
        eps: Epsilon of Adam.
        loss_scale: The loss is multiplied by it: 1 / V where outputs are averaged.
        output_bias: Whether the output has a trained bias.

    Returns:
        The number of steps.

    Example:
        >>> from topicscope.world import Fixed, TopicModel
        >>> growth = Growth.of(TopicModel(4, 3), Fixed(topics_per_document=2))
        >>> entry_steps(growth, value=276, attention_dim=13, init_scale=0.001, lr=0.001, eps=1e-8)
        211
    """
    if growth.reason is not None or init_scale <= 0:
        return None
    topics, words, (first, second) = growth.topics, growth.topics * growth.v, BETAS
    waits = 0.0 if output_bias else 1 / (words * lr)
    entries = words * math.sqrt(attention_dim) / (topics - 1)  # l over the square of an entry; [MASK] does not move
    half = math.sqrt(growth.l_star / 4 / entries)
    at = growth.moments(np.linspace(0, growth.l_star / 4, GRID + 1))
    joint, square, best = at.joint_slope.tolist(), at.square_slope.tolist(), (at.joint / at.square).tolist()
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
