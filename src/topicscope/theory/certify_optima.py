"""Certificates of the first stage: Lemma 1, Theorems 1 and 2, and the population loss that they rest on."""

from __future__ import annotations

import math

import numpy as np

from topicscope.theory import lemma1
from topicscope.theory.certificate import EXACT, Bias, Certificate, gradient, loss_of, relative
from topicscope.theory.least_squares import uniform_optimum
from topicscope.theory.population import enumerated_loss, population_loss
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import Matrix
from topicscope.theory.theorem1 import embedding_of, fit_embedding, identity_member, prediction_bias, random_member
from topicscope.theory.theorem2 import Theorem2
from topicscope.world import Rows, every_document


def symmetry_is_enumeration(
    s: Setting, alpha: float = 2.5, beta: float = 0.7, seed: int = 0, scale: float = 1.0
) -> Certificate:
    import torch

    w = torch.from_numpy(np.random.default_rng(seed).standard_normal((s.topic_model.vocabulary,) * 2))
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
    solution = uniform_optimum(all_documents(s)).matrix
    if s.tau == s.T:  # a single document does not tell topics apart: least norm then means less than Theorem 2's
        return Certificate(
            "Theorem 2 equals the pseudo-inverse solution",
            s.as_dict(),
            relative(solution, optimum.matrix()),
            EXACT,
            False,
            "tau = T: all documents are alike",
        )
    return Certificate(
        "Theorem 2 equals the pseudo-inverse solution over all documents",
        s.as_dict(),
        relative(optimum.matrix(), solution),
        EXACT,
    )


def theorem2_is_least_norm(optimum: Theorem2, members: int = 1000) -> Certificate:
    """Its norm is that of the projection of 0 on the family, and no random member is smaller."""
    s, matrix = optimum.setting, optimum.matrix()
    rng = np.random.default_rng(0)
    norm = float(np.linalg.norm(matrix))
    smallest, tilt = math.inf, 0.0
    for _ in range(members):
        other = lemma1.random_member(s.topic_model, s.masking, rng, scale=float(10 ** rng.uniform(-4, -1)))
        smallest = min(smallest, float(np.linalg.norm(other)))
        # of least norm in an affine family: at right angles to every direction inside it
        tilt = max(tilt, abs(float((matrix * (other - matrix)).sum())) / (norm * float(np.linalg.norm(other - matrix))))
    return Certificate(
        f"Theorem 2 has the least norm among {members} random optima, and is orthogonal to the family",
        s.as_dict(),
        float(max(tilt, (norm - smallest) / norm)),
        EXACT,
    )


def gradient_vanishes(s: Setting, name: str, matrix: Matrix, bias: Bias | None = None) -> Certificate:
    scale = np.abs(gradient(s, np.zeros_like(matrix), bias)).max()
    return Certificate(
        f"the population gradient vanishes at {name}",
        s.as_dict(),
        float(np.abs(gradient(s, matrix, bias)).max() / scale),
        EXACT,
    )


def family_is_flat(s: Setting, seed: int = 0, disturb: float = 1.0) -> Certificate:
    """All members cost 1 - 1/(tau v) exactly."""
    rng, exact = np.random.default_rng(seed), lemma1.family_loss(s.topic_model, s.tau)
    losses = [loss_of(s, disturb * lemma1.random_member(s.topic_model, s.masking, rng)) for _ in range(20)]
    return Certificate(
        "every member of Lemma 1's family has the loss 1 - 1/(tau v)",
        s.as_dict(),
        float(np.abs(np.array(losses) - exact).max()),
        EXACT,
    )


def outside_costs_more(s: Setting, seed: int = 0, size: float = 1e-3, scale: float = 1.0) -> Certificate:
    """A step out of the family raises the loss, relative to the squared violation of its conditions."""
    rng, exact = np.random.default_rng(seed), scale * lemma1.family_loss(s.topic_model, s.tau)
    least = np.inf
    for _ in range(20):
        inside = lemma1.random_member(s.topic_model, s.masking, rng)
        step = rng.standard_normal(inside.shape)
        violation = lemma1.fit_family(inside + size * step, s.topic_model, s.masking).violation
        least = min(least, (loss_of(s, inside + size * step) - exact) / violation**2)
    return Certificate(
        "a step outside Lemma 1's family costs more",
        s.as_dict(),
        max(0.0, -float(least)) if least <= 0 else 0.0,
        0.0,
        s.tau < s.T,
        f"least rise over violation^2: {least:.3g}",
    )


def ridge_converges(optimum: Theorem2) -> Certificate:
    """The distance to Theorem 2 falls in proportion to lambda: measured as the exponent, which has to be 1."""
    s, exact = optimum.setting, optimum.matrix()
    rows, rates = all_documents(s), (1e-7, 1e-8)
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


def theorem1_family(
    s: Setting, seed: int = 0, bias_scale: float = 1.0, embedding_scale: float = 1.0
) -> list[Certificate]:
    """Theorem 1 likewise: flat family with the fixed bias, gradient zero, realisable."""
    rng, bias = np.random.default_rng(seed), bias_scale * prediction_bias(s.topic_model, s.masking)
    members = [
        identity_member(s.topic_model, s.masking),
        *(random_member(s.topic_model, s.masking, rng) for _ in range(5)),
    ]
    exact = lemma1.family_loss(s.topic_model, s.tau)
    # the loss is a difference of terms as large as the squared entries: its rounding is measured by them
    flat = max(abs(loss_of(s, gram, bias) - exact) / max(1.0, float(np.abs(gram).max()) ** 2) for gram in members)
    scale = np.abs(gradient(s, np.zeros_like(members[0]), bias)).max()
    slope = max(float(np.abs(gradient(s, gram, bias)).max() / scale) for gram in members)
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
