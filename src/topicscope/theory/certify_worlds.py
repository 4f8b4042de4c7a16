"""Certificates of `optimum`: W* in any world against enumeration, pseudo-inverses and the matrix exponential.

Each takes what it checks as an argument, so that tests can disturb it: the weights of a document's pairs of positions,
the masking that is assumed, the matrix, the rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from topicscope.theory.certify_optima import EXACT, Certificate, relative
from topicscope.theory.dense_optimum import closed_form, dense_optimum, limit_of_length
from topicscope.theory.document_moments import WEIGHTINGS, Length, LengthWeights, Weighting, length_weights
from topicscope.theory.enumeration import (
    SmallWorld,
    every_masked_document,
    grouped_subsets,
    least_squares,
    random_world,
    subset_world,
)
from topicscope.theory.optimum import optimum
from topicscope.theory.rates import FirstStageRates, GroupRates, first_stage_rates, group_rates
from topicscope.theory.setting import Setting
from topicscope.theory.value_optimum import OptimumSettings, ValueArray
from topicscope.world import Dirichlet, Fixed, Masking, TopicModel

SOLVED = 1e-10  # tolerance of claims whose other side is a pseudo-inverse or an exponential
MASKINGS = (Masking(), Masking(p_mask=0.4, p_correct=0.2, p_random=0.3))


def about(world: SmallWorld, masking: Masking, length: Length, weighting: str = "run") -> OptimumSettings:
    words, topics = world.word_topics.shape
    numbers = masking.p_mask, masking.p_correct, masking.p_random
    return OptimumSettings(topics, words, {"kind": "moments"}, length, weighting, *numbers)


def described(settings: OptimumSettings) -> dict[str, object]:
    return {name: value for name, value in vars(settings).items() if name != "prior"}


def optimum_is_enumeration(
    world: SmallWorld,
    masking: Masking,
    length: int,
    weighting: Weighting,
    *,
    weights: LengthWeights | None = None,
    assumed: Masking | None = None,
) -> list[Certificate]:
    """W* and its loss from moments, against least squares on every document that there is."""
    settings, moments = about(world, masking, length, weighting), world.moments()
    x, y, weight = every_masked_document(world, masking, length, weighting)
    exact = least_squares(x, y, weight)
    w = weights or length_weights(length, masking.p_mask, weighting)
    found = dense_optimum(settings, world.word_topics, moments, assumed or masking, w)
    spread = float(weight @ (1 - (y**2).sum(1)))  # of the true words around their mean in a document
    loss = spread + float(weight @ ((x @ exact.T - y) ** 2).sum(1))
    return [
        Certificate(
            "W* of finite documents equals least squares over every text, mask and word shown",
            described(settings),
            relative(found.matrix(), exact),
            EXACT,
        ),
        Certificate(
            "the loss of W* equals that over every document", described(settings), abs(found.loss - loss), EXACT
        ),
    ]


def closed_form_is_pseudo_inverse(
    world: SmallWorld, masking: Masking, value: ValueArray | None = None
) -> list[Certificate]:
    """W* = A (R A)^+ for independent topics, and the basis that stands for A in general."""
    x, p = world.infinite(masking)
    weight = world.probabilities[:, None]
    exact = (p * weight).T @ x @ np.linalg.pinv((x * weight).T @ x, rcond=1e-11, hermitian=True)
    settings, moments = about(world, masking, "infinite"), world.moments()
    general = optimum(world.word_topics, moments, masking, length="infinite").matrix()
    certificates = [
        Certificate(
            "W* of infinite documents equals the pseudo-inverse solution over the law of theta",
            described(settings),
            relative(general if value is None else value, exact),
            SOLVED,
        )
    ]
    if np.linalg.matrix_rank(moments.second) == settings.topics == np.linalg.matrix_rank(world.word_topics):
        formula = closed_form(world.word_topics, masking) if value is None else value
        claim = "W* = A (R A)^+ for independent topics: the law of theta does not enter"
        certificates.append(Certificate(claim, described(settings), relative(formula, exact), SOLVED))
    return certificates


def rates_are_eigenvalues(s: Setting, rates: FirstStageRates | None = None) -> Certificate:
    """R1: T - 1 equal eigenvalues and one more; the rest is zero."""
    world = subset_world(s.T, s.v, grouped_subsets(s.T, s.tau))
    x, _ = world.infinite(s.masking)
    found = np.linalg.eigvalsh((x * world.probabilities[:, None]).T @ x)
    rates = rates or first_stage_rates(s)
    stated = np.sort([rates.mean, *[rates.topics] * (s.T - 1), *[0.0] * (s.T * (s.v - 1) + 1)])
    smallest = min(rates.mean, rates.topics)
    return Certificate(
        "E[xx'] has the eigenvalues of the first stage: topic contrasts, mean, and zero",
        s.as_dict(),
        float(np.abs(found - stated).max() / smallest),
        SOLVED,
    )


def flow_is_exponential(
    world: SmallWorld, masking: Masking, length: int | Literal["infinite"], rate_scale: float = 1.0
) -> Certificate:
    """W(t) from a random W0, against the matrix exponential of dW/dt = -2 (W G - H)."""
    from scipy.linalg import expm

    if isinstance(length, str):
        (x, y), weight = world.infinite(masking), world.probabilities
    else:
        x, y, weight = every_masked_document(world, masking, length, "run")
    g, h = (x * weight[:, None]).T @ x, (y * weight[:, None]).T @ x
    size = len(g)
    start, zero = np.random.default_rng(0).standard_normal((size, size)), np.zeros((size, size))
    found, error = optimum(world.word_topics, world.moments(), masking, length=length), 0.0
    for time in (0.5 / found.modes[0].eigenvalue, 2 / found.modes[min(1, len(found.modes) - 1)].eigenvalue):
        both = np.hstack([start, np.eye(size)]) @ expm(time * np.block([[-2 * g, zero], [2 * h, zero]]))
        error = max(error, relative(found.value_at(rate_scale * time, start), both[:, :size]))
    settings = described(about(world, masking, length))
    return Certificate("W(t) from any start equals the matrix exponential", settings, error, SOLVED)


def symmetry_is_matrix(s: Setting, length: Length, weighting: Weighting, scale: float = 1.0) -> Certificate:
    """The handful of numbers against whole matrices: W*, its loss, the limit, Theorem 2 and W(t)."""
    error, topics = 0.0, s.topic_model
    for prior in (Fixed(topics_per_document=s.tau), Dirichlet(alpha=0.3)):
        few = optimum(topics, prior, s.masking, length=length, weighting=weighting)
        whole = optimum(
            scale * topics.word_topics + (1 - scale) / topics.words,
            prior,
            s.masking,
            length=length,
            weighting=weighting,
        )
        time = 1 / few.modes[1].eigenvalue
        error = max(
            error,
            abs(few.loss - whole.loss),
            relative(few.matrix(), whole.matrix()),
            relative(few.limit_matrix(), whole.limit_matrix()),
            relative(few.least_norm_matrix(), whole.least_norm_matrix()),
            relative(few.value_at(time), whole.value_at(time)),
        )
    settings = s.as_dict() | {"length": length, "weighting": weighting}
    return Certificate("W* by symmetry equals W* by matrices", settings, error, SOLVED)


def diagonal_excess(s: Setting, length: int, weighting: Weighting, m1: float | None = None) -> Certificate:
    """Diagonal less the rest of its block: p_c / (1 - (E[m]/N) (1 - p_c - p_r)), over every document."""
    world = subset_world(s.T, s.v, grouped_subsets(s.T, s.tau))
    exact = least_squares(*every_masked_document(world, s.masking, length, weighting))
    masked = length_weights(length, s.masking.p_mask, weighting).masked * length if m1 is None else m1 / length
    b = s.masking.p_correct / (1 - masked * s.masking.p_mask_word)
    return Certificate(
        "the diagonal of W* exceeds its block by p_c / (1 - (E[m]/N)(1 - p_c - p_r))",
        s.as_dict() | {"length": length, "weighting": weighting},
        abs(exact[1, 1] - exact[1, 2] - b) / b,
        SOLVED,
    )


def groups_are_eigenvalues(s: Setting, groups: int, rho: float, rates: GroupRates | None = None) -> Certificate:
    """R6 ii: (g - 1) eigenvalues of groups and (T - g) of topics inside them."""
    world = subset_world(s.T, s.v, grouped_subsets(s.T, s.tau, groups, rho))
    moments, k = world.moments(), s.masking.k
    contrasts = np.eye(s.T) - 1 / s.T
    found = np.linalg.eigvalsh(contrasts @ moments.second @ contrasts)[1:] * k**2 / s.v
    rates = rates or group_rates(s, groups, rho)
    stated = np.sort([*[rates.between] * (groups - 1), *[rates.within] * (s.T - groups)])
    x, _ = world.infinite(s.masking)
    shown = np.linalg.eigvalsh((x * world.probabilities[:, None]).T @ x)[::-1]
    missing = max(float(np.abs(shown - rate).min()) for rate in rates)  # each is an eigenvalue of E[xx'] itself
    return Certificate(
        "groups of topics: E[xx'] has the eigenvalues between and within groups",
        s.as_dict() | {"groups": groups, "rho": rho},
        max(float(np.abs(found - stated).max()), missing) / min(rates),
        SOLVED,
    )


def limit_is_approached(
    world: SmallWorld, masking: Masking, weighting: Weighting = "run", limit: ValueArray | None = None
) -> Certificate:
    """The distance of W* to its limit falls in proportion to 1 / N: measured as the exponent."""
    moments = world.moments()
    if limit is None:
        limit = limit_of_length(world.word_topics, moments.mean, moments.second, masking)
    distance = [
        relative(optimum(world.word_topics, moments, masking, length=n, weighting=weighting).matrix(), limit)
        for n in (10**6, 10**7)
    ]
    exponent = math.log10(distance[0] / distance[1])
    return Certificate(
        "as documents grow, W* approaches its limit (not Theorem 2), in proportion to 1/N",
        described(about(world, masking, "infinite", weighting)),
        abs(exponent - 1),
        0.01,
        note=f"distance {distance[0]:.2e} at N = 10^6, {distance[1]:.2e} at 10^7: exponent {exponent:.4f}",
    )


def world_claims() -> Iterator[list[Certificate]]:
    """All certificates of `optimum`."""
    rng = np.random.default_rng(17)
    for length in (1, 2, 3, 4):
        for masking in MASKINGS:
            for weighting in WEIGHTINGS:
                yield optimum_is_enumeration(random_world(rng), masking, length, weighting)
    for masking in MASKINGS:
        for topics, words, laws in ((2, 4, 3), (3, 6, 5), (4, 5, 3)):  # the last law of theta has too few values
            world = random_world(rng, words, topics, laws)
            yield closed_form_is_pseudo_inverse(world, masking)
            yield [flow_is_exponential(world, masking, "infinite")]
            yield [limit_is_approached(world, masking, weighting) for weighting in WEIGHTINGS]
        yield [flow_is_exponential(random_world(rng), masking, 3)]
    for t, v, tau in ((10, 10, 3), (5, 4, 2), (6, 3, 1), (6, 3, 5)):
        for m in MASKINGS:
            s = Setting(TopicModel(t, v), tau, m)
            yield [rates_are_eigenvalues(s), symmetry_is_matrix(s, "infinite", "run")]
            yield [symmetry_is_matrix(s, n, weighting) for n in (1, 7, (20, 30)) for weighting in WEIGHTINGS]
    for length in (2, 3):
        for weighting in WEIGHTINGS:
            yield [diagonal_excess(Setting.of(2, 2, 1), length, weighting)]
    for g, h, v, tau, rho in ((3, 3, 4, 2, 0.5), (2, 4, 3, 3, 0.8), (4, 2, 2, 2, 0.3)):
        yield [groups_are_eigenvalues(Setting.of(g * h, v, tau), g, rho)]
