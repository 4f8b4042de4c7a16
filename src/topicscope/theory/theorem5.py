"""Theorem 5 starts from the diagonal optimum: the member of Lemma 1's family whose words do not use each other."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from topicscope.theory.constants import Constants
from topicscope.world import Masking, TopicModel


def diagonal_value_matrix(topic_model: TopicModel, masking: Masking) -> Float[np.ndarray, "V V"]:
    """W_ii = c3 and W_i0 = -c1 for words, row 0 zero (u = 0 in Lemma 1)."""
    c = Constants.of(topic_model, masking)
    matrix = np.eye(topic_model.vocabulary) * c.c3
    matrix[:, 0] = -c.c1
    matrix[0, :] = 0
    return matrix
