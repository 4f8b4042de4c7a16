"""Posterior means of every prior against the plain way: enumerate what can be hidden, integrate what cannot."""

from __future__ import annotations

import itertools
from math import lgamma

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import roots_jacobi

from topicscope import Dirichlet, Fixed, Given, TopicModel
from topicscope.world import DocumentPrior


def likelihood(model: TopicModel, share: np.ndarray, words: list[int], a: float, e: float) -> float:
    """P(words seen | topic proportions)."""
    p = a * model.word_distribution(share[None])[0] + e
    return float(np.prod([p[word - 1] for word in words]))


def mixture_by_enumeration(model: TopicModel, rows: np.ndarray, words: list[int], a: float, e: float) -> np.ndarray:
    """One of the rows is true, each as probable."""
    weight = np.array([likelihood(model, row, words, a, e) for row in rows])
    return weight @ rows / weight.sum()


def dirichlet_moment(alpha: float, powers: list[int]) -> float:
    """E[prod theta_t^m_t] under Dirichlet(alpha, ..., alpha)."""
    total, n = alpha * len(powers), sum(powers)
    return float(np.exp(lgamma(total) - lgamma(total + n) + sum(lgamma(alpha + m) - lgamma(alpha) for m in powers)))


def dirichlet_by_enumeration(model: TopicModel, alpha: float, words: list[int], a: float, e: float) -> np.ndarray:
    """Each word seen is its own (factor a theta q) or a random one (factor e): sum over all 2^n cases."""
    evidence, mean = 0.0, np.zeros(model.topics)
    for own in itertools.product([True, False], repeat=len(words)):
        powers, factor = [0] * model.topics, 1.0
        for word, mine in zip(words, own, strict=True):
            factor *= a * model.word_in_topic[word] if mine else e
            powers[model.topic_of_word[word] - 1] += mine
        evidence += factor * dirichlet_moment(alpha, powers)
        for t in range(model.topics):
            mean[t] += factor * dirichlet_moment(alpha, [m + (s == t) for s, m in enumerate(powers)])
    return mean / evidence


def every_subset(topics: int, tau: int) -> np.ndarray:
    subsets = itertools.combinations(range(topics), tau)
    return np.array([[(t in subset) / tau for t in range(topics)] for subset in subsets])


@settings(max_examples=60)
@given(
    words=st.lists(st.integers(1, 6), max_size=8),
    alpha=st.sampled_from([0.05, 0.1, 1.0, 3.0]),
    e=st.sampled_from([1e-4, 0.01, 0.1]),
    unequal=st.booleans(),
    tau=st.integers(1, 3),
)
def test_posterior_means_equal_enumeration(words: list[int], alpha: float, e: float, unequal: bool, tau: int) -> None:
    model = TopicModel(3, 2, [0.3, 0.7] if unequal else None)
    rows = np.array([[0.5, 0.25, 0.25], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])
    exact: dict[DocumentPrior, np.ndarray] = {
        Dirichlet(alpha=alpha): dirichlet_by_enumeration(model, alpha, words, 0.8, e),
        Fixed(topics_per_document=tau): mixture_by_enumeration(model, every_subset(3, tau), words, 0.8, e),
    }
    counts = np.bincount(words, minlength=7)[None, 1:].astype(float)
    for prior, mean in exact.items():
        assert prior.posterior(model, counts, 0.8, e).mean[0] == pytest.approx(mean, rel=1e-9, abs=1e-12), prior
    given_rows = Given(proportions=rows.tolist()).posterior(model, counts, 0.8, e).mean[0]
    assert given_rows == pytest.approx(mixture_by_enumeration(model, rows, words, 0.8, e), rel=1e-9, abs=1e-12)


def test_many_rows_are_what_each_is_alone() -> None:
    """Rows are sorted by length and handled in slices; each gets its own answer back."""
    model, rng = TopicModel(3, 2), np.random.default_rng(0)
    counts = rng.integers(0, 4, size=(1100, 6)).astype(float)
    for prior in (Dirichlet(), Fixed(topics_per_document=2), Given(proportions=[[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])):
        together = prior.posterior(model, counts, 0.8, 0.01).mean
        for row in (0, 499, 500, 1099):
            alone = prior.posterior(model, counts[row : row + 1], 0.8, 0.01).mean[0]
            assert together[row] == pytest.approx(alone, rel=1e-9)


def test_without_noise_the_dirichlet_posterior_is_conjugate() -> None:
    model = TopicModel(3, 2)
    counts = np.array([[1.0, 2, 0, 0, 4, 0]])
    for e in (0.0, 1e-13):  # the contour's limit and the closed form agree
        mean = Dirichlet(alpha=0.5).posterior(model, counts, 1.0, e).mean[0]
        assert mean == pytest.approx(np.array([3.5, 0.5, 4.5]) / 8.5, rel=1e-9)


def test_without_noise_a_topic_that_is_seen_is_there() -> None:
    counts = np.array([[1.0, 2, 0, 0, 0, 0, 0, 0], [0.0, 0, 0, 0, 0, 0, 0, 0]])
    mean = Fixed(topics_per_document=2).posterior(TopicModel(4, 2), counts, 1.0, 0.0).mean
    assert mean[0] == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6])  # the other topic is one of the three left
    assert mean[1] == pytest.approx([1 / 4] * 4)


@pytest.mark.parametrize("e", [0.0, 0.01])
@pytest.mark.parametrize("unequal", [False, True])
def test_a_single_topic_is_there_for_certain(e: float, unequal: bool) -> None:
    model = TopicModel(1, 2, [0.3, 0.7] if unequal else None)
    for prior in (Dirichlet(), Fixed(topics_per_document=1), Given(proportions=[[1.0]])):
        assert prior.posterior(model, np.array([[2.0, 1], [0, 0]]), 0.8, e).mean == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("tau", [1, 2, 3])
def test_without_noise_subsets_that_lack_a_topic_seen_are_out(tau: int) -> None:
    model, subsets = TopicModel(3, 2), every_subset(3, tau)
    for seen in itertools.product([0, 1, 2], repeat=3):
        possible = [row for row in subsets if all(share > 0 for share, n in zip(row, seen, strict=True) if n)]
        if possible:
            counts = np.array([[n, 0] for n in seen], dtype=float).reshape(1, 6)
            mean = Fixed(topics_per_document=tau).posterior(model, counts, 1.0, 0.0).mean[0]
            assert mean == pytest.approx(np.mean(possible, axis=0)), seen
            mixture = Given(proportions=subsets.tolist()).posterior(model, counts, 1.0, 0.0).mean[0]
            assert mixture == pytest.approx(np.mean(possible, axis=0)), seen


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("alpha", [0.02, 0.5, 8.0])
def test_of_two_topics_the_dirichlet_mean_is_one_integral(unequal: bool, alpha: float) -> None:
    """Gauss and Jacobi's rule over theta_1, whose weight is the beta density: exact, since all else is a polynomial."""
    model, a, e = TopicModel(2, 2, [0.3, 0.7] if unequal else None), 0.8, 0.004
    nodes, weights = roots_jacobi(100, alpha - 1, alpha - 1)
    theta = (1 + nodes) / 2
    seen = a * np.repeat([theta, 1 - theta], 2, axis=0).T * model.word_given_topic.ravel() + e  # node x word
    for counts in np.array([[0, 0, 0, 0], [1, 0, 0, 1], [6, 7, 5, 1], [40, 60, 3, 2], [8, 30, 60, 80.0]]):
        log = np.log(seen) @ counts
        posterior = weights * np.exp(log - log.max())
        first = theta @ posterior / posterior.sum()
        mean = Dirichlet(alpha=alpha).posterior(model, counts[None], a, e).mean[0]
        assert mean == pytest.approx([first, 1 - first], rel=1e-9), counts


@pytest.mark.parametrize("length", [1, 150, 2000])
def test_long_and_short_documents_are_one_formula(length: int) -> None:
    """One topic only: its posterior mean is between the prior's and 1, means sum to 1, and grow with the evidence."""
    counts = np.zeros((2, 20))
    counts[0, 3], counts[1, 3] = length, length + 1
    mean = Dirichlet(alpha=0.1).posterior(TopicModel(4, 5), counts, 0.865, 0.00075).mean
    assert mean.sum(1) == pytest.approx(1, rel=1e-9)
    assert 0.25 < mean[0, 0] < mean[1, 0] < 1
