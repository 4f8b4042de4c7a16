"""Theorems 1 and 2: the embeddings and the value matrix that are optimal under uniform attention, and their family."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from topicscope.ground import refuse_if
from topicscope.theory.theorem import K_FROM, NO_K, Entry, Examination, Matrix, OptimumTheorem, Setting
from topicscope.world import Masking, TopicModel


@dataclass(frozen=True)
class Membership:
    """Whether a matrix is in the family of Lemma 1 (and Theorem 4): all value matrices that are optimal without L2.

    The family has free numbers u_0..u_Tv: W_00 = -c2 u_0, the entries of row 0 sum to u_0 v over each topic;
    W_i0 = -c1 - c2 u_i, the entries of row i sum to u_i v + c3 over its own topic and to u_i v over any other.

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
    """Test whether a matrix is in the family of Lemma 1: per row, T + 1 conditions that are linear in one unknown u_i.

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
    refuse_if(
        matrix.shape != (size, size),
        f"the matrix has shape {matrix.shape}; expected ({size}, {size}): topics * words_per_topic + 1",
    )
    default, sums = targets(setting)
    first = matrix[:, 0] - (default if column is None else column)  # = -c2 u
    rest = setting.topic_model.by_topic(matrix[:, 1:]).sum(2) - sums  # = u v
    u = (-c2 * first + v * rest.sum(1)) / (c2**2 + setting.T * v**2)
    return Membership(u, max(float(np.abs(first + c2 * u).max()), float(np.abs(rest - v * u[:, None]).max())))


def random_member(
    setting: Setting, rng: np.random.Generator, *, u: Float[np.ndarray, " V"] | None = None, scale: float = 0.1
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


@dataclass(frozen=True, repr=False)
class Theorem1(OptimumTheorem):
    """Theorem 1: only the embedding is trained (uniform attention, W_V = I), with the prediction bias fixed.

    E = W_E'W_E satisfies the conditions of Lemma 1 with E_i0 = -c2 u_i: the bias takes over what c1 does there.

    Attributes:
        setting: T, v and masking.
        bias: The fixed bias of every word; that of [MASK] is 0.
        c2: Constant of the family of optimal Gram matrices.
        c3: Constant of the family: 1 / k.

    Example:
        See `theorem1`.
    """

    given: ClassVar[str] = "embedding"
    part: ClassVar[str] = "embedding"
    picture: ClassVar[str] = "the simplest optimum, E = I / k"

    setting: Setting
    bias: float
    c2: float
    c3: float

    @property
    def sentence(self) -> str:
        return (
            "Theorem 1: with uniform attention, W_V = I and this bias, E = W_E'W_E is optimal exactly if in every row "
            f"the entries sum to u_i v + {self.c3:.6g} over the word's own topic and to u_i v over any other topic, "
            "with E_i0 = -c2 u_i."
        )

    def summary(self) -> list[str]:
        return [
            self.sentence,
            "How to read it: on average a word's embedding is closer to its own topic than to any other, by "
            f"{self.c3 / self.setting.v:.6g} per entry. The simplest member is E = I / k (words know only themselves); "
            "blocks are another.",
        ]

    def matrix(self) -> Matrix:
        """The simplest member of the family, with u = 0: words only know themselves, E = I / k; [MASK] is nothing."""
        return np.diag([0.0] + [self.c3] * self.setting.topic_model.words)

    def contains(self, embedding: Float[np.ndarray, "d V"], tolerance: float = 1e-6) -> bool:
        return self.examine(embedding).numbers["violation"] <= tolerance

    def examine(self, given: Float[np.ndarray, "d V"]) -> Examination:
        member = fit_embedding(given, self.setting.topic_model, self.setting.masking)
        return Examination(
            "membership",
            {"violation": member.violation, "u_mean": float(member.u.mean())},
            f"the largest violation of the conditions is {member.violation:.4g} "
            f"(0 for a member; c3 = {self.c3:.4g} is the scale).",
        )

    def numbers(self) -> dict[str, float]:
        return super().numbers() | {"mask_bias": 0.0, "identity_diagonal": self.c3}

    def entries(self) -> list[Entry]:
        return [
            Entry("b_i", self.bias, "fixed prediction bias of every word; [MASK]'s is 0"),
            Entry("c3 = 1/k", self.c3, "how much a word's own topic outweighs any other topic, summed over the topic"),
            Entry("c2", self.c2, "weight of the free u_i in the [MASK] column: E_i0 = -c2 u_i"),
        ]


def theorem1(setting: Setting) -> Theorem1:
    """Theorem 1: the optimal Gram matrices E = W_E'W_E where only the embedding is trained, and the fixed bias.

    Args:
        setting: T, v and masking.

    Returns:
        The theorem with its numbers.

    Example:
        >>> theorem = theorem1(Setting.of(4, 3))
        >>> embedding = np.diag([0.0] + [theorem.c3**0.5] * 12)
        >>> round(theorem.c3, 6), theorem.contains(embedding), theorem.contains(2 * embedding)
        (1.156069, True, False)
    """
    c = setting.constants
    return Theorem1(setting, prediction_bias_at(setting.topic_model, setting.masking), c.c2, c.c3)


def prediction_bias(topic_model: TopicModel, masking: Masking) -> Float[np.ndarray, " V"]:
    """The prediction bias of Theorem 1, b_0 = 0 and b_i = -p_m p_r / (k T v): it takes away what random words cause.

    Args:
        topic_model: Says how many words there are.
        masking: The masking scheme.

    Returns:
        The bias (V).

    Example:
        >>> prediction_bias(TopicModel(2, 1), Masking()).round(6).tolist()
        [0.0, -0.008671, -0.008671]
    """
    return np.append(0.0, np.full(topic_model.words, prediction_bias_at(topic_model, masking)))


def prediction_bias_at(topic_model: TopicModel, masking: Masking) -> float:
    refuse_if(masking.k < K_FROM, NO_K)
    return -masking.p_mask * masking.p_random / (masking.k * topic_model.words)


def fit_embedding(embedding: Float[np.ndarray, "d V"], topic_model: TopicModel, masking: Masking) -> Membership:
    """Test whether W_E'W_E of an embedding is in the family of Theorem 1.

    Args:
        embedding: W_E (d x V).
        topic_model: T and v.
        masking: The masking scheme.

    Returns:
        The free numbers of the family, and the largest violation.

    Raises:
        InputError: The embedding has another number of columns.

    Example:
        >>> embedding = np.diag([0.0, 1.0, 1.0]) / Masking().k ** 0.5
        >>> fit_embedding(embedding, TopicModel(2, 1), Masking()).violation < 1e-12
        True
    """
    shape, columns = embedding.shape, topic_model.vocabulary
    refuse_if(
        embedding.ndim != 2 or shape[1] != columns,
        f"the embedding has shape {shape}; expected (dim, {columns}): one column per word",
    )
    return fit_family(embedding.T @ embedding, Setting(topic_model, 1, masking), np.zeros(columns))


def random_gram(setting: Setting, rng: np.random.Generator) -> Matrix:
    """A realisable E = u z z' + c3 blocks(1/v) + C R'R C, with random u >= 0 and R, z = (-c2, 1, ..., 1).

    C is the centring inside each topic, whose sums over topics vanish.
    """
    c, topic_model = setting.constants, setting.topic_model
    root = rng.standard_normal((topic_model.words,) * 2) / np.sqrt(topic_model.words)
    z = np.append(-c.c2, np.ones(topic_model.words))
    gram, mean = float(rng.uniform(0, 0.1)) * np.outer(z, z), topic_model.same_topic[1:, 1:] * (1 / setting.v)
    centring = np.eye(topic_model.words) - mean
    gram[1:, 1:] += c.c3 * mean
    gram[1:, 1:] += centring @ (root.T @ root) @ centring
    return gram


def embedding_of(gram: Matrix) -> Matrix:
    """W_E with W_E'W_E = E, which has no eigenvalue below 0 but for rounding."""
    values, vectors = np.linalg.eigh(gram)
    return np.sqrt(np.maximum(values, 0))[:, None] * vectors.T


@dataclass(frozen=True, repr=False)
class Theorem2(OptimumTheorem):
    """Theorem 2: the entries of W_V, of which only four are different.

    Attributes:
        setting: T, v and masking.
        same_topic: W_il, l in the topic of i.
        different_topic: W_il, l in another topic.
        mask_column: W_i0: what [MASK] contributes to word i.
        mask_row: W_0l: nothing predicts [MASK].

    Example:
        See `theorem2`.
    """

    picture: ClassVar[str] = "W_V (first row and column: [MASK])"

    setting: Setting
    same_topic: float
    different_topic: float
    mask_column: float
    mask_row: float

    @property
    def sentence(self) -> str:
        return (
            f"Theorem 2: as lambda -> 0 the trained W_V is block-wise: {self.same_topic:.6g} inside a topic and "
            f"{self.different_topic:.6g} between topics."
        )

    def summary(self) -> list[str]:
        return [
            self.sentence,
            "How to read it: a word seen in the document votes for all words of its topic, "
            f"{self.setting.constants.c3 / self.setting.v:.6g} (= c3 / v) more than for others; "
            "the small negative entries and the [MASK] column together cancel what random words add. W_V times the "
            "word shares of an infinite masked document is then exactly the word distribution of the document before "
            "masking.",
        ]

    def matrix(self) -> Matrix:
        matrix = np.where(self.setting.topic_model.same_topic, self.same_topic, self.different_topic)
        matrix[:, 0] = self.mask_column
        matrix[0, :] = self.mask_row
        return matrix

    def contains(self, matrix: Matrix, tolerance: float = 1e-6) -> bool:
        return matrix.shape == self.matrix().shape and self._difference(matrix) <= tolerance

    def examine(self, given: Matrix) -> Examination:
        violation, difference = fit_family(given, self.setting).violation, self._difference(given)
        return Examination(
            "comparison",
            {"largest_difference": difference, "family_violation": violation},
            f"the largest difference from Theorem 2 is {difference:.4g}; "
            f"the largest violation of Lemma 1's conditions is {violation:.4g}.",
        )

    def _difference(self, matrix: Matrix) -> float:
        return float(np.abs(matrix - self.matrix()).max())

    def numbers(self) -> dict[str, float]:
        return super().numbers() | asdict(self.setting.constants)

    def entries(self) -> list[Entry]:
        return [
            Entry("same topic", self.same_topic, "W_il, words i and l of one topic (the diagonal too)"),
            Entry("different topic", self.different_topic, "W_il, words of two topics"),
            Entry("[MASK] column", self.mask_column, "W_i0, what [MASK] adds to every word"),
            Entry("[MASK] row", self.mask_row, "W_0l: nothing predicts [MASK]"),
        ]


def theorem2(setting: Setting) -> Theorem2:
    """Theorem 2: the value matrix of least norm under uniform attention, the limit of vanishing L2 regularisation.

    Args:
        setting: T, v and masking.

    Returns:
        The theorem with its four entries, and `matrix()`.

    Example:
        >>> theorem = theorem2(Setting.of(topics=4, words_per_topic=3))
        >>> round(theorem.same_topic, 6), round(theorem.different_topic, 6), theorem.matrix().shape
        (0.366439, -0.018918, (13, 13))
    """
    c, words = setting.constants, setting.topic_model.words
    norm = c.c2**2 + words
    different = -(c.c1 * c.c2 + c.c3) / norm
    return Theorem2(
        setting,
        same_topic=different + c.c3 / setting.v,
        different_topic=different,
        mask_column=(c.c2 * c.c3 - c.c1 * words) / norm,
        mask_row=0.0,
    )
