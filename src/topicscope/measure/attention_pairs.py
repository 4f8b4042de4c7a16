"""Sums and means over pairs of words of a matrix that is given entry by entry, such as attention between words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from topicscope.measure.pairs import PairSums


def matrix_pair_sums(
    sums: Float[np.ndarray, "V V"], pairs: Float[np.ndarray, "V V"], topic: Int[np.ndarray, " V"]
) -> PairSums:
    """Sums over pairs of words of a matrix that is given entry by entry.

    Args:
        sums: Sums by pair of words (V x V).
        pairs: How often each pair counts (V x V).
        topic: Topic of each word (V), from 1 on; words of topic 0 are left out.

    Returns:
        The sums by topic.

    Example:
        >>> topic = np.array([0, 1, 1, 2])
        >>> matrix_pair_sums(np.arange(16.0).reshape(4, 4), np.ones((4, 4)), topic).topic_means().tolist()
        [7.5, nan]
    """
    members = (topic[:, None] == np.arange(1, topic.max() + 1)).astype(float)  # V x K

    def tables(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        between, off = members.T @ matrix @ members, matrix * (1 - np.eye(len(topic)))
        np.fill_diagonal(between, 0)
        return np.einsum("ik,ij,jk->k", members, off, members, optimize=True)[:, None], between[:, :, None]

    (same, between), (same_pairs, between_pairs) = tables(sums), tables(pairs)
    return PairSums(same, same_pairs, between, between_pairs)


class AttentionMeans(NamedTuple):
    """Mean attention weight of a pair of positions by the relation of their words (Tables 3 and 4).

    Attributes:
        same_word: Mean weight of a key with the same word.
        same_topic: Mean weight of a key with another word of the same topic.
        different_topic: Mean weight of a key with a word of another topic.

    Example:
        >>> means = AttentionMeans(same_word=0.06, same_topic=0.04, different_topic=0.02)
        >>> means.alpha, means.beta
        (2.0, 3.0)
    """

    same_word: float
    same_topic: float
    different_topic: float

    @property
    def alpha(self) -> float:
        """Attention to other words of the topic, in units of that to other topics (Assumption 2)."""
        return self.same_topic / self.different_topic

    @property
    def beta(self) -> float:
        """Attention to the same word, in those units."""
        return self.same_word / self.different_topic


def attention_means(
    scores: Float[np.ndarray, "V V"], topic: Int[np.ndarray, " V"], counts: Float[np.ndarray, "D V"]
) -> AttentionMeans:
    """Mean attention between words by relation, where every ordered pair of positions of a document counts once.

    Args:
        scores: scores[j, i] of query word j and key word i (V x V).
        topic: Topic of each word (V).
        counts: Words of each document (D x V).

    Returns:
        The means.

    Example:
        >>> topic = np.array([0, 1, 1, 2])
        >>> means = attention_means(np.zeros((4, 4)), topic, np.array([[0.0, 2.0, 1.0, 1.0]]))
        >>> [round(mean, 6) for mean in means]  # uniform over 4 positions
        [0.25, 0.25, 0.25]
    """
    sums, pairs = word_pair_sums(scores, counts)
    same_topic = (topic[:, None] == topic) & ~np.eye(len(topic), dtype=bool)
    own = np.diagonal(sums).sum(), np.diagonal(pairs).sum()
    mates = sums[same_topic].sum(), pairs[same_topic].sum()
    # the attention of every position sums to 1
    others = counts.sum() - own[0] - mates[0], (counts.sum(1) ** 2).sum() - own[1] - mates[1]
    return AttentionMeans(*(float(total / number) for total, number in (own, mates, others)))


def attention_pair_sums(
    scores: Float[np.ndarray, "V V"], topic: Int[np.ndarray, " V"], counts: Float[np.ndarray, "D V"]
) -> PairSums:
    """Sums of attention over pairs of positions, topic by topic.

    Args:
        scores: scores[j, i] of query word j and key word i (V x V).
        topic: Topic of each word (V), from 1 on; 0 is [MASK], which does not count.
        counts: Words of each document (D x V).

    Returns:
        The sums by topic.

    Example:
        >>> topic = np.array([0, 1, 1, 2])
        >>> sums = attention_pair_sums(np.zeros((4, 4)), topic, np.array([[0.0, 2.0, 1.0, 1.0]]))
        >>> [round(float(mean), 6) for mean in sums.means()]
        [0.25, 0.25]
    """
    return matrix_pair_sums(*word_pair_sums(scores, counts), topic)


def word_pair_sums(
    scores: Float[np.ndarray, "V V"], counts: Float[np.ndarray, "D V"]
) -> tuple[Float[np.ndarray, "V V"], Float[np.ndarray, "V V"]]:
    """Attention and number of pairs of positions, summed over documents, for every query word j and key word i.

    A query word j of a document attends each position of word i with exp(score) / z_j, z_j = sum_i count_i exp(score).
    So sums over pairs of positions are sums over pairs of words, weighted by their counts: three matrix products.
    """
    weight = np.exp(scores - scores.max(1, keepdims=True))
    share = np.divide(counts, counts @ weight.T, out=np.zeros(counts.shape), where=counts > 0)  # query positions / z
    return (share.T @ counts) * weight, counts.T @ counts
