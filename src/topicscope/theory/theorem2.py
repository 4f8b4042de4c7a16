"""Theorem 2: the value matrix of least norm under uniform attention, the limit of vanishing L2 regularisation.

>>> optimum = theorem2(TopicModel(10, 10), Masking())
>>> round(optimum.same_topic, 6), round(optimum.different_topic, 7), round(optimum.mask_column, 6)
(0.10802, -0.0075867, 0.054191)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.theory.constants import Constants
from topicscope.world import Masking, TopicModel


@dataclass(frozen=True)
class Theorem2:
    """The entries of W_V; there are only four different ones."""

    same_topic: float  # W_il, l in the topic of i
    different_topic: float  # W_il, l in another topic
    mask_column: float  # W_i0: what [MASK] contributes to word i
    mask_row: float  # W_0l: nothing ever predicts [MASK]

    def matrix(self, topic_model: TopicModel) -> Float[np.ndarray, "V V"]:
        topic = topic_model.topic_of_word
        matrix = np.where(topic[:, None] == topic, self.same_topic, self.different_topic)
        matrix[:, 0] = self.mask_column
        matrix[0, :] = self.mask_row
        return matrix


def theorem2(topic_model: TopicModel, masking: Masking) -> Theorem2:
    c = Constants.of(topic_model, masking)
    norm = c.c2**2 + topic_model.words
    different = -(c.c1 * c.c2 + c.c3) / norm
    return Theorem2(
        same_topic=different + c.c3 / topic_model.words_per_topic,
        different_topic=different,
        mask_column=(c.c2 * c.c3 - c.c1 * topic_model.words) / norm,
        mask_row=0.0,
    )
