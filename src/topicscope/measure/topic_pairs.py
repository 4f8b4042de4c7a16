"""Means of a matrix over pairs of words by what the words' topics have to do with each other.

[MASK] (the first word) and the diagonal are in no pair. Words may have several topics.

>>> matrix = np.arange(16.0).reshape(4, 4)
>>> topic_pair_means(matrix, np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).tolist()
[[7.5, 9.0], [13.5, nan]]
>>> shared_topic_means(matrix, np.array([[1, 0], [1, 0], [0, 1]]) > 0)
{0: 11.25, 1: 7.5}
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

Square = Float[np.ndarray, "V V"]
Has = Bool[np.ndarray, "words T"]

SAME, PARTNER, OTHER = "same", "partner", "other"


def topic_pair_means(matrix: Square, weight: Float[np.ndarray, "words T"]) -> Float[np.ndarray, "T T"]:
    """The mean entry of a matrix over words in rows of one topic and columns of another.

    Args:
        matrix: (V x V), [MASK] first.
        weight: How much each word belongs to each topic (words x T); a pair counts by the product of its weights.

    Returns:
        Means (T x T); NaN where there is no such pair of different words.

    Example:
        >>> topic_pair_means(np.arange(16.0).reshape(4, 4), np.array([[1, 0], [1, 0], [0, 1]])).tolist()
        [[7.5, 9.0], [13.5, nan]]
    """
    weight, words = np.asarray(weight, dtype=float), np.asarray(matrix, dtype=float)[1:, 1:]
    total = weight.T @ words @ weight - (weight * np.diag(words)[:, None]).T @ weight
    pairs = np.outer(weight.sum(0), weight.sum(0)) - weight.T @ weight
    # a topic of one word has no pair; rounding may leave a little of nothing
    there = pairs > 1e-12 * np.outer(weight.sum(0), weight.sum(0))
    return np.divide(total, pairs, out=np.full_like(total, np.nan), where=there)


def shared_topic_means(matrix: Square, has: Has) -> dict[int, float]:
    """The mean entry over pairs of different words, by how many topics the two have in common.

    Args:
        matrix: (V x V), [MASK] first.
        has: Which words have which topics (words x T).

    Returns:
        Means by number of topics.

    Example:
        >>> shared_topic_means(np.arange(16.0).reshape(4, 4), np.array([[1, 0], [1, 0], [0, 1]]) > 0)
        {0: 11.25, 1: 7.5}
    """
    patterns, kind = _kinds(has)
    return _means_by_code(matrix, kind, (patterns @ patterns.T).astype(int))


def partner_means(matrix: Square, has: Has, group: Int[np.ndarray, " T"]) -> dict[str, float | None]:
    """The mean entry over pairs of different words, where topics come in groups.

    Args:
        matrix: (V x V), [MASK] first.
        has: Which words have which topics (words x T).
        group: Group of each topic (T).

    Returns:
        'same': the words have a topic in common. 'partner': no topic, but topics of one group. 'other': not even a
        group. None where there is no such pair.

    Example:
        >>> matrix = np.pad(np.kron(np.eye(2), np.ones((2, 2))), ((1, 0), (1, 0)))
        >>> partner_means(matrix, np.eye(4, dtype=bool), np.array([0, 0, 1, 1]))
        {'same': None, 'partner': 1.0, 'other': 0.0}
    """
    patterns, kind = _kinds(has)
    groups = (patterns @ np.eye(int(group.max()) + 1)[group]) > 0
    partners = groups.astype(float) @ groups.T.astype(float) > 0
    code = np.where(patterns @ patterns.T > 0, 0, np.where(partners, 1, 2))
    means = _means_by_code(matrix, kind, code)
    return {name: means.get(number) for number, name in enumerate((SAME, PARTNER, OTHER))}


def _kinds(has: Has) -> tuple[Float[np.ndarray, "K T"], Int[np.ndarray, " words"]]:
    """Words that are in the same topics are of one kind: the topics of each kind, and the kind of each word."""
    patterns, kind = np.unique(has, axis=0, return_inverse=True)
    return patterns.astype(float), kind.reshape(-1)


def _means_by_code(matrix: Square, kind: Int[np.ndarray, " words"], code: Int[np.ndarray, "K K"]) -> dict[int, float]:
    """`code` of two kinds of words; a sum over pairs of words is one over pairs of kinds."""
    words = np.asarray(matrix, dtype=float)[1:, 1:]
    order, size = np.argsort(kind, kind="stable"), np.bincount(kind)
    starts = np.cumsum(size) - size
    sums = np.add.reduceat(np.add.reduceat(words[order], starts, axis=0)[:, order], starts, axis=1)
    pairs, own = np.outer(size, size), np.arange(len(size))
    pairs[own, own] -= size
    sums[own, own] -= np.bincount(kind, np.diag(words))
    flat = code.ravel()
    total, count = np.bincount(flat, sums.ravel()), np.bincount(flat, pairs.ravel())
    return {int(one): float(total[one] / count[one]) for one in np.flatnonzero(count)}
