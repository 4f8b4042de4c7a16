"""The population loss with a trained embedding that is used for words in and out, and its exact gradient.

The prediction is W_E' W_V W_E a, and scores come from W_K W_E and W_Q W_E: at the level of words this is the model of
`population_gradient` with three tables, so its gradient goes back through them. The flow takes it as it is.

>>> from topicscope.world import Fixed, Masking, TopicModel
>>> world = TiedPopulation.of(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking())
>>> start = tied_start(vocabulary=13, width=20, attention_dim=5, scale=0.01, seed=0)
>>> [part.shape for part in start], [part.shape for part in world.gradient(start)[1]]
([(20, 33), (5, 20), (5, 20)], [(20, 33), (5, 20), (5, 20)])
"""

from __future__ import annotations

import numpy as np

from topicscope.ground import Stream, generator
from topicscope.theory.population_gradient import PLACES, Matrix, Population, Weights

EMBEDDING = 0
"""Stream of the embedding among those of initial weights."""


class TiedPopulation(Population):
    """As `Population`, with a trained embedding that is used for words in and out.

    Its weights have W_E (d x V) and W_V (d x d) side by side in `value`; W_K and W_Q are d_a x d.

    Attributes:
        true: As in `Population`, and so are the others.
        shown: (D x V).
        probability: (D).
        instead: (V).
        p_correct: A probability.
        objective: 'squared' or 'cross-entropy'.

    Example:
        >>> from topicscope.world import Fixed, Masking, TopicModel
        >>> world = TiedPopulation.of(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking())
        >>> start = tied_start(vocabulary=13, width=5, attention_dim=4, scale=0.0, seed=0)
        >>> round(world.loss(start), 9)  # nothing is predicted
        1.0
    """

    def fits(self, weights: Weights) -> bool:
        value, key, query = (part.shape for part in weights)
        return value[1] == value[0] + self.shown.shape[1] and key == query and key[1:] == value[:1]

    def gradient(self, weights: Weights) -> tuple[float, Weights]:
        embedding, value = split(weights, self.shown.shape[1])
        key, query = weights.key, weights.query
        loss, (by_table, by_key, by_query) = super().gradient(word_tables(weights, self.shown.shape[1]))
        by_embedding = (value @ embedding) @ by_table.T + (value.T @ embedding) @ by_table
        by_embedding += key.T @ by_key + query.T @ by_query
        by_value = embedding @ by_table @ embedding.T
        return loss, Weights(np.hstack([by_embedding, by_value]), by_key @ embedding.T, by_query @ embedding.T)


def split(weights: Weights, vocabulary: int) -> tuple[Matrix, Matrix]:
    """W_E and W_V."""
    return weights.value[:, :vocabulary], weights.value[:, vocabulary:]


def word_tables(weights: Weights, vocabulary: int) -> Weights:
    """The model with one-hot words that predicts the same as one with an embedding.

    Args:
        weights: W_E and W_V side by side in `value`; W_K and W_Q.
        vocabulary: V.

    Returns:
        W_E' W_V W_E, W_K W_E and W_Q W_E.

    Example:
        >>> start = tied_start(vocabulary=13, width=5, attention_dim=4, scale=0.1, seed=0)
        >>> [part.shape for part in word_tables(start, 13)]
        [(13, 13), (4, 13), (4, 13)]
    """
    embedding, value = split(weights, vocabulary)
    return Weights(embedding.T @ value @ embedding, weights.key @ embedding, weights.query @ embedding)


def tied_start(vocabulary: int, width: int, attention_dim: int, scale: float, seed: int) -> Weights:
    """Initial weights with an embedding, from N(0, scale^2): those with which `train` starts for this seed.

    Args:
        vocabulary: V.
        width: d.
        attention_dim: d_a.
        scale: Standard deviation.
        seed: Seed of the random streams.

    Returns:
        W_E and W_V side by side in `value` (d x (V + d)); W_K and W_Q (d_a x d).

    Example:
        >>> [part.shape for part in tied_start(vocabulary=13, width=5, attention_dim=4, scale=0.1, seed=0)]
        [(5, 18), (4, 5), (4, 5)]
    """
    shapes = ((width, vocabulary), (width, width), (attention_dim, width), (attention_dim, width))
    places = (EMBEDDING, *PLACES)
    embedding, value, key, query = (
        scale * generator(seed, Stream.INITIAL_WEIGHTS, place).standard_normal(shape)
        for place, shape in zip(places, shapes, strict=True)
    )
    return Weights(np.hstack([embedding, value]), key, query)
