"""What `optimum` returns: W*, its loss, how fast each part of it is learnt, and what it becomes as documents grow.

Under uniform attention and squared loss (summed over the outputs) gradient flow is dW/dt = -2 (W G - H) with
G = E[xx'] and H = E[yx']. A mode is an eigenspace of G: the part of W on it closes half of its distance to W* in
ln 2 / (2 eigenvalue) units of time; SGD of rate eta has t = eta * steps. Where the eigenvalue is 0, W stays as it was.

Where words of a topic and topics are alike (disjoint topics of v equally probable words, exchangeable theta) W* is a
handful of numbers whatever T and v (R1 and R5):
    W* = u rho' + a Pi + b Pi_w,  rho = 1 for finite documents,  b = p_c / (1 - (E[m]/N) (1 - p_c - p_r)).
Rates are sums of terms that are not negative, so that one is zero where it is exactly 0, however small others are.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Result, arrow_table, refuse_if
from topicscope.world import Masking, Moments

if TYPE_CHECKING:
    import pyarrow

# E[xx'] and E[yx'] are sums over pairs of positions. Given theta, a position holds a word of P = A theta, and a
# masked one shows a word of h = p_c P + c0. They need the number m of masked positions only through E[m] and
# E[m(m-1)], under the weight that the loss gives to a document: `run` is the mean over its masked positions, then
# over documents, where an empty document gets one (`Masking.draw`, `train`); `documents` the same over documents
# that have a masked position; in `positions` every masked position counts alike.
Weighting = Literal["run", "positions", "documents"]
WEIGHTINGS: tuple[Weighting, ...] = ("run", "positions", "documents")
Length = int | tuple[int, int] | Literal["infinite"]
ValueArray = Float[np.ndarray, "V V"]
Numbers = TypeVar("Numbers", float, Float[np.ndarray, " L"])
AT_ONCE = 10**6  # lengths of a range that are added up together


class LengthWeights(NamedTuple):
    """What length and masking weigh each term by. E[xx'] has the first five terms, E[yx'] the last three."""

    masked: float  # diag(E[h]): a masked position with itself, E[m] / N^2
    plain: float  # diag(E[P]): another position with itself
    masked_pair: float  # E[hh']: two masked positions, E[m(m-1)] / N^2
    plain_pair: float  # E[PP']
    mixed_pair: float  # E[hP'] and E[Ph']
    own: float  # the target's own position, 1 / N
    target_masked: float  # E[Ph']: the target and another masked position
    target_plain: float  # E[PP']: the target and a position that is not masked


class DocumentMoments(NamedTuple):
    """The moments of masked documents: x is the word distribution shown, y the one-hot word at a masked position."""

    shown: Float[np.ndarray, "V V"]  # G = E[xx']
    joint: Float[np.ndarray, "V V"]  # H = E[yx']; rows are the true word


def masked_numbers(
    n: Float[np.ndarray, " L"], p: float, weighting: Weighting
) -> tuple[Float[np.ndarray, " L"], Float[np.ndarray, " L"], Float[np.ndarray, " L"]]:
    """E[m], E[m(m-1)] and the weight of a document, by its length N."""
    if weighting == "positions":  # the target is masked, the others as they come
        return 1 + (n - 1) * p, 2 * (n - 1) * p + (n - 1) * (n - 2) * p**2, n
    some, none = np.ones_like(n), (1 - p) ** n
    if weighting == "documents":
        some, none = -np.expm1(n * np.log1p(-p)) if p < 1 else some, np.zeros_like(n)
    # a single word is masked, exactly: no rounding may be left of the others
    return np.where(n == 1, 1, n * p / some + none), n * (n - 1) * p**2 / some, some


def length_weights(length: Length, p_mask: float, weighting: Weighting = "run") -> LengthWeights:
    """How often pairs of positions are masked, as the moments need it, for documents of some length."""
    if isinstance(length, str):
        return LengthWeights(0, 0, p_mask**2, (1 - p_mask) ** 2, p_mask * (1 - p_mask), 0, p_mask, 1 - p_mask)
    low, high = length if isinstance(length, tuple) else (length, length)
    total, weights = np.zeros(len(LengthWeights._fields)), 0.0
    for start in range(low, high + 1, AT_ONCE):
        n = np.arange(start, min(start + AT_ONCE, high + 1), dtype=float)
        m1, m2, weight = masked_numbers(n, p_mask, weighting)  # E[m] and E[m(m-1)]
        total += np.array([weight @ term for term in terms_of(n, m1, m2)])
        weights += weight.sum()
    return LengthWeights(*(total / weights).tolist())


def terms_of(n: Numbers, m1: Numbers, m2: Numbers) -> tuple[Numbers, ...]:
    """The terms of `LengthWeights` for N words, of which m are masked: m1 = E[m], m2 = E[m(m-1)]."""
    return (
        m1 / n**2,
        (n - m1) / n**2,
        m2 / n**2,
        (n * (n - 1) - 2 * (n - 1) * m1 + m2) / n**2,
        ((n - 1) * m1 - m2) / n**2,
        1 / n,
        (m1 - 1) / n,
        (n - m1) / n,
    )


def shown_instead(masking: Masking, words: int) -> Float[np.ndarray, " V"]:
    """c0: what a masked position shows where it does not show its own word."""
    c0 = np.full(words + 1, masking.p_random / words)
    c0[0] = masking.p_mask_word
    return c0


def document_moments(
    word_topics: Float[np.ndarray, "words T"],
    mean: Float[np.ndarray, " T"],
    second: Float[np.ndarray, "T T"],
    masking: Masking,
    weights: LengthWeights,
) -> DocumentMoments:
    """The two moments as matrices (R5), for any topics and any law of theta.

    Args:
        word_topics: A (words x T, without [MASK]).
        mean: E[theta] (T).
        second: E[theta theta'] (T x T).
        masking: The masking scheme.
        weights: From `length_weights`.

    Returns:
        E[xx'] and E[yx'].

    Example:
        >>> weights = length_weights("infinite", 0.15)
        >>> document_moments(np.eye(2), np.full(2, 0.5), np.eye(2) / 2, Masking(), weights).shown.sum(1).round(6)
        array([0.12, 0.44, 0.44])
    """
    topics = with_mask(word_topics)
    return masked_moments(topics @ mean, topics @ second @ topics.T, masking, weights)


def masked_moments(
    words: Float[np.ndarray, " V"], pair: Float[np.ndarray, "V V"], masking: Masking, weights: LengthWeights
) -> DocumentMoments:
    """From E[P], the distribution of a word, and E[PP'], that of a pair of words at two positions."""
    w, p_c, c0 = weights, masking.p_correct, shown_instead(masking, len(words) - 1)
    shown_words = p_c * words + c0  # E[h]
    word_shown = p_c * pair + np.outer(words, c0)  # E[Ph']
    shown_pair = p_c**2 * pair + p_c * (np.outer(words, c0) + np.outer(c0, words)) + np.outer(c0, c0)  # E[hh']
    shown = w.masked_pair * shown_pair + w.plain_pair * pair + w.mixed_pair * (word_shown + word_shown.T)
    joint = w.own * np.outer(words, c0) + w.target_masked * word_shown + w.target_plain * pair
    every = np.arange(len(words))
    shown[every, every] += w.masked * shown_words + w.plain * words
    joint[every, every] += w.own * p_c * words
    return DocumentMoments(shown, joint)


def given_moments(counts: Float[np.ndarray, "D V"], masking: Masking, weighting: Weighting = "run") -> DocumentMoments:
    """The two moments of given finite documents: the mean over documents, the exact expectation over masks."""
    lengths, size = counts.sum(1), counts.shape[1]
    shown, joint, total = np.zeros((size, size)), np.zeros((size, size)), 0.0
    for n in np.unique(lengths):
        here = counts[lengths == n]
        words = here.sum(0)
        pair = (here.T @ here - np.diag(words)) / max(n * (n - 1), 1)  # of positions: (cc' - diag c) / (N (N - 1))
        weights = length_weights(int(n), masking.p_mask, weighting)
        part = masked_moments(words / (n * len(here)), pair / len(here), masking, weights)
        share = masked_numbers(np.array([n]), masking.p_mask, weighting)[2][0] * len(here)
        shown, joint, total = shown + share * part.shown, joint + share * part.joint, total + share
    return DocumentMoments(shown / total, joint / total)


def with_mask(word_topics: Float[np.ndarray, "words T"]) -> Float[np.ndarray, "V T"]:
    return np.vstack([np.zeros((1, word_topics.shape[1])), word_topics])


ZERO_MOMENT = 1e-13  # eigenvalues of E[xx'] below this share of the largest are zero


def solve_moments(moments: DocumentMoments) -> tuple[ValueArray, Float[np.ndarray, "V r"], Float[np.ndarray, " r"]]:
    """W* = H G^+ from the two moments G = E[xx'] and H = E[yx']."""
    value = whole_solution(moments)
    rates, vectors = graded_eigen(moments.shown)
    if value is not None:
        shown = np.count_nonzero(moments.shown.sum(1))
        return value, vectors[:, :shown], rates[:shown]
    not_zero = rates > ZERO_MOMENT * rates[0]
    directions, rates = vectors[:, not_zero], rates[not_zero]
    return (moments.joint @ directions / rates) @ directions.T, directions, rates


def whole_solution(moments: DocumentMoments) -> ValueArray | None:
    """H G^+ where G has an inverse on the words that are shown; None where documents lack some mixtures of words."""
    shown = moments.shown.sum(1)  # E[x], since x sums to 1
    some = np.flatnonzero(shown)
    scale = np.sqrt(shown[some])  # rare words make small eigenvalues that are not zero; scaled, every word counts alike
    scaled = moments.shown[np.ix_(some, some)] / np.outer(scale, scale)
    try:
        pivots = np.diagonal(np.linalg.cholesky(scaled)) ** 2
    except np.linalg.LinAlgError:
        return None
    if not (pivots > ZERO_MOMENT * np.diagonal(scaled)).all():
        return None
    value = np.zeros_like(moments.joint)
    value[:, some] = np.linalg.solve(scaled, (moments.joint[:, some] / scale).T).T / scale
    return value


def graded_eigen(matrix: ValueArray) -> tuple[Float[np.ndarray, " V"], ValueArray]:
    """Eigenvalues, the largest first, and eigenvectors; those too small to be seen are found on the space they span."""
    rates, vectors = (part[..., ::-1] for part in np.linalg.eigh(matrix))
    small = rates <= ZERO_MOMENT * rates[0]
    if not small.any() or not rates[0] > 0:
        return rates, vectors
    inner, turn = graded_eigen(vectors[:, small].T @ matrix @ vectors[:, small])
    return np.concatenate([rates[~small], inner]), np.hstack([vectors[:, ~small], vectors[:, small] @ turn])


MOST_LISTED = 20  # numbers of a prior that a result repeats
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

    def as_dict(self) -> dict[str, float | str | None]:
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
    prior: dict[str, object]
    length: int | tuple[int, int] | str
    weighting: str
    p_mask: float
    p_correct: float
    p_random: float

    @classmethod
    def of(
        cls, topics: int, words: int, prior: object, length: Length, masking: Masking, weighting: str = "run"
    ) -> OptimumSettings:
        """`prior` is stored as its own numbers; of matrices and long lists it is stored how many there are."""
        own: dict[str, object] = {"kind": type(prior).__name__.lower()}
        if not isinstance(prior, Moments) and is_dataclass(prior) and hasattr(prior, "kind"):
            values = {field.name: getattr(prior, field.name, None) for field in fields(prior)}
            own = {
                name: value if np.ndim(value) < 2 and np.size(value) <= MOST_LISTED else f"{np.size(value):,} numbers"
                for name, value in values.items()
                if isinstance(value, str | int | float | list) and name != "length"
            }
        return cls(topics, words, own, length, weighting, masking.p_mask, masking.p_correct, masking.p_random)

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


@dataclass(frozen=True, repr=False, eq=False)
class ValueOptimum(Result):
    """W*, the best value matrix under uniform attention and squared loss, in a given world. `optimum` makes one.

    For infinite documents many matrices are best; W* is then that of least norm, which flow from zero reaches.

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
        return self.settings.sentence()

    def value_at(self, time: float, start: ValueArray | None = None) -> ValueArray:
        refuse_if(not time >= 0, f"time = {time}: expected a number from 0, the learning rate times the steps")
        optimum = self.matrix()
        begun = np.zeros_like(optimum) if start is None else self.checked(start)
        return begun + self.learnt(optimum - begun, time)

    def checked(self, matrix: ValueArray) -> ValueArray:
        size = self.vocabulary
        refuse_if(
            matrix.shape != (size, size),
            f"the matrix has shape {matrix.shape}; expected ({size}, {size}): one row and column per word, "
            "[MASK] first",
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
        missing = {
            "different_topic": self.settings.topics == 1,
            "same_topic": self.settings.words == self.settings.topics,
        }
        return {name: None if missing.get(name) else value for name, value in asdict(entries).items()}

    def numbers(self) -> dict[str, Any]:
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
    return float(np.linalg.norm(matrix - reference) / np.linalg.norm(reference))


def ordered(modes: Iterable[Mode]) -> tuple[Mode, ...]:
    return tuple(sorted((mode for mode in modes if mode.count), key=lambda mode: -mode.eigenvalue))


class Parts(NamedTuple):
    """G by the parts on which it is diagonal, and W* on these."""

    plane: Float[np.ndarray, " 2"]  # eigenvalues of G on the plane of e_0 and 1/sqrt(Tv), the smaller first
    vectors: Float[np.ndarray, "2 2"]  # its eigenvectors there
    topic: float  # eigenvalue on topic contrasts
    word: float  # eigenvalue inside topics
    rho: Float[np.ndarray, " 2"]  # of W* = u rho' on the plane, for [MASK] and for a word
    a: float
    b: float
    loss: float

    def entries(self, topics: int, v: int) -> Entries:
        return entries_of(topics, v, self.rho, self.a, self.b)


def symmetric_parts(topics: int, v: int, contrast: float, masking: Masking, w: LengthWeights) -> Parts:
    """`contrast` is the eigenvalue of E[theta theta'] on topic contrasts."""
    n, p_c, root = topics * v, masking.p_correct, np.sqrt(topics * v)
    p_word, p0 = p_c + masking.p_random, masking.p_mask_word
    h, p = np.array([p0, p_word / root]), np.array([0, 1 / root])  # E[h] and E[P] on the plane
    plane = np.diag([w.masked * p0, (w.masked * p_word + w.plain) / n])
    plane += w.masked_pair * np.outer(h, h) + w.plain_pair * np.outer(p, p)
    plane += w.mixed_pair * (np.outer(h, p) + np.outer(p, h))
    word, word_joint = (w.masked * p_word + w.plain) / n, w.own * p_c / n
    spread = p_c**2 * w.masked_pair + w.plain_pair + 2 * p_c * w.mixed_pair
    topic = word + spread * contrast / v
    topic_joint = word_joint + (p_c * w.target_masked + w.target_plain) * contrast / v
    shown = (w.own + w.target_masked) * h + w.target_plain * p  # E[m] / N positions are masked
    # finite: G 1 = E[x], so that rho = 1 on what is shown; infinite: the least norm, since G is of rank one
    rho = (shown > 0).astype(float) if w.own > 0 else shown * [1, 1 / root] / (shown @ shown)
    a, b = topic_joint / topic if topic > 0 else 0.0, word_joint / word if word > 0 else 0.0
    gained = rho @ (shown * [1, root]) / n
    gained += (topics - 1) * a * topic_joint + topics * (v - 1) * b * word_joint
    rates, vectors = np.linalg.eigh(plane)
    # The product of the plane's eigenvalues is its determinant: the variance of the share of [MASK]s over the number of
    # words, taken from moments that are of one size. Infinite documents have none.
    variance = float(np.linalg.det(plane * np.outer([1, root], [1, root]))) if word > 0 else 0.0
    rates[0] = max(variance, 0.0) / n / rates[1]
    return Parts(rates, vectors, topic, word, rho, a, b, float(1 - gained))


@dataclass(frozen=True, repr=False)
class SymmetricOptimum(ValueOptimum):
    """W* as four entries, where topics and their words are alike. The matrix is made only if `matrix` is called.

    Attributes:
        settings: The world, in plain numbers.
        loss: Squared loss of W*, summed over the outputs.
        modes: Parts of W* in the order of learning.
        notes: Remarks.
        parts: W* in parts: mean, topic contrasts, differences inside topics.
        entries: Entries of W*.
        limit: What they tend to as documents grow.
        theorem2: Those of Theorem 2 for these topics.

    Example:
        >>> from topicscope.theory import Setting, optimum, theorem2
        >>> from topicscope.world import Fixed, TopicModel
        >>> best = optimum(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"))
        >>> round(best.entries.same_topic, 6), round(theorem2(Setting.of(4, 3)).same_topic, 6)  # infinite documents
        (0.366439, 0.366439)
    """

    parts: Parts
    entries: Entries
    limit: Entries
    theorem2: Entries

    @property
    def world(self) -> str:
        return self.settings.sentence(self.settings.words // self.settings.topics)

    def matrix(self) -> ValueArray:
        return self._whole(self.entries)

    def limit_matrix(self) -> ValueArray:
        return self._whole(self.limit)

    def least_norm_matrix(self) -> ValueArray:
        return self._whole(self.theorem2)

    def corner(self, topics: int, words: int) -> SymmetricOptimum:
        few, v = min(topics, self.settings.topics), self.settings.words // self.settings.topics
        return replace(self, settings=replace(self.settings, topics=few, words=few * min(words, v)))

    def _whole(self, entries: Entries) -> ValueArray:
        words = self.settings.words
        refuse_if(
            words > LARGEST_MATRIX, f"W has {words:,} words; a matrix of at most {LARGEST_MATRIX:,} is made whole"
        )
        topic = np.arange(words) // (words // self.settings.topics)
        matrix = np.zeros((words + 1, words + 1))
        matrix[1:, 0] = entries.mask_column
        matrix[1:, 1:] = np.where(topic[:, None] == topic, entries.same_topic, entries.different_topic)
        np.fill_diagonal(matrix[1:, 1:], entries.diagonal)
        return matrix

    def learnt(self, difference: ValueArray, time: float) -> ValueArray:
        words, parts = self.settings.words, self.parts
        basis = np.zeros((words + 1, 2))  # e_0 and 1 / sqrt(Tv)
        basis[0, 0], basis[1:, 1] = 1, 1 / np.sqrt(words)
        plane, topic, word = (-np.expm1(-2 * rate * time) for rate in (parts.plane, parts.topic, parts.word))
        inner = difference[:, 1:].reshape(len(difference), self.settings.topics, -1)
        by_topic = inner.mean(2, keepdims=True)
        moved = topic * (by_topic - by_topic.mean(1, keepdims=True)) + word * (inner - by_topic)
        learnt = difference @ (basis @ (parts.vectors * plane) @ parts.vectors.T @ basis.T)
        learnt[:, 1:] += moved.reshape(len(difference), words)
        return learnt

    def distances_between(self) -> dict[str, float]:
        best, limit, theorem = (np.array(list(vars(one).values())) for one in (self.entries, self.limit, self.theorem2))
        n, v = self.settings.words, self.settings.words // self.settings.topics
        pairs = np.array([n * (v - 1), n * (n - v), n, n], dtype=float)  # how often W has each entry
        compared = (("optimum_to_limit", best, limit), ("optimum_to_theorem2", best, theorem))
        return {
            name: math.sqrt(float(pairs @ (one - other) ** 2 / (pairs @ other**2)))
            for name, one, other in (*compared, ("limit_to_theorem2", limit, theorem))
        }

    def numbers(self) -> dict[str, Any]:
        best, limit, theorem = map(self.entry_numbers, (self.entries, self.limit, self.theorem2))
        return best | super().numbers() | {"limit": limit, "theorem2": theorem, "method": "symmetry"}

    def summary(self) -> list[str]:
        best, own = self.entries, self.entry_numbers(self.entries)
        pairs = {"inside a topic": own["same_topic"], "between topics": own["different_topic"]}
        said = [
            *(f"{value:.6g} {where}" for where, value in pairs.items() if value is not None),
            f"{best.diagonal:.6g} on the diagonal"
            if own["same_topic"] is None
            else f"{best.diagonal - best.same_topic:.6g} more on the diagonal",
        ]
        return [f"W*: {', '.join(said)}, {best.mask_column:.6g} in the [MASK] column.", *super().summary()]


def entries_of(topics: int, v: int, rho: Float[np.ndarray, " 2"], a: float, b: float) -> Entries:
    """The entries of u rho' + a Pi + b Pi_w."""
    mean = rho[1] / (topics * v)
    same = mean + a * (1 - 1 / topics) / v - b / v
    return Entries(float(same), float(mean - a / (topics * v)), float(same + b), float(rho[0] / (topics * v)))


def limit_entries(topics: int, v: int, contrast: float, masking: Masking) -> Entries:
    """As N grows: 1/N terms decide what infinite documents leave open. E[m] / N tends to p_m in every weighting."""
    mask = masking.p_mask * masking.p_mask_word  # share of positions that show [MASK]
    b = masking.p_correct / (1 - mask)  # k > 0, so that words are seen
    a = 1 / masking.k if contrast > 0 else b  # where every document has all topics alike, topics are as words
    return entries_of(topics, v, np.array([float(mask > 0), 1.0]), a, b)


def symmetric_optimum(
    settings: OptimumSettings, contrast: float, masking: Masking, weights: LengthWeights, notes: tuple[str, ...] = ()
) -> SymmetricOptimum:
    topics, v = settings.topics, settings.words // settings.topics
    parts = symmetric_parts(topics, v, contrast, masking, weights)
    endless = symmetric_parts(topics, v, contrast, masking, length_weights("infinite", masking.p_mask))
    return SymmetricOptimum(
        settings,
        parts.loss,
        symmetric_modes(parts, topics, v),
        notes,
        parts,
        parts.entries(topics, v),
        limit_entries(topics, v, contrast, masking),
        endless.entries(topics, v),
    )


def symmetric_modes(parts: Parts, topics: int, v: int) -> tuple[Mode, ...]:
    """Four rates at most: the plane has two, topic contrasts and differences inside topics one each."""
    root = np.sqrt(topics * v)
    on_plane = [float(abs(vector @ (parts.rho * [1, root])) / root) for vector in parts.vectors.T]
    rows = [
        ("mean", 1, float(parts.plane[1]), on_plane[1]),
        ("[MASK] against words", 1, float(parts.plane[0]), on_plane[0]),
        ("topic contrasts", topics - 1, parts.topic, parts.a * math.sqrt(topics - 1)),
        ("within-topic", topics * (v - 1), parts.word, parts.b * math.sqrt(topics * (v - 1))),
    ]
    return ordered([Mode(name, count, rate, rate, norm) for name, count, rate, norm in rows])
