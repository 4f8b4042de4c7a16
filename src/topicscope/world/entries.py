"""Word-by-topic matrices: read and checked, or made from a description, as the entries that are not zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import InputError
from topicscope.world.matrices import matrix_of

NAME = "topic_model.matrix"
ROUNDING = 1e-6  # by which given probabilities may miss their sum


class Entries(NamedTuple):
    """Topic by topic; topics and words count from 0, without [MASK]."""

    topic: Int[np.ndarray, " n"]
    word: Int[np.ndarray, " n"]
    probability: Float[np.ndarray, " n"]


def read_word_topics(given: Sequence[Sequence[float]] | str) -> Float[np.ndarray, "words T"]:
    """A matrix with one row per word and one column per topic, checked; columns are made to sum to 1 exactly."""
    name = f"{NAME}: {given}" if isinstance(given, str) else NAME
    return checked_word_topics(matrix_of(given, NAME), name)


def checked_word_topics(matrix: Float[np.ndarray, "words T"], name: str) -> Float[np.ndarray, "words T"]:
    """Check a word-by-topic matrix A.

    Args:
        matrix: One row per word, one column per topic.
        name: What it is called in error messages.

    Returns:
        The matrix, its columns divided by their sums, so that they sum to 1 exactly.

    Raises:
        InputError: An entry is no probability, a column does not sum to 1, or a word is in no topic.

    Example:
        >>> checked_word_topics(np.array([[1.0, 0.0], [0.0, 1.0]]), "A").tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        >>> checked_word_topics(np.array([[0.5], [0.4]]), "A")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        topicscope.ground.errors.InputError: A: column 1 of 1 sums to 0.9; ...
    """
    if matrix.ndim != 2 or not matrix.size:
        raise InputError(f"{name} has shape {matrix.shape}; expected one row per word and one column per topic")
    for row, column in np.argwhere(~((matrix >= 0) & (matrix < np.inf)))[:1]:
        raise InputError(
            f"{name}: row {row + 1}, column {column + 1} is {matrix[row, column]:g}; expected a probability"
        )
    totals = matrix.sum(0)
    for column in np.flatnonzero(np.abs(totals - 1) > ROUNDING)[:1]:
        raise InputError(
            f"{name}: column {column + 1} of {matrix.shape[1]} sums to {totals[column]:.6g}; expected 1: "
            "one row per word, one column per topic"
        )
    for word in np.flatnonzero((matrix == 0).all(1))[:1]:
        raise InputError(f"{name}: word {word + 1} has probability 0 in every topic; leave its row out")
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
