from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.theory.settings import settings_of_the_theory
from topicscope import InputError
from topicscope.theory import Setting, diagonal_value_matrix, fit_family, random_member, theorem2


@settings(max_examples=30)
@given(s=settings_of_the_theory(), seed=st.integers(0, 999))
def test_members_are_recognised_and_their_u_found(s: Setting, seed: int) -> None:
    rng = np.random.default_rng(seed)
    u = rng.standard_normal(s.topic_model.vocabulary)
    found = fit_family(random_member(s, rng, u=u), s)
    assert found.u == pytest.approx(u, abs=1e-10)
    assert found.violation < 1e-9


@settings(max_examples=30)
@given(s=settings_of_the_theory(least_words=2), seed=st.integers(0, 999))
def test_strangers_are_recognised_too(s: Setting, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = random_member(s, rng)
    i, j = rng.integers(0, s.topic_model.vocabulary, 2)
    matrix[i, j] += 0.01  # u can take up only a part of one condition
    assert fit_family(matrix, s).violation > 1e-5


def test_the_named_optima_are_members() -> None:
    s = Setting.of(10, 10, 3)
    optimum = theorem2(s)
    blocks = fit_family(optimum.matrix(), s)
    assert blocks.violation < 1e-14
    assert blocks.u[1:] == pytest.approx(optimum.different_topic)
    diagonal = fit_family(diagonal_value_matrix(s.topic_model, s.masking), s)
    assert diagonal.violation < 1e-14
    assert diagonal.u == pytest.approx(0)
    with pytest.raises(InputError, match="shape"):
        fit_family(np.eye(3), s)
