"""Theorem 2: the value matrix of least norm under uniform attention, the limit of vanishing L2 regularisation."""

from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from topicscope.theory.lemma1 import fit_family
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import Entry, Examination, Matrix, OptimumTheorem


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
        >>> from topicscope import theory
        >>> theorem = theory.theorem2(theory.Setting.of(topics=4, words_per_topic=3))
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
