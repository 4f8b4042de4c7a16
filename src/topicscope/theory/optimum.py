"""`optimum`: the exact best value matrix under uniform attention and squared loss, in any world.

Where topics are alike it is a handful of numbers (`value_optimum`). Else it is a matrix. Finite documents: W* = H G^+
with both moments as matrices (R5). Infinite ones: with U a basis of the words' distributions that documents have,
W* = U (R U)^+ (R6), which is A (R A)^+ where the columns of A are independent and no mixture of topics is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import refuse, refuse_if
from topicscope.theory.theorem import K_FROM, NO_K
from topicscope.theory.value_optimum import (
    WEIGHTINGS,
    ZERO_MOMENT,
    Entries,
    Length,
    LengthWeights,
    Mode,
    OptimumSettings,
    SymmetricOptimum,
    ValueArray,
    ValueOptimum,
    Weighting,
    document_moments,
    length_weights,
    ordered,
    shown_instead,
    solve_moments,
    symmetric_optimum,
    whole_solution,
    with_mask,
)
from topicscope.world import Dirichlet, Fixed, Masking, Moments, TopicModel, World, checked_moments, checked_word_topics

MOST_WORDS = 6000  # of a world without symmetry: E[xx'] is decomposed, in minutes
MOST_TOPICS = 5000  # E[theta theta'] takes 200 MB
LONGEST = 10**7  # words of a document
MOST_SPREAD = 1e-12  # relative spread of moments that are equal by symmetry
ZERO_ROOT = 1e-9  # singular values below this share of the largest are zero: roots of eigenvalues
EQUAL = 1e-8  # relative difference of eigenvalues that are one


def rate_errors(
    directions: Float[np.ndarray, "V r"],
    topics: Float[np.ndarray, "V T"],
    law: Moments,
    masking: Masking,
    weights: LengthWeights,
) -> Float[np.ndarray, " r"]:
    """How far each rate u'Gu may be off with the moments of theta, of which G is made; 0 where these are exact."""
    _, mean, norm = law.errors
    if mean == norm == 0:
        return np.zeros(directions.shape[1])
    w, p_c, c0 = weights, masking.p_correct, shown_instead(masking, len(directions) - 1)
    on_topics = np.linalg.norm(topics.T @ directions, axis=0)
    pairs = p_c**2 * w.masked_pair + w.plain_pair + 2 * p_c * w.mixed_pair
    mixed = 2 * (p_c * w.masked_pair + w.mixed_pair) * np.abs(c0 @ directions) * np.sqrt(len(law.mean))
    own = (p_c * w.masked + w.plain) * (topics.sum(1) @ directions**2)
    return np.asarray(on_topics * (on_topics * pairs * norm + mixed * mean) + own * mean)


def dense_modes(
    value: ValueArray,
    directions: Float[np.ndarray, "V r"],
    rates: Float[np.ndarray, " r"],
    errors: Float[np.ndarray, " r"],
    topics: Float[np.ndarray, "V T"],
    mean: Float[np.ndarray, " T"],
) -> tuple[Mode, ...]:
    """Directions of one kind and one rate, within its error; inside topics of any rate."""
    plane = np.zeros((len(topics), 2))
    plane[0, 0], plane[:, 1] = 1, topics @ mean
    spaces, sizes, _ = np.linalg.svd(np.hstack([plane, topics]), full_matrices=False)
    in_topics = ((spaces[:, sizes > ZERO_ROOT * sizes.max()].T @ directions) ** 2).sum(0)
    in_plane = ((np.linalg.qr(plane)[0].T @ directions) ** 2).sum(0)
    kinds = np.where(in_topics < 0.5, "within-topic", np.where(in_plane < 0.5, "topic contrasts", "mean")).tolist()
    apart = rates[1:] <= rates[:-1] * (1 - EQUAL) - errors[:-1] - errors[1:]
    rate_groups = np.append(0, np.cumsum(apart)).tolist()
    size = np.linalg.norm(value @ directions, axis=0)
    groups: dict[tuple[str, int], list[int]] = {}
    for i, (kind, group) in enumerate(zip(kinds, rate_groups, strict=True)):
        groups.setdefault((kind, 0 if kind == "within-topic" else group), []).append(i)
    modes = ordered(
        Mode(kind, len(rows), float(rates[rows[0]]), float(rates[rows[-1]]), float(np.linalg.norm(size[rows])))
        for (kind, _), rows in sorted(groups.items())
    )
    free = len(directions) - len(rates)
    return numbered(modes) + ((Mode("free", free, 0.0, 0.0, 0.0),) if free else ())


def numbered(modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
    """Modes of one kind get numbers, in the order of learning; the second of the mean's plane is [MASK]'s."""

    def name(kind: str, rank: int) -> str:
        if kind == "mean":
            return "[MASK] against words" if rank else kind
        return f"{kind} {rank + 1}" if kinds.count(kind) > 1 else kind

    kinds = [mode.name for mode in modes]
    return tuple(replace(mode, name=name(mode.name, kinds[:i].count(mode.name))) for i, mode in enumerate(modes))


WordTopics = Float[np.ndarray, "words T"]


def topic_basis(word_topics: WordTopics, second: Float[np.ndarray, "T T"]) -> Float[np.ndarray, "V r"]:
    """An orthonormal basis of the word distributions of documents: of the columns of A E[theta theta']^(1/2)."""
    vectors, sizes, _ = np.linalg.svd(with_mask(word_topics) @ square_root(second), full_matrices=False)
    return vectors[:, sizes > ZERO_ROOT * sizes.max()]


def square_root(second: Float[np.ndarray, "T T"]) -> Float[np.ndarray, "T T"]:
    """A root of E[theta theta']; mixtures of topics that never occur are left out exactly."""
    values, vectors = np.linalg.eigh(second)
    return vectors * np.sqrt(np.where(values > ZERO_MOMENT * values[-1], values, 0))


def shown_by(masking: Masking, columns: Float[np.ndarray, "V r"]) -> Float[np.ndarray, "V r"]:
    """R times columns, R = k I + p_m c0 1': what infinite documents of these word distributions show (R6)."""
    instead = masking.p_mask * shown_instead(masking, len(columns) - 1)
    return masking.k * columns + np.outer(instead, columns.sum(0))


def closed_form(word_topics: WordTopics, masking: Masking) -> ValueArray:
    """W* = A (R A)^+ (R6), for infinite documents, independent topics and an invertible E[theta theta'].

    Args:
        word_topics: A (words x T, without [MASK]); its columns are independent.
        masking: The masking scheme.

    Returns:
        W* (V x V).

    Raises:
        InputError: The columns of A are dependent.

    Example:
        >>> from topicscope.theory import Setting, theorem2
        >>> setting = Setting.of(4, 3)
        >>> same = closed_form(setting.topic_model.word_topics, setting.masking) - theorem2(setting).matrix()
        >>> bool(abs(same).max() < 1e-12)  # for disjoint topics it is Theorem 2
        True
    """
    dependent = (
        "word_topics: the columns are dependent, and A (R A)^+ needs independent ones; "
        "`optimum` uses a basis of their span instead"
    )
    refuse_if(np.linalg.matrix_rank(word_topics) < word_topics.shape[1], dependent)
    columns = with_mask(word_topics)
    return columns @ np.linalg.pinv(shown_by(masking, columns))


def least_norm(word_topics: WordTopics, second: Float[np.ndarray, "T T"], masking: Masking) -> ValueArray:
    basis = topic_basis(word_topics, second)
    return basis @ np.linalg.pinv(shown_by(masking, basis))


def limit_of_length(
    word_topics: WordTopics, mean: Float[np.ndarray, " T"], second: Float[np.ndarray, "T T"], masking: Masking
) -> ValueArray:
    """What W* tends to as documents grow: terms of order 1 ask for W x = P, and of all such W terms of order 1/N choose
    the one with W D = K + (multiples of x), D = diag(E[x]), K = p_c (diag(E[P]) - E[PP']).
    """
    basis, topics = topic_basis(word_topics, second), with_mask(word_topics)
    shown, words = shown_by(masking, basis), topics @ mean
    noise = masking.k * words + masking.p_mask * shown_instead(masking, len(word_topics))  # D
    inverse = np.where(noise > 0, 1 / np.where(noise > 0, noise, 1), 0)  # a word that is never shown gets no weight
    gain = -masking.p_correct * (topics @ second @ topics.T)
    gain[np.arange(len(words)), np.arange(len(words))] += masking.p_correct * words  # K
    free, weighted = gain * inverse, shown * inverse[:, None]
    multiples = np.linalg.solve((shown.T @ weighted).T, (basis - free @ shown).T).T
    return free + multiples @ weighted.T


class NumericalError(NamedTuple):
    """Standard errors of W* and its loss where the moments of the prior are estimates."""

    matrix: float  # Frobenius norm, relative to that of W*
    entry: float  # of the entry that is least certain
    loss: float

    @property
    def sentence(self) -> str:
        return (
            f"So W* is off by about {self.matrix:.2g} of its norm (an entry by {self.entry:.2g} at most) and its loss "
            f"by {self.loss:.2g}: standard errors, from independent estimates of the moments."
        )


@dataclass(frozen=True, repr=False, eq=False)
class DenseOptimum(ValueOptimum):
    """W* as a matrix, for worlds without symmetry. `optimum` makes one.

    Attributes:
        settings: The world, in plain numbers.
        loss: Squared loss of W*, summed over the outputs.
        modes: Parts of W* in the order of learning.
        notes: Remarks.
        value: W* (V x V).
        directions: Eigenvectors of E[xx'] (V x r), without those of eigenvalue 0.
        rates: Their eigenvalues (r).
        word_topics: A (words x T).
        mean: E[theta] (T).
        second: E[theta theta'] (T x T).
        masking: The masking scheme.
        topic: The topic of each word, where it has only one; else None.
        error: Error of W*; None where it is exact, or not known (`notes` say which).

    Example:
        >>> best = optimum(TopicModel(words_per_topic=[1, 2, 3]), Fixed(topics_per_document=2, length=20))
        >>> best.matrix().shape, round(best.loss, 4)
        ((7, 7), 0.7071)
    """

    value: ValueArray
    directions: Float[np.ndarray, "V r"]
    rates: Float[np.ndarray, " r"]
    word_topics: WordTopics
    mean: Float[np.ndarray, " T"]
    second: Float[np.ndarray, "T T"]
    masking: Masking
    topic: Int[np.ndarray, " words"] | None = None
    error: NumericalError | None = None

    def matrix(self) -> ValueArray:
        return self.value

    def topic_order(self) -> Int[np.ndarray, " words"]:
        return np.argsort(self.word_topics.argmax(1), kind="stable")

    @property
    def entries(self) -> Entries | None:
        return None if self.topic is None else mean_entries(self.value, self.topic)

    def limit_matrix(self) -> ValueArray:
        return self._others[0]

    def least_norm_matrix(self) -> ValueArray:
        return self._others[1]

    @cached_property
    def _others(self) -> tuple[ValueArray, ValueArray]:
        topics = self.word_topics
        theorem = self.value if self.settings.infinite else least_norm(topics, self.second, self.masking)
        return limit_of_length(topics, self.mean, self.second, self.masking), theorem

    def learnt(self, difference: ValueArray, time: float) -> ValueArray:
        return (difference @ self.directions * -np.expm1(-2 * self.rates * time)) @ self.directions.T

    def numbers(self) -> dict[str, Any]:
        error = {} if self.error is None else {"numerical_error": self.error._asdict()}
        numbers = super().numbers() | {"method": "matrix"} | error
        if self.topic is None:
            return numbers
        matrices = (self.value, *self._others)
        best, limit, theorem = (self.entry_numbers(mean_entries(matrix, self.topic)) for matrix in matrices)
        return best | {"entries_are": "means over pairs of words"} | numbers | {"limit": limit, "theorem2": theorem}

    def summary(self) -> list[str]:
        if self.entries is None:
            return super().summary()
        means = self.entry_numbers(self.entries).items()
        said = ", ".join(f"{value:.6g} ({name.replace('_', ' ')})" for name, value in means if value is not None)
        return [f"Means of W*: {said}.", *super().summary()]


def mean_entries(matrix: ValueArray, topic: Int[np.ndarray, " words"]) -> Entries:
    inner, count, same = matrix[1:, 1:], len(topic), topic[:, None] == topic
    diagonal, together, all_pairs = (float(part.sum()) for part in (np.diagonal(inner), inner[same], inner))
    pairs = int(same.sum())
    return Entries(
        (together - diagonal) / max(pairs - count, 1),
        (all_pairs - together) / max(count**2 - pairs, 1),
        diagonal / count,
        float(matrix[1:, 0].mean()),
    )


def numerical_error(
    value: ValueArray, parts: Sequence[Moments], solve: Callable[[Moments], tuple[ValueArray, float]]
) -> NumericalError:
    """From W* and its loss under each of the independent estimates of which the moments are the mean."""
    solved, scale = [solve(part) for part in parts], 1 / np.sqrt(len(parts) - 1)  # to the standard error of the mean
    entries = scale * np.std([matrix for matrix, _ in solved], axis=0)
    losses = scale * np.std([loss for _, loss in solved])
    return NumericalError(float(np.linalg.norm(entries) / np.linalg.norm(value)), float(entries.max()), float(losses))


def dense_optimum(
    settings: OptimumSettings,
    word_topics: WordTopics,
    law: Moments,
    masking: Masking,
    weights: LengthWeights,
    notes: tuple[str, ...] = (),
    topic: Int[np.ndarray, " words"] | None = None,
) -> DenseOptimum:
    def endless(law: Moments) -> tuple[ValueArray, float]:
        columns = with_mask(word_topics) @ square_root(law.second)
        return least_norm(word_topics, law.second, masking), 1 - float((columns**2).sum())  # 1 - E|P|^2, as W* x = P

    def finite(law: Moments) -> tuple[ValueArray, float]:
        moments = document_moments(word_topics, law.mean, law.second, masking, weights)
        value = whole_solution(moments)
        value = solve_moments(moments)[0] if value is None else value
        return value, 1 - float((value * moments.joint).sum())

    mean, second, topics = law.mean, law.second, with_mask(word_topics)
    if settings.infinite:
        value, loss = endless(law)
        vectors, sizes, _ = np.linalg.svd(shown_by(masking, topics @ square_root(second)), full_matrices=False)
        some = sizes > ZERO_ROOT * sizes.max()
        directions, rates = vectors[:, some], sizes[some] ** 2
    else:
        moments = document_moments(word_topics, mean, second, masking, weights)
        value, directions, rates = solve_moments(moments)
        loss = 1 - float((value * moments.joint).sum())
    solve = endless if settings.infinite else finite
    error = numerical_error(value, law.parts, solve) if len(law.parts) > 1 else None
    notes = notes if error is None else (*notes, error.sentence)
    modes = dense_modes(value, directions, rates, rate_errors(directions, topics, law, masking, weights), topics, mean)
    return DenseOptimum(
        settings, loss, modes, notes, value, directions, rates, word_topics, mean, second, masking, topic, error
    )


# What `optimum` asks of a prior: any object with these two will do.
class HasMoments(Protocol):
    @property
    def length(self) -> object: ...
    def moments(self, topics: int) -> Moments: ...


# A configuration of `train` has a world, and says whether a law covers it.
class HasWorld(Protocol):
    @property
    def world(self) -> World: ...
    def world_for(self, law: str) -> World: ...


def optimum(
    topics: World | HasWorld | TopicModel | WordTopics | Sequence[Sequence[float]],
    prior: HasMoments | Moments | None = None,
    masking: Masking | None = None,
    *,
    length: Length | None = None,
    weighting: Weighting = "run",
    most_words: int = MOST_WORDS,
) -> SymmetricOptimum | DenseOptimum:
    """W*: the exact best value matrix under uniform attention and squared loss, in any world.

    Args:
        topics: A topic model, or A (one row per word without [MASK], one column per topic); without a prior a
            World, or a RunConfig, which has one.
        prior: Has the moments of theta and the length of documents.
        masking: The masking scheme; None: that of the world, or the usual one.
        length: Overrides the prior's length.
        weighting: How the loss weighs documents: 'run' (as `train` does), 'positions' or 'documents'.
        most_words: A world without symmetry is refused above it: 2,000 words take about 5 s, 6,000 minutes.

    Returns:
        W*, its loss, and its modes in the order of learning.

    Raises:
        InputError: The world is not whole, too large, or has no such optimum.

    Example:
        >>> from topicscope import theory
        >>> best = theory.optimum(TopicModel(4, 3), Fixed(topics_per_document=2, length=20))
        >>> round(best.loss, 6), [mode.name for mode in best.modes]
        (0.840569, ['mean', 'topic contrasts', '[MASK] against words', 'within-topic'])
    """
    if prior is None:
        whole = isinstance(topics, World) or hasattr(topics, "world_for")
        refuse_if(not whole, "a topic model needs a prior: give the law of theta, or a World or RunConfig")
        world = topics if isinstance(topics, World) else cast("HasWorld", topics).world_for("optimum")
        topics, prior, masking = world.topic_model, world.prior, masking or world.masking
    topics = cast("TopicModel | WordTopics", topics)
    masking = masking or Masking()
    length = checked_length(getattr(prior, "length", None) if length is None else length)
    refuse(
        (masking.k < K_FROM, NO_K),
        (weighting not in WEIGHTINGS, f"weighting = {weighting!r}: expected {', '.join(WEIGHTINGS)}"),
    )
    if isinstance(topics, TopicModel):
        words, count, plain = topics.words, topics.topics, topics.uniform  # plain: the prior may make it symmetric
    else:
        topics = checked_word_topics(np.asarray(topics, dtype=float), "word_topics")
        (words, count), plain = topics.shape, False
    too_many = (
        f"{words:,} words: without symmetry at most {most_words:,} are taken; "
        "disjoint topics of equally probable words with an exchangeable prior may be of any size"
    )
    refuse(
        (not plain and words > most_words, too_many),
        (count > MOST_TOPICS, f"{count:,} topics: expected at most {MOST_TOPICS:,}, since E[theta theta'] is made"),
    )
    moments = checked_moments(prior if isinstance(prior, Moments) else prior.moments(count), count, "moments")
    settings = OptimumSettings.of(count, words, prior, length, masking, weighting)
    weights, notes = length_weights(length, masking.p_mask, weighting), notes_on(moments)
    contrast = exchangeable(moments)
    if plain and contrast is not None:
        return symmetric_optimum(settings, contrast, masking, weights, notes)
    refuse_if(words > most_words, too_many)
    matrix = topics.word_topics if isinstance(topics, TopicModel) else topics
    topic = topics.topic_of_word[1:] if isinstance(topics, TopicModel) and topics.disjoint else None
    return dense_optimum(settings, matrix, moments, masking, weights, notes + notes_on_span(matrix, moments), topic)


def checked_length(length: Any) -> Length:
    numbers = length if isinstance(length, tuple | list) and len(length) == 2 else (length, length)
    whole = all(isinstance(n, int | np.integer) and 1 <= n <= LONGEST for n in numbers) and numbers[0] <= numbers[1]
    refuse_if(
        length != "infinite" and not whole,
        f"length = {length!r}: expected a number of words from 1 to {LONGEST:,}, an increasing range of them, "
        "or 'infinite'",
    )
    return length if isinstance(length, str | int) else (int(numbers[0]), int(numbers[1]))  # type: ignore[return-value]


def notes_on_span(word_topics: WordTopics, moments: Moments) -> tuple[str, ...]:
    topics = word_topics.shape[1]
    rank = topic_basis(word_topics, moments.second).shape[1]
    if rank == topics:
        return ()
    return (
        f"Topics are dependent, or some mixtures of them never occur: documents span {rank} of {topics} dimensions. "
        "For infinite documents W* = A (R A)^+ needs all; a basis of their span is used instead of A.",
    )


def topics_alike(topic_model: TopicModel, prior: HasMoments) -> bool:
    """Whether topics are disjoint, have equal words and are exchangeable, so that W* is a handful of numbers.

    Args:
        topic_model: Words and topics.
        prior: Of documents.

    Returns:
        True or False.

    Example:
        >>> from topicscope.world import Groups
        >>> topics_alike(TopicModel(), Dirichlet()), topics_alike(TopicModel(), Groups(groups=5))
        (True, False)
    """
    topics = topic_model.topics
    if not topic_model.uniform:
        return False
    weights = prior.alpha if isinstance(prior, Dirichlet) else prior.weights if isinstance(prior, Fixed) else [0, 1]
    equal = weights is None or bool(np.ptp(weights) == 0)
    return equal or (topics <= MOST_TOPICS and exchangeable(prior.moments(topics)) is not None)


def exchangeable(moments: Moments) -> float | None:
    """The eigenvalue of E[theta theta'] on topic contrasts, where the topics are alike; None where they are not."""
    mean, second, topics = moments.mean, moments.second, len(moments.mean)
    square = float(np.trace(second)) / topics
    pair = (float(second.sum()) - topics * square) / max(topics * (topics - 1), 1)
    others = np.ascontiguousarray(second).ravel()[1:].reshape(topics - 1, topics + 1)[:, :-1]  # all but the diagonal
    ranges = [np.ptp(part) for part in (np.diagonal(second), others) if part.size]
    spread = max(float(max(ranges)) / square, float(np.ptp(mean)) * topics)
    if spread > MOST_SPREAD:
        return None
    return square - pair if square - pair > MOST_SPREAD * square else 0.0


def notes_on(moments: Moments) -> tuple[str, ...]:
    second, mean, norm = moments.errors
    if second <= 0:
        return ()
    return (
        f"E[theta theta'] is numerical; the standard error of an entry is {second:.2g} at most, of one of E[theta] "
        f"{mean:.2g}, and its eigenvalues may be off by {norm:.2g}. Topic contrasts whose rates this cannot tell "
        "apart are one mode."
        + ("" if moments.parts else " How far W* is off with them is not known: they have no `parts`."),
    )
