"""Theorem 5: W_V frozen at the diagonal optimum (Definition 2). Words attend themselves: beta in an interval, alpha a fraction of it.

>>> [round(number, 5) for number in lambdas(Setting.of())]
[0.088, 447.09577, 0.12845]
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError
from topicscope.theory.constants import Constants
from topicscope.theory.setting import Setting
from topicscope.world import Masking, TopicModel


def diagonal_value_matrix(topic_model: TopicModel, masking: Masking) -> Float[np.ndarray, "V V"]:
    """W_ii = c3 and W_i0 = -c1 for words, row 0 zero (u = 0 in Lemma 1)."""
    c = Constants.of(topic_model, masking)
    matrix = np.eye(topic_model.vocabulary) * c.c3
    matrix[:, 0] = -c.c1
    matrix[0, :] = 0
    return matrix


def lambdas(setting: Setting) -> tuple[float, float, float]:
    """lambda3, lambda4, lambda5."""
    m, v = setting.masking, setting.v
    if v == 1:
        raise InputError("words_per_topic = 1: Theorem 5 divides by v - 1; choose at least 2")
    noise = m.p_mask * m.p_random
    gap = math.sqrt(v - 1) - 2 + (1 - m.p_correct) * m.p_mask
    if gap <= 0:
        raise InputError(
            f"words_per_topic = {v}: Theorem 5's lambda4 needs sqrt(v - 1) > 2 - (1 - p_c) p_m; choose a larger v (10 suffices)"
        )
    lambda4 = v * m.k / gap * (1 - m.p_mask_word * m.p_mask) / noise
    return v * (m.k + noise) / 100, lambda4, 1 / ((v - 1) * m.k)


def bounds(setting: Setting) -> dict[str, float]:
    """lambda3 tau < beta < lambda4 T, and alpha < lambda5 beta."""
    lambda3, lambda4, lambda5 = lambdas(setting)
    return {"beta_low": lambda3 * setting.tau, "beta_high": lambda4 * setting.T, "alpha_over_beta": lambda5}


def contains(setting: Setting, alpha: float, beta: float) -> bool:
    b = bounds(setting)
    return b["beta_low"] < beta < b["beta_high"] and alpha < b["alpha_over_beta"] * beta
