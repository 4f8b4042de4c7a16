"""Certificates of the second stage: the loss of topic-wise attention, Theorems 3 and 5, Remark 5, the limit of large T.

And all certificates together: every claim of the theory, derived again by computation, over many settings.
"""

import math
from collections.abc import Iterator

import numpy as np

from topicscope.ground import Progress, one_thread, watched
from topicscope.theory import certify_optima as optima
from topicscope.theory.attention_loss import Convention, asymptotic_loss, attention_loss, best_attention
from topicscope.theory.certify_dynamics import dynamics_claims
from topicscope.theory.certify_optima import EXACT, Certificate, loss_of
from topicscope.theory.certify_worlds import world_claims
from topicscope.theory.lemma1 import random_member
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import Matrix, ValueMatrix, assumptions
from topicscope.theory.theorem2 import theorem2
from topicscope.theory.theorem3 import Theorem3, theorem3
from topicscope.theory.theorem5 import Theorem5, diagonal_value_matrix, theorem5

SMALL = ((10, 10, 3), (5, 4, 2), (6, 3, 1), (6, 3, 4))  # T, v, tau at which whole matrices are compared
MASKS = ((0.15, 0.1, 0.1), (0.4, 0.2, 0.3))  # p_m, p_c, p_r
BOUND_MASKS = ((0.15, 0.1, 0.1), (0.3, 0.2, 0.2))
BOUND_GRID = [  # T, tau, v at which the bounds have to hold
    (t, tau, v)
    for t, tau in ((100, 10), (1000, 10), (1000, 100), (100_000, 100), (10**6, 1000))
    for v in (10, 100, 300)
]
STRAINED = [(10, 3, 10), (10, 9, 10), (10, 10, 10), (100, 80, 300), (100, 10, 4), (20, 1, 10)]
"""T, tau, v at which the theorems' assumptions fail."""


def attention_entries_are_exact(
    s: Setting, alpha: float = 3.0, beta: float = 0.4, scale: float = 1.0
) -> list[Certificate]:
    """The handful of numbers of `attention_loss` against the whole matrix."""
    matrices: dict[ValueMatrix, Matrix] = {
        "blocks": theorem2(s).matrix(),
        "diagonal": diagonal_value_matrix(s.topic_model, s.masking),
    }
    return [
        Certificate(
            f"the finite-size loss of topic-wise attention equals the matrix computation ({kind})",
            s.as_dict() | {"alpha": alpha, "beta": beta},
            # of a one-hot target: scale 1
            abs(attention_loss(s, kind, scale * alpha, beta) - loss_of(s, matrix, alpha, beta)),
            EXACT,
        )
        for kind, matrix in matrices.items()
    ]


def theorem3_bounds(theorem: Theorem3, convention: Convention = "paper") -> Certificate:
    best = best_attention(theorem.setting, "blocks", convention)
    (low, high), broken = theorem.bounds["gamma"], assumptions(theorem.setting)
    return Certificate(
        f"Theorem 3's interval contains the best gamma ({convention} convention)",
        theorem.setting.as_dict(),
        max(0.0, low - best.gamma, best.gamma - high),
        0.0,
        not broken and convention == "paper",
        f"gamma = {best.gamma:.4g} in ({low:.4g}, {high:.4g})"
        + (f"; {best.edge}" if best.edge else "")
        + (f"; strained: {'; '.join(broken)}" if broken else ""),
    )


def theorem5_bounds(theorem: Theorem5, convention: Convention = "paper") -> Certificate:
    best = best_attention(theorem.setting, "diagonal", convention, cap=convention == "paper")
    (low, high), ratio, broken = theorem.bounds["beta"], best.alpha / best.beta, assumptions(theorem.setting)
    return Certificate(
        f"Theorem 5's bounds contain the best attention ({convention} convention)",
        theorem.setting.as_dict(),
        max(0.0, low - best.beta, best.beta - high, ratio - theorem.lambda5),
        0.0,
        not broken and convention == "paper",
        f"beta = {best.beta:.4g} in ({low:.4g}, {high:.4g}), alpha / beta = {ratio:.3g} < {theorem.lambda5:.3g}"
        + (f"; strained: {'; '.join(broken)}" if broken else ""),
    )


def remark5(s: Setting, gamma: float = 5.0, disturb: float = 1.0) -> list[Certificate]:
    """Blocks: only gamma matters in the paper's convention; in the exact one the attention of [MASK] to itself does
    too.
    """
    alphas = np.linspace(0, gamma * s.v / (s.v - 1), 9)
    betas = s.v * gamma - (s.v - 1) * alphas
    paper = attention_loss(s, "blocks", alphas, betas * disturb, "paper")
    exact = attention_loss(s, "blocks", alphas, betas, "exact")
    spread, loss, here = float(np.ptp(exact)), float(exact.mean()), s.as_dict() | {"gamma": gamma}
    return [
        Certificate(
            "Remark 5: only the weighted average of alpha and beta matters (paper convention)",
            here,
            float(np.ptp(paper) / paper.mean()),
            EXACT,
        ),
        Certificate(
            "Remark 5 under the exact convention, where it fails: [MASK] attends to itself with beta",
            here,
            spread / loss,
            EXACT,
            False,
            f"losses of the same gamma spread by {spread:.3g} around {loss:.6g}",
        ),
    ]


def asymptotic_approach(kind: ValueMatrix, scale: float = 1.0, base: int = 20) -> Certificate:
    """tau and T / tau both grow tenfold; the distance to the asymptotic loss has to fall in proportion to 1 / tau."""
    distances = []
    for growth in (10, 100, 1000):
        s = Setting.of(topics=base * growth**2, words_per_topic=50, topics_per_document=growth)
        alpha, beta = (float(s.tau), float(s.tau)) if kind == "blocks" else (0.01 * s.v * s.tau, 3.0 * s.v * s.tau)
        asymptotic = scale * asymptotic_loss(s, kind, alpha, beta)
        distances.append(abs(attention_loss(s, kind, alpha, beta, "paper") - asymptotic))
    exponent = math.log10(distances[1] / distances[2])
    return Certificate(
        f"the asymptotic loss is approached as T and tau grow, in proportion to 1/tau ({kind})",
        {"words_per_topic": 50, "topics_per_document": [10, 100, 1000], "topics": f"{base} tau^2"},
        abs(exponent - 1),
        0.05,
        note="distance "
        + ", ".join(f"{d:.2e}" for d in distances)
        + f" at tau = 10, 100, 1000: exponent {exponent:.3f}",
    )


@one_thread()
def verify(progress: Progress | None = None) -> list[Certificate]:
    """Derive every claim of the theory again by computation, over many settings.

    Args:
        progress: Called as progress(phase, done, total, note); None: a bar in terminals and notebooks.

    Returns:
        One certificate per claim and setting.

    Example:
        >>> certificate = theorem3_bounds(theorem3(Setting.of()))  # one of them; all of them take long
        >>> certificate.holds, certificate.should_hold
        (True, False)
    """
    result: list[Certificate] = []
    with watched(progress) as report:
        for certificates in all_claims():
            result += certificates
            report("verifying", len(result), None, result[-1].claim)
    return result


def all_claims() -> Iterator[list[Certificate]]:
    for topics, v, tau in SMALL:
        for p_mask, p_correct, p_random in MASKS:
            s = Setting.of(topics, v, tau, p_mask=p_mask, p_correct=p_correct, p_random=p_random)
            yield small_claims(s, members=1000 if topics == 10 and p_mask == MASKS[0][0] else 50)
    for p_mask, p_correct, p_random in BOUND_MASKS:
        for topics, tau, v in BOUND_GRID:
            s = Setting.of(topics, v, tau, p_mask=p_mask, p_correct=p_correct, p_random=p_random)
            yield [theorem3_bounds(theorem3(s)), theorem5_bounds(theorem5(s))]
    for topics, tau, v in STRAINED:
        s = Setting.of(topics, v, tau)
        yield [theorem3_bounds(theorem3(s)), theorem3_bounds(theorem3(s), "exact")]
        if v > 4:
            yield [theorem5_bounds(theorem5(s)), theorem5_bounds(theorem5(s), "exact")]
    yield [asymptotic_approach("blocks"), asymptotic_approach("diagonal")]
    yield from world_claims()
    yield from dynamics_claims()


def small_claims(s: Setting, members: int) -> list[Certificate]:
    """What can be compared matrix by matrix."""
    optimum, few = theorem2(s), math.comb(s.T, s.tau) * (s.T * s.v) ** 2 < 10**5
    points = {
        "Theorem 2": optimum.matrix(),
        "the diagonal optimum": diagonal_value_matrix(s.topic_model, s.masking),
        "a random member of Lemma 1's family": random_member(s, np.random.default_rng(1)),
    }
    return [
        *([optima.symmetry_is_enumeration(s)] if few else []),
        optima.theorem2_is_pseudo_inverse(optimum),
        optima.theorem2_is_least_norm(optimum, members=members),
        *(optima.gradient_vanishes(s, name, matrix) for name, matrix in points.items()),
        optima.family_is_flat(s),
        optima.outside_costs_more(s),
        optima.ridge_converges(optimum),
        *optima.theorem1_family(s),
        *attention_entries_are_exact(s),
        *remark5(s),
    ]
