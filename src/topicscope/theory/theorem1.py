"""Theorem 1: only the embedding is trained (uniform attention, W_V = I), with the prediction bias fixed.

E = W_E'W_E satisfies the conditions of Lemma 1 with E_i0 = -c2 u_i: the bias takes over what c1 does there.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from topicscope.ground import refuse
from topicscope.theory.document_moments import K_FROM, NO_K
from topicscope.theory.lemma1 import Membership, fit_family
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import Entry, Examination, Matrix, OptimumTheorem
from topicscope.world import Masking, TopicModel


@dataclass(frozen=True, repr=False)
class Theorem1(OptimumTheorem):
    """Theorem 1: only the embedding is trained, with the prediction bias fixed.

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
        >>> from topicscope import theory
        >>> theorem = theory.theorem1(theory.Setting.of(4, 3))
        >>> embedding = np.diag([0.0] + [theorem.c3**0.5] * 12)
        >>> round(theorem.c3, 6), theorem.contains(embedding), theorem.contains(2 * embedding)
        (1.156069, True, False)
    """
    c = setting.constants
    return Theorem1(setting, prediction_bias_at(setting.topic_model, setting.masking), c.c2, c.c3)


def prediction_bias(topic_model: TopicModel, masking: Masking) -> Float[np.ndarray, " V"]:
    """The prediction bias of Theorem 1: b_0 = 0 and b_i = -p_m p_r / (k T v).

    It takes away the share of every prediction that random words cause, also for words of unequal probability.

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
    """The prediction bias of Theorem 1 at one word: -p_m p_r / (k T v)."""
    refuse((masking.k < K_FROM, NO_K))
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
    refuse(
        (
            embedding.ndim != 2 or shape[1] != columns,
            f"the embedding has shape {shape}; expected (dim, {columns}): one column per word",
        )
    )
    return fit_family(embedding.T @ embedding, Setting(topic_model, 1, masking), np.zeros(columns))


def random_gram(setting: Setting, rng: np.random.Generator) -> Matrix:
    """A realisable E (symmetric, positive semi-definite) with random u >= 0 and a random inner part R'R.

    E = u z z' + c3 blocks(1/v) + C R'R C with z = (-c2, 1, ..., 1) and C the centring inside each topic, whose sums
    over topics vanish.
    """
    c, topic_model = setting.constants, setting.topic_model
    root = rng.standard_normal((topic_model.words,) * 2) / np.sqrt(topic_model.words)
    z = np.append(-c.c2, np.ones(topic_model.words))
    gram = float(rng.uniform(0, 0.1)) * np.outer(z, z)
    mean = topic_model.same_topic[1:, 1:] * (1 / setting.v)
    centring = np.eye(topic_model.words) - mean
    gram[1:, 1:] += c.c3 * mean
    gram[1:, 1:] += centring @ (root.T @ root) @ centring
    return gram


def embedding_of(gram: Matrix) -> Matrix:
    """W_E with W_E'W_E = E, which has no eigenvalue below 0 but for rounding."""
    values, vectors = np.linalg.eigh(gram)
    return np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
