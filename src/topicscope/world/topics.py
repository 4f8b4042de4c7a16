"""The topic model of Section 3.1: T disjoint topics of v words; word 0 is [MASK].

>>> TopicModel(3, 2).topic_of_word.tolist()
[0, 1, 1, 2, 2, 3, 3]
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
from pydantic import model_validator

from topicscope.ground import Count, Matrix, Row, section

MASK = 0
"""The word that stands for a hidden one."""


@section
class TopicModel:
    """`topics` (T) disjoint topics of `words_per_topic` (v) words each.

    `word_probabilities` lets the words of a topic differ in probability (the paper's footnote 2): v numbers that all
    topics share, or one list of v numbers per topic. None means uniform, as in the paper.
    """

    topics: Count = 10
    words_per_topic: Count = 10
    word_probabilities: Row | Matrix | None = None

    @model_validator(mode="after")
    def _check(self) -> TopicModel:
        if self.word_probabilities is None:
            return self
        p = np.asarray(self.word_probabilities, dtype=float)
        topics, v = self.topics, self.words_per_topic
        if p.shape not in {(v,), (topics, v)}:
            raise ValueError(
                f"word_probabilities has shape {p.shape}; expected ({v},) for all topics, or ({topics}, {v})"
            )
        if not (p > 0).all() or not np.allclose(p.sum(-1), 1, atol=1e-6):
            raise ValueError("word_probabilities must be positive and sum to 1 in each topic")
        return self

    @property
    def words(self) -> int:
        """Tv, the number of words without [MASK]."""
        return self.topics * self.words_per_topic

    @property
    def vocabulary(self) -> int:
        """V = Tv + 1, [MASK] included."""
        return self.words + 1

    @property
    def uniform(self) -> bool:
        """Whether all words of a topic are equally probable, as the theorems assume."""
        return self.word_probabilities is None

    @cached_property
    def topic_of_word(self) -> Int[np.ndarray, " V"]:
        """topic(i) = ceil(i / v) (Definition 1); 0 for [MASK]."""
        return -(-np.arange(self.vocabulary) // self.words_per_topic)

    @cached_property
    def word_given_topic(self) -> Float[np.ndarray, "T v"]:
        """Probability of each word inside its topic; rows sum to 1."""
        given = self.word_probabilities or [1.0] * self.words_per_topic
        p = np.broadcast_to(np.asarray(given, dtype=float), (self.topics, self.words_per_topic))
        return p / p.sum(1, keepdims=True)

    @cached_property
    def word_in_topic(self) -> Float[np.ndarray, " V"]:
        """The same by word: probability of each word inside its topic; 0 for [MASK]."""
        return np.concatenate([[0.0], self.word_given_topic.ravel()])

    @cached_property
    def word_topics(self) -> Float[np.ndarray, "Tv T"]:
        """A: probability of each word (rows, without [MASK]) in each topic (columns, which sum to 1)."""
        matrix = np.zeros((self.words, self.topics))
        matrix[np.arange(self.words), self.topic_of_word[1:] - 1] = self.word_in_topic[1:]
        return matrix

    @property
    def same_topic(self) -> Bool[np.ndarray, "V V"]:
        """Whether two words have the same topic; [MASK] is alone in its own."""
        return self.topic_of_word[:, None] == self.topic_of_word

    def by_topic(self, values: Float[np.ndarray, "*D Tv"]) -> Float[np.ndarray, "*D T v"]:
        """Values of the words 1..Tv (the last axis), split into topics."""
        return values.reshape(*values.shape[:-1], self.topics, self.words_per_topic)

    def word_distribution(self, proportions: Float[np.ndarray, "D T"]) -> Float[np.ndarray, "D Tv"]:
        """P(word | document) for words 1..Tv, from the documents' topic proportions."""
        return (proportions[:, :, None] * self.word_given_topic).reshape(len(proportions), self.words)
