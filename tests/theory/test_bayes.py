"""The Bayes predictor against the plain way: enumerate what can be hidden, integrate what cannot."""

from __future__ import annotations

import itertools
from math import lgamma

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from topicscope import DocumentPrior, Documents, Masking, TopicModel
from topicscope.theory import bayes_loss
from topicscope.theory.bayes import posterior_mean
from topicscope.world import Masked


def dirichlet_moment(alpha: float, powers: list[int]) -> float:
    """E[prod theta_t^m_t] under Dirichlet(alpha, ..., alpha)."""
    total, n = alpha * len(powers), sum(powers)
    return float(np.exp(lgamma(total) - lgamma(total + n) + sum(lgamma(alpha + m) - lgamma(alpha) for m in powers)))


def dirichlet_by_enumeration(model: TopicModel, alpha: float, words: list[int], a: float, e: float) -> np.ndarray:
    """Each word seen is its own (factor a theta q) or a random one (factor e): sum over all 2^n cases."""
    q = model.word_given_topic
    evidence, mean = 0.0, np.zeros(model.topics)
    for own in itertools.product([True, False], repeat=len(words)):
        powers, factor = [0] * model.topics, 1.0
        for word, mine in zip(words, own, strict=True):
            t, i = divmod(word - 1, model.words_per_topic)
            factor *= a * q[t, i] if mine else e
            powers[t] += mine
        evidence += factor * dirichlet_moment(alpha, powers)
        for t in range(model.topics):
            mean[t] += factor * dirichlet_moment(alpha, [m + (s == t) for s, m in enumerate(powers)])
    return mean / evidence


def subsets_by_enumeration(model: TopicModel, tau: int, words: list[int], a: float, e: float) -> np.ndarray:
    q, mean, evidence = model.word_given_topic, np.zeros(model.topics), 0.0
    for subset in itertools.combinations(range(model.topics), tau):
        likelihood = 1.0
        for word in words:
            t, i = divmod(word - 1, model.words_per_topic)
            likelihood *= (a / tau * q[t, i] if t in subset else 0.0) + e
        evidence += likelihood
        mean[list(subset)] += likelihood / tau
    return mean / evidence


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
    counts = np.bincount(words, minlength=7)[None, 1:].astype(float)
    found = posterior_mean(model, DocumentPrior(alpha=alpha), counts, 0.8, e)[0]
    assert found == pytest.approx(dirichlet_by_enumeration(model, alpha, words, 0.8, e), rel=1e-9, abs=1e-12)
    found = posterior_mean(model, DocumentPrior(kind="fixed", topics_per_document=tau), counts, 0.8, e)[0]
    assert found == pytest.approx(subsets_by_enumeration(model, tau, words, 0.8, e), rel=1e-9, abs=1e-12)


def test_given_proportions_are_a_mixture() -> None:
    model, rows = TopicModel(2, 1), [[0.5, 0.5], [0.9, 0.1]]
    found = posterior_mean(model, DocumentPrior(kind="given", proportions=rows), np.array([[2.0, 1.0]]), 0.8, 0.05)[0]
    likelihood = np.array([(0.8 * p + 0.05) ** 2 * (0.8 * r + 0.05) for p, r in rows])
    assert found == pytest.approx(likelihood @ np.array(rows) / likelihood.sum())


def test_without_noise_the_dirichlet_posterior_is_conjugate() -> None:
    model = TopicModel(3, 2)
    counts = np.array([[1.0, 2, 0, 0, 4, 0]])
    for e in (0.0, 1e-13):  # the contour's limit and the closed form agree
        found = posterior_mean(model, DocumentPrior(alpha=0.5), counts, 1.0, e)[0]
        assert found == pytest.approx(np.array([3.5, 0.5, 4.5]) / 8.5, rel=1e-9)


@pytest.mark.parametrize("length", [1, 150, 2000])
def test_long_and_short_documents_are_one_formula(length: int) -> None:
    """One topic only: its posterior mean is between the prior's and 1, means sum to 1, and grow with the evidence."""
    model, prior = TopicModel(4, 5), DocumentPrior(alpha=0.1)
    counts = np.zeros((2, 20))
    counts[0, 3], counts[1, 3] = length, length + 1
    mean = posterior_mean(model, prior, counts, 0.865, 0.00075)
    assert mean.sum(1) == pytest.approx(1, rel=1e-9)
    assert 0.25 < mean[0, 0] < mean[1, 0] < 1


def full_bayes(model: TopicModel, tau: int, masking: Masking, shown: list[int], position: int) -> np.ndarray:
    """P(true word at `position` | shown words, position is masked), over all subsets, true words and masks."""
    joint = np.zeros(model.words)
    for subset in itertools.combinations(range(model.topics), tau):
        inside = [w for w in range(1, model.vocabulary) if model.topic_of_word[w] - 1 in subset]
        for truth in itertools.product(inside, repeat=len(shown)):
            p = 1.0
            for n, (true, seen) in enumerate(zip(truth, shown, strict=True)):
                masked = (
                    (masking.p_correct if seen == true else 0)
                    + (masking.p_random / model.words if seen else 0)
                    + (0 if seen else masking.p_mask_word)
                )
                p *= masked if n == position else (seen == true) * (1 - masking.p_mask) + masking.p_mask * masked
            joint[truth[position] - 1] += p
    return joint / joint.sum()


@pytest.mark.parametrize("loss", ["cross-entropy", "squared"])
def test_loss_equals_brute_force_over_everything_hidden(loss: str) -> None:
    model, masking, prior = (
        TopicModel(3, 2),
        Masking(0.3, 0.2, 0.3),
        DocumentPrior(kind="fixed", topics_per_document=2, length=3),
    )
    rng = np.random.default_rng(4)
    documents = prior.sample(model, 12, rng)
    masked = masking.draw(documents, model.words, rng)
    words = documents.words
    assert words is not None
    shown = masked.shown_words(words)
    costs: list[list[float]] = [[] for _ in range(12)]
    for document, flat, true in zip(masked.document, masked.flat, masked.true, strict=True):
        p = full_bayes(model, 2, masking, shown[document].tolist(), flat % 3)
        costs[document].append(-np.log(p[true - 1]) if loss == "cross-entropy" else (p**2).sum() - 2 * p[true - 1] + 1)
    expected = np.mean([np.mean(cost) for cost in costs])
    found = bayes_loss(loss, model, prior, masking, documents, masked)  # type: ignore[arg-type]
    assert found.loss == pytest.approx(expected, rel=1e-10)


def test_infinite_documents_are_the_limit_of_long_ones() -> None:
    model, masking = TopicModel(4, 3), Masking()
    long = DocumentPrior(kind="fixed", topics_per_document=2, length=20_000)
    rng = np.random.default_rng(0)
    documents = long.sample(model, 60, rng)
    for own_word in (True, False):
        near = bayes_loss(
            "squared", model, long, masking, documents, masking.draw(documents, model.words, rng), own_word=own_word
        )
        exact = bayes_loss(
            "squared",
            model,
            long,
            masking,
            Documents(None, documents.lengths, documents.proportions),
            None,
            own_word=own_word,
        )
        assert near.loss == pytest.approx(exact.loss, abs=max(1e-9, 5 * near.standard_error))
        assert near.standard_error < 0.002


def test_looking_at_the_own_word_helps() -> None:
    model, masking, prior = TopicModel(), Masking(), DocumentPrior()
    documents = prior.sample(model, 1000, np.random.default_rng(0))
    masked: Masked = masking.draw(documents, model.words, np.random.default_rng(1))
    seeing, blind = (
        bayes_loss("cross-entropy", model, prior, masking, documents, masked, own_word=own) for own in (True, False)
    )
    assert seeing.loss < blind.loss - 10 * seeing.standard_error
    assert blind.loss == pytest.approx(3.17, abs=0.04)
