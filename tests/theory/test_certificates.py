"""Every certificate holds over random settings, and fails when its formula is disturbed by a thousandth."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from tests.theory.settings import settings_of_the_theory
from topicscope.theory import (
    Certificate,
    Setting,
    Theorem2,
    ValueMatrix,
    attention_loss,
    best_attention,
    certificates as claims,
    diagonal_value_matrix,
    random_member,
    theorem2,
    theorem3,
    theorem5,
    verify,
)
from topicscope.theory.certificates import EXACT, FORCE, NEAR_ZERO

S = Setting.of(5, 4, 2)
KINDS: tuple[ValueMatrix, ...] = ("blocks", "diagonal")


def disturbed(optimum: Theorem2, part: str) -> Theorem2:
    return dataclasses.replace(optimum, **{part: getattr(optimum, part) * 1.001})


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
    failures = [x for x in found if not x.holds]
    assert not failures


@settings(max_examples=60)
@given(s=settings_of_the_theory(most_topics=5, most_words=3))
def test_theorem_2_is_the_pseudo_inverse_and_of_least_norm_everywhere(s: Setting) -> None:
    assume(s.tau < s.T)
    assert (
        claims.theorem2_is_pseudo_inverse(theorem2(s)).error < 1e-10
    )  # the pseudo-inverse's own rounding, which grows as p_m goes to 0 or 1
    assert claims.theorem2_is_least_norm(theorem2(s), members=20).holds
    assert claims.outside_costs_more(s).holds


DISTURBED: dict[str, Callable[[], Certificate]] = {
    "pseudo-inverse, same topic": lambda: claims.theorem2_is_pseudo_inverse(disturbed(theorem2(S), "same_topic")),
    "pseudo-inverse, different topic": lambda: claims.theorem2_is_pseudo_inverse(
        disturbed(theorem2(S), "different_topic")
    ),
    "pseudo-inverse, mask column": lambda: claims.theorem2_is_pseudo_inverse(disturbed(theorem2(S), "mask_column")),
    "least norm": lambda: claims.theorem2_is_least_norm(disturbed(theorem2(S), "mask_column"), members=20),
    "ridge": lambda: claims.ridge_converges(disturbed(theorem2(S), "same_topic")),
    "gradient at Theorem 2": lambda: claims.gradient_vanishes(S, "", 1.001 * theorem2(S).matrix()),
    "gradient at the diagonal": lambda: claims.gradient_vanishes(
        S, "", 1.001 * diagonal_value_matrix(S.topic_model, S.masking)
    ),
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


@pytest.mark.parametrize("name", DISTURBED)
def test_a_disturbed_formula_is_found_out(name: str) -> None:
    assert not DISTURBED[name]().holds


def times(optimum: Theorem2, factor: float) -> Theorem2:
    parts = ("same_topic", "different_topic", "mask_column")
    return dataclasses.replace(optimum, **{part: factor * getattr(optimum, part) for part in parts})


def test_errors_measure_how_far_a_formula_is_off() -> None:
    optimum, matrix, alike = theorem2(S), theorem2(S).matrix(), 1 - 1 / 8
    errors = [
        (claims.theorem2_is_pseudo_inverse(times(optimum, 1.5)), 0.5),  # relative to the largest entry
        (claims.theorem2_is_least_norm(times(optimum, 1e4), members=5), 1.0),  # the cosine of an angle of zero
        (claims.gradient_vanishes(S, "", np.zeros_like(matrix)), 1.0),  # in units of the gradient at zero
        (claims.gradient_vanishes(S, "", 3 * matrix), 2.0),  # which is linear
        (claims.family_is_flat(S, disturb=0.0), 1 - alike),  # no prediction at all costs 1
        (claims.ridge_converges(times(optimum, 2.0)), 1.0),  # what does not fall has the exponent 0
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
    assert [certificate.error for certificate in wrong] == pytest.approx(
        [
            9000 * third.lambda1 - blocks.gamma,
            blocks.gamma - third.lambda2 / 1000,
            1e6 * fifth.lambda3 - diagonal.beta,
            diagonal.beta - fifth.lambda4 / 100,
            diagonal.alpha / diagonal.beta + fifth.lambda5,
        ],
        rel=1e-9,
    )
