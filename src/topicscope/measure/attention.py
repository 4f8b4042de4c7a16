"""Mean attention by relation (same word, another word of the topic, different topic) over unmasked documents.

Exact, from word counts, without a loop over positions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from topicscope.measure.pairs import PairSums, matrix_pair_sums


class AttentionMeans(NamedTuple):
    """Mean attention weight of a pair of positions whose words are in the relation (Tables 3 and 4)."""

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
    """`scores[j, i]` of query word j and key word i. Every ordered pair of positions of a document counts once."""
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
    """The same sums, topic by topic: `topic` from 1 on, 0 is [MASK], which does not count."""
    return matrix_pair_sums(*word_pair_sums(scores, counts), topic)


def word_pair_sums(
    scores: Float[np.ndarray, "V V"], counts: Float[np.ndarray, "D V"]
) -> tuple[Float[np.ndarray, "V V"], Float[np.ndarray, "V V"]]:
    """Attention and number of pairs of positions, summed over documents, for every query word j and key word i.

    A query word j of a document attends each position of word i with exp(score) / z_j, z_j = sum_i count_i exp(score).
    So sums over pairs of positions are sums over pairs of words, weighted by their counts: three matrix products.
    """
    weight = np.exp(scores - scores.max(1, keepdims=True))
    z = counts @ weight.T  # D x V: of every query word
    present = counts > 0
    share = np.where(present, counts / np.where(present, z, 1), 0)  # query positions / z
    return (share.T @ counts) * weight, counts.T @ counts
