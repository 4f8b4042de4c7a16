"""Pairs of words where there are more words than are looked at first."""

from __future__ import annotations

import numpy as np

from topicscope.language.vocabulary import STRETCH, joint_counts, spread_of, top_pairs


def test_rare_words_are_looked_at_where_they_may_count() -> None:
    """All pairs are as frequent: the first by number, though the last words are as common as any."""
    words = 4500
    documents = [np.array([word, words - 1 - word]) for word in range(words // 2)]
    pairs, counts = top_pairs(documents, words, 3)
    assert pairs.tolist() == [[0, 4499], [1, 4498], [2, 4497]]
    assert counts.tolist() == [1, 1, 1]
    assert len(top_pairs(documents, words, 10**4)[0]) == words // 2


def test_the_most_frequent_pairs_are_found_among_the_most_frequent_words() -> None:
    """2,001 frequent words that never meet, and a rarer pair that does."""
    alone = [np.array([word]) for word in range(2100) for _ in range(3)]
    together = [np.array([2200, 2300])] * 2
    pairs, counts = top_pairs([*alone, *together], 2400, 1)
    assert (pairs.tolist(), counts.tolist()) == ([[2200, 2300]], [2])
    often = [np.array([5, 3, 5])] * 9
    pairs, counts = top_pairs([*alone, *often], 2400, 1)
    assert (pairs.tolist(), counts.tolist()) == ([[3, 5]], [9])


def test_a_stretch_is_fifty_words_and_ends_with_its_document() -> None:
    assert STRETCH == 50
    documents = [np.array([0] * 50 + [1] * 50 + [0, 2]), np.array([1, 2])]
    assert spread_of(4, documents).tolist() == [2, 2, 2, 0]
    found = joint_counts((4, np.array([0, 1, 2])), documents).toarray()
    assert found.tolist() == [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
