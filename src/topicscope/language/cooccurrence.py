"""Which two words stand in the same stretch of text most often (Table 2's control), counted in one sparse pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int
from scipy import sparse

STRETCH = 50
"""Whole words of a stretch."""


def stretches(documents: Sequence[Int[np.ndarray, " N"]], words: int) -> sparse.csr_array:
    """1 where a word occurs in a stretch, a row a stretch; none reaches over the end of a document."""
    row = np.concatenate([np.empty(0, dtype=np.int64), *(np.arange(len(document)) // STRETCH for document in documents)])
    counts = [-(-len(document) // STRETCH) for document in documents]
    row += np.repeat(np.cumsum([0, *counts[:-1]]) if counts else np.zeros(0, dtype=np.int64), [len(document) for document in documents])
    column = np.concatenate([np.empty(0, dtype=np.int64), *documents])
    found = sparse.coo_array((np.ones(len(row), dtype=np.int64), (row, column)), shape=(sum(counts), words)).tocsr()
    found.data[:] = 1
    return found


def top_pairs(documents: Sequence[Int[np.ndarray, " N"]], words: int, count: int) -> tuple[Int[np.ndarray, "P 2"], Int[np.ndarray, " P"]]:
    """The `count` pairs of different words that share most stretches, and how many; ties by the words' numbers.

    A pair is no more frequent than its rarer word, so the most frequent words suffice as soon as the next one is rarer than the last pair.
    """
    table = stretches(documents, words)
    spread = np.asarray(table.sum(0)).ravel()
    order = np.argsort(-spread, kind="stable")
    size = min(words, 2000)
    while True:
        kept = np.sort(order[:size])
        part = table[:, kept]
        joint = sparse.triu(part.T @ part, k=1).tocoo()
        left, right = kept[joint.row], kept[joint.col]
        best = np.lexsort((right, left, -joint.data))[:count]
        enough = len(best) == count and (size == words or spread[order[size]] < joint.data[best[-1]])
        if enough or size == words:
            return np.stack([left[best], right[best]], 1), joint.data[best]
        size = min(words, 2 * size)
