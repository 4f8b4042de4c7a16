"""Certificates: every claim of the theory, derived again by computation, over many settings.

A certificate computes both sides of a claim independently: formulas on one, pseudo-inverses, gradients, enumeration and
optimisers on the other. Each takes the formula that it checks as an argument, so that the tests can disturb it and
see the certificate fail. Here are those of the theorems; `certify_worlds` has those of `optimum` and the dynamics.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from topicscope.ground import Progress, one_thread, watched
from topicscope.theory.attention_loss import (
    Convention,
    asymptotic_loss,
    attention_loss,
    best_attention,
    population_loss,
)
from topicscope.theory.certify_worlds import EXACT, Certificate, dynamics_claims, relative, world_claims
from topicscope.theory.floors import uniform_optimum
from topicscope.theory.lemma1 import family_loss, fit_family, random_member
from topicscope.theory.population import enumerated_loss
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import Matrix, ValueMatrix, assumptions
from topicscope.theory.theorem1 import embedding_of, fit_embedding, prediction_bias, random_gram, theorem1
from topicscope.theory.theorem2 import Theorem2, theorem2
from topicscope.theory.theorem3 import Theorem3, theorem3
from topicscope.theory.theorem5 import Theorem5, diagonal_value_matrix, theorem5
from topicscope.world import Rows, every_document


def steepness(s: Setting, matrix: Matrix) -> float:
    """Largest entry of the population loss's gradient under uniform attention."""
    import torch

    w = torch.tensor(matrix, requires_grad=True)
    (gradient,) = torch.autograd.grad(population_loss(s, w), w)
    return float(gradient.abs().max())


def loss_of(s: Setting, matrix: Matrix, alpha: float = 1.0, beta: float = 1.0) -> float:
    import torch

    return float(population_loss(s, torch.from_numpy(matrix), alpha, beta))


def symmetry_is_enumeration(s: Setting, alpha: float = 2.5, beta: float = 0.7, scale: float = 1.0) -> Certificate:
    import torch

    w = torch.from_numpy(np.random.default_rng(0).standard_normal((s.topic_model.vocabulary,) * 2))
    fast, exact = float(population_loss(s, w, scale * alpha, beta)), float(enumerated_loss(s, w, alpha, beta))
    return Certificate(
        "population loss by symmetry equals enumeration of all documents",
        s.as_dict() | {"alpha": alpha, "beta": beta},
        abs(fast - exact) / (1 + float(w.square().sum())),  # relative to what is added up
        EXACT,
    )


def all_documents(s: Setting) -> list[Rows]:
    documents = every_document(s.topic_model, s.tau)
    return list(documents.batches(s.topic_model, s.masking, uniform=True, size=len(documents)))


def theorem2_is_pseudo_inverse(optimum: Theorem2) -> Certificate:
    s = optimum.setting
    return Certificate(
        "Theorem 2 equals the pseudo-inverse solution over all documents",
        s.as_dict(),
        relative(optimum.matrix(), uniform_optimum(all_documents(s)).matrix),
        EXACT,
        s.tau < s.T,  # a single document does not tell topics apart: least norm then means less than Theorem 2's
    )


def theorem2_is_least_norm(optimum: Theorem2, members: int = 1000) -> Certificate:
    """Its norm is that of the projection of 0 on the family, and no random member is smaller."""
    s, matrix, rng = optimum.setting, optimum.matrix(), np.random.default_rng(0)
    norm, smallest, tilt = float(np.linalg.norm(matrix)), math.inf, 0.0
    for _ in range(members):
        other = random_member(s, rng, scale=float(10 ** rng.uniform(-4, -1)))
        smallest = min(smallest, float(np.linalg.norm(other)))
        # of least norm in an affine family: at right angles to every direction inside it
        tilt = max(tilt, abs(float((matrix * (other - matrix)).sum())) / (norm * float(np.linalg.norm(other - matrix))))
    return Certificate(
        f"Theorem 2 has the least norm among {members} random optima, and is orthogonal to the family",
        s.as_dict(),
        float(max(tilt, (norm - smallest) / norm)),
        EXACT,
    )


def gradient_vanishes(s: Setting, name: str, matrix: Matrix) -> Certificate:
    return Certificate(
        f"the population gradient vanishes at {name}",
        s.as_dict(),
        steepness(s, matrix) / steepness(s, np.zeros_like(matrix)),
        EXACT,
    )


def family_is_flat(s: Setting, disturb: float = 1.0) -> Certificate:
    rng = np.random.default_rng(0)
    losses = [loss_of(s, disturb * random_member(s, rng)) for _ in range(20)]
    return Certificate(
        "every member of Lemma 1's family has the loss 1 - 1/(tau v)",
        s.as_dict(),
        float(np.abs(np.array(losses) - family_loss(s)).max()),
        EXACT,
    )


def outside_costs_more(s: Setting, scale: float = 1.0) -> Certificate:
    rng, exact, least = np.random.default_rng(0), scale * family_loss(s), math.inf
    for _ in range(20):
        member = random_member(s, rng)
        outside = member + 1e-3 * rng.standard_normal(member.shape)
        least = min(least, (loss_of(s, outside) - exact) / fit_family(outside, s).violation ** 2)
    return Certificate(
        "a step outside Lemma 1's family costs more",
        s.as_dict(),
        max(0.0, -least),
        0.0,
        s.tau < s.T,
        f"least rise over violation^2: {least:.3g}",
    )


def ridge_converges(optimum: Theorem2) -> Certificate:
    s, exact, rates = optimum.setting, optimum.matrix(), (1e-7, 1e-8)
    rows = all_documents(s)
    distance = [relative(uniform_optimum(rows, ridge=rate).matrix, exact) for rate in rates]
    exponent = math.log(distance[0] / distance[1]) / math.log(rates[0] / rates[1])
    return Certificate(
        "ridge solutions converge to Theorem 2 as lambda -> 0, in proportion to lambda",
        s.as_dict(),
        abs(exponent - 1),
        0.01,
        s.tau < s.T,
        f"distance {distance[0]:.2e} at lambda 1e-7, {distance[1]:.2e} at 1e-8: exponent {exponent:.4f}",
    )


def theorem1_family(s: Setting, bias_scale: float = 1.0, embedding_scale: float = 1.0) -> list[Certificate]:
    rng, bias = np.random.default_rng(0), bias_scale * prediction_bias(s.topic_model, s.masking)[:, None]
    members = [theorem1(s).matrix(), *(random_gram(s, rng) for _ in range(5))]
    # the loss is a difference of terms as large as the squared entries: its rounding is measured by them
    flat = max(
        abs(loss_of(s, gram + bias) - family_loss(s)) / max(1.0, float(np.abs(gram).max()) ** 2) for gram in members
    )
    slope = max(steepness(s, gram + bias) for gram in members) / steepness(s, np.zeros_like(members[0]) + bias)
    fit = max(
        fit_embedding(embedding_scale * embedding_of(gram), s.topic_model, s.masking).violation for gram in members
    )
    claims = (
        ("every embedding of Theorem 1's family, with its bias, has the loss 1 - 1/(tau v)", flat, EXACT, ""),
        ("the population gradient by W_E'W_E vanishes on Theorem 1's family", slope, EXACT, ""),
        (
            "members of Theorem 1's family are realised by embeddings, identity among them",
            fit,
            1e-10,
            "through an eigendecomposition",
        ),
    )
    return [Certificate(claim, s.as_dict(), error, tolerance, note=note) for claim, error, tolerance, note in claims]


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
    distances = []
    for growth in (10, 100, 1000):
        s = Setting.of(topics=base * growth**2, words_per_topic=50, topics_per_document=growth)
        alpha, beta = (float(s.tau), float(s.tau)) if kind == "blocks" else (0.01 * s.v * s.tau, 3.0 * s.v * s.tau)
        distances.append(
            abs(attention_loss(s, kind, alpha, beta, "paper") - scale * asymptotic_loss(s, kind, alpha, beta))
        )
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
    for (topics, v, tau), (p_mask, p_correct, p_random) in itertools.product(SMALL, MASKS):
        s = Setting.of(topics, v, tau, p_mask=p_mask, p_correct=p_correct, p_random=p_random)
        yield small_claims(s, members=1000 if topics == 10 and p_mask == MASKS[0][0] else 50)
    for (p_mask, p_correct, p_random), (topics, tau, v) in itertools.product(BOUND_MASKS, BOUND_GRID):
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
    optimum, few = theorem2(s), math.comb(s.T, s.tau) * (s.T * s.v) ** 2 < 10**5
    points = {
        "Theorem 2": optimum.matrix(),
        "the diagonal optimum": diagonal_value_matrix(s.topic_model, s.masking),
        "a random member of Lemma 1's family": random_member(s, np.random.default_rng(1)),
    }
    return [
        *([symmetry_is_enumeration(s)] if few else []),
        theorem2_is_pseudo_inverse(optimum),
        theorem2_is_least_norm(optimum, members=members),
        *(gradient_vanishes(s, name, matrix) for name, matrix in points.items()),
        family_is_flat(s),
        outside_costs_more(s),
        ridge_converges(optimum),
        *theorem1_family(s),
        *attention_entries_are_exact(s),
        *remark5(s),
    ]
