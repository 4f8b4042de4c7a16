"""Every certificate holds over random settings, and fails when its formula is disturbed by a thousandth."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings

from tests.theory.settings import settings_of_the_theory
from topicscope.theory import (
    Certificate,
    Setting,
    Theorem2,
    certificates,
    certify_optima as optima,
    diagonal_value_matrix,
    random_member,
    theorem2,
    theorem3,
    theorem5,
    verify,
)
from topicscope.theory.certify_optima import EXACT

S = Setting.of(5, 4, 2)


def disturbed(optimum: Theorem2, part: str) -> Theorem2:
    return dataclasses.replace(optimum, **{part: getattr(optimum, part) * 1.001})


def test_all_certificates_that_should_hold_do() -> None:
    found = verify()
    assert not [x for x in found if x.should_hold and not x.holds]
    assert len(found) > 150
    claims = {x.claim for x in found}
    assert len(claims) >= 20
    exact = [x.error for x in found if x.tolerance == EXACT and x.should_hold]
    assert max(exact) < 1e-12


@settings(max_examples=200)
@given(s=settings_of_the_theory())
def test_exact_claims_hold_at_machine_precision_everywhere(s: Setting) -> None:
    matrix = theorem2(s).matrix()
    found = [
        optima.symmetry_is_enumeration(s),
        optima.gradient_vanishes(s, "Theorem 2", matrix),
        optima.gradient_vanishes(s, "the diagonal", diagonal_value_matrix(s.topic_model, s.masking)),
        optima.family_is_flat(s),
        *optima.theorem1_family(s),
        *certificates.attention_entries_are_exact(s),
    ]
    if s.v > 1:
        found.append(certificates.remark5(s)[0])
    failures = [x for x in found if not x.holds]
    assert not failures


@settings(max_examples=200)
@given(s=settings_of_the_theory(most_topics=5, most_words=3))
def test_theorem_2_is_the_pseudo_inverse_and_of_least_norm_everywhere(s: Setting) -> None:
    assume(s.tau < s.T)
    assert (
        optima.theorem2_is_pseudo_inverse(theorem2(s)).error < 1e-10
    )  # the pseudo-inverse's own rounding, which grows as p_m goes to 0 or 1
    assert optima.theorem2_is_least_norm(theorem2(s), members=20).holds
    assert optima.outside_costs_more(s).holds


DISTURBED: dict[str, Callable[[], Certificate]] = {
    "pseudo-inverse, same topic": lambda: optima.theorem2_is_pseudo_inverse(disturbed(theorem2(S), "same_topic")),
    "pseudo-inverse, different topic": lambda: optima.theorem2_is_pseudo_inverse(
        disturbed(theorem2(S), "different_topic")
    ),
    "pseudo-inverse, mask column": lambda: optima.theorem2_is_pseudo_inverse(disturbed(theorem2(S), "mask_column")),
    "least norm": lambda: optima.theorem2_is_least_norm(disturbed(theorem2(S), "mask_column"), members=20),
    "ridge": lambda: optima.ridge_converges(disturbed(theorem2(S), "same_topic")),
    "gradient at Theorem 2": lambda: optima.gradient_vanishes(S, "", 1.001 * theorem2(S).matrix()),
    "gradient at the diagonal": lambda: optima.gradient_vanishes(
        S, "", 1.001 * diagonal_value_matrix(S.topic_model, S.masking)
    ),
    "gradient at a member": lambda: optima.gradient_vanishes(S, "", 1.001 * random_member(S, np.random.default_rng(0))),
    "flat family": lambda: optima.family_is_flat(S, disturb=1.001),
    "Theorem 1, flat": lambda: optima.theorem1_family(S, bias_scale=1.001)[0],
    "Theorem 1, gradient": lambda: optima.theorem1_family(S, bias_scale=1.001)[1],
    "attention, blocks": lambda: certificates.attention_entries_are_exact(S, scale=1.001)[0],
    "attention, diagonal": lambda: certificates.attention_entries_are_exact(S, scale=1.001)[1],
    "symmetry": lambda: optima.symmetry_is_enumeration(S, scale=1.001),
    "outside costs more": lambda: optima.outside_costs_more(S, scale=1.001),
    "Theorem 1, realised": lambda: optima.theorem1_family(S, embedding_scale=1.001)[2],
    "Remark 5": lambda: certificates.remark5(S, disturb=1.001)[0],
    "asymptotic, blocks": lambda: certificates.asymptotic_approach("blocks", scale=1.001),
    "asymptotic, diagonal": lambda: certificates.asymptotic_approach("diagonal", scale=1.001),
}


@pytest.mark.parametrize("name", DISTURBED)
def test_a_disturbed_formula_is_found_out(name: str) -> None:
    assert not DISTURBED[name]().holds


def test_bounds_that_do_not_hold_are_found_out() -> None:
    s = Setting.of(1000, 10, 10)
    third, fifth = theorem3(s), theorem5(s)
    assert certificates.theorem3_bounds(third).holds
    assert certificates.theorem5_bounds(fifth).holds
    wrong = [
        certificates.theorem3_bounds(dataclasses.replace(third, lambda1=1000 * third.lambda1)),
        certificates.theorem3_bounds(dataclasses.replace(third, lambda2=third.lambda2 / 1e6)),
        certificates.theorem5_bounds(dataclasses.replace(fifth, lambda3=1e5 * fifth.lambda3)),
        certificates.theorem5_bounds(dataclasses.replace(fifth, lambda4=fifth.lambda4 / 1e5)),
        certificates.theorem5_bounds(dataclasses.replace(fifth, lambda5=fifth.lambda5 * -1)),
    ]
    assert not any(certificate.holds for certificate in wrong)
