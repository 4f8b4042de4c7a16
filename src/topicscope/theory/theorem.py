"""What all theorems have in common: a setting, numbers of their own, bounds, a matrix, a sentence, a table.

A new theorem is one file: a frozen dataclass that derives from `OptimumTheorem` or `AttentionTheorem`, and the
function that computes it from a `Setting`. `theory/__init__.py` exports it and names it among the commands of
`topicscope theory`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.ground import Result, arrow_table
from topicscope.theory.setting import Setting

if TYPE_CHECKING:
    import pyarrow

Matrix = Float[np.ndarray, "V V"]

ValueMatrix = Literal["blocks", "diagonal"]
"""At which optimum of the first stage W_V is frozen: Theorem 2's, or the diagonal one (Definition 2)."""


class Entry(NamedTuple):
    name: str
    value: float
    meaning: str


@dataclass(frozen=True)
class Examination:
    """How far a given matrix is from what a theorem says: numbers under a name, and the same in words."""

    name: str
    numbers: dict[str, float]
    sentence: str


class Theorem(Result):
    """A theorem for one setting: its sentence, matrix, numbers and table. The base of all theorems.

    Example:
        >>> from topicscope.theory import Setting, theorem3
        >>> theorem3(Setting.of()).sentence
        'Theorem 3: gamma lies in (1.1547, 58667).'
    """

    kind: ClassVar[str] = "theorem"
    setting: Setting

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What the theorem says, with its numbers."""

    @abstractmethod
    def matrix(self) -> Matrix:
        """The value matrix or Gram matrix that the theorem is about."""

    @abstractmethod
    def entries(self) -> list[Entry]:
        """The theorem's numbers, for a table."""

    def numbers(self) -> dict[str, float]:
        return {name: value for name, value in vars(self).items() if name != "setting"}

    def settings(self) -> dict[str, float]:
        """The setting as plain numbers, without what the theorem does not depend on."""
        return self.setting.as_dict()

    def _about(self) -> str:
        return self.setting.letters

    def table(self) -> pyarrow.Table:
        return arrow_table(
            [{"entry": name, "value": value, "meaning": meaning} for name, value, meaning in self.entries()]
        )


class OptimumTheorem(Theorem):
    """A theorem of the first stage: which matrices are optimal under uniform attention. It proves no bounds.

    `given` names the matrix that `examine` takes ('matrix' or 'embedding'), `part` the part of a trained model that it
    is. `picture` is the title of `matrix()`.

    Example:
        >>> from topicscope.theory import Setting, theorem2
        >>> theorem = theorem2(Setting.of(4, 3))
        >>> theorem.examine(theorem.matrix()).numbers["largest_difference"]
        0.0
    """

    given: ClassVar[str] = "matrix"
    part: ClassVar[str] = "value"
    picture: ClassVar[str]

    @abstractmethod
    def examine(self, given: Float[np.ndarray, "rows columns"]) -> Examination:
        """How far a given matrix is from the theorem's."""

    def settings(self) -> dict[str, float]:
        return {key: value for key, value in super().settings().items() if key != "topics_per_document"}


class AttentionTheorem(Theorem):
    """A theorem of the second stage: where the best attention (alpha, beta) lies once W_V is frozen at `value_matrix`.

    Example:
        >>> from topicscope.theory import Setting, theorem3
        >>> theorem = theorem3(Setting.of())
        >>> theorem.value_matrix, theorem.contains(alpha=7.67, beta=1.0), theorem.contains(alpha=0.1, beta=0.1)
        ('blocks', True, False)
    """

    value_matrix: ClassVar[ValueMatrix]

    @property
    @abstractmethod
    def bounds(self) -> dict[str, tuple[float, float]]:
        """By quantity, the open interval in which it lies; the lower end is -inf where the theorem has none."""

    def contains(self, alpha: float, beta: float) -> bool:
        values = {
            "gamma": self.setting.gamma(alpha, beta),
            "beta": beta,
            "alpha_over_beta": alpha / beta if beta else math.inf,
        }
        return all(low < values[name] < high for name, (low, high) in self.bounds.items())

    @abstractmethod
    def says_of(self, alpha: float, beta: float) -> list[str]:
        """What the theorem says of this attention, the best one: inside the bounds or not, and how to read it."""

    def flat_bounds(self) -> dict[str, float]:
        """The bounds by their names in JSON: gamma_low, gamma_high; one name where there is no lower end."""
        open_below = {name for name, (low, _) in self.bounds.items() if low == -math.inf}
        return {
            name if name in open_below else f"{name}_{end}": value
            for name, ends in self.bounds.items()
            for end, value in zip(("low", "high"), ends, strict=True)
            if value != -math.inf
        }

    def summary(self) -> list[str]:
        return [self.sentence, *strain(self.setting)]


def assumptions(setting: Setting) -> list[str]:
    """Which of Assumptions 3 and 4 a finite setting strains or breaks; the asymptotic ones are held to a factor of ten.

    Args:
        setting: T, v, tau and masking.

    Returns:
        One sentence per assumption; empty where all are met.

    Example:
        >>> from topicscope.theory import Setting
        >>> assumptions(Setting.of(10, 10, 3))
        ['topics_per_document = 3 is not large', 'topics = 10 is not much larger than topics_per_document = 3']
        >>> assumptions(Setting.of(100, 10, 10))
        []
    """
    m, v, tau = setting.masking, setting.v, setting.tau
    shares = f"p_correct = {m.p_correct:g} and p_random = {m.p_random:g}"
    least = (1 / m.k + 1) ** 2 + 1
    conditions = (
        (m.p_mask < 0.5, f"p_mask = {m.p_mask:g} is not below 1/2"),
        (m.p_correct == m.p_random, f"{shares} are not equal and below 1/2"),  # equal, they are: [MASK] has a share
        (v > least, f"words_per_topic = {v} is not above {least:.3g}"),
        (tau >= 10, f"topics_per_document = {tau} is not large"),
        (10 * tau <= setting.T, f"topics = {setting.T} is not much larger than topics_per_document = {tau}"),
    )
    return [sentence for met, sentence in conditions if not met]


def strain(setting: Setting) -> list[str]:
    broken = "; ".join(assumptions(setting))
    return [f"The theorem is asymptotic, and this setting strains it: {broken}."] if broken else []
