from __future__ import annotations

import numpy as np
import pytest

from topicscope.theory import Setting, theorem2, theorem3


def test_the_constants_at_the_papers_size() -> None:
    theorem = theorem3(Setting.of(10, 10, 3))
    assert theorem.lambda1 == pytest.approx(0.57734, abs=5e-6)
    assert theorem.lambda2 == pytest.approx(5866.67, abs=5e-3)
    assert theorem.bounds == {"gamma": (theorem.lambda1 * 2, theorem.lambda2 * 10)}
    assert theorem.flat_bounds() == {"gamma_low": theorem.lambda1 * 2, "gamma_high": theorem.lambda2 * 10}


@pytest.mark.parametrize("end", [0, 1])
def test_contains_what_lies_between_its_bounds(end: int) -> None:
    s = Setting.of(10, 10, 3)
    theorem = theorem3(s)
    bound = theorem.bounds["gamma"][end]
    inside, outside = (1 + 1e-9, 1 - 1e-9) if end == 0 else (1 - 1e-9, 1 + 1e-9)
    assert s.gamma(bound, bound) == pytest.approx(bound)
    assert theorem.contains(bound * inside, bound * inside)
    assert not theorem.contains(bound * outside, bound * outside)


def test_a_word_that_does_not_attend_itself_may_lie_inside() -> None:
    assert theorem3(Setting.of(10, 10, 3)).contains(10.0, 0.0)


def test_is_about_theorem_2s_matrix() -> None:
    s = Setting.of(4, 3, 2)
    assert np.array_equal(theorem3(s).matrix(), theorem2(s).matrix())
