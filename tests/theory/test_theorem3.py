"""Theorems 3 and 5: bounds of the best attention."""

import math

import numpy as np
import pytest

from topicscope import InputError
from topicscope.theory import Setting, diagonal_value_matrix, theorem2, theorem3, theorem5


def test_the_constants_of_theorem_3() -> None:
    theorem = theorem3(Setting.of(10, 10, 3))
    assert theorem.lambda1 == pytest.approx(0.57734, abs=5e-6)
    assert theorem.lambda2 == pytest.approx(5866.67, abs=5e-3)
    assert theorem.bounds == {"gamma": (theorem.lambda1 * 2, theorem.lambda2 * 10)}
    assert theorem.flat_bounds() == {"gamma_low": theorem.lambda1 * 2, "gamma_high": theorem.lambda2 * 10}


@pytest.mark.parametrize("end", [0, 1])
def test_theorem_3_contains_what_lies_between_its_bounds(end: int) -> None:
    s = Setting.of(10, 10, 3)
    theorem = theorem3(s)
    bound = theorem.bounds["gamma"][end]
    inside, outside = (1 + 1e-9, 1 - 1e-9) if end == 0 else (1 - 1e-9, 1 + 1e-9)
    assert s.gamma(bound, bound) == pytest.approx(bound)
    assert theorem.contains(bound * inside, bound * inside)
    assert not theorem.contains(bound * outside, bound * outside)
    assert theorem.contains(10.0, 0.0)  # a word need not attend itself
    assert np.array_equal(theorem.matrix(), theorem2(s).matrix())


def test_the_constants_of_theorem_5() -> None:
    printed = {
        Setting.of(10, 10): ((0.088, 5e-4), (447.1, 5e-2), (0.12845, 5e-6)),
        Setting.of(100, 300): ((2.64, 5e-3), (986.9, 5e-2), (0.003866, 5e-7)),
    }
    for setting, expected in printed.items():
        theorem = theorem5(setting)
        for number, (digits, half_a_unit) in zip(theorem.numbers().values(), expected, strict=True):
            assert number == pytest.approx(digits, abs=half_a_unit)


def test_theorem_5_contains_what_lies_between_its_bounds() -> None:
    theorem = theorem5(Setting.of(10, 10, 3))
    (low, high), (none, most) = theorem.bounds["beta"], theorem.bounds["alpha_over_beta"]
    assert (low, high, none, most) == (theorem.lambda3 * 3, theorem.lambda4 * 10, -math.inf, theorem.lambda5)
    assert theorem.flat_bounds() == {"beta_low": low, "beta_high": high, "alpha_over_beta": most}
    inside = [(0.0, low * 1.001), (0.0, high * 0.999), (35 * most * 0.999, 35.0)]
    outside = [(0.0, low * 0.999), (0.0, high * 1.001), (35 * most * 1.001, 35.0), (0.0, low), (0.0, 0.0)]  # open
    assert all(theorem.contains(*one) for one in inside)
    assert not any(theorem.contains(*one) for one in outside)


def test_is_about_the_diagonal_matrix() -> None:
    s = Setting.of(4, 6, 2)
    matrix, c = theorem5(s).matrix(), s.constants
    assert np.array_equal(matrix, diagonal_value_matrix(s.topic_model, s.masking))
    assert (matrix[3, 3], matrix[3, 0], matrix[0].any()) == (c.c3, -c.c1, False)
    assert np.count_nonzero(matrix) == 2 * s.topic_model.words
    one = Setting.of(1, 3, 1)
    assert diagonal_value_matrix(one.topic_model, one.masking).diagonal().tolist() == [0] + 3 * [one.constants.c3]


def test_needs_two_words_per_topic_and_more() -> None:
    for v, message in ((1, "divides by v - 1"), (3, "choose a larger v")):
        with pytest.raises(InputError, match=message):
            theorem5(Setting.of(10, v, 2))
