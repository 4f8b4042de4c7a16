from __future__ import annotations

import math

import numpy as np
import pytest

from topicscope import InputError
from topicscope.theory import Setting, diagonal_value_matrix, theorem5


def test_the_constants_at_the_papers_sizes() -> None:
    printed = {
        Setting.of(10, 10): ((0.088, 5e-4), (447.1, 5e-2), (0.12845, 5e-6)),
        Setting.of(100, 300): ((2.64, 5e-3), (986.9, 5e-2), (0.003866, 5e-7)),
    }
    for setting, expected in printed.items():
        theorem = theorem5(setting)
        for number, (digits, half_a_unit) in zip(theorem.numbers().values(), expected, strict=True):
            assert number == pytest.approx(digits, abs=half_a_unit)


def test_contains_what_lies_between_its_bounds() -> None:
    theorem = theorem5(Setting.of(10, 10, 3))
    (low, high), (none, most) = theorem.bounds["beta"], theorem.bounds["alpha_over_beta"]
    assert (low, high, none, most) == (theorem.lambda3 * 3, theorem.lambda4 * 10, -math.inf, theorem.lambda5)
    assert theorem.flat_bounds() == {"beta_low": low, "beta_high": high, "alpha_over_beta": most}
    assert theorem.contains(0.0, low * 1.001)
    assert not theorem.contains(0.0, low * 0.999)
    assert theorem.contains(0.0, high * 0.999)
    assert not theorem.contains(0.0, high * 1.001)
    assert theorem.contains(35 * most * 0.999, 35.0)
    assert not theorem.contains(35 * most * 1.001, 35.0)
    assert not theorem.contains(0.0, low)  # the interval is open
    assert not theorem.contains(0.0, 0.0)


def test_is_about_the_diagonal_matrix() -> None:
    s = Setting.of(4, 6, 2)
    matrix = theorem5(s).matrix()
    assert np.array_equal(matrix, diagonal_value_matrix(s.topic_model, s.masking))
    c = s.constants
    assert matrix[3, 3] == c.c3
    assert matrix[3, 0] == -c.c1
    assert not matrix[0].any()
    assert np.count_nonzero(matrix) == 2 * s.topic_model.words
    one = Setting.of(1, 3, 1)
    assert diagonal_value_matrix(one.topic_model, one.masking).diagonal().tolist() == [0] + 3 * [one.constants.c3]


def test_needs_two_words_per_topic_and_more() -> None:
    with pytest.raises(InputError, match="divides by v - 1"):
        theorem5(Setting.of(10, 1, 2))
    with pytest.raises(InputError, match="choose a larger v"):
        theorem5(Setting.of(10, 3, 2))
