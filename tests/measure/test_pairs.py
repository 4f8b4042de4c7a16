"""Sums of vectors, of matrices and of attention against double loops over all pairs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from topicscope.measure import (
    Membership,
    PairSums,
    attention_means,
    attention_pair_sums,
    frequency_bins,
    matrix_pair_sums,
    pair_sums,
    shuffled_means,
)

TOPIC = np.array([0, 1, 1, 1, 2, 2, 3, 3, 3, 3])


def membership(rng: np.random.Generator, words: int, topics: int, most: int) -> Membership:
    listed = sorted(
        (k, w) for w in range(words) for k in rng.choice(topics, rng.integers(1, most + 1), replace=False).tolist()
    )
    return Membership(np.array([w for _, w in listed]), np.array([k for k, _ in listed]), words, topics)


def by_loop(u: np.ndarray, m: Membership, bins: np.ndarray, v: np.ndarray | None = None) -> PairSums:
    v = u if v is None else v
    count = int(bins.max()) + 1
    topics_of = [set(m.topic[m.word == w].tolist()) for w in range(m.words)]
    same, same_pairs = np.zeros((2, m.topics, count**2))
    between, between_pairs = np.zeros((2, m.topics, m.topics, count**2))
    for i, k in zip(m.word, m.topic, strict=True):
        for j, l in zip(m.word, m.topic, strict=True):  # noqa: E741
            stratum = bins[i] * count + bins[j]
            if k == l and i != j:
                same[k, stratum] += u[i] @ v[j]
                same_pairs[k, stratum] += 1
            if k != l and not topics_of[i] & topics_of[j]:
                between[k, l, stratum] += u[i] @ v[j]
                between_pairs[k, l, stratum] += 1
    return PairSums(same, same_pairs, between, between_pairs)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    words=st.integers(2, 18),
    topics=st.integers(2, 6),
    most=st.integers(1, 3),
    bins=st.integers(1, 3),
)
def test_sums_are_those_of_the_double_loop(seed: int, words: int, topics: int, most: int, bins: int) -> None:
    rng = np.random.default_rng(seed)
    m = membership(rng, words, topics, min(most, topics))
    u = rng.normal(size=(words, 3)) + 0.5
    bin_of = frequency_bins(rng.integers(1, 9, words).astype(float), bins)
    for v in (None, rng.normal(size=(words, 3)) - 0.2):
        fast, slow = pair_sums(u, m, bin_of, partners=v), by_loop(u, m, bin_of, v)
        for name in ("same", "same_pairs", "between", "between_pairs"):
            assert np.abs(getattr(fast, name) - getattr(slow, name)).max() < 1e-10
        plain = pair_sums(u, m, partners=v)
        np.testing.assert_allclose(fast.means(), plain.means(), rtol=1e-9, equal_nan=True)


def test_means_of_topics_are_those_of_their_pairs() -> None:
    """Topic 2 has one word: no pair inside it, and those with other topics are all the same."""
    u = np.array([[1.0, 0.0], [0.5, 1.0], [2.0, 2.0], [0.0, 3.0], [1.0, 1.0]])
    m = Membership(np.arange(5), np.array([0, 0, 1, 2, 2]), 5, 3)
    assert m.sizes.tolist() == [2, 1, 2]
    assert Membership(m.word, m.topic, 6, 4).sizes.tolist() == [2, 1, 2, 0]
    assert Membership(m.word, m.topic, 6, 4).topics_of_word.tolist() == [1, 1, 1, 1, 1, 0]
    for sums in (pair_sums(u, m), pair_sums(u, m, np.array([0, 1, 0, 1, 1]))):
        inside, between = sums.by_topic()
        assert inside == pytest.approx([0.5, math.nan, 3.0], nan_ok=True)
        expected = [[math.nan, 2.5, 1.375], [2.5, math.nan, 5.0], [1.375, 5.0, math.nan]]
        assert between == pytest.approx(np.array(expected), nan_ok=True)
        assert [float(x) for x in sums.pooled().means()] == pytest.approx([float(x) for x in sums.means()])
        assert sums.pooled().between.shape == (3, 3, 1)


def test_without_pairs_there_is_no_mean() -> None:
    apart = pair_sums(np.eye(3), Membership(np.arange(3), np.arange(3), 3, 3))  # topics of one word
    one = pair_sums(np.eye(3), Membership(np.arange(3), np.zeros(3, dtype=int), 3, 1))
    for matched in (False, True):
        assert np.isnan(apart.means(matched=matched)[0])
        assert np.isnan(one.means(matched=matched)[1])


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), weighted=st.booleans())
def test_matched_means_weigh_strata_by_their_same_topic_pairs(seed: int, weighted: bool) -> None:
    """One stratum after another, of few words: many strata lack pairs of one kind and are left out."""
    rng = np.random.default_rng(seed)
    m = membership(rng, 8, 3, 1)
    sums = pair_sums(rng.normal(size=(8, 2)), m, rng.integers(0, 3, 8))
    weight = rng.integers(0, 3, 3).astype(float) if weighted else np.ones(3)
    total, same, different = 0.0, 0.0, 0.0
    for s in range(sums.same.shape[1]):
        inside = sum(weight[k] * sums.same_pairs[k, s] for k in range(3))
        pairs = [(k, l) for k in range(3) for l in range(3)]  # noqa: E741
        outside = sum(weight[k] * weight[l] * sums.between_pairs[k, l, s] for k, l in pairs)  # noqa: E741
        if inside > 0 and outside > 0:
            total += inside
            same += sum(weight[k] * sums.same[k, s] for k in range(3))
            between = sum(weight[k] * weight[l] * sums.between[k, l, s] for k, l in pairs)  # noqa: E741
            different += inside * between / outside
    found = [float(x) for x in sums.means(weight if weighted else None, matched=True)]
    expected = [same / total, different / total] if total else [math.nan, math.nan]
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)
    several = sums.means(np.stack([weight, weight]), matched=True)
    assert [x.tolist() for x in several] == [pytest.approx([x, x], abs=1e-12, nan_ok=True) for x in expected]


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("most", [1, 3])
def test_shuffles_hand_the_topics_to_other_words(most: int, sides: int) -> None:
    rng = np.random.default_rng(1)
    m, u, v = membership(rng, 25, 5, most), rng.normal(size=(25, 4)), rng.normal(size=(25, 4))
    same, different = shuffled_means(u, m, 4, 7, partners=v if sides == 2 else None)
    orders = np.random.default_rng([7, 0x5AFF])
    for i in range(4):
        order = orders.permutation(25)
        expected = by_loop(u[order], m, np.zeros(25, dtype=int), v[order] if sides == 2 else None).means()
        assert (same[i], different[i]) == pytest.approx(tuple(map(float, expected)), abs=1e-6)  # they run in float32


def test_equally_frequent_words_share_a_bin() -> None:
    bins = frequency_bins(np.array([1.0, 1, 1, 1, 2, 3, 3, 9, 9, 50]), 5)
    assert (np.diff(bins) >= 0).all()
    assert len(set(bins[:4].tolist())) == 1
    assert bins.max() >= 2
    assert frequency_bins(np.ones(7), 5).tolist() == [0] * 7
    frequency = np.array([7.0, 1, 4, 9, 2, 0, 3, 8, 5, 6])
    assert frequency_bins(frequency).tolist() == (frequency // 2).tolist()  # five bins of two
    assert frequency_bins(frequency, 2).tolist() == (frequency // 5).tolist()
    assert frequency_bins(frequency, 1).tolist() == [0] * 10


def test_sums_of_a_matrix_over_words_are_those_of_a_double_loop() -> None:
    rng = np.random.default_rng(0)
    matrix, times = rng.normal(size=(10, 10)), rng.integers(0, 4, (10, 10)).astype(float)
    sums = matrix_pair_sums(matrix * times, times, TOPIC)
    every = [(i, j) for i in range(1, 10) for j in range(1, 10) if i != j]
    # then topic 2 twice and topic 3 not at all: its pairs count twice, those between topics as often as both
    for weight in (np.ones(3), np.array([1.0, 2.0, 0.0])):
        expected = []
        for same in (True, False):
            pairs = [pair for pair in every if (TOPIC[pair[0]] == TOPIC[pair[1]]) == same]
            often = [times[i, j] * weight[TOPIC[i] - 1] * (1 if same else weight[TOPIC[j] - 1]) for i, j in pairs]
            expected.append(np.average([matrix[pair] for pair in pairs], weights=often))
        assert [float(x) for x in sums.means(weight)] == pytest.approx(expected, rel=1e-12)


@settings(max_examples=30)
@given(seed=st.integers(0, 999), topics=st.integers(2, 4), v=st.integers(1, 3), length=st.integers(2, 12))
def test_attention_means_equal_a_loop_over_positions(seed: int, topics: int, v: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    topic = -(-np.arange(topics * v + 1) // v)
    scores = 2 * rng.standard_normal((len(topic), len(topic)))
    documents = rng.integers(1, len(topic), size=(5, length))
    groups: dict[str, list[float]] = {"word": [], "topic": [], "other": []}
    for document in documents:
        for j in document:  # query
            weights = np.exp(scores[j, document])
            weights /= weights.sum()
            for i, weight in zip(document, weights, strict=True):
                groups["word" if i == j else "topic" if topic[i] == topic[j] else "other"].append(weight)
    if not all(groups.values()):
        return
    counts = np.array([np.bincount(document, minlength=len(topic)) for document in documents], dtype=float)
    found = attention_means(scores, topic, counts)
    assert tuple(found) == pytest.approx([np.mean(group) for group in groups.values()], rel=1e-9)
    assert found.alpha == pytest.approx(np.mean(groups["topic"]) / np.mean(groups["other"]))
    assert found.beta == pytest.approx(np.mean(groups["word"]) / np.mean(groups["other"]))
    by_topic = attention_pair_sums(scores, topic, counts).means()
    assert [float(mean) for mean in by_topic] == pytest.approx([found.same_topic, found.different_topic], rel=1e-9)
    high = attention_means(scores + 1000, topic, counts)  # a constant of every score changes nothing
    assert tuple(high) == pytest.approx(tuple(found), rel=1e-9)


def test_some_of_the_words_keep_their_topics() -> None:
    m = Membership(np.array([0, 2, 1, 3, 2]), np.array([0, 0, 1, 1, 2]), 4, 3)
    some = m.among(np.array([2, 3]))
    assert (some.word.tolist(), some.topic.tolist(), some.words, some.topics) == ([0, 1, 0], [0, 1, 2], 2, 3)
    assert m.among(np.arange(4)).word.tolist() == m.word.tolist()
    assert m.among(np.empty(0, dtype=int)).sizes.tolist() == [0, 0, 0]
