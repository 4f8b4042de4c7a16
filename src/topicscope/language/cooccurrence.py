"""Which two words stand in the same stretch of text most often (the control of Table 2).

Counted in sparse tables, shard by shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np
from jaxtyping import Int
from scipy import sparse

from topicscope.ground import Engine, serial
from topicscope.language.sharding import document_shards, in_shards

STRETCH = 50
"""Whole words of a stretch."""


def stretches(documents: Sequence[Int[np.ndarray, " N"]], words: int) -> sparse.csr_array:
    """One row per stretch, 1 where a word occurs in it. No stretch reaches over the end of a document."""
    row = np.concatenate(
        [np.empty(0, dtype=np.int64), *(np.arange(len(document)) // STRETCH for document in documents)]
    )
    counts = [-(-len(document) // STRETCH) for document in documents]
    row += np.repeat(
        np.cumsum([0, *counts[:-1]]) if counts else np.zeros(0, dtype=np.int64),
        [len(document) for document in documents],
    )
    column = np.concatenate([np.empty(0, dtype=np.int64), *documents])
    table = sparse.coo_array((np.ones(len(row), dtype=np.int64), (row, column)), shape=(sum(counts), words)).tocsr()
    table.data[:] = 1
    return table


def top_pairs(
    documents: Sequence[Int[np.ndarray, " N"]], words: int, count: int, engine: Engine = serial
) -> tuple[Int[np.ndarray, "P 2"], Int[np.ndarray, " P"]]:
    """The `count` pairs of different words that share most stretches, and how many; ties by the words' numbers.

    A pair is at most as frequent as its rarer word. So the most frequent words suffice as soon as the next word is
    rarer than the last pair.
    """
    shards = list(document_shards(documents))
    spread = sum(in_shards(engine, spread_of, words, shards), np.zeros(words, dtype=np.int64))
    order = np.argsort(-spread, kind="stable")
    size = min(words, 2000)
    while True:
        frequent = np.sort(order[:size])
        nothing = sparse.csr_array((size, size), dtype=np.int64)
        joint = reduce(add, in_shards(engine, joint_counts, (words, frequent), shards), nothing).tocoo()
        left, right = frequent[joint.row], frequent[joint.col]
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
    """How many stretches each two of some words share, the first of the pair before the second."""
    words, some = which
    part = stretches(documents, words)[:, some]
    return sparse.triu(part.T @ part, k=1).tocsr()
