"""Mean attention by relation (same word, another word of the topic, different topic) over unmasked documents, exactly, from counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


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


def attention_means(scores: Float[np.ndarray, "V V"], topic: Int[np.ndarray, " V"], counts: Float[np.ndarray, "D V"]) -> AttentionMeans:
    """`scores[j, i]` of query word j and key word i. Every ordered pair of positions of a document counts once.

    A query word j of a document attends each position of word i with exp(score) / z_j, z_j = sum_i count_i exp(score), so sums over
    pairs of positions are sums over pairs of words, weighted by their counts: three matrix products, no loop over positions.
    """
    weight = np.exp(scores - scores.max(1, keepdims=True))
    same_topic = (topic[:, None] == topic) & ~np.eye(len(topic), dtype=bool)
    z = counts @ weight.T  # D x V: of every query word
    present = counts > 0
    share = np.where(present, counts / np.where(present, z, 1), 0)  # query positions / z
    sums = np.array([(share * counts * np.diagonal(weight)).sum(), (share * (counts @ (weight * same_topic).T)).sum(), 0.0])
    pairs = np.array([(counts**2).sum(), (counts * (counts @ same_topic)).sum(), 0.0])
    sums[2] = counts.sum() - sums[0] - sums[1]  # the attention of every position sums to 1
    pairs[2] = (counts.sum(1) ** 2).sum() - pairs[0] - pairs[1]
    return AttentionMeans(*(float(x) for x in sums / pairs))
