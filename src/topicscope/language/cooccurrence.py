"""Which two words stand in the same stretch of text most often (Table 2's control), counted in sparse tables, shard by shard."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np
from jaxtyping import Int
from scipy import sparse

from topicscope.ground import Engine
from topicscope.language.sharding import document_shards, in_shards

STRETCH = 50
"""Whole words of a stretch."""


def stretches(documents: Sequence[Int[np.ndarray, " N"]], words: int) -> sparse.csr_array:
    """1 where a word occurs in a stretch, a row a stretch; none reaches over the end of a document."""
    row = np.concatenate(
        [np.empty(0, dtype=np.int64), *(np.arange(len(document)) // STRETCH for document in documents)]
    )
    counts = [-(-len(document) // STRETCH) for document in documents]
    row += np.repeat(
        np.cumsum([0, *counts[:-1]]) if counts else np.zeros(0, dtype=np.int64),
        [len(document) for document in documents],
    )
    column = np.concatenate([np.empty(0, dtype=np.int64), *documents])
    found = sparse.coo_array((np.ones(len(row), dtype=np.int64), (row, column)), shape=(sum(counts), words)).tocsr()
    found.data[:] = 1
    return found


def top_pairs(
    documents: Sequence[Int[np.ndarray, " N"]], words: int, count: int, engine: Engine | None = None
) -> tuple[Int[np.ndarray, "P 2"], Int[np.ndarray, " P"]]:
    """The `count` pairs of different words that share most stretches, and how many; ties by the words' numbers.

    A pair is no more frequent than its rarer word, so the most frequent words suffice as soon as the next one is rarer than the last pair.
    """
    shards = list(document_shards(documents))
    spread = sum(in_shards(engine, spread_of, words, shards), np.zeros(words, dtype=np.int64))
    order = np.argsort(-spread, kind="stable")
    size = min(words, 2000)
    while True:
        kept = np.sort(order[:size])
        nothing = sparse.csr_array((size, size), dtype=np.int64)
        joint = reduce(add, in_shards(engine, joint_counts, (words, kept), shards), nothing).tocoo()
        left, right = kept[joint.row], kept[joint.col]
        best = np.lexsort((right, left, -joint.data))[:count]
        enough = len(best) == count and (size == words or spread[order[size]] < joint.data[best[-1]])
        if enough or size == words:
            return np.stack([left[best], right[best]], 1), joint.data[best]
        size = min(words, 2 * size)


def spread_of(words: int, documents: Sequence[Int[np.ndarray, " N"]]) -> Int[np.ndarray, " W"]:
    """How many stretches each word is in."""
    return np.asarray(stretches(documents, words).sum(0)).ravel()


def joint_counts(
    which: tuple[int, Int[np.ndarray, " K"]], documents: Sequence[Int[np.ndarray, " N"]]
) -> sparse.csr_array:
    """How many stretches each two of the kept words share, the first of the pair before the second."""
    words, kept = which
    part = stretches(documents, words)[:, kept]
    return sparse.triu(part.T @ part, k=1).tocsr()
