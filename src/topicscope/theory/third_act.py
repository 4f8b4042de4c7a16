"""How fast the second plateau is left: it is a saddle (R3, the third act).

Let W_V = a Pi + u 1' and L = l Pi. Take a difference kappa between words of topic s. A little of it in W_K makes query
words attend it by topic (q: topic s against the others); a little of it in W_V turns that into a prediction (c: topic s
against the others). The loss has no term in W_V alone, so its Hessian in these two is -((0, w b), (w b, w^2 D)), with
w^2 = l / sqrt(d_a), and its negative eigenvalue is the rate at which flow leaves.

>>> from topicscope.world import Fixed, TopicModel
>>> float(f"{escape_rate(Growth.of(TopicModel(4, 3), Fixed(topics_per_document=2)), 13):.4g}")
9.055e-05
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from topicscope.theory.growth import Growth, Numbers

NODES = 60  # of the quadrature
SHOWS = 0.1  # norm of W_V inside topics at which the third act shows: growth is still linear
SETTLED, STEPS = 8.0, 4000  # e-folds of key after its half-time at which l is l*, and steps up to there


class Coupling(NamedTuple):
    """Of a difference inside a topic in W_V (c) and in W_K (q): dc/dt = pull q, dq/dt = pull c + 2 bend q."""

    bend: Any  # numbers, or arrays where several l are given
    pull: Any

    @property
    def rate(self) -> Any:
        """The larger eigenvalue."""
        return self.bend + np.hypot(self.bend, self.pull)


def escape_rate(growth: Growth, attention_dim: int, ell: float | None = None) -> float:
    """How fast the second plateau is left: differences inside topics grow as exp(rate t) there (R3, the third act).

    Args:
        growth: How attention grows in this world.
        attention_dim: d_a.
        ell: Size l of the scores; None: on the plateau.

    Returns:
        The rate; 0 where v = 1.

    Example:
        >>> from topicscope.world import Fixed, TopicModel
        >>> growth = Growth.of(TopicModel(4, 3), Fixed(topics_per_document=2))
        >>> round(1 / escape_rate(growth, attention_dim=13))  # time of an e-fold
        11043
    """
    if growth.v == 1:
        return 0.0
    return float(coupling(growth, attention_dim, growth.l_star if ell is None else ell).rate)


def coupling(growth: Growth, attention_dim: int, ell: Numbers) -> Coupling:
    """At L = l Pi, for v from 2 on."""
    topics, v, theta, mean = growth.topics, growth.v, growth.shares.share, growth.shares.mean
    random, correct = growth.shown
    moments = growth.moments(ell)
    best = moments.joint / moments.square
    a = np.asarray(best)[..., None]  # beside arrays by the share of the topic
    own, other, other_square, other_joint, z = growth.attended(ell)
    level = 1 / topics - a * (own + other) / z / topics  # a topic of mass X is predicted as a X + level
    same, different = math.sqrt((1 - 1 / topics) / v), -1 / math.sqrt(v * topics * (topics - 1))  # q, of norm 1
    # error of topic s times its attended mass, for s the query's topic and summed over the others
    here, there = -(level + a * own / z) * own / z, -(level * other / z + a * other_square / z**2)
    pulls = random * (same * (here + theta * own / z) + different * (there + other_joint / z))
    pulls += correct * (same * (here + own / z) + different * there)
    b = 2 / (topics * v**1.5) * mean(pulls) * math.sqrt(topics / (topics - 1))  # c has a part in the other topics too
    # A difference in W_K makes topic s heavier in second order. The force on [MASK] as key is
    # -2 a E[x'_0 (y - W x')' Pi x']; with g it gives that on topic s, as columns of the force sum to 0.
    square = (own**2 + other_square - (own + other) ** 2 / topics) / z**2
    joint = random * (theta * own + other_joint) + correct * own - (random + correct) * (own + other) / topics
    at_mask = growth.masking.p_mask * growth.masking.p_mask_word / z
    force = 2 * best / (topics**2 * v**2) * mean(at_mask * (joint / z - a * (random + correct) * square))
    w2 = np.asarray(ell) / math.sqrt(attention_dim)
    bend = w2 * (force + growth.force(ell) * (1 - 2 / topics)) / (2 * v)
    return Coupling(bend, np.sqrt(w2) * b)


def gain_by_half_time(growth: Growth, attention_dim: int) -> float:
    """By how many e-folds differences inside topics have grown when key and query are half-way (l = l*/4).

    The integral of the rate over time: dt = sqrt(d_a) dl / (2 l g), and l = u^2 makes it smooth.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    end = math.sqrt(growth.l_star) / 2
    us = end / 2 * (nodes + 1)
    rates = coupling(growth, attention_dim, us**2).rate if growth.v > 1 else np.zeros(NODES)
    return float(end / 2 * math.sqrt(attention_dim) * weights @ (rates / (us * growth.force(us**2))))


def third_act_time(growth: Growth, attention_dim: int, scale: float, level: float = SHOWS) -> float | None:
    """When W_V inside topics has the norm `level` on the plateau, from weights of N(0, scale^2).

    The growth of differences inside topics is followed from their start, with their coupling at l(t). The pull changes
    its sign shortly before l*: what has grown until then dies out first, and grows again with the other sign. T (v - 1)
    differences grow alike. Measured in three worlds: up to 16% earlier.

    Args:
        growth: How attention grows in this world.
        attention_dim: d_a.
        scale: Standard deviation of the initial weights.
        level: The norm.

    Returns:
        The time; None where `level` is reached before the plateau, or v = 1.

    Example:
        >>> from topicscope.world import Fixed, TopicModel
        >>> growth = Growth.of(TopicModel(4, 3), Fixed(topics_per_document=2))
        >>> round(third_act_time(growth, attention_dim=13, scale=0.001))
        55141
    """
    count = growth.topics * (growth.v - 1)
    if growth.v == 1 or scale <= 0 or scale * math.sqrt(count) >= level:
        return None
    goal, first = level / (scale * math.sqrt(count)), growth.expected_start(attention_dim, scale)
    end = growth.half_time(attention_dim, first) + SETTLED * growth.e_fold(attention_dim)
    step = end / STEPS
    middle = growth.course((np.arange(STEPS) + 0.5) * step, attention_dim, first)
    grid = growth.l_star * np.linspace(1e-6, 1, NODES) ** 2  # smooth in the root of l
    table = coupling(growth, attention_dim, grid)
    bends, pulls = (np.interp(np.sqrt(middle), np.sqrt(grid), column) for column in table)
    from_value, from_key = (1.0, 0.0), (0.0, 1.0)  # c and q, from 1 in c and from 1 in q
    for bend, pull in zip((2 * step * bends).tolist(), (step * pulls).tolist(), strict=True):
        if math.hypot(from_value[0], from_key[0]) >= goal:
            return None
        # 1 + M + M^2 / 2 with M = ((0, pull), (pull, bend))
        cc, cq, qq = 1 + pull * pull / 2, pull + pull * bend / 2, 1 + bend + (pull * pull + bend * bend) / 2
        from_value, from_key = ((cc * c + cq * q, cq * c + qq * q) for c, q in (from_value, from_key))
    last = coupling(growth, attention_dim, growth.l_star)
    fast = np.array([last.pull, last.rate]) / math.hypot(last.pull, last.rate)  # the mode that grows on the plateau
    grown = abs(fast[0]) * math.hypot(float(fast @ from_value), float(fast @ from_key))
    return float(end + math.log(goal / grown) / last.rate)
