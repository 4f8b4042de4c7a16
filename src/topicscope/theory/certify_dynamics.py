"""Certificates of the dynamics: the force on attention, how it falls as attention grows, the [MASK] query's force.

The rates of the first stage and W(t) (R1) are certified with `optimum`, in certify_worlds. One side here is the
gradient of the scores over every document; the other, which tests disturb, is an argument.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

from topicscope.theory.certify_optima import Certificate
from topicscope.theory.certify_worlds import MASKINGS, SOLVED
from topicscope.theory.enumeration import SmallWorld, grouped_subsets, subset_world
from topicscope.theory.forces import MaskForce, contrast_force, mask_force, topic_contrasts
from topicscope.theory.growth import Growth
from topicscope.theory.population import score_force
from topicscope.theory.setting import Setting
from topicscope.theory.shares import dirichlet_shares, fixed_shares, listed_shares
from topicscope.theory.theorem2 import theorem2
from topicscope.theory.value_optimum import ValueArray
from topicscope.world import Masking, TopicModel

FORCE = 1e-9  # tolerance, as a share of sigma
NEAR_ZERO = 1e-6  # tolerance of a law that holds at W -> 0
SMALL_W = 1e-7  # W at which it is tested
SIZES = ((10, 10, 3), (10, 10, 2), (5, 4, 2), (6, 3, 3), (6, 3, 5), (4, 1, 2))  # T, v, tau


def every_order(rows: Sequence[Sequence[float]]) -> Float[np.ndarray, "K T"]:
    """The rows in all orders of their topics: an exchangeable law."""
    return np.array([order for row in rows for order in itertools.permutations(row)])


def force_is_contrasts(s: Setting, sigma: float | None = None, value: ValueArray | None = None) -> Certificate:
    """R2: at Theorem 2's W_V the whole matrix -dLoss/dL is sigma Pi."""
    world = subset_world(s.T, s.v, grouped_subsets(s.T, s.tau))
    sigma = contrast_force(fixed_shares(s.T, s.tau), s.v, s.masking) if sigma is None else sigma
    force = score_force(world, s.masking, theorem2(s).matrix() if value is None else value)
    return Certificate(
        "after the first stage the force on attention is sigma times the projector on topic contrasts",
        s.as_dict(),
        float(np.abs(force - sigma * topic_contrasts(s.T, s.v)).max() / np.abs(force).max()),
        FORCE,
    )


def force_of_any_prior(
    rows: Float[np.ndarray, "K T"], v: int, masking: Masking, sigma: float | None = None
) -> Certificate:
    """R2 for an exchangeable law of theta, whose proportions are equally probable `rows`."""
    topics, each = rows.shape[1], np.full(len(rows), 1 / len(rows))
    world = SmallWorld(TopicModel(topics, v).word_topics, rows, each)
    sigma = contrast_force(listed_shares(rows, each), v, masking) if sigma is None else sigma
    force = score_force(world, masking, theorem2(Setting(TopicModel(topics, v), 1, masking)).matrix())
    return Certificate(
        "the force on attention is sigma times topic contrasts for any prior whose topics are exchangeable",
        {"topics": topics, "words_per_topic": v, "rows": len(rows), **vars(masking)},
        float(np.abs(force - sigma * topic_contrasts(topics, v)).max() / np.abs(force).max()),
        FORCE,
    )


def dirichlet_moment(alpha: float, topics: int, *powers: int) -> float:
    """E[theta_1^a theta_2^b ...]: rising factorials of alpha over one of T alpha."""

    def rising(start: float, count: int) -> float:
        return math.prod(start + i for i in range(count))

    return math.prod(rising(alpha, power) for power in powers) / rising(topics * alpha, sum(powers))


def force_of_dirichlet(alpha: float, s: Setting, sigma: float | None = None) -> Certificate:
    """sigma by quadrature over one topic's share, against the formula in moments of three topics."""
    topics, v, k, p2 = s.T, s.v, s.masking.k, s.p2

    def moment(*powers: int) -> float:
        return dirichlet_moment(alpha, topics, *powers)

    def with_x(a: int, b: int = 0, c: int = 0) -> float:
        """E[x_1 theta_1^a theta_2^b theta_3^c], x_1 = k theta_1 / v + p_2."""
        return k / v * moment(a + 1, b, c) + p2 * moment(a, b, c)

    q1 = with_x(3) + (topics - 1) * with_x(1, 2)  # E[x_1 theta_1 |theta|^2]
    q2 = with_x(2, 1) + with_x(0, 3) + (topics - 2) * with_x(0, 1, 2)  # E[x_1 theta_2 |theta|^2]
    own = with_x(1) - (1 + k) * with_x(2) + k * q1
    other = with_x(1, 1) + k * with_x(0, 2) - k * q2
    stated = contrast_force(dirichlet_shares(topics, alpha), v, s.masking) if sigma is None else sigma
    exact = 2 * s.masking.p_correct / (k * v) * (own + other)
    settings = {name: value for name, value in s.as_dict().items() if name != "topics_per_document"}
    return Certificate(
        "sigma of a Dirichlet prior equals that of its moments",
        settings | {"alpha": alpha},
        abs(stated / exact - 1),
        SOLVED,
    )


def force_falls_as_stated(s: Setting, ell: float, stated: Callable[[float], float] | None = None) -> Certificate:
    """R3's g(l): the force on topic contrasts at L = l Pi, where W_V is least squares over every document."""
    world, pi = subset_world(s.T, s.v, grouped_subsets(s.T, s.tau)), topic_contrasts(s.T, s.v)
    growth = Growth(s.v, s.masking, fixed_shares(s.T, s.tau))
    shown, true = world.infinite(s.masking)
    weight = shown[:, :, None] * np.exp(ell * pi)
    attended = weight / weight.sum(1, keepdims=True)
    instead = np.array([s.masking.p_mask_word, *[s.masking.p_random / (s.T * s.v)] * (s.T * s.v)])
    masked = true[:, :, None] * instead + s.masking.p_correct * np.einsum("dy,yj->dyj", true, np.eye(len(pi)))
    chance = world.probabilities[:, None, None]
    joint = np.tensordot(chance * masked, attended, axes=([0, 2], [0, 2]))
    square = np.tensordot(chance * masked.sum(1, keepdims=True) * attended, attended, axes=([0, 2], [0, 2]))
    value = joint @ np.linalg.pinv(square, rcond=1e-11, hermitian=True)
    exact = float((score_force(world, s.masking, value, ell * pi) * pi).sum()) / (s.T - 1)
    return Certificate(
        "the force on topic contrasts falls as stated while attention grows and W_V follows",
        s.as_dict() | {"l": ell},
        abs((stated or growth.force)(ell) - exact) / growth.sigma,
        FORCE,
    )


def mask_query_is_first(s: Setting, force: MaskForce | None = None) -> Certificate:
    """R7: under cross entropy near zero, at W = w Pi, the column of the [MASK] query."""
    force = mask_force(fixed_shares(s.T, s.tau), s.v, s.masking) if force is None else force
    world = subset_world(s.T, s.v, grouped_subsets(s.T, s.tau))
    found = score_force(world, s.masking, SMALL_W * topic_contrasts(s.T, s.v), loss="cross-entropy")[:, 0] / SMALL_W
    stated = np.array([force.mask, *[force.word] * (s.T * s.v)])
    return Certificate(
        "under cross entropy the force on the [MASK] query near zero is as stated",
        s.as_dict(),
        float(np.abs(found - stated).max() / np.abs(found).max()),
        NEAR_ZERO,
    )


def dynamics_claims() -> Iterator[list[Certificate]]:
    """All certificates of the dynamics."""
    rows = [[0.6, 0.3, 0.1, 0.0], [0.4, 0.35, 0.2, 0.05], [1.0, 0.0, 0.0, 0.0]]
    for masking in MASKINGS:
        for topics, v, tau in SIZES:
            s = Setting(TopicModel(topics, v), tau, masking)
            yield [force_is_contrasts(s), mask_query_is_first(s)]
            if topics < 10:  # least squares over every document
                yield [force_falls_as_stated(s, ell) for ell in (0.5, 4.0)]
        for some in (rows, rows[:1], rows[1:]):
            yield [force_of_any_prior(every_order(some), 3, masking)]
        for alpha in (0.1, 1.0, 5.0):
            yield [force_of_dirichlet(alpha, Setting(TopicModel(10, 10), 1, masking))]
