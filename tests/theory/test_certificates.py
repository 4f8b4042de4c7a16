"""Every certificate holds, and fails under each disturbance that is an easy mistake."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from tests.theory.settings import settings_of_the_theory
from topicscope.theory import (
    Certificate,
    Growth,
    MaskForce,
    Setting,
    Theorem2,
    ValueMatrix,
    attention_loss,
    best_attention,
    certificates as claims,
    contrast_force,
    diagonal_value_matrix,
    first_stage_rates,
    group_rates,
    mask_force,
    random_member,
    theorem2,
    theorem3,
    theorem5,
    verify,
)
from topicscope.theory.certificates import EXACT, FORCE, NEAR_ZERO
from topicscope.theory.forces import (
    dirichlet_shares,
    every_order,
    fixed_shares,
    grouped_subsets,
    listed_shares,
    random_world,
    subset_world,
)
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

S = Setting.of(5, 4, 2)
KINDS: tuple[ValueMatrix, ...] = ("blocks", "diagonal")


def test_all_certificates_that_should_hold_do() -> None:
    found = verify()
    assert not [x for x in found if x.should_hold and not x.holds]
    assert len(found) > 150
    assert len({x.claim for x in found}) >= 20
    exact = [x.error for x in found if x.tolerance == EXACT and x.should_hold]
    assert max(exact) < 1e-12
    of_forces = [x for x in found if x.tolerance in (FORCE, NEAR_ZERO) or "Dirichlet" in x.claim]
    assert len({x.claim for x in of_forces}) == 5
    assert max(x.error / x.tolerance for x in of_forces) < 0.1


@settings(max_examples=60)
@given(s=settings_of_the_theory())
def test_exact_claims_hold_at_machine_precision_everywhere(s: Setting) -> None:
    matrix = theorem2(s).matrix()
    found = [
        claims.symmetry_is_enumeration(s),
        claims.gradient_vanishes(s, "Theorem 2", matrix),
        claims.gradient_vanishes(s, "the diagonal", diagonal_value_matrix(s.topic_model, s.masking)),
        claims.family_is_flat(s),
        *claims.theorem1_family(s),
        *claims.attention_entries_are_exact(s),
    ]
    if s.v > 1:
        found.append(claims.remark5(s)[0])
    assert not [x for x in found if not x.holds]


@settings(max_examples=60)
@given(s=settings_of_the_theory(most_topics=5, most_words=3))
def test_theorem_2_is_the_pseudo_inverse_and_of_least_norm_everywhere(s: Setting) -> None:
    assume(s.tau < s.T)
    # the pseudo-inverse's own rounding grows as p_m goes to 0 or 1
    assert claims.theorem2_is_pseudo_inverse(theorem2(s)).error < 1e-10
    assert claims.theorem2_is_least_norm(theorem2(s), members=20).holds
    assert claims.outside_costs_more(s).holds


PARTS = ("same_topic", "different_topic", "mask_column")


def times(factor: float, *parts: str) -> Theorem2:
    optimum = theorem2(S)
    return dataclasses.replace(optimum, **{part: factor * getattr(optimum, part) for part in parts or PARTS})


DIAGONAL_MATRIX = diagonal_value_matrix(S.topic_model, S.masking)
DISTURBED: dict[str, Callable[[], Certificate]] = {
    **{
        f"pseudo-inverse, {part}": lambda part=part: claims.theorem2_is_pseudo_inverse(times(1.001, part))  # type: ignore[misc]
        for part in PARTS
    },
    "least norm": lambda: claims.theorem2_is_least_norm(times(1.001, "mask_column"), members=20),
    "ridge": lambda: claims.ridge_converges(times(1.001, "same_topic")),
    "gradient at Theorem 2": lambda: claims.gradient_vanishes(S, "", 1.001 * theorem2(S).matrix()),
    "gradient at the diagonal": lambda: claims.gradient_vanishes(S, "", 1.001 * DIAGONAL_MATRIX),
    "gradient at a member": lambda: claims.gradient_vanishes(S, "", 1.001 * random_member(S, np.random.default_rng(0))),
    "flat family": lambda: claims.family_is_flat(S, disturb=1.001),
    "Theorem 1, flat": lambda: claims.theorem1_family(S, bias_scale=1.001)[0],
    "Theorem 1, gradient": lambda: claims.theorem1_family(S, bias_scale=1.001)[1],
    "attention, blocks": lambda: claims.attention_entries_are_exact(S, scale=1.001)[0],
    "attention, diagonal": lambda: claims.attention_entries_are_exact(S, scale=1.001)[1],
    "symmetry": lambda: claims.symmetry_is_enumeration(S, scale=1.001),
    "outside costs more": lambda: claims.outside_costs_more(S, scale=1.001),
    "Theorem 1, realised": lambda: claims.theorem1_family(S, embedding_scale=1.001)[2],
    "Remark 5": lambda: claims.remark5(S, disturb=1.001)[0],
    "asymptotic, blocks": lambda: claims.asymptotic_approach("blocks", scale=1.001),
    "asymptotic, diagonal": lambda: claims.asymptotic_approach("diagonal", scale=1.001),
}


def test_errors_measure_how_far_a_formula_is_off() -> None:
    matrix, alike = theorem2(S).matrix(), 1 - 1 / 8
    errors = [
        (claims.theorem2_is_pseudo_inverse(times(1.5)), 0.5),  # relative to the largest entry
        (claims.theorem2_is_least_norm(times(1e4), members=5), 1.0),  # the cosine of an angle of zero
        (claims.gradient_vanishes(S, "", np.zeros_like(matrix)), 1.0),  # in units of the gradient at zero
        (claims.gradient_vanishes(S, "", 3 * matrix), 2.0),  # which is linear
        (claims.family_is_flat(S, disturb=0.0), 1 - alike),  # no prediction at all costs 1
        (claims.ridge_converges(times(2.0)), 1.0),  # what does not fall has the exponent 0
    ]
    for certificate, error in errors:
        assert not certificate.holds
        assert certificate.error == pytest.approx(error, rel=1e-3)
    for kind, certificate in zip(KINDS, claims.attention_entries_are_exact(S, scale=2), strict=True):
        moved = attention_loss(S, kind, 6.0, 0.4) - attention_loss(S, kind, 3.0, 0.4)
        assert certificate.error == pytest.approx(abs(moved), rel=1e-9)
        assert certificate.settings == S.as_dict() | {"alpha": 3.0, "beta": 0.4}


def test_remark_5_compares_pairs_of_one_gamma() -> None:
    paper, exact = claims.remark5(S, gamma=4.0)
    assert (paper.holds, exact.holds, exact.should_hold) == (True, False, False)
    pairs = [(0.0, 16.0), (2.0, 10.0), (16 / 3, 0.0)]  # (3 alpha + beta) / 4 = 4
    losses = [attention_loss(S, "blocks", alpha, beta) for alpha, beta in pairs]
    assert exact.error >= np.ptp(losses) / np.mean(losses) * 0.9
    assert exact.error < 1.5 * np.ptp(losses) / np.mean(losses)


def test_a_certificate_with_no_number_does_not_hold() -> None:
    assert Certificate("", {}, 1.0, 1.0).holds
    assert not Certificate("", {}, float("nan"), 1.0).holds
    with pytest.raises(dataclasses.FrozenInstanceError):
        Certificate("", {}, 1.0, 1.0).error = 0.0  # type: ignore[misc]


def test_claims_need_not_hold_where_the_assumptions_fail() -> None:
    met, strained = Setting.of(1000, 10, 10), Setting.of(10, 10, 3)
    pairs: list[tuple[Any, Any]] = [(claims.theorem3_bounds, theorem3), (claims.theorem5_bounds, theorem5)]
    for bounds, theorem in pairs:
        held, exact, beyond = bounds(theorem(met)), bounds(theorem(met), "exact"), bounds(theorem(strained))
        assert (held.should_hold, exact.should_hold, beyond.should_hold) == (True, False, False)
        assert "strained" not in held.note
        assert "strained: topics_per_document = 3 is not large" in beyond.note
        assert held.error == 0
    whole = Setting.of(4, 3, 4)  # a single document does not tell topics apart
    found = claims.theorem2_is_pseudo_inverse(theorem2(whole)), claims.outside_costs_more(whole)
    assert not any(certificate.should_hold for certificate in found)
    assert claims.outside_costs_more(S).should_hold


def test_bounds_that_do_not_hold_are_found_out() -> None:
    s = Setting.of(1000, 10, 10)
    third, fifth = theorem3(s), theorem5(s)
    assert claims.theorem3_bounds(third).holds
    assert claims.theorem5_bounds(fifth).holds
    wrong = [
        claims.theorem3_bounds(dataclasses.replace(third, lambda1=1000 * third.lambda1)),
        claims.theorem3_bounds(dataclasses.replace(third, lambda2=third.lambda2 / 1e6)),
        claims.theorem5_bounds(dataclasses.replace(fifth, lambda3=1e5 * fifth.lambda3)),
        claims.theorem5_bounds(dataclasses.replace(fifth, lambda4=fifth.lambda4 / 1e5)),
        claims.theorem5_bounds(dataclasses.replace(fifth, lambda5=fifth.lambda5 * -1)),
    ]
    assert not any(certificate.holds for certificate in wrong)
    blocks, diagonal = (best_attention(s, kind, "paper", cap=kind == "diagonal") for kind in KINDS)
    beyond = [9000 * third.lambda1 - blocks.gamma, blocks.gamma - third.lambda2 / 1000]
    beyond += [1e6 * fifth.lambda3 - diagonal.beta, diagonal.beta - fifth.lambda4 / 100]
    beyond += [diagonal.alpha / diagonal.beta + fifth.lambda5]
    assert [certificate.error for certificate in wrong] == pytest.approx(beyond, rel=1e-9)


MASKING = Masking(p_mask=0.3, p_correct=0.2, p_random=0.1)
WORLD = random_world(np.random.default_rng(5))
WIDE = random_world(np.random.default_rng(6), words=6, topics=3, laws=5)
GROUPED = Setting.of(9, 4, 2)


def enumerated(weighting: Weighting = "run", **disturbed: object) -> Certificate:
    return claims.optimum_is_enumeration(WORLD, MASKING, 3, weighting, **disturbed)[0]  # type: ignore[arg-type]


def value_by(c: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """A (R A)^+ with R = k I + c 1'."""
    return columns @ np.linalg.pinv(MASKING.k * columns + np.outer(c, columns.sum(0)))


def closed(value: np.ndarray) -> Certificate:
    return claims.closed_form_is_pseudo_inverse(WIDE, MASKING, value)[-1]


C0 = np.array([MASKING.p_mask * MASKING.p_mask_word, *[MASKING.p_mask * MASKING.p_random / 6] * 6])
COLUMNS = with_mask(WIDE.word_topics)
RATES, GROUPS = first_stage_rates(S), group_rates(GROUPED, 3, 0.5)
RUN = length_weights(3, 0.3, "run")
OFF = COLUMNS * np.append(1.0, np.linspace(0.99, 1.01, 6))[:, None] ** [1, 0, 0]  # the first column is another
EXPECTED_MASKS = LengthWeights(*terms_of(3, 3 * 0.3, 6 * 0.3**2))

DISTURBED |= {
    "m1 = N p_m where every position counts alike": lambda: enumerated("positions", weights=EXPECTED_MASKS),
    "an empty document left out, but not its weight": lambda: enumerated("documents", weights=RUN),
    "the own position left out": lambda: enumerated(weights=RUN._replace(own=0.0)),
    "p_c = 0 assumed": lambda: enumerated(assumed=Masking(p_mask=0.3, p_correct=0.0, p_random=0.1)),
    "R without m e0 1'": lambda: closed(value_by(C0 * (np.arange(7) > 0), COLUMNS)),
    "R without p_m p_r u 1'": lambda: closed(value_by(C0 * (np.arange(7) == 0), COLUMNS)),
    "a column of A off by 1%": lambda: closed(OFF @ np.linalg.pinv(shown_by(MASKING, OFF))),
    "k for k^2": lambda: claims.rates_are_eigenvalues(S, RATES._replace(topics=RATES.topics / S.masking.k)),
    "T for T - 1": lambda: claims.rates_are_eigenvalues(S, RATES._replace(topics=RATES.topics * 4 / 5)),
    "v omitted": lambda: claims.rates_are_eigenvalues(S, RATES._replace(topics=RATES.topics * 4)),
    "the mean's rate": lambda: claims.rates_are_eigenvalues(S, RATES._replace(mean=RATES.mean * 1.001)),
    "flow at another speed": lambda: claims.flow_is_exponential(WIDE, MASKING, "infinite", rate_scale=1.001),
    "flow without the factor 2": lambda: claims.flow_is_exponential(WORLD, MASKING, 2, rate_scale=0.5),
    "words that leave their topics": lambda: claims.symmetry_is_matrix(S, 7, "run", scale=0.999),
    "the excess with m1 = N p_m": lambda: claims.diagonal_excess(Setting.of(2, 2, 1), 3, "positions", m1=3 * 0.15),
    "no groups": lambda: claims.groups_are_eigenvalues(GROUPED, 3, 0.5, GROUPS._replace(within=GROUPS[0])),
    "groups of another rho": lambda: claims.groups_are_eigenvalues(GROUPED, 3, 0.5, group_rates(GROUPED, 3, 0.51)),
    "Theorem 2 as the limit": lambda: claims.limit_is_approached(WIDE, MASKING, limit=value_by(C0, COLUMNS)),
    "the same, positions": lambda: claims.limit_is_approached(WIDE, MASKING, "positions", value_by(C0, COLUMNS)),
}


def test_the_undisturbed_formulas_hold_there() -> None:
    found = [
        *(enumerated(weighting) for weighting in ("run", "positions", "documents")),
        enumerated("run", weights=LengthWeights(*terms_of(3, 0.9 + 0.7**3, 6 * 0.09))),
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


ROWS = every_order([[0.6, 0.3, 0.1, 0.0], [0.4, 0.35, 0.2, 0.05]])
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

DISTURBED |= {
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


@pytest.mark.parametrize("name", DISTURBED)
def test_a_disturbed_formula_is_found_out(name: str) -> None:
    assert not DISTURBED[name]().holds


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
