"""What a certificate is, and those of the first stage: Lemma 1, Theorems 1 and 2, and the population loss under them.

A certificate computes both sides of a claim independently: formulas on one, pseudo-inverses, gradients, enumeration and
optimisers on the other. Each takes the formula that it checks as an argument, so that the tests can disturb it and
see the certificate fail.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from topicscope.theory import lemma1
from topicscope.theory.floors import uniform_optimum
from topicscope.theory.population import enumerated_loss
from topicscope.theory.setting import Setting
from topicscope.theory.symmetric_loss import population_loss
from topicscope.theory.theorem import Matrix
from topicscope.theory.theorem1 import embedding_of, fit_embedding, prediction_bias, random_member, theorem1
from topicscope.theory.theorem2 import Theorem2
from topicscope.world import Rows, every_document

EXACT = 1e-12  # tolerance of claims that hold up to rounding


@dataclass(frozen=True)
class Certificate:
    """A claim of the theory, computed on both sides independently.

    Attributes:
        claim: What is claimed.
        settings: For which numbers.
        error: Difference of the two sides.
        tolerance: Up to which the claim holds.
        should_hold: False where the paper's assumptions fail; then it is only reported whether the claim holds.
        note: A remark.
        holds: Whether `error` is within `tolerance`.

    Example:
        >>> Certificate("1 + 1 = 2", {}, error=0.0, tolerance=1e-12).holds
        True
        >>> Certificate("1 + 1 = 3", {}, error=1.0, tolerance=1e-12).holds
        False
    """

    claim: str
    settings: dict[str, Any]
    error: float
    tolerance: float
    should_hold: bool = True
    note: str = ""
    holds: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "holds", bool(self.error <= self.tolerance))  # NaN does not hold


def relative(computed: Matrix, exact: Matrix) -> float:
    """Largest difference, relative to the largest entry."""
    return float(np.abs(computed - exact).max() / np.abs(exact).max())


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
    """Every infinite document of the setting, in one batch."""
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
        other = lemma1.random_member(s, rng, scale=float(10 ** rng.uniform(-4, -1)))
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
    """All members cost 1 - 1/(tau v) exactly."""
    rng = np.random.default_rng(0)
    losses = [loss_of(s, disturb * lemma1.random_member(s, rng)) for _ in range(20)]
    return Certificate(
        "every member of Lemma 1's family has the loss 1 - 1/(tau v)",
        s.as_dict(),
        float(np.abs(np.array(losses) - lemma1.family_loss(s)).max()),
        EXACT,
    )


def outside_costs_more(s: Setting, scale: float = 1.0) -> Certificate:
    """A step out of the family raises the loss, relative to the squared violation of its conditions."""
    rng, exact, least = np.random.default_rng(0), scale * lemma1.family_loss(s), math.inf
    for _ in range(20):
        member = lemma1.random_member(s, rng)
        outside = member + 1e-3 * rng.standard_normal(member.shape)
        least = min(least, (loss_of(s, outside) - exact) / lemma1.fit_family(outside, s).violation ** 2)
    return Certificate(
        "a step outside Lemma 1's family costs more",
        s.as_dict(),
        max(0.0, -least),
        0.0,
        s.tau < s.T,
        f"least rise over violation^2: {least:.3g}",
    )


def ridge_converges(optimum: Theorem2) -> Certificate:
    """The distance to Theorem 2 falls in proportion to lambda: measured as the exponent, which has to be 1."""
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
    """Theorem 1 likewise: flat family with the fixed bias, gradient zero, realisable."""
    rng, bias = np.random.default_rng(0), bias_scale * prediction_bias(s.topic_model, s.masking)[:, None]
    members = [theorem1(s).matrix(), *(random_member(s, rng) for _ in range(5))]
    # the loss is a difference of terms as large as the squared entries: its rounding is measured by them
    flat = max(
        abs(loss_of(s, gram + bias) - lemma1.family_loss(s)) / max(1.0, float(np.abs(gram).max()) ** 2)
        for gram in members
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
