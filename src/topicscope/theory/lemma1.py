"""Lemma 1 and Theorem 4: all value matrices that are optimal under uniform attention without L2.

They are a family with free numbers u_0..u_Tv:  W_00 = -c2 u_0, the entries of row 0 sum to u_0 v over each topic;
W_i0 = -c1 - c2 u_i, the entries of row i sum to u_i v + c3 over its own topic and to u_i v over any other.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.ground import refuse
from topicscope.theory.setting import Setting


@dataclass(frozen=True)
class Membership:
    """The best u, row by row, and by how much the conditions fail: the largest violation of any of them."""

    u: Float[np.ndarray, " V"]
    violation: float


def targets(setting: Setting) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, "V T"]]:
    """What W_i0 + c2 u_i and (sum of row i over topic t) - u_i v have to be."""
    topic = setting.topic_model.topic_of_word
    own = topic[:, None] == np.arange(1, setting.T + 1)
    return np.where(topic == 0, 0, -setting.constants.c1), own * setting.constants.c3


def fit_family(
    matrix: Float[np.ndarray, "V V"], setting: Setting, column: Float[np.ndarray, " V"] | None = None
) -> Membership:
    """Membership test. For each row the T + 1 conditions are linear in one unknown u_i, fitted by least squares.

    `column` replaces Lemma 1's constants of the [MASK] column (Theorem 1 has zeros there).
    """
    size, v, c2 = setting.topic_model.vocabulary, setting.v, setting.constants.c2
    refuse(
        (
            matrix.shape != (size, size),
            f"the matrix has shape {matrix.shape}; expected ({size}, {size}): topics * words_per_topic + 1",
        )
    )
    default, sums = targets(setting)
    first = matrix[:, 0] - (default if column is None else column)  # = -c2 u
    rest = setting.topic_model.by_topic(matrix[:, 1:]).sum(2) - sums  # = u v
    u = (-c2 * first + v * rest.sum(1)) / (c2**2 + setting.T * v**2)
    return Membership(u, max(float(np.abs(first + c2 * u).max()), float(np.abs(rest - v * u[:, None]).max())))


def random_member(
    setting: Setting,
    rng: np.random.Generator,
    *,
    u: Float[np.ndarray, " V"] | None = None,
    scale: float = 0.1,
) -> Float[np.ndarray, "V V"]:
    """A matrix of the family: random entries, moved in each topic so that they sum to what they have to."""
    size, v = setting.topic_model.vocabulary, setting.v
    u = scale * rng.standard_normal(size) if u is None else u
    column, sums = targets(setting)
    blocks = scale * rng.standard_normal((size, setting.T, v))
    blocks += ((sums + v * u[:, None]) - blocks.sum(2))[:, :, None] / v
    return np.hstack([(column - setting.constants.c2 * u)[:, None], blocks.reshape(size, -1)])


def family_loss(setting: Setting) -> float:
    """Every member predicts 1 / (tau v) for the words of the document and 0 for all others: loss 1 - 1 / (tau v)."""
    return 1 - 1 / (setting.tau * setting.v)
