"""The force on attention: -dLoss/dL, with L[i, j] the score that query word j gives to key word i.

L = W_K' W_Q / sqrt(d_a). At uniform attention and the first stage's optimum the force is sigma times the projector on
topic contrasts (R2); under cross entropy, near zero, it points at the [MASK] query first (R7).

>>> from topicscope.theory.shares import fixed_shares
>>> float(f"{contrast_force(fixed_shares(10, 3), 10, Masking()):.6g}")
4.96396e-05
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.theory.enumeration import SmallWorld
from topicscope.theory.shares import TopicShares
from topicscope.world import Masking

Matrix = Float[np.ndarray, "V V"]
Loss = Literal["squared", "cross-entropy"]


def topic_contrasts(topics: int, v: int) -> Matrix:
    """Pi: the projector on topic contrasts, zero at [MASK].

    Args:
        topics: T.
        v: Words per topic.

    Returns:
        The projector (V x V), of rank T - 1.

    Example:
        >>> topic_contrasts(topics=2, v=1).tolist()
        [[0.0, 0.0, 0.0], [0.0, 0.5, -0.5], [0.0, -0.5, 0.5]]
    """
    return np.pad(np.kron(np.eye(topics) - 1 / topics, np.full((v, v), 1 / v)), ((1, 0), (1, 0)))


def force_formula(world: SmallWorld, masking: Masking, value: Matrix) -> Matrix:
    """R2: 2 p_c E[P_j x_i (e_i - x)' W' (e_j - P)], the force at L = 0, for W with W x = P in every document.

    Given the document and the word j shown, the expected error is p_c P_j (P - e_j); at [MASK] it is 0.

    Args:
        world: A small world.
        masking: The masking scheme.
        value: W_V (V x V), optimal for infinite documents.

    Returns:
        The force (V x V): key word, query word.

    Example:
        >>> from topicscope.theory import Setting, grouped_subsets, subset_world, theorem2
        >>> world, setting = subset_world(4, 3, grouped_subsets(4, 2)), Setting.of(4, 3, 2)
        >>> value = theorem2(setting).matrix()
        >>> difference = force_formula(world, setting.masking, value) - score_force(world, setting.masking, value)
        >>> bool(abs(difference).max() < 1e-15)
        True
    """
    total, eye = np.zeros_like(value), np.eye(len(value))
    for x, p, probability in zip(*world.infinite(masking), world.probabilities, strict=True):
        total += probability * x[:, None] * ((eye - x) @ value.T @ (eye - p).T) * p
    return 2 * masking.p_correct * total


def contrast_force(shares: TopicShares, v: int, masking: Masking) -> float:
    """sigma: at W* of disjoint topics of v equally probable words, -dLoss/dL = sigma Pi (R2).

    With x_1 = k theta_1 / v + p_2 and q = |theta|^2, sigma = 2 p_c / (k v) (E[theta_1 x_1 (1 - theta_1 - k (theta_1 -
    q))] + E[theta_2 x_1 (theta_1 + k (theta_2 - q))]). For tau topics of equal shares this is 2 p_c p_1 (tau - 1) / (k
    v tau (T - 1)).

    Args:
        shares: The law of one topic's share.
        v: Words per topic.
        masking: The masking scheme.

    Returns:
        sigma.

    Example:
        >>> from topicscope.theory import Setting, topic_shares
        >>> from topicscope.world import Fixed
        >>> s = Setting.of(4, 3, 2)
        >>> sigma = contrast_force(topic_shares(Fixed(topics_per_document=2), 4), 3, s.masking)
        >>> float(f"{sigma:.6g}"), float(f"{2 * 0.1 * s.p1 * (2 - 1) / (s.masking.k * 3 * 2 * (4 - 1)):.6g}")
        (0.00186791, 0.00186791)
    """
    if shares.topics == 1:
        return 0.0
    k, theta = masking.k, shares.share
    x = k * theta / v + masking.p_mask * masking.p_random / (shares.topics * v)
    q = theta**2 + shares.others
    own = theta * x * (1 - theta - k * (theta - q))
    other = x * ((1 - theta) * theta + k * (shares.others - (1 - theta) * q)) / (shares.topics - 1)
    return 2 * masking.p_correct / (k * v) * shares.mean(own + other)


def inside_force(shares: TopicShares, v: int, masking: Masking) -> float:
    """delta: at the optimum of long documents -dLoss/dL = sigma Pi + delta Pi_w, Pi_w: differences inside topics.

    That optimum has a diagonal b = p_c / (k + p_m p_r) (R5), which infinite documents neither need nor forbid. It adds
    2 p_c b E[P_j x_i] for two words of one topic. For tau topics delta / sigma = b k tau (T - 1) / (T (tau - 1)).

    Args:
        shares: The law of one topic's share.
        v: Words per topic.
        masking: The masking scheme.

    Returns:
        delta.

    Example:
        >>> from topicscope.theory import topic_shares
        >>> from topicscope.world import Fixed
        >>> shares, m = topic_shares(Fixed(topics_per_document=2), 4), Masking()
        >>> round(inside_force(shares, 3, m) / contrast_force(shares, 3, m), 6)
        0.147443
        >>> round(m.p_correct / (m.k + m.p_mask * m.p_random) * m.k * 2 * (4 - 1) / (4 * (2 - 1)), 6)
        0.147443
    """
    k, theta = masking.k, shares.share
    x = k * theta / v + masking.p_mask * masking.p_random / (shares.topics * v)
    diagonal = masking.p_correct / (k + masking.p_mask * masking.p_random)
    return 2 * masking.p_correct * diagonal * shares.mean(theta / v * x)


class MaskForce(NamedTuple):
    """Force on the [MASK] query per unit of w where W = w Pi, under cross entropy near zero (R7).

    Attributes:
        word: At every word as key.
        mask: At [MASK] as key.
        size: Size of the whole column: one singular value.

    Example:
        See `mask_force`.
    """

    word: float
    mask: float
    size: float


def mask_force(shares: TopicShares, v: int, masking: Masking) -> MaskForce:
    """p_0 E[x_i (e_i - x)' Pi P]: once topics show in W_V, [MASK] learns not to attend [MASK] (R7).

    Args:
        shares: The law of one topic's share.
        v: Words per topic.
        masking: The masking scheme.

    Returns:
        The force on the [MASK] query.

    Example:
        >>> from topicscope.theory import topic_shares
        >>> from topicscope.world import Fixed
        >>> force = mask_force(topic_shares(Fixed(topics_per_document=2), 4), 3, Masking())
        >>> float(f"{force.size:.6g}"), force.mask < 0 < force.word
        (0.00720256, True)
    """
    p0, topics, k, theta = masking.p_mask_word, shares.topics, masking.k, shares.share
    x = k * theta / v + masking.p_mask * masking.p_random / (topics * v)
    spread = k / v * (theta**2 + shares.others - 1 / topics)  # x' Pi P
    word = p0 * shares.mean(x * ((theta - 1 / topics) / v - spread))
    mask = -p0 * masking.p_mask * p0 * shares.mean(spread)
    return MaskForce(word, mask, float(np.hypot(mask, np.sqrt(topics * v) * word)))
