"""Theorem 3: W_V frozen at Theorem 2's blocks.

The best attention inside a topic lies in an interval that grows with tau and T.
"""

from dataclasses import dataclass
from typing import ClassVar

from topicscope.theory.setting import Setting
from topicscope.theory.theorem import AttentionTheorem, Entry, Matrix, ValueMatrix
from topicscope.theory.theorem2 import theorem2


@dataclass(frozen=True, repr=False)
class Theorem3(AttentionTheorem):
    """Theorem 3: lambda1 (tau - 1) < gamma < lambda2 T, where gamma = (v - 1)/v alpha + beta/v.

    Attributes:
        setting: T, v, tau and masking.
        lambda1: Factor of the lower bound.
        lambda2: Factor of the upper bound.

    Example:
        See `theorem3`.
    """

    value_matrix: ClassVar[ValueMatrix] = "blocks"

    setting: Setting
    lambda1: float
    lambda2: float

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        return {"gamma": (self.lambda1 * (self.setting.tau - 1), self.lambda2 * self.setting.T)}

    @property
    def sentence(self) -> str:
        low, high = self.bounds["gamma"]
        return f"Theorem 3: gamma lies in ({low:.5g}, {high:.5g})."

    def matrix(self) -> Matrix:
        return theorem2(self.setting).matrix()

    def says_of(self, alpha: float, beta: float) -> list[str]:
        gamma, where = self.setting.gamma(alpha, beta), "inside" if self.contains(alpha, beta) else "OUTSIDE"
        return [
            f"{self.sentence} The best gamma {gamma:.5g} is {where}.",
            "How to read it: with block-wise W_V it is best to attend to words of the same topic "
            f"{gamma:.3g} times as much as others.",
        ]

    def entries(self) -> list[Entry]:
        low, high = self.bounds["gamma"]
        return [
            Entry("lambda1", self.lambda1, "gamma > lambda1 (tau - 1)"),
            Entry("lambda2", self.lambda2, "gamma < lambda2 T"),
            Entry("lambda1 (tau - 1)", low, "lower end of gamma"),
            Entry("lambda2 T", high, "upper end of gamma"),
        ]


def theorem3(setting: Setting) -> Theorem3:
    """Theorem 3: bounds of the best attention where W_V is frozen at Theorem 2's blocks.

    Args:
        setting: T, v, tau and masking.

    Returns:
        The theorem with its bounds.

    Example:
        >>> from topicscope import theory
        >>> theorem = theory.theorem3(theory.Setting.of(topics_per_document=3))
        >>> [round(bound, 4) for bound in theorem.bounds["gamma"]]
        [1.1547, 58666.6667]
    """
    m = setting.masking
    noise = m.p_mask * m.p_random
    return Theorem3(
        setting,
        lambda1=(m.k + noise) * (1 + (1 - m.p_correct) * m.p_mask) / (2 * m.k),
        lambda2=100 * (m.k / noise + 1),
    )
