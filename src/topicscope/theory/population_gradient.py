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
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import InputError, Stream, generator
from topicscope.theory.forces import Loss
from topicscope.world import DocumentPrior, Masking, TopicModel

Matrix = Float[np.ndarray, "m n"]
PLACES = (3, 1, 2)
"""Streams of value, key and query among those of initial weights."""

FEW_PAIRS = 6  # pairs of groups per document up to which sums over pairs are cheaper
BLOCK = 2**17  # numbers of a block of documents: a few arrays of this size stay in the cache


class Weights(NamedTuple):
    """Weights of the one-layer model with one-hot words.

    Attributes:
        value: W_V (V x V).
        key: W_K (d_a x V).
        query: W_Q (d_a x V).

    Example:
        >>> weights = Weights.gaussian(vocabulary=13, attention_dim=4, scale=0.01, seed=0)
        >>> weights.value.shape, weights.key.shape, weights.scores.shape
        ((13, 13), (4, 13), (13, 13))
    """

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


class Groups(NamedTuple):
    """Words that have the same shares in every document, and these shares: shown, true, and as word of a query."""

    words: list[Int[np.ndarray, " n"]]
    of_word: Int[np.ndarray, " V"]
    shown: Float[np.ndarray, "D G"]
    true: Float[np.ndarray, "D G"]


@dataclass(frozen=True, eq=False)
class Population:
    """Every document of a law of theta, and the exact loss and gradient of the one-layer model on them.

    Sums over words are taken over groups of words with the same shares first: with disjoint topics of equal words these
    are [MASK] and the topics, G = T + 1. The squared loss then needs documents only through sums over pairs of groups,
    so that a gradient costs about 6 V^3 + 4 G^2 V^2 + 8 D G^2 V operations for D documents in place of 6 D V^3. With
    cross entropy, or groups as many as words, predictions are made for each document: 4 D G V^2.

    Attributes:
        true: Distribution of the true words of each document (D x V).
        shown: Distribution of the words shown (D x V).
        probability: Probability of each document (D).
        instead: What a masked position shows where it does not show its own word (V).
        p_correct: How often it shows its own word.
        objective: 'squared' or 'cross-entropy'.

    Example:
        >>> from topicscope.world import Fixed
        >>> world = Population.of(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking())
        >>> loss, gradient = world.gradient(Weights.gaussian(13, 13, 0.0, seed=0))
        >>> len(world.probability), round(loss, 9), gradient.value.shape
        (6, 1.0, (13, 13))
    """

    true: Float[np.ndarray, "D V"]
    shown: Float[np.ndarray, "D V"]
    probability: Float[np.ndarray, " D"]
    instead: Float[np.ndarray, " V"]
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
    def groups(self) -> Groups:
        alike = np.vstack([self.shown, self.true, self.instead]).round(15)
        _, first, group = np.unique(alike, axis=1, return_index=True, return_inverse=True)
        words = [np.flatnonzero(group == g) for g in range(len(first))]
        return Groups(words, group, self.shown[:, first], self.true[:, first])

    @cached_property
    def queries(self) -> Float[np.ndarray, "D V"]:
        """How often a masked position of each document shows each word."""
        return self.p_correct * self.true + self.instead

    @cached_property
    def by_pairs(self) -> bool:
        """Whether sums over pairs of groups are cheaper than one prediction for each document."""
        return self.objective == "squared" and len(self.groups.words) ** 2 <= FEW_PAIRS * len(self.shown)

    def fits(self, weights: Weights) -> bool:
        """Whether the matrices have the shapes that the gradient takes."""
        value, key, query = (part.shape for part in weights)
        size = self.true.shape[1]
        return value == (size, size) and key == query and key[1:] == (size,)

    def loss(self, weights: Weights) -> float:
        return self.gradient(weights)[0]

    def gradient(self, weights: Weights) -> tuple[float, Weights]:
        """The loss and its gradient."""
        value, key, query = weights
        loss, by_value, by_score = self.from_tables(value, weights.scores)
        by_score /= math.sqrt(len(key))
        return loss, Weights(by_value, query @ by_score.T, key @ by_score)

    def from_tables(self, table: Matrix, scores: Matrix) -> tuple[float, Matrix, Matrix]:
        """Loss, and its derivatives by what a word adds to another (output, key) and by scores (key, query)."""
        weight = np.exp(scores - scores.max(0))  # attention is the same for scores that differ by a number per query
        words, size = self.groups.words, len(table)
        votes, sums = np.empty((size, len(words), size)), np.empty((len(words), size))
        for g, of in enumerate(words):
            votes[:, g] = weight[of].T @ table[:, of].T  # query word, group, output word
            sums[g] = weight[of].sum(0)
        loss, by_vote, by_sum = (self._from_pairs if self.by_pairs else self._from_documents)(votes, sums)
        by_table, by_weight = np.empty_like(table), np.empty_like(weight)
        for g, of in enumerate(words):
            by_table[:, of] = by_vote[:, g].T @ weight[of].T
            by_weight[of] = table[:, of].T @ by_vote[:, g].T + by_sum[g]
        return loss, by_table, by_weight * weight

    @cached_property
    def pairs(self) -> tuple[Float[np.ndarray, "D G*G"], Float[np.ndarray, "D G*G"], Float[np.ndarray, "V G"]]:
        """Products of shares shown, of shares shown and true, and which words are in which group."""
        _, group, shown, true = self.groups
        products = (np.einsum("dg,dh->dgh", shown, other).reshape(len(shown), -1) for other in (shown, true))
        return *products, np.eye(shown.shape[1])[group]

    def _from_pairs(
        self, votes: Float[np.ndarray, "V G V"], sums: Float[np.ndarray, "G V"]
    ) -> tuple[float, Float[np.ndarray, "V G V"], Float[np.ndarray, "G V"]]:
        """The squared loss and its derivatives by votes and sums.

        With F = sum_g x_g votes_g a document predicts f = F / z. What is summed over documents is of second order in
        x and P, and z does not depend on the output word: sums of products over documents, for each query word.
        """
        size, groups, _ = votes.shape
        both, joint, member = self.pairs
        shown, (words, every) = self.groups.shown, (np.arange(size), self.probability[:, None])
        own = self.p_correct * self.true
        z = shown @ sums  # document, query word
        square = both @ (votes @ votes.transpose(0, 2, 1)).reshape(size, -1).T / z**2  # |f|^2
        hits = joint @ (votes @ member).reshape(size, -1).T * self.instead  # f'P(true word, word shown) z
        hits = (hits + own * (shown @ votes[words, :, words].T)) / z
        loss = float((every * (self.queries * (1 + square) - 2 * hits)).sum())
        by_sum = -2 * shown.T @ (every * (self.queries * square - hits) / z)
        quadratic = (both.T @ (2 * every * self.queries / z**2)).T.reshape(size, groups, groups)
        linear = (joint.T @ (2 * every * self.instead / z)).T.reshape(size, groups, groups)
        by_vote = quadratic @ votes - linear @ member.T
        by_vote[words, :, words] -= (shown.T @ (2 * every * own / z)).T
        return loss, by_vote, by_sum

    def _from_documents(
        self, votes: Float[np.ndarray, "V G V"], sums: Float[np.ndarray, "G V"]
    ) -> tuple[float, Float[np.ndarray, "V G V"], Float[np.ndarray, "G V"]]:
        """The same from the prediction of each document, for any loss; in blocks that fit into the cache."""
        (size, groups, _), shares = votes.shape, self.groups.shown
        flat, diagonal = votes.transpose(1, 0, 2).reshape(groups, -1), np.arange(size)
        loss, by_vote, by_sum = 0.0, np.zeros_like(flat), np.zeros_like(sums)
        block = max(1, BLOCK // flat.shape[1])
        for start in range(0, len(shares), block):
            rows = slice(start, start + block)
            share, true, every = shares[rows], self.true[rows], self.probability[rows]
            z = (share @ sums)[:, :, None]
            predicted = (share @ flat).reshape(-1, size, size)  # document, query word, output word
            predicted /= z
            targets = self.instead[:, None] * true[:, None, :]  # P(true word, word shown)
            targets[:, diagonal, diagonal] += self.p_correct * true
            part, slope = SLOPES[self.objective](predicted, targets, self.queries[rows])
            loss += float(every @ part)
            slope *= every[:, None, None] / z
            by_vote += share.T @ slope.reshape(len(share), -1)
            by_sum -= share.T @ np.einsum("djy,djy->dj", slope, predicted)
        return loss, by_vote.reshape(groups, size, size).transpose(1, 0, 2), by_sum


def squared(
    predicted: Float[np.ndarray, "D V V"], targets: Float[np.ndarray, "D V V"], shown: Float[np.ndarray, "D V"]
) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, "D V V"]]:
    """E |f - e_w|^2 of every document (eq 3), and its derivative by f."""
    slope = predicted * shown[:, :, None]
    slope -= targets
    loss = shown.sum(1) + np.einsum("djy,djy->d", predicted, slope) - np.einsum("djy,djy->d", predicted, targets)
    slope *= 2
    return loss, slope


def cross_entropy(
    predicted: Float[np.ndarray, "D V V"], targets: Float[np.ndarray, "D V V"], shown: Float[np.ndarray, "D V"]
) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, "D V V"]]:
    """E of -log softmax(f) at the true word (eq 4), and its derivative by f."""
    top = predicted.max(2, keepdims=True)
    slope = np.exp(predicted - top)
    whole = slope.sum(2, keepdims=True)
    logs = top + np.log(whole)
    loss = (logs[:, :, 0] * shown).sum(1) - np.einsum("djy,djy->d", predicted, targets)
    slope *= shown[:, :, None] / whole
    slope -= targets
    return loss, slope


SLOPES = {"squared": squared, "cross-entropy": cross_entropy}
