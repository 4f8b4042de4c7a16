"""Word-by-topic matrices: read and checked, or made from a description, as the entries that are not zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import refuse
from topicscope.world.matrices import matrix_of

NAME = "topic_model.matrix"


class Entries(NamedTuple):
    """Topic by topic; topics and words count from 0, without [MASK]."""

    topic: Int[np.ndarray, " n"]
    word: Int[np.ndarray, " n"]
    probability: Float[np.ndarray, " n"]


def read_word_topics(given: Sequence[Sequence[float]] | str) -> Float[np.ndarray, "words T"]:
    """A matrix with one row per word and one column per topic, checked; columns are made to sum to 1 exactly."""
    matrix = matrix_of(given, NAME)
    totals = matrix.sum(0)
    wrong = np.flatnonzero(np.abs(totals - 1) > 1e-6)
    never = np.flatnonzero((matrix == 0).all(1))
    refuse(
        ((matrix < 0).any(), f"{NAME}: holds negative numbers; expected probabilities"),
        (
            wrong.size,
            f"{NAME}: column {wrong[0] + 1 if wrong.size else ''} sums to {totals[wrong[:1]].sum():.6g}; "
            "expected 1: one row per word, one column per topic",
        ),
        (
            never.size,
            f"{NAME}: word {never[0] + 1 if never.size else ''} has probability 0 in every topic; leave its row out",
        ),
    )
    return matrix / totals


def entries_of_matrix(matrix: Float[np.ndarray, "words T"]) -> Entries:
    topic, word = np.nonzero(matrix.T)
    return Entries(topic, word, matrix[word, topic])


def entries_of_topics(
    sizes: Int[np.ndarray, " T"],
    shared: Int[np.ndarray, " T"],
    given: Sequence[float] | Sequence[Sequence[float]] | None,
    zipf: float | None,
    common_words: int,
    common_share: float,
) -> Entries:
    """Of topics on a ring, each with `shared` words in common with the next, and of words that all have in common."""
    topics, ring = len(sizes), int((sizes - shared).sum())
    topic = np.repeat(np.arange(topics), sizes)
    rank = np.arange(len(topic)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # place of a word in its topic, from 0
    first = np.cumsum(sizes - shared) - (sizes - shared)
    weight = np.ones(len(topic))
    if zipf is not None:
        weight = (rank + 1.0) ** -zipf
    elif given is not None:
        rows = given if isinstance(given[0], Sequence) else [given] * topics
        weight = np.concatenate([np.asarray(row, dtype=float) for row in rows])
    probability = (1 - common_share) * weight / np.bincount(topic, weight)[topic]
    own = Entries(topic, (first[topic] + rank) % ring, probability)
    if common_words == 0:
        return own
    weight = np.arange(1.0, common_words + 1) ** -(zipf or 0.0)
    common = Entries(
        np.repeat(np.arange(topics), common_words),
        np.tile(ring + np.arange(common_words), topics),
        np.tile(common_share * weight / weight.sum(), topics),
    )
    both = [np.concatenate(parts) for parts in zip(own, common, strict=True)]
    order = np.argsort(both[0], kind="stable")
    return Entries(*(part[order] for part in both))
