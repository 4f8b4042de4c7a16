"""Every claim of the theory, derived again by computation, over many settings.

A certificate computes both sides independently: formulas on one, pseudo-inverses, gradients, enumeration and
optimisers on the other. Each takes the formula that it checks as an argument, so that the tests can disturb it and
see the certificate fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from topicscope.ground import Progress, one_thread, watched
from topicscope.theory import certify_attention as attention, certify_optima as optima
from topicscope.theory.certificate import Certificate
from topicscope.theory.lemma1 import random_member
from topicscope.theory.setting import Setting
from topicscope.theory.theorem2 import theorem2
from topicscope.theory.theorem3 import theorem3
from topicscope.theory.theorem5 import diagonal_value_matrix, theorem5

SMALL = ((10, 10, 3), (5, 4, 2), (6, 3, 1), (6, 3, 4))
"""T, v, tau at which whole matrices are compared."""

MASKS = ((0.15, 0.1, 0.1), (0.4, 0.2, 0.3))
BOUND_MASKS = ((0.15, 0.1, 0.1), (0.3, 0.2, 0.2))
"""p_m, p_c, p_r."""

BOUND_GRID = [
    (t, tau, v)
    for t, tau in ((100, 10), (1000, 10), (1000, 100), (100_000, 100), (10**6, 1000))
    for v in (10, 100, 300)
]
"""T, tau, v at which the bounds have to hold."""

STRAINED = [(10, 3, 10), (10, 9, 10), (10, 10, 10), (100, 80, 300), (100, 10, 4), (20, 1, 10)]
"""T, tau, v at which the theorems' assumptions fail."""


@one_thread()
def verify(progress: Progress | None = None) -> list[Certificate]:
    """All certificates."""
    result: list[Certificate] = []
    with watched(progress) as report:
        for certificates in all_claims():
            result.extend(certificates)
            report("verifying", len(result), None, result[-1].claim)
    return result


def all_claims() -> Iterator[Iterable[Certificate]]:
    for topics, v, tau in SMALL:
        for p_mask, p_correct, p_random in MASKS:
            s = Setting.of(topics, v, tau, p_mask=p_mask, p_correct=p_correct, p_random=p_random)
            yield from small_claims(s, members=1000 if topics == 10 and p_mask == MASKS[0][0] else 50)
    for p_mask, p_correct, p_random in BOUND_MASKS:
        for topics, tau, v in BOUND_GRID:
            s = Setting.of(topics, v, tau, p_mask=p_mask, p_correct=p_correct, p_random=p_random)
            yield [attention.theorem3_bounds(theorem3(s)), attention.theorem5_bounds(theorem5(s))]
    for topics, tau, v in STRAINED:
        s = Setting.of(topics, v, tau)
        yield [attention.theorem3_bounds(theorem3(s)), attention.theorem3_bounds(theorem3(s), "exact")]
        if v > 4:
            yield [attention.theorem5_bounds(theorem5(s)), attention.theorem5_bounds(theorem5(s), "exact")]
    yield [attention.asymptotic_approach("blocks"), attention.asymptotic_approach("diagonal")]


def small_claims(s: Setting, members: int) -> Iterator[Iterable[Certificate]]:
    """What can be compared matrix by matrix."""
    optimum = theorem2(s)
    if math.comb(s.T, s.tau) * (s.T * s.v) ** 2 < 10**5:
        yield [optima.symmetry_is_enumeration(s)]
    yield [optima.theorem2_is_pseudo_inverse(optimum)]
    yield [optima.theorem2_is_least_norm(optimum, members=members)]
    member = random_member(s.topic_model, s.masking, np.random.default_rng(1))
    yield [optima.gradient_vanishes(s, "Theorem 2", optimum.matrix())]
    yield [optima.gradient_vanishes(s, "the diagonal optimum", diagonal_value_matrix(s.topic_model, s.masking))]
    yield [optima.gradient_vanishes(s, "a random member of Lemma 1's family", member)]
    yield [optima.family_is_flat(s)]
    yield [optima.outside_costs_more(s)]
    yield [optima.ridge_converges(optimum)]
    yield optima.theorem1_family(s)
    yield attention.attention_entries_are_exact(s)
    yield attention.remark5(s)
