"""`dense_optimum` and `symmetric_optimum` where numbers are small (rare words, long documents) or numerical."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from topicscope.theory import WEIGHTINGS, SymmetricOptimum, optimum
from topicscope.theory.optimum import DenseOptimum
from topicscope.theory.value_optimum import graded_eigen
from topicscope.world import Dirichlet, Fixed, Given, LogisticNormal, Masking, Moments, TopicModel
from topicscope.world.logistic_normal import correlated_normal

RARE = np.array([[0.6, 0.1], [0.4 - 1e-10, 0.5], [1e-10, 0.0], [0.0, 0.4]])


def exact_optimum(word_topics: Any, moments: Moments, masking: Masking, n: int) -> np.ndarray:
    """H G^-1 in rational numbers, weighting 'positions' (whose E[m] and E[m(m-1)] are rational), pairs by hand."""
    a = [[Fraction(0)] * len(word_topics[0]), *([Fraction(float(x)) for x in row] for row in word_topics)]
    mean = [Fraction(float(x)) for x in moments.mean]
    second = [[Fraction(float(x)) for x in row] for row in moments.second]
    p, p_c, p_r = (Fraction(x) for x in (masking.p_mask, masking.p_correct, masking.p_random))
    size, topics = len(a), range(len(mean))
    c0 = [1 - p_c - p_r] + [p_r / (size - 1)] * (size - 1)
    word = [sum(a[w][t] * mean[t] for t in topics) for w in range(size)]
    pair = [
        [sum(a[w][s] * second[s][t] * a[u][t] for s in topics for t in topics) for u in range(size)]
        for w in range(size)
    ]
    m1, m2 = 1 + (n - 1) * p, 2 * (n - 1) * p + (n - 1) * (n - 2) * p**2
    g = [[Fraction(0)] * size for _ in range(size)]
    h = [[Fraction(0)] * size for _ in range(size)]
    for w in range(size):
        for u in range(size):
            shown = p_c * p_c * pair[w][u] + p_c * (word[w] * c0[u] + c0[w] * word[u]) + c0[w] * c0[u]
            half = p_c * pair[w][u] + word[w] * c0[u]
            other = p_c * pair[w][u] + word[u] * c0[w]
            g[w][u] = (m2 * shown + (n * (n - 1) - 2 * (n - 1) * m1 + m2) * pair[w][u]) / n**2
            g[w][u] += ((n - 1) * m1 - m2) * (half + other) / n**2
            h[w][u] = (word[w] * c0[u] + (m1 - 1) * half + (n - m1) * pair[w][u]) / n
            if w == u:
                g[w][u] += (m1 * (p_c * word[w] + c0[w]) + (n - m1) * word[w]) / n**2
                h[w][u] += p_c * word[w] / n
    rows = [g[w] + [h[u][w] for u in range(size)] for w in range(size)]  # W G = H, so G W' = H'
    for i in range(size):
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(size):
            if j != i:
                rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i], strict=True)]
    return np.array([[float(rows[u][size + w]) for u in range(size)] for w in range(size)])


@pytest.mark.parametrize("length", [1, 3, 10**5, 10**7])
@pytest.mark.parametrize("p_random", [0.0, 0.1])
def test_rare_words_and_long_documents_against_rational_numbers(length: int, p_random: float) -> None:
    """A word of probability 1e-10: its eigenvalue is 1e-15 of the largest, and W* there is as large as elsewhere."""
    masking, law = Masking(p_random=p_random), Dirichlet(alpha=0.3)
    best = optimum(RARE, law, masking, length=length, weighting="positions")
    exact = exact_optimum(RARE, law.moments(2), masking, length)
    error = np.abs(best.matrix() - exact).max(0) / np.maximum(np.abs(exact).max(0), 1e-300)  # of each column on its own
    assert error.max() < 1e-14 + 1e-15 * length  # the condition of the scaled G grows as N


def test_a_rare_word_is_learnt_in_its_own_time() -> None:
    """Its rate is (share of positions that show it) / N, and flow ends at W*."""
    best = optimum(RARE, Dirichlet(alpha=0.3), Masking(p_random=0.0), length=10**5, weighting="positions")
    rate = (1 - 0.9 * 0.15) * 0.5e-10 / 1e5
    assert sum(mode.count for mode in best.modes if mode.half_time is not None) == 5
    assert min(mode.slowest for mode in best.modes) == pytest.approx(rate, rel=1e-4)
    assert best.value_at(50 / rate) == pytest.approx(best.matrix(), abs=1e-9)
    assert best.value_at(1e-3 / rate)[:, 3] == pytest.approx(best.matrix()[:, 3] * 2e-3, abs=1e-5)


def test_eigenvalues_of_all_sizes_are_found() -> None:
    sizes = 10.0 ** np.array([0.0, -9.0, -18.0, -27.0])
    scale = np.sqrt(np.outer(sizes, sizes))
    matrix = scale * (np.eye(4) + 0.3 * (1 - np.eye(4)))
    rates, vectors = graded_eigen(matrix)
    # of strongly graded matrices the eigenvalues are the pivots
    pivots = np.diagonal(np.linalg.cholesky(np.eye(4) + 0.3 * (1 - np.eye(4)))) ** 2
    assert rates == pytest.approx(sizes * pivots, rel=1e-7)
    assert vectors.T @ vectors == pytest.approx(np.eye(4), abs=1e-14)


def test_a_billion_words_keep_their_diagonal() -> None:
    """T = 1,000, v = 10^6, N = 10^7: rates of 1e-16 and less are small, and not zero."""
    for weighting in WEIGHTINGS:
        best = optimum(TopicModel(1000, 10**6), Fixed(topics_per_document=3), length=10**7, weighting=weighting)
        assert isinstance(best, SymmetricOptimum)
        assert best.entries.diagonal - best.entries.same_topic == pytest.approx(0.1 / 0.88, rel=1e-6)
        assert best.entries.mask_column == pytest.approx(1e-9)
        rates = {mode.name: mode.eigenvalue for mode in best.modes}
        assert rates["within-topic"] == pytest.approx(0.88e-16, rel=1e-6)
        # of the plane: variance of the share of [MASK]s, .12 .88 / N, over Tv, over the larger rate
        assert rates["[MASK] against words"] == pytest.approx(0.12 * 0.88 / 1e7 / 1e9 / 0.12**2, rel=1e-5)
    endless = optimum(TopicModel(1000, 10**6), Fixed(topics_per_document=3), length="infinite")
    assert {mode.name for mode in endless.modes if mode.half_time is None} == {"within-topic", "[MASK] against words"}


def test_a_single_word_that_is_hidden_says_nothing() -> None:
    """N = 1 and masks that only show [MASK]: W* has a [MASK] column alone, whatever rounding does to E[m]."""
    for p_mask in (0.1, 0.3, 0.7):
        masking = Masking(p_mask=p_mask, p_correct=0.0, p_random=0.0)
        for weighting in WEIGHTINGS:
            best = optimum(TopicModel(3, 2), Dirichlet(), masking, length=1, weighting=weighting)
            assert vars(best.entries) == {
                "same_topic": 0.0,
                "different_topic": 0.0,
                "diagonal": 0.0,
                "mask_column": pytest.approx(1 / 6),
            }


def test_modes_that_the_error_of_moments_cannot_tell_apart_are_one() -> None:
    """Pairs of correlated topics: 2 contrasts between pairs and 3 inside them, which only noise would order."""
    covariance = [[2.0 if i == j else 1.2 * (i // 2 == j // 2) for j in range(6)] for i in range(6)]
    prior = LogisticNormal(covariance=covariance)
    for length in (50, "infinite"):
        best = optimum(TopicModel(6, 3), prior, length=length)
        contrasts = [mode for mode in best.modes if mode.name.startswith("topic contrasts")]
        assert [mode.count for mode in contrasts] == [2, 3]
        assert all(0 < mode.eigenvalue / mode.slowest - 1 < 0.01 for mode in contrasts)
        assert "one mode" in best.notes[0]
        exact = optimum(TopicModel(6, 3), Moments(prior.moments(6).mean, prior.moments(6).second), length=length)
        assert [m.count for m in exact.modes if m.name.startswith("topic")] == [1] * 5  # as if there were no error


def test_the_prior_is_described_with_its_lists() -> None:
    few = optimum(RARE, Dirichlet(alpha=[0.3, 0.4]), length=5)
    assert few.settings.prior == {"kind": "dirichlet", "alpha": [0.3, 0.4]}
    many = optimum(np.eye(101), Dirichlet(alpha=[0.3] * 101), length=5)
    assert many.settings.prior == {"kind": "dirichlet", "alpha": "101 numbers"}


def test_a_thousand_topics_of_the_logistic_normal_are_a_handful_of_numbers() -> None:
    best = optimum(TopicModel(1000, 100), LogisticNormal(covariance=1.0), length=125)
    assert isinstance(best, SymmetricOptimum)
    assert best.notes == ()
    assert [mode.count for mode in best.modes if mode.name == "topic contrasts"] == [999]


def test_a_word_that_is_never_shown_gets_no_weight() -> None:
    silent = np.array([[0.5, 0.2, 0.0], [0.5, 0.8, 0.0], [0.0, 0.0, 1.0]])  # of a topic that no document has
    law = Given(proportions=[[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]])
    for length in (4, "infinite"):
        best = optimum(silent, law, Masking(p_random=0.0), length=length)
        assert np.abs(best.matrix()[:, 3]).max() < 1e-12
        assert np.abs(best.matrix()[3]).max() < 1e-12
        assert np.isfinite(best.limit_matrix()).all()
    no_mask = optimum(TopicModel(3, 2), Fixed(topics_per_document=1), Masking(p_correct=0.5, p_random=0.5), length=6)
    assert no_mask.entries.mask_column == 0  # type: ignore[union-attr]


def test_the_error_of_w_star_is_stated_where_moments_are_estimates() -> None:
    """Independent normals by points: W* of their exact moments shows whether the stated error is the real one."""
    rng = np.random.default_rng(5)
    word_topics, topics = rng.dirichlet(np.ones(12), size=6).T, 6
    estimate = correlated_normal(np.zeros(topics), np.eye(topics))
    exact = LogisticNormal(covariance=1.0).moments(topics)
    found, true = (optimum(word_topics, law, length=20) for law in (estimate, exact))
    assert isinstance(found, DenseOptimum)
    assert isinstance(true, DenseOptimum)
    assert found.error is not None
    off = found.matrix() - true.matrix()
    assert 0.3 < np.linalg.norm(off) / np.linalg.norm(true.matrix()) / found.error.matrix < 3
    assert 0.1 < np.abs(off).max() / found.error.entry < 5
    assert 0 < abs(found.loss - true.loss) < 5 * found.error.loss
    assert found.numbers()["numerical_error"] == found.error._asdict()
    assert found.summary()[-1] == found.error.sentence == found.notes[-1]
    assert f"off by about {found.error.matrix:.2g} of its norm" in found.error.sentence
    # exact moments have no error; of infinite documents the law of theta moves the loss alone
    assert true.error is None
    assert "numerical_error" not in true.numbers()
    endless = optimum(word_topics, estimate, length="infinite")
    assert isinstance(endless, DenseOptimum)
    assert endless.error is not None
    assert endless.error.matrix < 1e-12
    assert endless.error.loss > 1e-9


def test_an_error_without_independent_estimates_is_said_to_be_unknown() -> None:
    exact = Dirichlet(alpha=[0.2, 0.5]).moments(2)
    found = optimum(TopicModel(2, 3), Moments(exact.mean, exact.second, 1e-4), length=5)
    assert "How far W* is off with them is not known" in found.notes[0]
    assert "numerical_error" not in found.numbers()
