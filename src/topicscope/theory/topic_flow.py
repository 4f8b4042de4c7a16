"""Gradient flow of topics: infinite documents in which the words of a topic are alike, with or without an embedding.

Words of one topic have the same share of every document, so forces on W_V, W_K, W_Q and W_E lie in the space of
matrices that treat them alike; in coordinates of that space (one per [MASK] and topic, each of norm 1) the flow has
T + 1 words in place of V. What the start has outside of it stays, but for differences inside topics that the scores
of a large start make: these, and with them the third act, are left out.

>>> from topicscope.world import Fixed
>>> world = TopicPopulation.of_topics(TopicModel(4, 3), Fixed(topics_per_document=2), Masking(), "cross-entropy")
>>> world.shown.shape, round(world.loss(world.alike(np.zeros((13, 13)), np.zeros((5, 13)), np.zeros((5, 13)))), 6)
((6, 5), 2.564949)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError
from topicscope.theory.flow_documents import flow_documents
from topicscope.theory.forces import Loss
from topicscope.theory.population_gradient import Matrix, Population, Weights
from topicscope.world import DocumentPrior, Masking, TopicModel


@dataclass(frozen=True, eq=False)
class TopicPopulation(Population):
    """As `Population`, with [MASK] and topics in place of words: for words of a topic that are alike.

    Its weights have the output bias as last column of `value`. With an embedding `value` is W_E, W_V and the bias side
    by side, and W_K and W_Q act on embeddings.

    Attributes:
        true: Shares of topics among true words (D x G), G = T + 1.
        shown: Shares of [MASK] and topics among words shown (D x G).
        probability: Probability of each document (D).
        instead: What a masked position shows where it does not show its own word (G).
        p_correct: How often it shows its own word.
        objective: 'squared' or 'cross-entropy'.
        sizes: Words of [MASK] and of each topic (G).
        embedded: Whether there is a trained embedding.
        bias: Whether the output has a trained bias.

    Example:
        >>> from topicscope.world import Fixed
        >>> world = TopicPopulation.of_topics(TopicModel(4, 3), Fixed(topics_per_document=2), Masking())
        >>> world.sizes.tolist(), world.true.shape
        ([1.0, 3.0, 3.0, 3.0, 3.0], (6, 5))
    """

    sizes: Float[np.ndarray, " G"] = None  # type: ignore[assignment]
    embedded: bool = False
    bias: bool = True

    @classmethod
    def of_topics(
        cls,
        topic_model: TopicModel,
        prior: DocumentPrior,
        masking: Masking,
        objective: Loss = "squared",
        *,
        embedded: bool = False,
        bias: bool = True,
    ) -> TopicPopulation:
        """From the documents of `flow_documents`."""
        if not topic_model.uniform:
            raise InputError("the flow of topics needs disjoint topics of equally many, equally probable words")
        topics, block = topic_model.topics, topic_model.block_size
        thetas, probability = flow_documents(prior, topics, block, masking)
        each = cls.kinds_per_topic(block)
        kinds = topics * each
        true = np.pad(np.repeat(thetas / each, each, axis=1), ((0, 0), (1, 0)))
        instead = np.array([masking.p_mask_word, *[masking.p_random / kinds] * kinds])
        shown = (1 - masking.p_mask) * true + masking.p_mask * (masking.p_correct * true + instead)
        sizes = np.array([1.0, *[block / each] * kinds])
        numbers = (true, shown, probability, instead, masking.p_correct, objective)
        return cls(*numbers, sizes=sizes, embedded=embedded, bias=bias)

    @classmethod
    def kinds_per_topic(cls, block: int) -> int:
        """Kinds of words in a topic of `block` words: all are alike."""
        return 1

    @property
    def basis(self) -> Float[np.ndarray, "V G"]:
        """Columns of norm 1, each the same on all words of a topic."""
        words = np.repeat(np.arange(len(self.sizes)), self.sizes.astype(int))
        return np.eye(len(self.sizes))[words] / np.sqrt(self.sizes)[words, None]

    @cached_property
    def targets(self) -> Float[np.ndarray, "D G G"]:
        """P(word shown, true word), summed over the words of each topic."""
        own = self.p_correct * self.true[:, :, None] * np.eye(len(self.sizes))
        return self.instead[:, None] * self.true[:, None, :] + own

    def alike(self, value: Matrix, key: Matrix, query: Matrix, embedding: Matrix | None = None) -> Weights:
        """The part of these weights that treats the words of a topic alike, with a bias of zero."""
        basis = self.basis
        if embedding is None:
            return Weights(np.pad(basis.T @ value @ basis, ((0, 0), (0, 1))), key @ basis, query @ basis)
        return Weights(np.hstack([embedding @ basis, value, np.zeros((len(value), 1))]), key, query)

    def value_part(self, weights: Weights) -> Matrix:
        """W_V without embedding and bias."""
        return weights.value[:, len(self.sizes) if self.embedded else 0 : -1]

    def fits(self, weights: Weights) -> bool:
        value, key, query = (part.shape for part in weights)
        groups = len(self.sizes)
        width = value[0] if self.embedded else groups
        columns = 1 + (groups + width if self.embedded else groups)
        return value == (width, columns) and width >= groups and key == query and key[1] == width

    def gradient(self, weights: Weights) -> tuple[float, Weights]:
        """The loss and its gradient in the coordinates of `alike`."""
        groups, root = len(self.sizes), np.sqrt(self.sizes)
        value, bias = self.value_part(weights), weights.value[:groups, -1] / root
        embedding = weights.value[:, :groups] / root if self.embedded else np.diag(1 / root)
        keys, queries = weights.key @ embedding, weights.query @ embedding
        loss, by_table, by_score, by_bias = self.by_tables(
            embedding.T @ value @ embedding, keys.T @ queries / math.sqrt(len(keys)), bias
        )
        by_score /= math.sqrt(len(keys))
        by_keys, by_queries = queries @ by_score.T, keys @ by_score
        by_value, column = embedding @ by_table @ embedding.T, np.zeros((len(value), 1))
        column[:groups, 0] = self.bias * by_bias / root
        parts = [by_value, column]
        if self.embedded:
            by_embedding = value @ embedding @ by_table.T + value.T @ embedding @ by_table
            by_embedding += weights.key.T @ by_keys + weights.query.T @ by_queries
            parts.insert(0, by_embedding / root)
        return loss, Weights(np.hstack(parts), by_keys @ embedding.T, by_queries @ embedding.T)

    def by_tables(
        self, table: Float[np.ndarray, "G G"], scores: Float[np.ndarray, "G G"], bias: Float[np.ndarray, " G"]
    ) -> tuple[float, Float[np.ndarray, "G G"], Float[np.ndarray, "G G"], Float[np.ndarray, " G"]]:
        """Loss, and its derivatives by what a word adds to another (output, key), by scores (key, query), by the bias.

        All words of a topic share an entry.
        """
        attention = self.shown[:, None, :] * np.exp(scores - scores.max(0)).T  # document, query, key
        attention /= attention.sum(2, keepdims=True)
        predicted = attention @ table.T + bias
        targets, asked = self.targets, self.queries[:, :, None]
        if self.objective == "squared":
            slope = 2 * (asked * self.sizes * predicted - targets)
            loss = asked.sum((1, 2)) + (predicted * (asked * self.sizes * predicted - 2 * targets)).sum((1, 2))
        else:
            top = predicted.max(2, keepdims=True)
            odds = self.sizes * np.exp(predicted - top)
            whole = odds.sum(2, keepdims=True)
            slope = asked * odds / whole - targets
            loss = (asked * (top + np.log(whole))).sum((1, 2)) - (predicted * targets).sum((1, 2))
        slope *= self.probability[:, None, None]
        pull = slope @ table
        pull -= (attention * pull).sum(2, keepdims=True)
        flat = slope.reshape(-1, len(bias))
        by_table = flat.T @ attention.reshape(-1, len(bias))
        by_score = (attention * pull).sum(0).T
        return float(self.probability @ loss), by_table, by_score, flat.sum(0)


class WordPopulation(TopicPopulation):
    """As `TopicPopulation`, with every word on its own: for starts in which words of a topic differ too much.

    Attributes:
        true: Shares of words among true words (D x V).
        shown: Shares of [MASK] and words among words shown (D x V).
        probability: Probability of each document (D).
        instead: What a masked position shows where it does not show its own word (V).
        p_correct: How often it shows its own word.
        objective: 'squared' or 'cross-entropy'.
        sizes: 1 for each word (V).
        embedded: Whether there is a trained embedding.
        bias: Whether the output has a trained bias.

    Example:
        >>> from topicscope.world import Fixed
        >>> world = WordPopulation.of_topics(TopicModel(4, 3), Fixed(topics_per_document=2), Masking())
        >>> world.true.shape, world.sizes.tolist() == [1.0] * 13
        ((6, 13), True)
    """

    @classmethod
    def kinds_per_topic(cls, block: int) -> int:
        return block

    def by_tables(
        self, table: Float[np.ndarray, "V V"], scores: Float[np.ndarray, "V V"], bias: Float[np.ndarray, " V"]
    ) -> tuple[float, Float[np.ndarray, "V V"], Float[np.ndarray, "V V"], Float[np.ndarray, " V"]]:
        """By sums over groups of words. Attention sums to 1, so a bias is the same as a number added to each column."""
        loss, by_table, by_score = self.from_tables(table + bias[:, None], scores)
        return loss, by_table, by_score, by_table.sum(1)
