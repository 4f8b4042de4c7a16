"""The certificates of `optimum` and of the dynamics hold, and fail under each disturbance that is an easy mistake."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from topicscope.theory import (
    Growth,
    MaskForce,
    Setting,
    certify_worlds as claims,
    contrast_force,
    first_stage_rates,
    group_rates,
    mask_force,
    theorem2,
)
from topicscope.theory.certificates import Certificate, random_world
from topicscope.theory.forces import dirichlet_shares, fixed_shares, grouped_subsets, listed_shares, subset_world
from topicscope.theory.optimum import shown_by
from topicscope.theory.value_optimum import (
    WEIGHTINGS,
    LengthWeights,
    Weighting,
    length_weights,
    masked_numbers,
    terms_of,
    with_mask,
)
from topicscope.world import Masking

MASKING = Masking(p_mask=0.3, p_correct=0.2, p_random=0.1)
WORLD = random_world(np.random.default_rng(5))
WIDE = random_world(np.random.default_rng(6), words=6, topics=3, laws=5)
S, GROUPED = Setting.of(5, 4, 2), Setting.of(9, 4, 2)


@pytest.mark.parametrize("weighting", ["run", "positions", "documents"])
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_the_optimum_is_that_of_every_document(length: int, weighting: Weighting) -> None:
    world = random_world(np.random.default_rng(length))
    found = claims.optimum_is_enumeration(world, MASKING, length, weighting)
    assert all(one.holds for one in found)
    assert max(one.error for one in found) < 1e-12


def weights_with(n: int, m1: float, m2: float) -> LengthWeights:
    return LengthWeights(*terms_of(n, m1, m2))


def enumerated(weighting: Weighting = "run", **disturbed: object) -> Certificate:
    return claims.optimum_is_enumeration(WORLD, MASKING, 3, weighting, **disturbed)[0]  # type: ignore[arg-type]


def value_by(c: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """A (R A)^+ with R = k I + c 1'."""
    return columns @ np.linalg.pinv(MASKING.k * columns + np.outer(c, columns.sum(0)))


def one_column_off() -> np.ndarray:
    columns = with_mask(WIDE.word_topics).copy()
    columns[1:, 0] *= np.linspace(0.99, 1.01, 6)
    return columns @ np.linalg.pinv(shown_by(MASKING, columns))


C0 = np.array([MASKING.p_mask * MASKING.p_mask_word, *[MASKING.p_mask * MASKING.p_random / 6] * 6])
COLUMNS = with_mask(WIDE.word_topics)
RATES, GROUPS = first_stage_rates(S), group_rates(GROUPED, 3, 0.5)
RUN = length_weights(3, 0.3, "run")

DISTURBED: dict[str, Callable[[], Certificate]] = {
    "m1 = N p_m where every position counts alike": lambda: enumerated(
        "positions", weights=weights_with(3, 3 * 0.3, 6 * 0.3**2)
    ),
    "an empty document left out, but not its weight": lambda: enumerated("documents", weights=RUN),
    "the own position left out": lambda: enumerated(weights=RUN._replace(own=0.0)),
    "p_c = 0 assumed": lambda: enumerated(assumed=Masking(p_mask=0.3, p_correct=0.0, p_random=0.1)),
    "R without m e0 1'": lambda: closed(value_by(C0 * (np.arange(7) > 0), COLUMNS)),
    "R without p_m p_r u 1'": lambda: closed(value_by(C0 * (np.arange(7) == 0), COLUMNS)),
    "a column of A off by 1%": lambda: closed(one_column_off()),
    "k for k^2": lambda: claims.rates_are_eigenvalues(S, RATES._replace(topics=RATES.topics / S.masking.k)),
    "T for T - 1": lambda: claims.rates_are_eigenvalues(S, RATES._replace(topics=RATES.topics * 4 / 5)),
    "v omitted": lambda: claims.rates_are_eigenvalues(S, RATES._replace(topics=RATES.topics * 4)),
    "the mean's rate": lambda: claims.rates_are_eigenvalues(S, RATES._replace(mean=RATES.mean * 1.001)),
    "flow at another speed": lambda: claims.flow_is_exponential(WIDE, MASKING, "infinite", rate_scale=1.001),
    "flow without the factor 2": lambda: claims.flow_is_exponential(WORLD, MASKING, 2, rate_scale=0.5),
    "words that leave their topics": lambda: claims.symmetry_is_matrix(S, 7, "run", scale=0.999),
    "the excess with m1 = N p_m": lambda: claims.diagonal_excess(Setting.of(2, 2, 1), 3, "positions", m1=3 * 0.15),
    "groups that are no groups": lambda: claims.groups_are_eigenvalues(
        GROUPED, 3, 0.5, GROUPS._replace(within=GROUPS[0])
    ),
    "groups of another rho": lambda: claims.groups_are_eigenvalues(GROUPED, 3, 0.5, group_rates(GROUPED, 3, 0.51)),
    "Theorem 2 as the limit of long documents": lambda: claims.limit_is_approached(
        WIDE, MASKING, limit=value_by(C0, COLUMNS)
    ),
    "the same, positions": lambda: claims.limit_is_approached(WIDE, MASKING, "positions", value_by(C0, COLUMNS)),
}


def closed(value: np.ndarray) -> Certificate:
    return claims.closed_form_is_pseudo_inverse(WIDE, MASKING, value)[-1]


@pytest.mark.parametrize("name", DISTURBED)
def test_a_disturbed_formula_is_found_out(name: str) -> None:
    assert not DISTURBED[name]().holds


def test_the_undisturbed_formulas_hold_there() -> None:
    found = [
        *(enumerated(weighting) for weighting in ("run", "positions", "documents")),
        enumerated("run", weights=weights_with(3, 0.9 + 0.7**3, 6 * 0.09)),
        *claims.closed_form_is_pseudo_inverse(WIDE, MASKING),
        closed(value_by(C0, COLUMNS)),
        claims.rates_are_eigenvalues(S),
        claims.flow_is_exponential(WIDE, MASKING, "infinite"),
        claims.flow_is_exponential(WORLD, MASKING, 2),
        claims.symmetry_is_matrix(S, 7, "run"),
        claims.diagonal_excess(Setting.of(2, 2, 1), 3, "positions"),
        claims.groups_are_eigenvalues(GROUPED, 3, 0.5),
        *(claims.limit_is_approached(WIDE, MASKING, weighting) for weighting in WEIGHTINGS),
    ]
    assert not [one for one in found if not one.holds]


def test_masked_numbers_are_those_of_the_binomial() -> None:
    """E[m], E[m(m-1)] and the weights by summing over m = 0..N."""
    from scipy.stats import binom

    n, p = 6, 0.3
    m = np.arange(n + 1)
    chance = binom.pmf(m, n, p)
    ways = {"run": (np.maximum(m, 1), chance), "documents": (m, chance * (m > 0)), "positions": (m, chance * m)}
    for weighting, (number, weight) in ways.items():
        m1, m2, _ = (float(x[0]) for x in masked_numbers(np.array([float(n)]), p, weighting))  # type: ignore[arg-type]
        assert m1 == pytest.approx(weight @ number / weight.sum(), rel=1e-12)
        assert m2 == pytest.approx(weight @ (number * (number - 1)) / weight.sum(), rel=1e-12)


def test_groups_make_the_world_that_they_describe() -> None:
    subsets = grouped_subsets(4, 2, groups=2, rho=1.0)
    assert {subset for subset, p in subsets.items() if p > 0} == {(0, 1), (2, 3)}
    assert sum(grouped_subsets(4, 2, groups=2, rho=0.3).values()) == pytest.approx(1)
    assert subset_world(4, 2, subsets).moments().second[0].tolist() == [0.125, 0.125, 0, 0]


ROWS = claims.every_order([[0.6, 0.3, 0.1, 0.0], [0.4, 0.35, 0.2, 0.05]])
EACH = np.full(len(ROWS), 1 / len(ROWS))


def sigma_of(p1: float, pairs: float) -> float:
    """2 p_c p_1 (tau - 1) / (k v tau (T - 1)), with what may be mistaken in it."""
    return 2 * S.masking.p_correct * p1 * pairs / (S.masking.k * S.v * S.tau * (S.T - 1))


def mask_force_of(p0: float, share: float) -> MaskForce:
    """R7 for tau topics of equal shares; `share` is that of [MASK] in the document."""
    qq = S.masking.k / (S.tau * S.v) * (1 - S.tau / S.T)
    here = S.tau / S.T * S.p1 * ((1 / S.tau - 1 / S.T) / S.v - qq)
    word = p0 * (here - (1 - S.tau / S.T) * S.p2 * (1 / (S.v * S.T) + qq))
    return MaskForce(word, -p0 * share * qq, 0.0)


def any_prior(masking: Masking = MASKING, factor: float = 1.0) -> Certificate:
    return claims.force_of_any_prior(ROWS, 3, MASKING, factor * contrast_force(listed_shares(ROWS, EACH), 3, masking))


GROWTH = Growth(S.v, S.masking, fixed_shares(S.T, S.tau))
ANOTHER = Growth(S.v, S.masking, fixed_shares(S.T, 3))
DIRICHLET = contrast_force(dirichlet_shares(5, 0.3), 4, S.masking)

DYNAMICS: dict[str, Callable[[], Certificate]] = {
    "p2 for p1": lambda: claims.force_is_contrasts(S, sigma_of(S.p2, S.tau - 1)),
    "tau for tau - 1": lambda: claims.force_is_contrasts(S, sigma_of(S.p1, S.tau)),
    "W_V 1% too large": lambda: claims.force_is_contrasts(S, value=1.01 * theorem2(S).matrix()),
    "a prior's sigma with another p_c": lambda: any_prior(Masking(p_mask=0.3, p_correct=0.21, p_random=0.1)),
    "a prior's sigma off by 1e-8": lambda: any_prior(factor=1 + 1e-8),
    "a law that is not exchangeable": lambda: claims.force_of_any_prior(ROWS[:20], 3, MASKING),
    "Dirichlet of another alpha": lambda: claims.force_of_dirichlet(0.301, Setting.of(5, 4, 1), DIRICHLET),
    "g of another tau": lambda: claims.force_falls_as_stated(S, 2.0, ANOTHER.force),
    "g that does not fall": lambda: claims.force_falls_as_stated(S, 2.0, lambda _: GROWTH.sigma),
    "g off by 1e-8": lambda: claims.force_falls_as_stated(S, 2.0, lambda ell: (1 + 1e-8) * GROWTH.force(ell)),
    "p0 dropped": lambda: claims.mask_query_is_first(S, mask_force_of(1.0, S.p0)),
    "m dropped": lambda: claims.mask_query_is_first(S, mask_force_of(S.masking.p_mask_word, 1.0)),
}


@pytest.mark.parametrize("name", DYNAMICS)
def test_a_disturbed_formula_of_the_dynamics_is_found_out(name: str) -> None:
    assert not DYNAMICS[name]().holds


def test_the_undisturbed_formulas_of_the_dynamics_hold_there() -> None:
    found = [
        claims.force_is_contrasts(S),
        claims.force_is_contrasts(S, sigma_of(S.p1, S.tau - 1)),
        any_prior(),
        claims.force_of_dirichlet(0.3, Setting.of(5, 4, 1), DIRICHLET),
        claims.force_falls_as_stated(S, 2.0),
        claims.mask_query_is_first(S),
        claims.mask_query_is_first(S, mask_force_of(S.masking.p_mask_word, S.p0)),
    ]
    assert not [one for one in found if not one.holds]
    assert mask_force(fixed_shares(S.T, S.tau), S.v, S.masking).word == pytest.approx(
        mask_force_of(S.masking.p_mask_word, S.p0).word
    )
