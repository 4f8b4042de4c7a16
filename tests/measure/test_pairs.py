"""Sums of vectors against a double loop over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from topicscope.measure.pairs import Membership, PairSums, frequency_bins, pair_sums, shuffled_means


def membership(rng: np.random.Generator, words: int, topics: int, most: int) -> Membership:
    listed = sorted(
        (k, w) for w in range(words) for k in rng.choice(topics, rng.integers(1, most + 1), replace=False).tolist()
    )
    return Membership(np.array([w for _, w in listed]), np.array([k for k, _ in listed]), words, topics)


def by_loop(u: np.ndarray, m: Membership, bins: np.ndarray) -> PairSums:
    count = int(bins.max()) + 1
    topics_of = [set(m.topic[m.word == w].tolist()) for w in range(m.words)]
    same, same_pairs = np.zeros((2, m.topics, count**2))
    between, between_pairs = np.zeros((2, m.topics, m.topics, count**2))
    for i, k in zip(m.word, m.topic, strict=True):
        for j, l in zip(m.word, m.topic, strict=True):  # noqa: E741
            stratum = bins[i] * count + bins[j]
            if k == l and i != j:
                same[k, stratum] += u[i] @ u[j]
                same_pairs[k, stratum] += 1
            if k != l and not topics_of[i] & topics_of[j]:
                between[k, l, stratum] += u[i] @ u[j]
                between_pairs[k, l, stratum] += 1
    return PairSums(same, same_pairs, between, between_pairs)


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
    fast, slow = pair_sums(u, m, bin_of), by_loop(u, m, bin_of)
    for name in ("same", "same_pairs", "between", "between_pairs"):
        assert np.abs(getattr(fast, name) - getattr(slow, name)).max() < 1e-10
    plain = pair_sums(u, m)
    np.testing.assert_allclose(fast.means(), plain.means(), rtol=1e-9, equal_nan=True)


@pytest.mark.parametrize("most", [1, 3])
def test_shuffles_hand_the_topics_to_other_words(most: int) -> None:
    rng = np.random.default_rng(1)
    m, u = membership(rng, 25, 5, most), rng.normal(size=(25, 4))
    same, different = shuffled_means(u, m, 4, 7)
    orders = np.random.default_rng([7, 0x5AFF])
    for i in range(4):
        order = orders.permutation(25)
        expected = by_loop(u[order], m, np.zeros(25, dtype=int)).means()
        assert (same[i], different[i]) == pytest.approx(
            tuple(map(float, expected)), abs=1e-6
        )  # shuffles run in float32


def test_a_bootstrap_weighs_topics() -> None:
    """Weights 2, 1, 0 are two copies of the first topic, one of the second: pairs between the copies do not count."""
    rng = np.random.default_rng(2)
    m, u = membership(rng, 12, 3, 1), rng.normal(size=(12, 3))
    sums = pair_sums(u, m)
    same, different = sums.means(np.array([2.0, 1.0, 0.0]))
    s, n = sums.same[:, 0], sums.same_pairs[:, 0]
    assert same == pytest.approx((2 * s[0] + s[1]) / (2 * n[0] + n[1]))
    assert different == pytest.approx(sums.between[0, 1, 0] / sums.between_pairs[0, 1, 0])


def test_matching_takes_out_what_frequency_alone_makes() -> None:
    """Frequent words are near each other, and topics differ in frequency: a contrast that matching removes."""
    rng = np.random.default_rng(3)
    topic = np.repeat(np.arange(6), 20)
    frequent = np.where(np.arange(120) % 20 < np.where(topic < 3, 18, 2), 1, 0)
    u = np.eye(2)[frequent] + 0.01 * rng.normal(size=(120, 2))
    sums = pair_sums(u, Membership(np.arange(120), topic, 120, 6), frequent)
    same, different = sums.means()
    assert same - different > 0.1
    same, different = sums.means(matched=True)
    assert abs(same - different) < 0.01


def test_equally_frequent_words_share_a_bin() -> None:
    bins = frequency_bins(np.array([1.0, 1, 1, 1, 2, 3, 3, 9, 9, 50]), 5)
    assert (np.diff(bins) >= 0).all()
    assert len(set(bins[:4].tolist())) == 1
    assert bins.max() >= 2
    assert frequency_bins(np.ones(7), 5).tolist() == [0] * 7
