"""The population loss of the one-layer model on infinite documents, and its exact gradient in float64.

One-hot words, no biases: the prediction for a masked position that shows word j is W_V a with
a_i = x_i exp(L_ij) / sum_l x_l exp(L_lj), L = W_K' W_Q / sqrt(d_a) (eq 6). All expectations over documents, masks and
words are sums, so the gradient has no noise.

>>> from topicscope.world import Fixed
>>> world = Population.of(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking())
>>> zero = Weights(*(np.zeros((13, 13)) for _ in range(3)))
>>> round(world.loss(zero), 12), world.gradient(zero)[1].value.shape
(1.0, (13, 13))
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, Stream, generator
from topicscope.world import DocumentPrior, Masking, TopicModel

Matrix = Float[np.ndarray, "m n"]
Loss = Literal["squared", "cross-entropy"]
PLACES = (3, 1, 2)
"""Streams of value, key and query among those of initial weights."""

BLOCK = 2**17  # numbers of a block of documents: a few arrays of this size stay in the cache


class Weights(NamedTuple):
    """W_V (V x V), W_K and W_Q (d_a x V)."""

    value: Matrix
    key: Matrix
    query: Matrix

    @classmethod
    def gaussian(cls, vocabulary: int, attention_dim: int, scale: float, seed: int) -> Weights:
        """Entries from N(0, scale^2): those with which `train` starts for this seed."""
        draws = (generator(seed, Stream.INITIAL_WEIGHTS, part) for part in PLACES)
        shapes = ((vocabulary, vocabulary), (attention_dim, vocabulary), (attention_dim, vocabulary))
        return cls(*(scale * rng.standard_normal(shape) for rng, shape in zip(draws, shapes, strict=True)))

    @property
    def scores(self) -> Matrix:
        """L: key word, query word."""
        return self.key.T @ self.query / math.sqrt(len(self.key))


@dataclass(frozen=True, eq=False)
class Population:
    """Every document of a law of theta: the distribution P of its true words and x of those shown.

    Words whose shares in x are the same in every document form a group; what is summed over words is summed over
    groups first. With disjoint topics of equal words these are [MASK] and the topics, and a gradient costs about
    6 V^3 + 4 D T V^2 operations for D documents in place of 6 D V^3.
    """

    true: Float[np.ndarray, "D V"]
    shown: Float[np.ndarray, "D V"]
    probability: Float[np.ndarray, " D"]
    instead: Float[np.ndarray, " V"]  # what a masked position shows where it does not show its own word
    p_correct: float
    objective: Loss = "squared"

    @classmethod
    def of(
        cls, topic_model: TopicModel, prior: DocumentPrior, masking: Masking, objective: Loss = "squared"
    ) -> Population:
        """All documents of a prior that has few of them, such as the sets of tau topics."""
        support = prior.support(topic_model.topics)
        if support is None:
            raise InputError(
                "gradient flow lists every document, and this law of topic proportions has too many; "
                "take fewer topics, or give the proportions (documents.kind = given)"
            )
        true = np.pad(support[0] @ topic_model.word_topics.T, ((0, 0), (1, 0)))
        instead = np.full(topic_model.vocabulary, masking.p_random / topic_model.words)
        instead[0] = masking.p_mask_word
        shown = (1 - masking.p_mask) * true + masking.p_mask * (masking.p_correct * true + instead)
        return cls(true, shown, support[1], instead, masking.p_correct, objective)

    @cached_property
    def groups(self) -> tuple[list[np.ndarray], Float[np.ndarray, "D G"]]:
        """Words of each group, and the share that each word of it has in each document."""
        shares, group = np.unique(self.shown.round(15), axis=1, return_inverse=True)
        first = np.unique(group, return_index=True)[1]
        return [np.flatnonzero(group == g) for g in range(shares.shape[1])], self.shown[:, first]

    @cached_property
    def queries(self) -> Float[np.ndarray, "D V"]:
        """How often a masked position of each document shows each word."""
        return self.p_correct * self.true + self.instead

    def loss(self, weights: Weights) -> float:
        return self.gradient(weights)[0]

    def gradient(self, weights: Weights) -> tuple[float, Weights]:
        """The loss and its gradient."""
        value, key, query = weights
        scores = weights.scores
        weight = np.exp(scores - scores.max(0))  # attention is the same for scores that differ by a number per query
        words = self.groups[0]
        votes = np.stack([value[:, g] @ weight[g] for g in words])  # group, output word, query word
        sums = np.stack([weight[g].sum(0) for g in words])
        loss, by_vote, by_sum = self._over_documents(votes, sums)
        by_value, by_weight = np.empty_like(value), np.empty_like(weight)
        for g, vote, total in zip(words, by_vote, by_sum, strict=True):
            by_value[:, g] = vote @ weight[g].T
            by_weight[g] = value[:, g].T @ vote + total
        by_score = by_weight * weight / math.sqrt(len(key))
        return loss, Weights(by_value, query @ by_score.T, key @ by_score)

    def _over_documents(
        self, votes: Float[np.ndarray, "G V V"], sums: Float[np.ndarray, "G V"]
    ) -> tuple[float, Float[np.ndarray, "G V V"], Float[np.ndarray, "G V"]]:
        """The loss and its derivatives by votes and sums; documents in blocks that fit into the cache."""
        (groups, size, _), shares = votes.shape, self.groups[1]
        flat, diagonal = votes.reshape(groups, -1), np.arange(size)
        loss, by_vote, by_sum = 0.0, np.zeros_like(flat), np.zeros_like(sums)
        block = max(1, BLOCK // flat.shape[1])
        for start in range(0, len(shares), block):
            rows = slice(start, start + block)
            share, true, shown = shares[rows], self.true[rows], self.queries[rows]
            total = (share @ sums)[:, None, :]
            predicted = (share @ flat).reshape(-1, size, size)  # document, output word, query word
            predicted /= total
            targets = true[:, :, None] * self.instead  # P(true word, word shown)
            targets[:, diagonal, diagonal] += self.p_correct * true
            part, slope = SLOPES[self.objective](predicted, targets, shown)
            probability = self.probability[rows]
            loss += float(probability @ part)
            slope *= probability[:, None, None] / total
            by_vote += share.T @ slope.reshape(len(share), -1)
            by_sum -= share.T @ np.einsum("dyj,dyj->dj", slope, predicted)
        return loss, by_vote.reshape(votes.shape), by_sum


def squared(
    predicted: Float[np.ndarray, "D V V"], targets: Float[np.ndarray, "D V V"], shown: Float[np.ndarray, "D V"]
) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, "D V V"]]:
    """E |f - e_w|^2 of every document (eq 3), and its derivative by f."""
    slope = predicted * shown[:, None, :]
    slope -= targets
    loss = shown.sum(1) + np.einsum("dyj,dyj->d", predicted, slope) - np.einsum("dyj,dyj->d", predicted, targets)
    slope *= 2
    return loss, slope


def cross_entropy(
    predicted: Float[np.ndarray, "D V V"], targets: Float[np.ndarray, "D V V"], shown: Float[np.ndarray, "D V"]
) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, "D V V"]]:
    """E of -log softmax(f) at the true word (eq 4), and its derivative by f."""
    top = predicted.max(1, keepdims=True)
    slope = np.exp(predicted - top)
    whole = slope.sum(1, keepdims=True)
    logs = top + np.log(whole)
    loss = (logs[:, 0] * shown).sum(1) - np.einsum("dyj,dyj->d", predicted, targets)
    slope *= shown[:, None, :] / whole
    slope -= targets
    return loss, slope


SLOPES = {"squared": squared, "cross-entropy": cross_entropy}
