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

import numpy as np

from topicscope.theory.growth import Growth

NODES = 60  # of the quadrature


def escape_rate(growth: Growth, attention_dim: int, ell: float | None = None) -> float:
    """Differences inside topics grow as exp(rate t) at l, on the plateau unless it is given; 0 where v = 1."""
    if growth.v == 1:
        return 0.0
    ell = growth.l_star if ell is None else ell
    topics, v, theta, mean = growth.topics, growth.v, growth.shares.share, growth.shares.mean
    random, correct = growth.shown
    moments = growth.moments(ell)
    a = moments.joint / moments.square
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
    force = 2 * a / (topics**2 * v**2) * mean(at_mask * (joint / z - a * (random + correct) * square))
    w2 = ell / math.sqrt(attention_dim)
    bend = w2 * (force + growth.force(ell) * (1 - 2 / topics)) / (2 * v)
    return bend + math.sqrt(bend**2 + w2 * b**2)


def gain_by_half_time(growth: Growth, attention_dim: int) -> float:
    """By how many e-folds differences inside topics have grown when key and query are half-way (l = l*/4).

    The integral of the rate over time: dt = sqrt(d_a) dl / (2 l g), and l = u^2 makes it smooth.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    end = math.sqrt(growth.l_star) / 2
    us = end / 2 * (nodes + 1)
    rates = [escape_rate(growth, attention_dim, u**2) / (u * growth.force(u**2)) for u in us]
    return float(end / 2 * math.sqrt(attention_dim) * weights @ rates)
