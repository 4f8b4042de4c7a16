"""Theorem 1: only the embedding is trained; the prediction bias is fixed at the value that makes the optimum reachable."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from topicscope.world import Masking, TopicModel


def prediction_bias(topic_model: TopicModel, masking: Masking) -> Float[np.ndarray, " V"]:
    """b_0 = 0 and b_i = -p_m p_r / (k T v): takes away the share of every prediction that random words cause."""
    bias = np.full(topic_model.vocabulary, -masking.p_mask * masking.p_random / (masking.k * topic_model.words))
    bias[0] = 0
    return bias
