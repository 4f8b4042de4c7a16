"""What all theorems have in common: a setting (Section 5), numbers of their own, bounds, a matrix, a sentence, a table.

A new theorem is a frozen dataclass of `OptimumTheorem` or `AttentionTheorem`, and a function that makes it of a
`Setting`; `theory/__init__.py` names it among the commands of `topicscope theory`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.ground import MOST, SMALLEST, Result, arrow_table, refuse
from topicscope.world import Masking, TopicModel

if TYPE_CHECKING:
    import pyarrow

K_FROM = 1e-9  # smallest k = 1 - (1 - p_c) p_m that is divided by
NO_K = "p_mask = 1 and p_correct = 0 show no word on purpose (k = 0 in the paper); choose a smaller p_mask"


@dataclass(frozen=True)
class Constants:
    """c1, c2, c3 of Lemma 1, of which every optimum is made (Section 4).

    Attributes:
        c1: p_r / ((1 - p_c - p_r) k T v).
        c2: 1 / ((1 - p_c - p_r) p_m) - 1.
        c3: 1 / k.

    Example:
        >>> round(Setting.of().constants.c3, 6)
        1.156069
    """

    c1: float
    c2: float
    c3: float


@dataclass(frozen=True)
class Setting:
    """T, v, tau and the masking scheme, with the helper quantities of Appendix D.1 (F.1 in the ICML version).

    Documents are infinite and share tau topics equally, and attention is topic-wise (Assumption 2): beta to the same
    word, alpha to another of its topic, 1 to others, times a constant. Theorems 1 and 2 do not depend on tau.

    Attributes:
        topic_model: T disjoint topics of v equal words.
        topics_per_document: tau.
        masking: The masking scheme.

    Raises:
        InputError: A number is out of range, or the topics are not alike.

    Example:
        >>> from topicscope import theory
        >>> setting = theory.Setting.of(topics=20, words_per_topic=5, topics_per_document=4)
        >>> setting.letters, round(setting.p0, 6), round(setting.p1 * 20 + setting.p2 * 80 + setting.p0, 6)
        ('T = 20, v = 5, tau = 4', 0.12, 1.0)
    """

    topic_model: TopicModel
    topics_per_document: int
    masking: Masking

    def __post_init__(self) -> None:
        m = self.masking
        refuse(
            (
                not 1 <= self.tau <= self.T,
                f"topics_per_document = {self.tau}: expected a number from 1 to topics = {self.T}",
            ),
            (
                not self.topic_model.uniform,
                "the closed forms assume disjoint topics of equally many, equally probable words in a topic; "
                "give topic_model.topics and topic_model.words_per_topic alone",
            ),
            (
                m.p_mask_word <= 1e-12,
                f"p_correct + p_random = {m.p_correct + m.p_random:g} leaves no [MASK]; "
                "the closed forms need less than 1",
            ),
            (m.k < K_FROM, NO_K),
        )

    @classmethod
    def of(
        cls,
        topics: int = 10,
        words_per_topic: int = 10,
        topics_per_document: int = 3,
        *,
        p_mask: float = 0.15,
        p_correct: float = 0.1,
        p_random: float = 0.1,
    ) -> Setting:
        """From plain numbers; each probability must be inside (0, 1), as the theorems assume."""
        refuse(
            *(
                (
                    not SMALLEST <= p <= 1 - SMALLEST,
                    f"{name} = {p:g}: expected a probability strictly between 0 and 1, "
                    f"at least {SMALLEST:g} away from both",
                )
                for name, p in (("p_mask", p_mask), ("p_correct", p_correct), ("p_random", p_random))
            ),
            (
                p_correct + p_random > 1 - SMALLEST,
                f"p_correct + p_random = {p_correct + p_random:g}: expected less than 1, "
                "so that [MASK] is shown at all",
            ),
            *(
                (not 1 <= count <= MOST, f"{name} = {count}: expected a number from 1 to {MOST:,}")
                for name, count in (("topics", topics), ("words_per_topic", words_per_topic))
            ),
        )
        return cls(TopicModel(topics, words_per_topic), topics_per_document, Masking(p_mask, p_correct, p_random))

    def as_dict(self) -> dict[str, float]:
        return {
            "topics": self.T,
            "words_per_topic": self.v,
            "topics_per_document": self.tau,
            "p_mask": self.masking.p_mask,
            "p_correct": self.masking.p_correct,
            "p_random": self.masking.p_random,
        }

    @property
    def letters(self) -> str:
        return f"T = {self.T}, v = {self.v}, tau = {self.tau}"

    @property
    def constants(self) -> Constants:
        m = self.masking
        return Constants(
            c1=m.p_random / (m.p_mask_word * m.k * self.topic_model.words),
            c2=1 / (m.p_mask_word * m.p_mask) - 1,
            c3=1 / m.k,
        )

    @property
    def T(self) -> int:  # noqa: N802  (the paper's letter)
        return self.topic_model.topics

    @property
    def v(self) -> int:
        return self.topic_model.block_size

    @property
    def tau(self) -> int:
        return self.topics_per_document

    @property
    def p0(self) -> float:
        """Share of [MASK] in a masked document: p_m (1 - p_c - p_r)."""
        return self.masking.p_mask * self.masking.p_mask_word

    @property
    def p1(self) -> float:
        """Share of each word of the document's topics (eq 18)."""
        return self.masking.k / (self.v * self.tau) + self.p2

    @property
    def p2(self) -> float:
        """Share of each other word (eq 19): random replacements only."""
        return self.masking.p_mask * self.masking.p_random / (self.v * self.T)

    @property
    def shown_cases(self) -> tuple[float, float, float, float]:
        """How often a masked position shows its own word, another of its topic, of the document, of an absent topic."""
        correct, random = self.masking.p_correct, self.masking.p_random
        return (
            correct + random / (self.T * self.v),
            random * (self.v - 1) / (self.T * self.v),
            random * (self.tau - 1) / self.T,
            random * (1 - self.tau / self.T),
        )

    def gamma(self, alpha: float, beta: float) -> float:
        """(v - 1)/v alpha + beta/v: the average attention inside a topic (Theorem 3)."""
        return (self.v - 1) / self.v * alpha + beta / self.v


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
        >>> from topicscope.theory import theorem3
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
        >>> from topicscope.theory import theorem2
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
        >>> from topicscope.theory import theorem3
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
        ratio = alpha / beta if beta else math.inf
        values = {"gamma": self.setting.gamma(alpha, beta), "beta": beta, "alpha_over_beta": ratio}
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
        >>> assumptions(Setting.of(10, 10, 3))
        ['topics_per_document = 3 is not large', 'topics = 10 is not much larger than topics_per_document = 3']
        >>> assumptions(Setting.of(100, 10, 10))
        []
    """
    m, v, tau, least = setting.masking, setting.v, setting.tau, (1 / setting.masking.k + 1) ** 2 + 1
    shares = f"p_correct = {m.p_correct:g} and p_random = {m.p_random:g}"
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
