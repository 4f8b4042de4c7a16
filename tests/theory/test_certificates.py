"""Every certificate holds, over random settings, and every one fails when its formula is disturbed by one part in a thousand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings

from tests.theory.settings import settings_of_the_theory
from topicscope.theory import (
    Setting,
    Theorem2,
    certificates as c,
    diagonal_value_matrix,
    random_member,
    theorem2,
    verify,
)

S = Setting.of(5, 4, 2)


def disturbed(optimum: Theorem2, part: str) -> Theorem2:
    return dataclasses.replace(optimum, **{part: getattr(optimum, part) * 1.001})


def test_all_certificates_that_should_hold_do() -> None:
    certificates = verify()
    assert not [x for x in certificates if x.should_hold and not x.holds]
    assert len(certificates) > 150
    claims = {x.claim for x in certificates}
    assert len(claims) >= 20
    exact = [x.error for x in certificates if x.tolerance == c.EXACT and x.should_hold]
    assert max(exact) < 1e-12


@settings(max_examples=200)
@given(s=settings_of_the_theory())
def test_exact_claims_hold_at_machine_precision_everywhere(s: Setting) -> None:
    matrix = theorem2(s.topic_model, s.masking).matrix(s.topic_model)
    found = [
        c.symmetry_is_enumeration(s),
        c.gradient_vanishes(s, "Theorem 2", matrix),
        c.gradient_vanishes(s, "the diagonal", diagonal_value_matrix(s.topic_model, s.masking)),
        c.family_is_flat(s),
        *c.theorem1_family(s),
        *c.attention_entries_are_exact(s),
    ]
    if s.v > 1:
        found.append(c.remark5(s)[0])
    failures = [x for x in found if not x.holds]
    assert not failures


@settings(max_examples=200)
@given(s=settings_of_the_theory(most_topics=5, most_words=3))
def test_theorem_2_is_the_pseudo_inverse_and_of_least_norm_everywhere(s: Setting) -> None:
    assume(s.tau < s.T)
    assert (
        c.theorem2_is_pseudo_inverse(s).error < 1e-10
    )  # the pseudo-inverse's own rounding, which grows as p_m goes to 0 or 1
    assert c.theorem2_is_least_norm(s, members=20).holds
    assert c.outside_costs_more(s).holds


DISTURBED: dict[str, Callable[[], c.Certificate]] = {
    "pseudo-inverse, same topic": lambda: c.theorem2_is_pseudo_inverse(
        S, disturbed(theorem2(S.topic_model, S.masking), "same_topic")
    ),
    "pseudo-inverse, different topic": lambda: c.theorem2_is_pseudo_inverse(
        S, disturbed(theorem2(S.topic_model, S.masking), "different_topic")
    ),
    "pseudo-inverse, mask column": lambda: c.theorem2_is_pseudo_inverse(
        S, disturbed(theorem2(S.topic_model, S.masking), "mask_column")
    ),
    "least norm": lambda: c.theorem2_is_least_norm(
        S, disturbed(theorem2(S.topic_model, S.masking), "mask_column"), members=20
    ),
    "ridge": lambda: c.ridge_converges(S, disturbed(theorem2(S.topic_model, S.masking), "same_topic")),
    "gradient at Theorem 2": lambda: c.gradient_vanishes(
        S, "", 1.001 * theorem2(S.topic_model, S.masking).matrix(S.topic_model)
    ),
    "gradient at the diagonal": lambda: c.gradient_vanishes(
        S, "", 1.001 * diagonal_value_matrix(S.topic_model, S.masking)
    ),
    "gradient at a member": lambda: c.gradient_vanishes(
        S, "", 1.001 * random_member(S.topic_model, S.masking, np.random.default_rng(0))
    ),
    "flat family": lambda: c.family_is_flat(S, disturb=1.001),
    "Theorem 1, flat": lambda: c.theorem1_family(S, bias_scale=1.001)[0],
    "Theorem 1, gradient": lambda: c.theorem1_family(S, bias_scale=1.001)[1],
    "attention, blocks": lambda: c.attention_entries_are_exact(S, scale=1.001)[0],
    "attention, diagonal": lambda: c.attention_entries_are_exact(S, scale=1.001)[1],
    "symmetry": lambda: c.symmetry_is_enumeration(S, scale=1.001),
    "outside costs more": lambda: c.outside_costs_more(S, scale=1.001),
    "Theorem 1, realised": lambda: c.theorem1_family(S, embedding_scale=1.001)[2],
    "Remark 5": lambda: c.remark5(S, disturb=1.001)[0],
    "asymptotic, blocks": lambda: c.asymptotic_approach("blocks", scale=1.001),
    "asymptotic, diagonal": lambda: c.asymptotic_approach("diagonal", scale=1.001),
}


@pytest.mark.parametrize("name", DISTURBED)
def test_a_disturbed_formula_is_found_out(name: str) -> None:
    assert not DISTURBED[name]().holds


def test_bounds_that_do_not_hold_are_found_out() -> None:
    s = Setting.of(1000, 10, 10)
    assert c.theorem3_bounds(s).holds
    assert not c.theorem3_bounds(s, shift=1e-3).holds
    assert c.theorem5_bounds(s).holds
    assert not c.theorem5_bounds(s, shift=1e-5).holds
