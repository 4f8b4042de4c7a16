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
    """Whether a matrix is in the family of Lemma 1.

    Attributes:
        u: The best free number of each row (V).
        violation: The largest violation of any condition.

    Example:
        See `fit_family`.
    """

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
    """Test whether a matrix is in the family of Lemma 1.

    For each row the T + 1 conditions are linear in one unknown u_i, fitted by least squares.

    Args:
        matrix: A value matrix (V x V).
        setting: T, v and masking.
        column: Replaces Lemma 1's constants of the [MASK] column (Theorem 1 has zeros there).

    Returns:
        The free numbers u, and the largest violation.

    Raises:
        InputError: The matrix has another shape.

    Example:
        >>> setting = Setting.of(4, 3)
        >>> member = random_member(setting, np.random.default_rng(0))
        >>> fit_family(member, setting).violation < 1e-12, fit_family(2 * member, setting).violation > 0.1
        (True, True)
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
    """A random matrix of the family of Lemma 1: all of them have the same, least loss."""
    size, v = setting.topic_model.vocabulary, setting.v
    u = scale * rng.standard_normal(size) if u is None else u
    column, sums = targets(setting)
    blocks = scale * rng.standard_normal((size, setting.T, v))
    blocks += ((sums + v * u[:, None]) - blocks.sum(2))[:, :, None] / v
    return np.hstack([(column - setting.constants.c2 * u)[:, None], blocks.reshape(size, -1)])


def family_loss(setting: Setting) -> float:
    """The loss of every member of the family of Lemma 1: 1 - 1 / (tau v).

    Each predicts 1 / (tau v) for the words of the document and 0 for all others.

    Args:
        setting: T, v and tau.

    Returns:
        The squared loss.

    Example:
        >>> round(family_loss(Setting.of(10, 10, 2)), 9)
        0.95
    """
    return 1 - 1 / (setting.tau * setting.v)
