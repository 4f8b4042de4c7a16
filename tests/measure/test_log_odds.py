"""Log-odds of words, against a double loop over groups and words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from topicscope.measure import log_odds_z


def plain(counts: np.ndarray, prior: float) -> list[list[float]]:
    """As the docstring has it, one word of one group after another."""
    total = counts.sum()
    rows = []
    for k in range(len(counts)):
        row = []
        for w in range(counts.shape[1]):
            everywhere = sum(counts[j, w] for j in range(len(counts)))
            if everywhere in (0, total):
                row.append(0.0)
                continue
            y, n = counts[k, w], sum(counts[k])
            others = sum(counts[j, w] for j in range(len(counts)) if j != k)
            n_others = sum(sum(counts[j]) for j in range(len(counts)) if j != k)
            a = prior * everywhere / total
            delta = math.log((y + a) / (n + prior - y - a)) - math.log((others + a) / (n_others + prior - others - a))
            row.append(delta / math.sqrt(1 / (y + a) + 1 / (others + a)))
        rows.append(row)
    return rows


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 8), st.sampled_from([0.5, 10.0, 500.0]))
def test_scores_are_those_of_a_double_loop(seed: int, groups: int, words: int, prior: float) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.5, 40, (groups, words))).astype(float)
    np.testing.assert_allclose(log_odds_z(counts, prior), plain(counts, prior), rtol=1e-10, atol=1e-10)


def test_two_groups_have_opposite_scores_and_common_words_none() -> None:
    z = log_odds_z(np.array([[30.0, 5, 100, 0], [5.0, 30, 100, 0]]))
    np.testing.assert_allclose(z[0], -z[1], atol=1e-12)
    assert z[0, 0] > 1
    assert z[0, 2] == pytest.approx(0)
    assert z[0, 3] == 0


def test_a_rare_word_of_one_group_alone_counts_less_than_a_common_one_that_leans() -> None:
    """The variance is in the score: a word that came once says little."""
    z = log_odds_z(np.array([[1.0, 300, 5000], [0.0, 100, 5000]]))
    assert 0 < z[0, 0] < z[0, 1]


def test_no_words_at_all_tell_nothing() -> None:
    assert log_odds_z(np.zeros((2, 3))).tolist() == [[0] * 3] * 2
