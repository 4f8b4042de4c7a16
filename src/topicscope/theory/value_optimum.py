"""What `optimum` returns: W*, its loss, how fast each part of it is learnt, and what it becomes as documents grow.

Under uniform attention and squared loss (summed over the outputs) gradient flow is dW/dt = -2 (W G - H) with
G = E[xx'] and H = E[yx']. A mode is an eigenspace of G: the part of W on it closes half of its distance to W* in
ln 2 / (2 eigenvalue) units of time; SGD of rate eta has t = eta * steps. Where the eigenvalue is 0, W stays as it was.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import InputError, Result, arrow_table

if TYPE_CHECKING:
    import pyarrow

ValueArray = Float[np.ndarray, "V V"]

LARGEST_MATRIX = 20_000  # words of the largest W that is made whole: 3.2 GB


@dataclass(frozen=True)
class Mode:
    """Directions of x that are learnt at one rate.

    Attributes:
        name: What they are.
        count: Number of directions.
        eigenvalue: Eigenvalue of E[xx'] there.
        slowest: The smallest eigenvalue, where several are put together.
        norm: Frobenius norm of W* there: what there is to learn.

    Example:
        >>> Mode("topic contrasts", count=3, eigenvalue=0.5, slowest=0.5, norm=1.0).half_time == math.log(2)
        True
    """

    name: str
    count: int
    eigenvalue: float
    slowest: float
    norm: float

    @property
    def half_time(self) -> float | None:
        """Under gradient flow; None where it is never learnt."""
        return math.log(2) / (2 * self.eigenvalue) if self.eigenvalue > 0 else None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"half_time": self.half_time}


@dataclass(frozen=True)
class Entries:
    """The different entries of W where words of a topic are alike; its first row is 0: nothing predicts [MASK].

    Attributes:
        same_topic: W_il, two words of one topic.
        different_topic: W_il, words of two topics.
        diagonal: W_ii.
        mask_column: W_i0: what [MASK] adds to every word.

    Example:
        >>> from topicscope.theory import optimum
        >>> from topicscope.world import Fixed, TopicModel
        >>> best = optimum(TopicModel(4, 3), Fixed(topics_per_document=2, length=20))
        >>> round(best.entries.diagonal, 4), round(best.entries.same_topic, 4)
        (0.4193, 0.3055)
    """

    same_topic: float
    different_topic: float
    diagonal: float
    mask_column: float


@dataclass(frozen=True)
class OptimumSettings:
    """Of which world W* is the optimum, in plain words and numbers.

    Attributes:
        topics: T.
        words: Number of words, without [MASK].
        prior: The prior's settings.
        length: Words per document: a number, a range, or 'infinite'.
        weighting: How the loss weighs documents.
        p_mask: p_m.
        p_correct: p_c.
        p_random: p_r.

    Example:
        >>> OptimumSettings(4, 12, {"kind": "fixed"}, "infinite", "run", 0.15, 0.1, 0.1).infinite
        True
    """

    topics: int
    words: int
    prior: dict[str, Any]
    length: int | tuple[int, int] | str
    weighting: str
    p_mask: float
    p_correct: float
    p_random: float

    @property
    def infinite(self) -> bool:
        return isinstance(self.length, str)

    def sentence(self, v: int | None = None) -> str:
        """The world in one line; `v`: words of every topic, where they are as many."""
        own = ", ".join(f"{name} {value}" for name, value in self.prior.items() if name != "kind")
        low, high = self.length if isinstance(self.length, tuple) else (self.length, self.length)
        words = "infinitely many" if self.infinite else f"{low}" if low == high else f"{low} to {high}"
        return (
            f"World: T = {self.topics:,} topics, {f'v = {v:,} words each' if v else f'{self.words:,} words'}; "
            f"prior {self.prior['kind']}{f' ({own})' if own else ''}; documents of {words} words; "
            f"masking p_m = {self.p_mask:g}, p_c = {self.p_correct:g}, p_r = {self.p_random:g}; "
            f"weighting {self.weighting}."
        )


class ValueOptimum(Result):
    """W*, the best value matrix under uniform attention and squared loss, in a given world. `optimum` makes one.

    For infinite documents many matrices are best; W* is then that of least norm, which gradient flow from zero reaches
    (Theorem 2). As finite documents grow, their optimum tends to another of them: `limit_matrix`.

    Attributes:
        settings: The world, in plain numbers.
        loss: Squared loss of W*, summed over the outputs.
        modes: Parts of W* in the order of learning.
        notes: Remarks.

    Example:
        >>> from topicscope.theory import optimum
        >>> from topicscope.world import Fixed, TopicModel
        >>> best = optimum(TopicModel(4, 3), Fixed(topics_per_document=2, length=20))
        >>> distances = best.distances(best.value_at(time=100.0))
        >>> round(distances["optimum"], 3), round(best.distances(best.value_at(time=1000.0))["optimum"], 3)
        (0.08, 0.0)
    """

    kind: ClassVar[str] = "optimum"
    settings: OptimumSettings
    loss: float
    modes: tuple[Mode, ...]
    notes: tuple[str, ...]

    @abstractmethod
    def matrix(self) -> ValueArray:
        """W*; the first row and column are [MASK]'s."""

    @abstractmethod
    def limit_matrix(self) -> ValueArray:
        """What W* of finite documents tends to as they grow."""

    @abstractmethod
    def least_norm_matrix(self) -> ValueArray:
        """W* of infinite documents: Theorem 2, for these topics."""

    def corner(self, topics: int, words: int) -> ValueOptimum | None:
        """The same entries for fewer topics and words, to be drawn; None where each word is different."""
        return None

    @abstractmethod
    def learnt(self, difference: ValueArray, time: float) -> ValueArray:
        """`difference` times the share of each mode that is learnt by then."""

    @property
    def vocabulary(self) -> int:
        return self.settings.words + 1

    def topic_order(self) -> Int[np.ndarray, " words"]:
        """Words, counted from 0, topic by topic: by the one in which each is most probable."""
        return np.arange(self.settings.words)

    @property
    def world(self) -> str:
        """Of what W* is the optimum, in one line."""
        return self.settings.sentence()

    def value_at(self, time: float, start: ValueArray | None = None) -> ValueArray:
        """W after this time of gradient flow, from `start` or from zero."""
        if not time >= 0:
            raise InputError(f"time = {time}: expected a number from 0, the learning rate times the steps")
        optimum = self.matrix()
        begun = np.zeros_like(optimum) if start is None else self.checked(start)
        return begun + self.learnt(optimum - begun, time)

    def checked(self, matrix: ValueArray) -> ValueArray:
        """The matrix, if it has the vocabulary's size."""
        size = self.vocabulary
        if matrix.shape != (size, size):
            raise InputError(
                f"the matrix has shape {matrix.shape}; expected ({size}, {size}): one row and column per word, "
                "[MASK] first"
            )
        return matrix

    def distances(self, matrix: ValueArray) -> dict[str, float]:
        """How far a matrix is from Theorem 2, from the limit of long documents and from W*, in relative norm."""
        self.checked(matrix)
        return {
            "optimum": relative_distance(matrix, self.matrix()),
            "theorem2": relative_distance(matrix, self.least_norm_matrix()),
            "limit": relative_distance(matrix, self.limit_matrix()),
        }

    def distances_between(self) -> dict[str, float]:
        """How far W*, its limit and Theorem 2 for these topics are from each other, relative to the one named last."""
        best, limit, theorem = self.matrix(), self.limit_matrix(), self.least_norm_matrix()
        return {
            "optimum_to_limit": relative_distance(best, limit),
            "optimum_to_theorem2": relative_distance(best, theorem),
            "limit_to_theorem2": relative_distance(limit, theorem),
        }

    def entry_numbers(self, entries: Entries) -> dict[str, float | None]:
        """Entries by name; None for pairs of words that there are not: one topic alone, or one word per topic."""
        topics, words = self.settings.topics, self.settings.words
        missing = {"different_topic": topics == 1, "same_topic": words == topics}
        return {name: None if missing.get(name) else value for name, value in asdict(entries).items()}

    def numbers(self) -> dict[str, Any]:
        """The result as plain numbers, for JSON."""
        return {
            "settings": asdict(self.settings),
            "loss": self.loss,
            "distances_between": self.distances_between(),
            "modes": [mode.as_dict() for mode in self.modes],
            "notes": list(self.notes),
        }

    def table(self) -> pyarrow.Table:
        return arrow_table([mode.as_dict() for mode in self.modes])

    def _about(self) -> str:
        s = self.settings
        return f"T = {s.topics}, {s.words} words, length {s.length}, loss {self.loss:.6g}"

    def summary(self) -> list[str]:
        first, *rest = [mode for mode in self.modes if mode.half_time is not None]
        order = ", then ".join(f"{mode.name} ({mode.half_time:.4g})" for mode in [first, *rest[:4]])
        more = f", and {len(rest) - 4} slower ones" if len(rest) > 4 else ""
        free = sum(mode.count for mode in self.modes if mode.half_time is None)
        never = f" {free:,} directions are never learnt: they stay as they start." if free else ""
        return [
            f"W* has the loss {self.loss:.6f} (squared, summed over the outputs).",
            f"Learnt in this order (half-time under gradient flow, in learning rate x steps): {order}{more}.{never}",
            WHY_INFINITE if self.settings.infinite else WHY_FINITE,
            *self.notes,
        ]


WHY_INFINITE = (
    "Documents are infinite, so many matrices are optimal. W* is the one that flow from zero reaches (Theorem 2). "
    "The optimum for finite documents tends to another one (the limit): differences between words of one topic, and "
    "[MASK] against the words, show in documents of any finite length, so there only one matrix is optimal."
)
WHY_FINITE = (
    "W* is the optimum for documents of this length. As documents grow, it tends to the limit, not to Theorem 2. In a "
    "document of N words, chance alone makes some words more frequent than others of their topic. These differences "
    "shrink as 1/N, and so does what W can gain from them, so the best W for them does not depend on N; Theorem 2 has "
    "zero there. The time to learn this part grows in proportion to N."
)


def relative_distance(matrix: ValueArray, reference: ValueArray) -> float:
    """|matrix - reference| / |reference|, in Frobenius norm.

    Args:
        matrix: A matrix.
        reference: Another of the same shape.

    Returns:
        The distance.

    Example:
        >>> relative_distance(np.array([[3.0]]), np.array([[2.0]]))
        0.5
    """
    return float(np.linalg.norm(matrix - reference) / np.linalg.norm(reference))


def ordered(modes: list[Mode]) -> tuple[Mode, ...]:
    """The fastest first; empty ones are left out."""
    return tuple(sorted((mode for mode in modes if mode.count), key=lambda mode: -mode.eigenvalue))
