"""How good topics are, their distances and maps, and log-odds of words: against plain loops."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.measure.samples import there
from topicscope.measure import (
    coherence,
    completion_perplexity,
    diversity,
    hellinger,
    log_odds_z,
    matched_overlap,
    nearest_topics,
    topic_map,
)
from topicscope.measure.topics import EM_STEPS, EPSILON, PRIOR_WORDS, fold_in, halves


def documents_of(seed: int, words: int, count: int = 12, longest: int = 25) -> list[np.ndarray]:
    """Every word occurs; some documents are empty or shorter than a window."""
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, words, rng.integers(0, longest)) for _ in range(count)]
    return [*drawn, np.arange(words), np.array([], dtype=np.int64), np.array([0])]


def npmi_by_loop(documents: list[np.ndarray], top: list[int], window: int) -> float:
    """The definition, window by window."""
    windows = [
        set(document[start : start + window].tolist())
        for document in documents
        if len(document)
        for start in range(max(1, len(document) - window + 1))
    ]

    def share(*words: int) -> float:
        return sum(all(word in one for word in words) for one in windows) / len(windows)

    scores = []
    for v, w in combinations(top, 2):
        both = share(v, w)
        log = math.log(both + EPSILON)
        scores.append(1.0 if both == 1 else (log - math.log(share(v) * share(w))) / -log)
    return sum(scores) / len(scores)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), window=st.integers(1, 12), shard=st.integers(1, 5))
def test_coherence_is_that_of_a_loop_over_windows(seed: int, window: int, shard: int) -> None:
    documents, rng = documents_of(seed, 9), np.random.default_rng(seed)
    tops = [rng.permutation(9)[:size] for size in (2, 4, 6)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topicscope.measure.topics.SHARD", shard)
        found = coherence(documents, tops, window)
    assert found == pytest.approx([npmi_by_loop(documents, top.tolist(), window) for top in tops], rel=1e-10, abs=1e-12)


def test_the_ends_of_coherence() -> None:
    documents = [np.array([0, 1, 0, 1]), np.array([2, 3, 2, 3])] * 5
    together, apart = coherence(documents, [np.array([0, 1]), np.array([0, 2])])
    assert together == pytest.approx(1.0, abs=1e-9)
    assert apart == pytest.approx(math.log(EPSILON / 0.25) / -math.log(EPSILON))
    assert apart < -0.9
    assert coherence([np.array([0, 1])] * 3, [np.array([0, 1])]) == [1.0]  # in every window, always together


def test_words_that_meet_by_chance_have_no_coherence() -> None:
    documents = [np.array(pair) for pair in product([0, 1], [2, 3])]  # 0 and 2 meet in a quarter, each in a half
    assert coherence(documents, [np.array([0, 2])]) == pytest.approx([0.0], abs=1e-9)


@pytest.mark.parametrize(
    ("tops", "share"),
    [([[0, 1], [2, 3]], 1.0), ([[0, 1], [0, 1]], 0.5), ([[0, 1, 2], [2, 3, 4]], 5 / 6), ([[0, 1], [1]], 2 / 3)],
)
def test_diversity_counts_distinct_words(tops: list[list[int]], share: float) -> None:
    assert diversity([np.array(top) for top in tops]) == pytest.approx(share, abs=1e-15)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), topics=st.integers(1, 5), more=st.integers(0, 1))
def test_partners_are_the_best_of_all_permutations(seed: int, topics: int, more: int) -> None:
    rng = np.random.default_rng(seed)
    tops, others = ([rng.permutation(9)[:4] for _ in range(count)] for count in (topics, topics + more))
    common = [[len(set(a.tolist()) & set(b.tolist())) / 4 for b in others] for a in tops]
    most = max(sum(common[k][order[k]] for k in range(topics)) for order in permutations(range(topics + more), topics))
    found = matched_overlap(tops, others)
    assert sum(found) == pytest.approx(most, abs=1e-12)
    assert matched_overlap(tops, tops[::-1]) == [1.0] * topics


def test_a_topic_without_a_partner_has_no_overlap() -> None:
    one, two = np.array([0, 1]), np.array([2, 3])
    assert matched_overlap([one, two, one], [two, one]) in ([1.0, 1.0, 0.0], [0.0, 1.0, 1.0])
    assert matched_overlap([one], [np.array([1, 2])]) == [0.5]


def folded_by_loop(words: list[int], probability: np.ndarray, shares: np.ndarray) -> list[float]:
    """EM, word by word and topic by topic."""
    topics, total = len(probability), shares.sum()
    theta = [share / total for share in shares]
    for _ in range(EM_STEPS):
        weight = [PRIOR_WORDS * share / total for share in shares]
        for word in words:
            likelihood = sum(theta[k] * probability[k, word] for k in range(topics))
            for k in range(topics):
                weight[k] += theta[k] * probability[k, word] / likelihood
        theta = [one / sum(weight) for one in weight]
    return theta


def a_topic_model(seed: int, topics: int = 3, words: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    frequency = rng.integers(0, 9, words).astype(float)
    frequency[:2] += 1
    return rng.dirichlet(np.full(words, 0.5), topics), rng.dirichlet(np.ones(topics)), frequency


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_perplexity_is_that_of_a_loop_over_words(seed: int) -> None:
    probability, shares, frequency = a_topic_model(seed)
    probability = 0.99 * probability + 0.01 / 6
    documents = documents_of(seed, 6, count=3, longest=9)
    logs, alone, used = [], [], 0
    for document in documents:
        known = [word for word in document.tolist() if frequency[word] > 0]
        if len(known) < 2:
            continue
        used += 1
        theta = folded_by_loop(known[::2], probability, shares)
        for word in known[1::2]:
            logs.append(math.log(sum(theta[k] * probability[k, word] for k in range(3))))
            alone.append(math.log(frequency[word] / frequency.sum()))
    found = there(completion_perplexity(documents, probability, shares, frequency))
    assert (found.documents, found.words) == (used, len(logs))
    assert found.perplexity == pytest.approx(math.exp(-sum(logs) / len(logs)), rel=1e-10)
    assert found.unigram == pytest.approx(math.exp(-sum(alone) / len(alone)), rel=1e-10)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_the_mixture_is_the_mode_of_its_posterior(seed: int) -> None:
    """No mixture of a grid over all of them has a larger posterior density (Dirichlet prior, words given)."""
    probability, shares, _ = a_topic_model(seed)
    shares = 0.9 * shares + 0.1 / 3
    probability = 0.9 * probability + 0.1 / 6
    words = np.random.default_rng(seed).integers(0, 6, 12)

    def density(theta: np.ndarray) -> float:
        return float(np.log(theta @ probability[:, words]).sum() + PRIOR_WORDS * (shares * np.log(theta)).sum())

    mode = density(fold_in(words, probability, shares))
    grid = [np.array([i, j, 40 - i - j]) / 40 for i in range(1, 39) for j in range(1, 40 - i)]
    assert mode >= max(map(density, grid))


def test_one_topic_predicts_by_its_own_probabilities() -> None:
    probability = np.array([[0.5, 0.25, 0.25]])
    found = there(completion_perplexity([np.array([0, 1, 2, 0])], probability, np.ones(1), np.array([2.0, 1.0, 1.0])))
    assert found.perplexity == pytest.approx(math.sqrt(4 * 2), rel=1e-12)  # words 1 and 0
    assert found.unigram == pytest.approx(found.perplexity, rel=1e-12)
    assert completion_perplexity([np.array([0])], probability, np.ones(1), np.ones(3)) is None


def test_topics_that_a_document_shows_predict_its_other_words() -> None:
    """Two topics without a common word: half of a document decides which it is."""
    probability = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    document = np.array([0, 1] * 50)
    found = there(completion_perplexity([document], probability, np.array([0.5, 0.5]), np.ones(4)))
    assert found.unigram == pytest.approx(4.0)
    assert found.perplexity == pytest.approx(2 / (55 / 60), rel=1e-9)  # 50 words and half of the prior's 10


def test_halves_are_every_other_known_word() -> None:
    frequency = np.array([1.0, 0.0, 1.0, 1.0])
    (pair,) = halves([np.array([0, 1, 2, 1, 3]), np.array([1, 1, 0])], frequency)
    assert [half.tolist() for half in pair] == [[0, 3], [2]]


def topics_of(seed: int, count: int = 7, words: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(words, 0.3), count)


def distance(p: np.ndarray, q: np.ndarray) -> float:
    return math.sqrt(max(0.0, 1 - sum(math.sqrt(a * b) for a, b in zip(p, q, strict=True))))


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 4))
def test_distances_and_neighbours_are_those_of_a_loop(seed: int, rows: int) -> None:
    probability = topics_of(seed)
    by_hand = [[distance(p, q) for q in probability] for p in probability]
    np.testing.assert_allclose(hellinger(probability, probability) ** 2, np.square(by_hand), atol=1e-10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topicscope.measure.topics.ROWS", rows)
        nearest, far = nearest_topics(probability)
    for k, row in enumerate(by_hand):
        others = {j: one for j, one in enumerate(row) if j != k}
        assert others[int(nearest[k])] == pytest.approx(min(others.values()), abs=1e-10)
        assert far[k] == pytest.approx(min(others.values()), abs=1e-10)


def test_topics_without_a_common_word_are_at_distance_one() -> None:
    assert hellinger(np.eye(3), np.eye(3)).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert nearest_topics(np.eye(3))[0].tolist() == [1, 0, 0]  # ties: the first


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_three_topics_lie_in_the_plane_at_their_distances(seed: int) -> None:
    probability = topics_of(seed, count=3)
    found = topic_map(probability)
    assert found.shown == pytest.approx(1.0, abs=1e-10)
    for i in range(3):
        for j in range(3):
            apart = math.dist(found.places[i], found.places[j])
            assert apart**2 == pytest.approx(distance(probability[i], probability[j]) ** 2, abs=1e-10)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_the_map_is_classical_scaling_of_the_distances(seed: int) -> None:
    probability = topics_of(seed)
    squares = np.array([[distance(p, q) ** 2 for q in probability] for p in probability])
    centre = np.eye(7) - 1 / 7
    values = np.linalg.eigvalsh(-centre @ squares @ centre / 2)[::-1]
    found = topic_map(probability)
    np.testing.assert_allclose((found.places**2).sum(0), values[:2], atol=1e-10)
    np.testing.assert_allclose(found.places.sum(0), 0, atol=1e-10)
    assert found.shown == pytest.approx(values[:2].sum() / values.sum(), abs=1e-10)
    largest = np.abs(found.places).argmax(0)
    assert (found.places[largest, [0, 1]] > 0).all(), "signs are fixed"


def test_a_map_of_topics_that_differ_in_one_way_is_a_line() -> None:
    two = topic_map(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert two.places[:, 1].tolist() == [0.0, 0.0]
    assert two.places[:, 0].tolist() == pytest.approx([0.5, -0.5])  # of equal ones the first is positive
    same = topic_map(np.full((3, 4), 0.25))
    assert (same.places.tolist(), same.shown) == ([[0.0, 0.0]] * 3, 1.0)


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


@settings(max_examples=25)
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
