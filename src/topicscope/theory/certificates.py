"""Certificates: every claim of the theory, derived again by computation, over many settings.

Formulas are on one side, pseudo-inverses, gradients, enumeration and optimisers on the other. Each certificate takes
what it checks as an argument, so that the tests can disturb it and see the certificate fail.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float

from topicscope.ground import Progress, one_thread, watched
from topicscope.theory.attention_loss import (
    Convention,
    asymptotic_loss,
    attention_loss,
    best_attention,
    population_loss,
)
from topicscope.theory.floors import uniform_optimum
from topicscope.theory.forces import (
    FirstStageRates,
    GroupRates,
    MaskForce,
    SmallWorld,
    contrast_force,
    dirichlet_shares,
    every_masked_document,
    every_order,
    every_subset,
    first_stage_rates,
    fixed_shares,
    group_rates,
    grouped_subsets,
    listed_shares,
    mask_force,
    random_world,
    shown_moment,
    subset_world,
    topic_contrasts,
)
from topicscope.theory.growth import Growth
from topicscope.theory.optimum import closed_form, dense_optimum, limit_of_length, optimum
from topicscope.theory.population import enumerated_loss, score_force
from topicscope.theory.theorem import Matrix, Setting, ValueMatrix, assumptions
from topicscope.theory.theorem2 import (
    Theorem2,
    embedding_of,
    family_loss,
    fit_embedding,
    fit_family,
    prediction_bias,
    random_gram,
    random_member,
    theorem1,
    theorem2,
)
from topicscope.theory.theorem3 import Theorem3, Theorem5, diagonal_value_matrix, theorem3, theorem5
from topicscope.theory.value_optimum import (
    WEIGHTINGS,
    Length,
    LengthWeights,
    OptimumSettings,
    ValueArray,
    Weighting,
    length_weights,
)
from topicscope.world import Dirichlet, Fixed, Masking, Rows, TopicModel, every_document

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
        >>> Certificate("1 + 1 = 3", {}, error=1.0, tolerance=1e-12).holds
        False
    """

    claim: str
    settings: Mapping[str, object]
    error: float
    tolerance: float
    should_hold: bool = True
    note: str = ""
    holds: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "holds", bool(self.error <= self.tolerance))  # NaN does not hold


def relative(computed: Matrix, exact: Matrix) -> float:
    return float(np.abs(computed - exact).max() / np.abs(exact).max())


SOLVED = 1e-10  # tolerance of claims whose other side is a pseudo-inverse or an exponential
MASKINGS = (Masking(), Masking(p_mask=0.4, p_correct=0.2, p_random=0.3))


def least_squares(
    x: Float[np.ndarray, "R V"], y: Float[np.ndarray, "R V"], weight: Float[np.ndarray, " R"]
) -> Float[np.ndarray, "V V"]:
    """The W of least norm that minimises the weighted mean of |W x - y|^2."""
    root = np.sqrt(weight)[:, None]
    return np.linalg.lstsq(root * x, root * y, rcond=1e-12)[0].T


def about(world: SmallWorld, masking: Masking, length: Length, weighting: str = "run") -> OptimumSettings:
    words, topics = world.word_topics.shape
    return OptimumSettings.of(topics, words, world.moments(), length, masking, weighting)


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
    settings = about(world, masking, length, weighting)
    weights = weights or length_weights(length, masking.p_mask, weighting)
    x, y, weight = every_masked_document(world, masking, length, weighting)
    exact = least_squares(x, y, weight)
    best = dense_optimum(settings, world.word_topics, world.moments(), assumed or masking, weights)
    spread = float(weight @ (1 - (y**2).sum(1)))  # of the true words around their mean in a document
    loss = spread + float(weight @ ((x @ exact.T - y) ** 2).sum(1))
    return [
        Certificate(
            "W* of finite documents equals least squares over every text, mask and word shown",
            described(settings),
            relative(best.matrix(), exact),
            EXACT,
        ),
        Certificate(
            "the loss of W* equals that over every document", described(settings), abs(best.loss - loss), EXACT
        ),
    ]


def closed_form_is_pseudo_inverse(
    world: SmallWorld, masking: Masking, value: ValueArray | None = None
) -> list[Certificate]:
    x, p = world.infinite(masking)
    weight = world.probabilities[:, None]
    exact = (p * weight).T @ x @ np.linalg.pinv((x * weight).T @ x, rcond=1e-11, hermitian=True)
    settings, moments = about(world, masking, "infinite"), world.moments()
    general = optimum(world.word_topics, moments, masking, length="infinite").matrix()
    ranks = np.linalg.matrix_rank(moments.second), np.linalg.matrix_rank(world.word_topics)
    claims = {"W* of infinite documents equals the pseudo-inverse solution over the law of theta": general}
    if ranks == (settings.topics, settings.topics):
        formula = closed_form(world.word_topics, masking)
        claims["W* = A (R A)^+ for independent topics: the law of theta does not enter"] = formula
    return [
        Certificate(claim, described(settings), relative(stated if value is None else value, exact), SOLVED)
        for claim, stated in claims.items()
    ]


def rates_are_eigenvalues(s: Setting, rates: FirstStageRates | None = None) -> Certificate:
    """R1: T - 1 equal eigenvalues and one more; the rest is zero."""
    eigenvalues = np.linalg.eigvalsh(shown_moment(every_subset(s), s.masking))
    rates = rates or first_stage_rates(s)
    stated = np.sort([rates.mean, *[rates.topics] * (s.T - 1), *[0.0] * (s.T * (s.v - 1) + 1)])
    return Certificate(
        "E[xx'] has the eigenvalues of the first stage: topic contrasts, mean, and zero",
        s.as_dict(),
        float(np.abs(eigenvalues - stated).max() / min(rates)),
        SOLVED,
    )


def flow_is_exponential(
    world: SmallWorld, masking: Masking, length: int | Literal["infinite"], rate_scale: float = 1.0
) -> Certificate:
    """W(t) from a random W0, against the matrix exponential of dW/dt = -2 (W G - H)."""
    from scipy.linalg import expm

    every = (*world.infinite(masking), world.probabilities)
    x, y, weight = every if isinstance(length, str) else every_masked_document(world, masking, length, "run")
    g, h = (x * weight[:, None]).T @ x, (y * weight[:, None]).T @ x
    size = len(g)
    start, zero = np.random.default_rng(0).standard_normal((size, size)), np.zeros((size, size))
    best, error = optimum(world.word_topics, world.moments(), masking, length=length), 0.0
    for time in (0.5 / best.modes[0].eigenvalue, 2 / best.modes[min(1, len(best.modes) - 1)].eigenvalue):
        both = np.hstack([start, np.eye(size)]) @ expm(time * np.block([[-2 * g, zero], [2 * h, zero]]))
        error = max(error, relative(best.value_at(rate_scale * time, start), both[:, :size]))
    return Certificate(
        "W(t) from any start equals the matrix exponential", described(about(world, masking, length)), error, SOLVED
    )


def symmetry_is_matrix(s: Setting, length: Length, weighting: Weighting, scale: float = 1.0) -> Certificate:
    error, topics = 0.0, s.topic_model
    best = functools.partial(optimum, masking=s.masking, length=length, weighting=weighting)
    for prior in (Fixed(topics_per_document=s.tau), Dirichlet(alpha=0.3)):
        few, whole = best(topics, prior), best(scale * topics.word_topics + (1 - scale) / topics.words, prior)
        time = 1 / few.modes[1].eigenvalue
        error = max(
            error,
            abs(few.loss - whole.loss),
            relative(few.matrix(), whole.matrix()),
            relative(few.limit_matrix(), whole.limit_matrix()),
            relative(few.least_norm_matrix(), whole.least_norm_matrix()),
            relative(few.value_at(time), whole.value_at(time)),
        )
    return Certificate(
        "W* by symmetry equals W* by matrices", s.as_dict() | {"length": length, "weighting": weighting}, error, SOLVED
    )


def diagonal_excess(s: Setting, length: int, weighting: Weighting, m1: float | None = None) -> Certificate:
    """Diagonal less the rest of its block: p_c / (1 - (E[m]/N) (1 - p_c - p_r)), over every document."""
    exact = least_squares(*every_masked_document(every_subset(s), s.masking, length, weighting))
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
    world, contrasts = subset_world(s.T, s.v, grouped_subsets(s.T, s.tau, groups, rho)), np.eye(s.T) - 1 / s.T
    eigenvalues = np.linalg.eigvalsh(contrasts @ world.moments().second @ contrasts)[1:] * s.masking.k**2 / s.v
    rates = rates or group_rates(s, groups, rho)
    stated = np.sort([*[rates.between] * (groups - 1), *[rates.within] * (s.T - groups)])
    shown = np.linalg.eigvalsh(shown_moment(world, s.masking))
    missing = max(float(np.abs(shown - rate).min()) for rate in rates)  # each is an eigenvalue of E[xx'] itself
    return Certificate(
        "groups of topics: E[xx'] has the eigenvalues between and within groups",
        s.as_dict() | {"groups": groups, "rho": rho},
        max(float(np.abs(eigenvalues - stated).max()), missing) / min(rates),
        SOLVED,
    )


def limit_is_approached(
    world: SmallWorld, masking: Masking, weighting: Weighting = "run", limit: ValueArray | None = None
) -> Certificate:
    moments = world.moments()
    stated = limit_of_length(world.word_topics, moments.mean, moments.second, masking) if limit is None else limit
    distance = [
        relative(optimum(world.word_topics, moments, masking, length=n, weighting=weighting).matrix(), stated)
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
    rng = np.random.default_rng(17)
    for length, masking, weighting in itertools.product((1, 2, 3, 4), MASKINGS, WEIGHTINGS):
        yield optimum_is_enumeration(random_world(rng), masking, length, weighting)
    for masking in MASKINGS:
        for topics, words, laws in ((2, 4, 3), (3, 6, 5), (4, 5, 3)):  # the last law of theta has too few values
            world = random_world(rng, words, topics, laws)
            yield closed_form_is_pseudo_inverse(world, masking)
            limits = [limit_is_approached(world, masking, weighting) for weighting in WEIGHTINGS]
            yield [flow_is_exponential(world, masking, "infinite"), *limits]
        yield [flow_is_exponential(random_world(rng), masking, 3)]
    for (t, v, tau), masking in itertools.product(((10, 10, 3), (5, 4, 2), (6, 3, 1), (6, 3, 5)), MASKINGS):
        s = Setting(TopicModel(t, v), tau, masking)
        yield [rates_are_eigenvalues(s), symmetry_is_matrix(s, "infinite", "run")]
        yield [symmetry_is_matrix(s, n, weighting) for n in (1, 7, (20, 30)) for weighting in WEIGHTINGS]
    yield [diagonal_excess(Setting.of(2, 2, 1), length, weighting) for length in (2, 3) for weighting in WEIGHTINGS]
    groups = ((3, 3, 4, 2, 0.5), (2, 4, 3, 3, 0.8), (4, 2, 2, 2, 0.3))
    yield [groups_are_eigenvalues(Setting.of(g * h, v, tau), g, rho) for g, h, v, tau, rho in groups]


FORCE = 1e-9  # tolerance, as a share of sigma
NEAR_ZERO = 1e-6  # tolerance of a law that holds at W -> 0
SMALL_W = 1e-7  # W at which it is tested
SIZES = ((10, 10, 3), (10, 10, 2), (5, 4, 2), (6, 3, 3), (6, 3, 5), (4, 1, 2))  # T, v, tau


def force_is_contrasts(s: Setting, sigma: float | None = None, value: ValueArray | None = None) -> Certificate:
    """R2: at Theorem 2's W_V the whole matrix -dLoss/dL is sigma Pi."""
    sigma = contrast_force(fixed_shares(s.T, s.tau), s.v, s.masking) if sigma is None else sigma
    force = score_force(every_subset(s), s.masking, theorem2(s).matrix() if value is None else value)
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
    moment = functools.partial(dirichlet_moment, alpha, topics)

    # E[x_1 theta_1^a theta_2^b theta_3^c], x_1 = k theta_1 / v + p_2
    def with_x(a: int, b: int = 0, c: int = 0) -> float:
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
    world, pi = every_subset(s), topic_contrasts(s.T, s.v)
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
    stated, value = np.array([force.mask, *[force.word] * (s.T * s.v)]), SMALL_W * topic_contrasts(s.T, s.v)
    force_there = score_force(every_subset(s), s.masking, value, loss="cross-entropy")[:, 0] / SMALL_W
    return Certificate(
        "under cross entropy the force on the [MASK] query near zero is as stated",
        s.as_dict(),
        float(np.abs(force_there - stated).max() / np.abs(force_there).max()),
        NEAR_ZERO,
    )


def dynamics_claims() -> Iterator[list[Certificate]]:
    rows = [[0.6, 0.3, 0.1, 0.0], [0.4, 0.35, 0.2, 0.05], [1.0, 0.0, 0.0, 0.0]]
    for masking in MASKINGS:
        for topics, v, tau in SIZES:
            s = Setting(TopicModel(topics, v), tau, masking)
            yield [force_is_contrasts(s), mask_query_is_first(s)]
            if topics < 10:  # least squares over every document
                yield [force_falls_as_stated(s, ell) for ell in (0.5, 4.0)]
        yield [force_of_any_prior(every_order(some), 3, masking) for some in (rows, rows[:1], rows[1:])]
        yield [force_of_dirichlet(alpha, Setting(TopicModel(10, 10), 1, masking)) for alpha in (0.1, 1.0, 5.0)]


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
# T, tau, v at which the theorems' assumptions fail.
STRAINED = [(10, 3, 10), (10, 9, 10), (10, 10, 10), (100, 80, 300), (100, 10, 4), (20, 1, 10)]


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
        >>> theorem3_bounds(theorem3(Setting.of())).holds  # one of them; all of them take long
        True
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
