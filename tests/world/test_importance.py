"""Posterior means for any topics: exact ones against enumeration, estimates within their own error of the truth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from topicscope.world import Dirichlet, DocumentPrior, Fixed, Given, Groups, LogisticNormal, Moments, Own, TopicModel
from topicscope.world.dirichlet import from_dirichlet

OVERLAPPING = TopicModel(4, 4, overlap=0.25, zipf=1.0, common_words=2, common_share=0.2)
UNEQUAL = TopicModel(words_per_topic=[1, 3, 2, 4], zipf=0.5)
FOUR = TopicModel(4, 3)
A, E = 0.8, 0.01


def by_enumeration(model: TopicModel, rows: np.ndarray, p: np.ndarray, counts: np.ndarray, e: float = E) -> np.ndarray:
    """One of the rows is true, with its probability; the words are looked at one by one."""
    weight = np.array(p, dtype=float)
    for k, row in enumerate(rows):
        for word, count in enumerate(counts):
            weight[k] *= (A * sum(model.word_topics[word, t] * row[t] for t in range(model.topics)) + e) ** count
    return weight @ rows / weight.sum()


def sets(topics: int, tau: int) -> np.ndarray:
    chosen = itertools.combinations(range(topics), tau)
    return np.array([[(t in one) / tau for t in range(topics)] for one in chosen])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 999), tau=st.integers(1, 2), e=st.sampled_from([0.0, E, 0.1]))
@pytest.mark.parametrize("model", [OVERLAPPING, UNEQUAL, FOUR])
def test_finite_laws_equal_enumeration(model: TopicModel, seed: int, tau: int, e: float) -> None:
    rng = np.random.default_rng(seed)
    rows, w = sets(4, tau), rng.random(4) + 0.1
    p = np.array([w[row > 0].prod() for row in rows])
    group = np.array([len({t // 2 for t in np.flatnonzero(row)}) == 1 for row in rows])
    mixture = rng.dirichlet(np.ones(4), size=3)
    laws: list[tuple[DocumentPrior, np.ndarray, np.ndarray]] = [
        (Fixed(topics_per_document=tau), rows, np.ones(len(rows))),
        (Fixed(topics_per_document=tau, weights=w.tolist()), rows, p),
        (Groups(groups=2, rho=0.6, topics_per_document=tau), rows, 0.4 / len(rows) + 0.6 * group / group.sum()),
        (Groups(groups=2, rho=1.0, topics_per_document=tau), rows, group / group.sum()),
        (Given(proportions=mixture.tolist()), mixture, np.ones(3)),
    ]
    theta = rows[rng.choice(np.flatnonzero(group))]  # words that every law can have made
    counts = rng.multinomial(rng.integers(0, 7), model.word_topics @ theta).astype(float)
    for prior, possible, probability in laws:
        posterior = prior.posterior(model, counts[None], A, e)
        assert posterior.halves is None
        exact = by_enumeration(model, possible, probability, counts, e)
        assert posterior.mean[0] == pytest.approx(exact, rel=1e-9, abs=1e-11), prior


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999))
def test_unequal_dirichlet_equals_enumeration(seed: int) -> None:
    """Each word seen is its own (factor a theta q) or a random one (factor e)."""
    rng, alpha = np.random.default_rng(seed), np.array([0.1, 2.0, 0.5, 1.0])
    for model in (UNEQUAL, FOUR):
        words = rng.integers(1, model.vocabulary, size=5)
        evidence, mean = 0.0, np.zeros(4)
        for own in itertools.product([True, False], repeat=5):
            powers, factor = np.zeros(4), 1.0
            for word, mine in zip(words, own, strict=True):
                factor *= A * model.word_in_topic[word] if mine else E
                powers[model.topic_of_word[word] - 1] += mine
            for t in range(4):
                for m in range(int(powers[t])):
                    factor *= alpha[t] + m
            factor /= np.prod(alpha.sum() + np.arange(powers.sum()))
            evidence += factor
            mean += factor * (alpha + powers) / (alpha.sum() + powers.sum())
        counts = np.bincount(words, minlength=model.vocabulary)[None, 1:].astype(float)
        posterior = Dirichlet(alpha=alpha.tolist()).posterior(model, counts, A, E)
        assert posterior.mean[0] == pytest.approx(mean / evidence, rel=1e-9)


def test_estimates_lie_within_their_error_of_the_exact_posterior() -> None:
    """A Dirichlet over disjoint topics is known exactly; the same topics, taken for others, are estimated."""
    prior, rng = Dirichlet(alpha=[0.1, 0.3, 0.5, 1.0]), np.random.default_rng(0)
    counts = np.stack([rng.multinomial(60, FOUR.word_topics @ theta) for theta in prior.sample_proportions(4, 40, rng)])
    exact = prior.posterior(FOUR, counts.astype(float), A, E)
    found = from_dirichlet(FOUR, counts.astype(float), A, E, np.array(prior.alpha))
    assert exact.halves is None
    assert found.halves is not None
    assert found.effective is not None
    assert found.effective.min() > 100
    error = np.abs(found.halves[0] - found.halves[1]).mean() / 2
    assert 0 < np.abs(found.mean - exact.mean).mean() < 2 * error
    assert error < 0.01


class Normal:
    """The logistic normal as a law of the user's own."""

    def __init__(self, prior: LogisticNormal) -> None:
        self.prior = prior

    def sample(self, topics: int, count: int, rng: np.random.Generator) -> np.ndarray:
        return self.prior.sample_proportions(topics, count, rng)

    def moments(self, topics: int) -> Moments:
        return self.prior.moments(topics)


@pytest.mark.parametrize("model", [OVERLAPPING, FOUR])
def test_the_logistic_normal_agrees_with_draws_of_the_prior(model: TopicModel) -> None:
    """Two methods, of which one knows nothing but draws."""
    covariance = [[1.0, 0.8, 0.0, 0.0], [0.8, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    prior, rng = LogisticNormal(mean=[0.0, 0.5, 0.0, -0.5], covariance=covariance), np.random.default_rng(0)
    thetas = prior.sample_proportions(4, 20, rng)
    counts = np.stack([rng.multinomial(12, model.word_topics @ theta) for theta in thetas]).astype(float)
    near, plain = prior.posterior(model, counts, A, E), Own(Normal(prior)).posterior(model, counts, A, E)
    for found in (near, plain):
        assert found.effective is not None
        assert found.effective.min() > 200
    assert near.effective is not None
    assert plain.effective is not None
    spread = np.sqrt(0.06 / near.effective + 0.06 / plain.effective)[:, None]  # shares vary by less than .25
    assert (np.abs(near.mean - plain.mean) < 5 * spread).all()
    assert np.abs(near.mean - plain.mean).mean() < 0.01


def test_posteriors_are_exact_where_all_sets_can_be_looked_at() -> None:
    """9,880 sets of 3 of 40 topics over 80 overlapping words: exact; over 2,000 words more than 80 MB."""
    prior, evidence = Fixed(topics_per_document=3), np.zeros((1, 80))
    small, large = TopicModel(40, 4, overlap=0.5), TopicModel(40, 100, overlap=0.5)
    assert prior.exact(small)
    assert not prior.exact(large)
    assert prior.support(40) is None  # whoever lists documents gets fewer
    assert Groups(groups=2, topics_per_document=3).exact(small)
    assert not Fixed(topics_per_document=10**5).exact(TopicModel(10**6, 2, overlap=0.5))  # no binomial is computed
    evidence[0, :4] = 5  # the words of the first topic
    posterior = prior.posterior(small, evidence, 0.9, 0.001)
    assert posterior.halves is None
    assert posterior.mean[0].argmax() == 0
    assert posterior.mean[0, 20:39] == pytest.approx(posterior.mean[0, 20], rel=1e-12)  # not seen, nor a neighbour
