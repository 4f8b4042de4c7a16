"""Every claim of the theory, re-derived numerically: a named claim, the settings, the error, the tolerance, holds or not.

A certificate computes both sides independently: formulas on one, pseudo-inverses, gradients, enumeration and optimisers on the
other. Each takes the formula that it checks as an argument, so that the tests can disturb it and see the certificate fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from topicscope.ground import one_thread
from topicscope.theory import lemma1, theorem1, theorem3, theorem5
from topicscope.theory.attention_loss import Entries, asymptotic_loss, attention_loss
from topicscope.theory.least_squares import uniform_optimum
from topicscope.theory.minimise import best_attention
from topicscope.theory.population import enumerated_loss, population_loss
from topicscope.theory.setting import Setting
from topicscope.theory.theorem2 import Theorem2, theorem2
from topicscope.world import every_document, infinite_rows

EXACT = 1e-12
Matrix = Float[np.ndarray, "V V"]


@dataclass(frozen=True)
class Certificate:
    """`should_hold`: whether the paper claims it here; where its assumptions fail, whether it still holds is only said."""

    claim: str
    settings: dict[str, Any]
    error: float
    tolerance: float
    should_hold: bool = True
    note: str = ""
    holds: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "holds", bool(self.error <= self.tolerance))  # NaN does not hold


def describe(s: Setting) -> dict[str, Any]:
    m = s.masking
    return {
        "topics": s.T,
        "words_per_topic": s.v,
        "topics_per_document": s.tau,
        "p_mask": m.p_mask,
        "p_correct": m.p_correct,
        "p_random": m.p_random,
    }


def relative(found: Any, exact: Any) -> float:
    """Largest difference, relative to the largest entry."""
    return float(np.abs(np.asarray(found) - np.asarray(exact)).max() / np.abs(np.asarray(exact)).max())


def gradient(s: Setting, matrix: Matrix, bias: Float[np.ndarray, " V"] | None = None) -> Matrix:
    """Gradient of the population loss under uniform attention."""
    import torch

    w = torch.tensor(matrix, requires_grad=True)
    loss = population_loss(s, w, bias=None if bias is None else torch.from_numpy(bias))
    (slope,) = torch.autograd.grad(loss, w)
    return slope.numpy()


def loss_of(
    s: Setting, matrix: Matrix, bias: Float[np.ndarray, " V"] | None = None, alpha: float = 1.0, beta: float = 1.0
) -> float:
    import torch

    return float(
        population_loss(s, torch.from_numpy(matrix), alpha, beta, None if bias is None else torch.from_numpy(bias))
    )


def symmetry_is_enumeration(
    s: Setting, alpha: float = 2.5, beta: float = 0.7, seed: int = 0, scale: float = 1.0
) -> Certificate:
    import torch

    w = torch.from_numpy(np.random.default_rng(seed).standard_normal((s.topic_model.vocabulary,) * 2))
    found, exact = float(population_loss(s, w, scale * alpha, beta)), float(enumerated_loss(s, w, alpha, beta))
    error = abs(found - exact) / (1 + float(w.square().sum()))  # relative to what is added up
    return Certificate(
        "population loss by symmetry equals enumeration of all documents",
        describe(s) | {"alpha": alpha, "beta": beta},
        error,
        EXACT,
    )


def theorem2_is_pseudo_inverse(s: Setting, optimum: Theorem2 | None = None) -> Certificate:
    optimum = optimum or theorem2(s.topic_model, s.masking)
    share = every_document(s.topic_model, s.tau).proportions
    assert share is not None
    found = uniform_optimum([infinite_rows(s.topic_model, s.masking, share, uniform=True, hide_masked=False)]).matrix
    if s.tau == s.T:  # a single document does not tell topics apart: least norm then means less than Theorem 2's
        return Certificate(
            "Theorem 2 equals the pseudo-inverse solution",
            describe(s),
            relative(found, optimum.matrix(s.topic_model)),
            EXACT,
            False,
            "tau = T: all documents are alike",
        )
    return Certificate(
        "Theorem 2 equals the pseudo-inverse solution over all documents",
        describe(s),
        relative(optimum.matrix(s.topic_model), found),
        EXACT,
    )


def theorem2_is_least_norm(s: Setting, optimum: Theorem2 | None = None, members: int = 1000) -> Certificate:
    """Its norm is that of the projection of 0 on the family, and no random member is smaller."""
    matrix = (optimum or theorem2(s.topic_model, s.masking)).matrix(s.topic_model)
    rng = np.random.default_rng(0)
    norm = float(np.linalg.norm(matrix))
    smallest, tilt = math.inf, 0.0
    for _ in range(members):
        other = lemma1.random_member(s.topic_model, s.masking, rng, scale=float(10 ** rng.uniform(-4, -1)))
        smallest = min(smallest, float(np.linalg.norm(other)))
        # of least norm in an affine family: at right angles to every direction inside it
        tilt = max(tilt, abs(float((matrix * (other - matrix)).sum())) / (norm * float(np.linalg.norm(other - matrix))))
    error = max(tilt, (norm - smallest) / norm)
    return Certificate(
        f"Theorem 2 has the least norm among {members} random optima, and is orthogonal to the family",
        describe(s),
        float(error),
        EXACT,
    )


def gradient_vanishes(
    s: Setting, name: str, matrix: Matrix, bias: Float[np.ndarray, " V"] | None = None
) -> Certificate:
    scale = np.abs(gradient(s, np.zeros_like(matrix), bias)).max()
    return Certificate(
        f"the population gradient vanishes at {name}",
        describe(s),
        float(np.abs(gradient(s, matrix, bias)).max() / scale),
        EXACT,
    )


def family_is_flat(s: Setting, seed: int = 0, disturb: float = 1.0) -> Certificate:
    """All members cost 1 - 1/(tau v) exactly."""
    rng, exact = np.random.default_rng(seed), lemma1.family_loss(s.topic_model, s.tau)
    losses = [loss_of(s, disturb * lemma1.random_member(s.topic_model, s.masking, rng)) for _ in range(20)]
    return Certificate(
        "every member of Lemma 1's family has the loss 1 - 1/(tau v)",
        describe(s),
        float(np.abs(np.array(losses) - exact).max()),
        EXACT,
    )


def outside_costs_more(s: Setting, seed: int = 0, size: float = 1e-3, scale: float = 1.0) -> Certificate:
    """A step out of the family raises the loss: by at least the least curvature in that direction, found from the gradient."""
    rng, exact = np.random.default_rng(seed), scale * lemma1.family_loss(s.topic_model, s.tau)
    least = np.inf
    for _ in range(20):
        inside = lemma1.random_member(s.topic_model, s.masking, rng)
        step = rng.standard_normal(inside.shape)
        violation = lemma1.fit_family(inside + size * step, s.topic_model, s.masking).violation
        least = min(least, (loss_of(s, inside + size * step) - exact) / violation**2)
    return Certificate(
        "a step outside Lemma 1's family costs more",
        describe(s),
        max(0.0, -float(least)) if least <= 0 else 0.0,
        0.0,
        s.tau < s.T,
        f"least rise over violation^2: {least:.3g}",
    )


def ridge_converges(s: Setting, optimum: Theorem2 | None = None) -> Certificate:
    """The distance to Theorem 2 falls in proportion to lambda: measured as the exponent, which has to be 1."""
    exact = (optimum or theorem2(s.topic_model, s.masking)).matrix(s.topic_model)
    share = every_document(s.topic_model, s.tau).proportions
    assert share is not None
    rows = [infinite_rows(s.topic_model, s.masking, share, uniform=True, hide_masked=False)]
    rates = (1e-7, 1e-8)
    distance = [relative(uniform_optimum(rows, ridge=rate).matrix, exact) for rate in rates]
    exponent = math.log(distance[0] / distance[1]) / math.log(rates[0] / rates[1])
    note = f"distance {distance[0]:.2e} at lambda 1e-7, {distance[1]:.2e} at 1e-8: exponent {exponent:.4f}"
    return Certificate(
        "ridge solutions converge to Theorem 2 as lambda -> 0, in proportion to lambda",
        describe(s),
        abs(exponent - 1),
        0.01,
        s.tau < s.T,
        note,
    )


def theorem1_family(
    s: Setting, seed: int = 0, bias_scale: float = 1.0, embedding_scale: float = 1.0
) -> list[Certificate]:
    """Theorem 1 likewise: flat family with the fixed bias, gradient zero, realisable."""
    rng, bias = np.random.default_rng(seed), bias_scale * theorem1.prediction_bias(s.topic_model, s.masking)
    members = [
        theorem1.identity_member(s.topic_model, s.masking),
        *(theorem1.random_member(s.topic_model, s.masking, rng) for _ in range(5)),
    ]
    exact = lemma1.family_loss(s.topic_model, s.tau)
    # the loss is a difference of terms as large as the squared entries: its rounding is measured by them
    flat = max(abs(loss_of(s, gram, bias) - exact) / max(1.0, float(np.abs(gram).max()) ** 2) for gram in members)
    scale = np.abs(gradient(s, np.zeros_like(members[0]), bias)).max()
    slope = max(float(np.abs(gradient(s, gram, bias)).max() / scale) for gram in members)
    fit = max(
        theorem1.fit_embedding(embedding_scale * theorem1.embedding_of(gram), s.topic_model, s.masking).violation
        for gram in members
    )
    return [
        Certificate(
            "every embedding of Theorem 1's family, with its bias, has the loss 1 - 1/(tau v)", describe(s), flat, EXACT
        ),
        Certificate("the population gradient by W_E'W_E vanishes on Theorem 1's family", describe(s), slope, EXACT),
        Certificate(
            "members of Theorem 1's family are realised by embeddings, identity among them",
            describe(s),
            fit,
            1e-10,
            note="through an eigendecomposition",
        ),
    ]


def attention_entries_are_exact(
    s: Setting, alpha: float = 3.0, beta: float = 0.4, scale: float = 1.0
) -> list[Certificate]:
    """The handful of numbers of `attention_loss` against the whole matrix."""
    matrices = {
        "blocks": theorem2(s.topic_model, s.masking).matrix(s.topic_model),
        "diagonal": theorem5.diagonal_value_matrix(s.topic_model, s.masking),
    }
    return [
        Certificate(
            f"the finite-size loss of topic-wise attention equals the matrix computation ({kind})",
            describe(s) | {"alpha": alpha, "beta": beta},
            abs(
                attention_loss(s, Entries.of(kind, s), scale * alpha, beta) - loss_of(s, matrix, alpha=alpha, beta=beta)
            ),  # of a one-hot target: scale 1
            EXACT,
        )
        for kind, matrix in matrices.items()
    ]


def theorem3_bounds(s: Setting, convention: Any = "paper", shift: float = 1.0) -> Certificate:
    found = best_attention(s, "blocks", convention)
    low, high = theorem3.bounds(s)
    broken = theorem3.assumptions(s)
    outside = max(0.0, low - shift * found.gamma, shift * found.gamma - high)
    note = (
        f"gamma = {found.gamma:.4g} in ({low:.4g}, {high:.4g})"
        + (f"; {found.edge}" if found.edge else "")
        + (f"; strained: {'; '.join(broken)}" if broken else "")
    )
    return Certificate(
        f"Theorem 3's interval contains the best gamma ({convention} convention)",
        describe(s),
        outside,
        0.0,
        not broken and convention == "paper",
        note,
    )


def theorem5_bounds(s: Setting, convention: Any = "paper", shift: float = 1.0) -> Certificate:
    found = best_attention(s, "diagonal", convention, cap=convention == "paper")
    b = theorem5.bounds(s)
    broken = theorem3.assumptions(s)
    beta = shift * found.beta
    outside = max(0.0, b["beta_low"] - beta, beta - b["beta_high"], found.alpha / beta - b["alpha_over_beta"])
    note = f"beta = {found.beta:.4g} in ({b['beta_low']:.4g}, {b['beta_high']:.4g}), alpha / beta = {found.alpha / found.beta:.3g} < {b['alpha_over_beta']:.3g}"
    note += f"; strained: {'; '.join(broken)}" if broken else ""
    return Certificate(
        f"Theorem 5's bounds contain the best attention ({convention} convention)",
        describe(s),
        outside,
        0.0,
        not broken and convention == "paper",
        note,
    )


def remark5(s: Setting, gamma: float = 5.0, disturb: float = 1.0) -> list[Certificate]:
    """Blocks: only gamma matters in the paper's convention; in the exact one [MASK]'s own attention, which is beta, does too."""
    blocks = Entries.of("blocks", s)
    alphas = np.linspace(0, gamma * s.v / (s.v - 1), 9)
    betas = s.v * gamma - (s.v - 1) * alphas
    paper = attention_loss(s, blocks, alphas, betas * disturb, "paper")
    exact = attention_loss(s, blocks, alphas, betas, "exact")
    spread, loss, here = float(np.ptp(exact)), float(exact.mean()), describe(s) | {"gamma": gamma}
    return [
        Certificate(
            "Remark 5: only the weighted average of alpha and beta matters (paper convention)",
            here,
            float(np.ptp(paper) / paper.mean()),
            EXACT,
        ),
        Certificate(
            "Remark 5 under the exact convention, where it fails: [MASK] attends itself with beta",
            here,
            spread / loss,
            EXACT,
            False,
            f"losses of the same gamma spread by {spread:.3g} around {loss:.6g}",
        ),
    ]


def asymptotic_approach(kind: Any, scale: float = 1.0, base: int = 20) -> Certificate:
    """T = 100 tau^2... : tau and T/tau both grow tenfold; the distance to the asymptotic loss has to fall in proportion to 1/tau."""
    distances = []
    for growth in (10, 100, 1000):
        s = Setting.of(topics=base * growth**2, words_per_topic=50, topics_per_document=growth)
        alpha, beta = (float(s.tau), float(s.tau)) if kind == "blocks" else (0.01 * s.v * s.tau, 3.0 * s.v * s.tau)
        exact = attention_loss(s, Entries.of(kind, s), alpha, beta, "paper")
        distances.append(abs(exact - scale * asymptotic_loss(s, kind, alpha, beta)))
    exponent = math.log10(distances[1] / distances[2])
    note = "distance " + ", ".join(f"{d:.2e}" for d in distances) + f" at tau = 10, 100, 1000: exponent {exponent:.3f}"
    settings = {"words_per_topic": 50, "topics_per_document": [10, 100, 1000], "topics": f"{base} tau^2"}
    return Certificate(
        f"the asymptotic loss is approached as T and tau grow, in proportion to 1/tau ({kind})",
        settings,
        abs(exponent - 1),
        0.05,
        note=note,
    )


SMALL = ((10, 10, 3), (5, 4, 2), (6, 3, 1), (6, 3, 4))
MASKS = ((0.15, 0.1, 0.1), (0.4, 0.2, 0.3))
BOUND_GRID = [
    (t, tau, v)
    for t, tau in ((100, 10), (1000, 10), (1000, 100), (100_000, 100), (10**6, 1000))
    for v in (10, 100, 300)
]
STRAINED = [(10, 3, 10), (10, 9, 10), (10, 10, 10), (100, 80, 300), (100, 10, 4), (20, 1, 10)]


@one_thread()
def verify(progress: Callable[[str], None] | None = None) -> list[Certificate]:
    """All certificates."""
    result: list[Certificate] = []

    def add(new: Certificate | Iterable[Certificate]) -> None:
        result.extend([new] if isinstance(new, Certificate) else new)
        if progress is not None:
            progress(result[-1].claim)

    for topics, v, tau in SMALL:
        for p in MASKS:
            s = Setting.of(topics, v, tau, *p)
            matrix = theorem2(s.topic_model, s.masking).matrix(s.topic_model)
            if math.comb(topics, tau) * (topics * v) ** 2 < 10**5:
                add(symmetry_is_enumeration(s))
            add(theorem2_is_pseudo_inverse(s))
            add(theorem2_is_least_norm(s, members=1000 if (topics, p) == (10, MASKS[0]) else 50))
            add(gradient_vanishes(s, "Theorem 2", matrix))
            add(gradient_vanishes(s, "the diagonal optimum", theorem5.diagonal_value_matrix(s.topic_model, s.masking)))
            add(
                gradient_vanishes(
                    s,
                    "a random member of Lemma 1's family",
                    lemma1.random_member(s.topic_model, s.masking, np.random.default_rng(1)),
                )
            )
            add(family_is_flat(s))
            add(outside_costs_more(s))
            add(ridge_converges(s))
            add(theorem1_family(s))
            add(attention_entries_are_exact(s))
            add(remark5(s))
    for p in ((0.15, 0.1, 0.1), (0.3, 0.2, 0.2)):
        for topics, tau, v in BOUND_GRID:
            s = Setting.of(topics, v, tau, *p)
            add([theorem3_bounds(s), theorem5_bounds(s)])
    for topics, tau, v in STRAINED:
        s = Setting.of(topics, v, tau)
        add([theorem3_bounds(s), theorem3_bounds(s, "exact")])
        if v > 4:
            add([theorem5_bounds(s), theorem5_bounds(s, "exact")])
    add([asymptotic_approach("blocks"), asymptotic_approach("diagonal")])
    return result
