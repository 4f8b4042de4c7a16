"""Lemma 1 and Theorem 4: all value matrices that are optimal under uniform attention without L2.

They are a family with free numbers u_0..u_Tv:  W_00 = -c2 u_0, the entries of row 0 sum to u_0 v over each topic;
W_i0 = -c1 - c2 u_i, the entries of row i sum to u_i v + c3 over its own topic and to u_i v over any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError
from topicscope.theory.constants import Constants
from topicscope.world import Masking, TopicModel


@dataclass(frozen=True)
class Membership:
    """The best u, row by row, and by how much the conditions fail: the largest violation of any of them."""

    u: Float[np.ndarray, " V"]
    violation: float


def targets(topic_model: TopicModel, masking: Masking) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, "V T"]]:
    """What W_i0 + c2 u_i and (sum of row i over topic t) - u_i v have to be."""
    c = Constants.of(topic_model, masking)
    column = np.full(topic_model.vocabulary, -c.c1)
    column[0] = 0
    own = topic_model.topic_of_word[:, None] == np.arange(1, topic_model.topics + 1)
    return column, own * c.c3


def fit_family(
    matrix: Float[np.ndarray, "V V"],
    topic_model: TopicModel,
    masking: Masking,
    column: Float[np.ndarray, " V"] | None = None,
) -> Membership:
    """Membership test. For each row the T + 1 conditions are linear in one unknown u_i, fitted by least squares.

    `column` replaces Lemma 1's constants of the [MASK] column (Theorem 1 has zeros there).
    """
    vocabulary, topics, v = topic_model.vocabulary, topic_model.topics, topic_model.words_per_topic
    if matrix.shape != (vocabulary, vocabulary):
        raise InputError(
            f"the matrix has shape {matrix.shape}; expected ({vocabulary}, {vocabulary}): topics * words_per_topic + 1"
        )
    c2 = Constants.of(topic_model, masking).c2
    default, sums = targets(topic_model, masking)
    first = matrix[:, 0] - (default if column is None else column)  # = -c2 u
    rest = topic_model.by_topic(matrix[:, 1:]).sum(2) - sums  # = u v
    u = (-c2 * first + v * rest.sum(1)) / (c2**2 + topics * v**2)
    violation = max(float(np.abs(first + c2 * u).max()), float(np.abs(rest - v * u[:, None]).max()))
    return Membership(u, violation)


def random_member(
    topic_model: TopicModel,
    masking: Masking,
    rng: np.random.Generator,
    *,
    u: Float[np.ndarray, " V"] | None = None,
    scale: float = 0.1,
) -> Float[np.ndarray, "V V"]:
    """A matrix of the family: random entries, moved in each topic so that they sum to what they have to."""
    vocabulary, topics, v = topic_model.vocabulary, topic_model.topics, topic_model.words_per_topic
    u = scale * rng.standard_normal(vocabulary) if u is None else u
    column, sums = targets(topic_model, masking)
    blocks = scale * rng.standard_normal((vocabulary, topics, v))
    blocks += ((sums + v * u[:, None]) - blocks.sum(2))[:, :, None] / v
    return np.hstack([(column - Constants.of(topic_model, masking).c2 * u)[:, None], blocks.reshape(vocabulary, -1)])


def family_loss(topic_model: TopicModel, topics_per_document: int) -> float:
    """Every member predicts 1 / (tau v) for the words of the document and 0 for all others: loss 1 - 1 / (tau v)."""
    return 1 - 1 / (topics_per_document * topic_model.words_per_topic)
