"""W* for any topics: words of several topics, unequal topics, unequal words, any law of theta.

Finite documents: W* = H G^+ with both moments as matrices (R5). Infinite ones: with U a basis of the words'
distributions that documents have, W* = U (R U)^+ (R6). This is A (R A)^+ where the columns of A are independent and no
mixture of topics is missing from the documents, and it needs neither: dependent topics only make the basis smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import InputError
from topicscope.theory.document_moments import (
    ZERO_MOMENT,
    LengthWeights,
    ValueArray,
    document_moments,
    infinite_map,
    shown_instead,
    solve_moments,
    whole_solution,
    with_mask,
)
from topicscope.theory.value_optimum import Entries, Mode, OptimumSettings, ValueOptimum, ordered
from topicscope.world import Masking, Moments

ZERO_ROOT = 1e-9  # singular values below this share of the largest are zero: roots of eigenvalues
EQUAL = 1e-8  # relative difference of eigenvalues that are one


def rate_errors(
    directions: Float[np.ndarray, "V r"],
    topics: Float[np.ndarray, "V T"],
    law: Moments,
    masking: Masking,
    weights: LengthWeights,
) -> Float[np.ndarray, " r"]:
    """How far each rate u'Gu may be off with E[theta theta'] and E[theta], of which G is made; 0 where these are exact.

    G has E[PP'] and E[P] c0' + c0 E[P]' with some weights, and diag(E[P]).
    """
    _, mean, norm = law.errors
    if mean == norm == 0:
        return np.zeros(directions.shape[1])
    w, p_c, c0 = weights, masking.p_correct, shown_instead(masking, len(directions) - 1)
    on_topics = np.linalg.norm(topics.T @ directions, axis=0)
    pairs = p_c**2 * w.masked_pair + w.plain_pair + 2 * p_c * w.mixed_pair
    mixed = 2 * (p_c * w.masked_pair + w.mixed_pair) * np.abs(c0 @ directions) * np.sqrt(len(law.mean))
    own = (p_c * w.masked + w.plain) * (topics.sum(1) @ directions**2)
    errors: Float[np.ndarray, " r"] = on_topics * (on_topics * pairs * norm + mixed * mean) + own * mean
    return errors


def dense_modes(
    value: ValueArray,
    directions: Float[np.ndarray, "V r"],
    rates: Float[np.ndarray, " r"],
    errors: Float[np.ndarray, " r"],
    topics: Float[np.ndarray, "V T"],
    mean: Float[np.ndarray, " T"],
) -> tuple[Mode, ...]:
    """Directions of one kind and one rate, within its error, together. The kind is where most of a direction lies.

    Those inside topics differ in rate with the words' frequencies; they are put together whatever their rates.
    """
    plane = np.zeros((len(topics), 2))
    plane[0, 0], plane[:, 1] = 1, topics @ mean
    spaces, sizes, _ = np.linalg.svd(np.hstack([plane, topics]), full_matrices=False)
    whole = spaces[:, sizes > ZERO_ROOT * sizes.max()]
    in_plane = (np.linalg.qr(plane)[0].T @ directions) ** 2
    in_topics = ((whole.T @ directions) ** 2).sum(0)
    size = np.linalg.norm(value @ directions, axis=0)
    groups: dict[tuple[str, int], list[int]] = {}
    group = 0
    for i in range(len(rates)):
        if i and rates[i] <= rates[i - 1] * (1 - EQUAL) - errors[i - 1] - errors[i]:
            group += 1
        kind = "within-topic" if in_topics[i] < 0.5 else "topic contrasts" if in_plane[:, i].sum() < 0.5 else "mean"
        groups.setdefault((kind, 0 if kind == "within-topic" else group), []).append(i)
    modes = [
        Mode(kind, len(rows), float(rates[rows[0]]), float(rates[rows[-1]]), float(np.linalg.norm(size[rows])))
        for (kind, _), rows in groups.items()
    ]
    free = len(directions) - len(rates)
    return ordered(numbered(modes)) + ((Mode("free", free, 0.0, 0.0, 0.0),) if free else ())


def numbered(modes: list[Mode]) -> list[Mode]:
    """Modes of one kind get numbers, in the order of learning; the second of the mean's plane is [MASK]'s."""
    named: list[Mode] = []
    for kind in ("mean", "topic contrasts", "within-topic"):
        own = sorted((mode for mode in modes if mode.name == kind), key=lambda mode: -mode.eigenvalue)
        names = ["mean", *["[MASK] against words"] * len(own)] if kind == "mean" else None
        for i, mode in enumerate(own):
            name = names[i] if names else kind if len(own) == 1 else f"{kind} {i + 1}"
            named.append(Mode(name, mode.count, mode.eigenvalue, mode.slowest, mode.norm))
    return named


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
    """R times columns: what infinite documents of these word distributions show."""
    k, c = infinite_map(masking, len(columns) - 1)
    return k * columns + np.outer(c, columns.sum(0))


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
    columns = with_mask(word_topics)
    if np.linalg.matrix_rank(word_topics) < word_topics.shape[1]:
        raise InputError(
            "word_topics: the columns are dependent, and A (R A)^+ needs independent ones; "
            "`optimum` uses a basis of their span instead"
        )
    return columns @ np.linalg.pinv(shown_by(masking, columns))


def least_norm(word_topics: WordTopics, second: Float[np.ndarray, "T T"], masking: Masking) -> ValueArray:
    """W* of infinite documents, where flow from zero ends."""
    basis = topic_basis(word_topics, second)
    return basis @ np.linalg.pinv(shown_by(masking, basis))


def limit_of_length(
    word_topics: WordTopics, mean: Float[np.ndarray, " T"], second: Float[np.ndarray, "T T"], masking: Masking
) -> ValueArray:
    """What W* tends to as documents grow.

    The terms of order 1 ask for W x = P. Of all such W the terms of order 1/N choose the one with W D = K + (multiples
    of x), D = diag(E[x]) and K = p_c (diag(E[P]) - E[PP']). Nothing of V x V is inverted.
    """
    basis, topics = topic_basis(word_topics, second), with_mask(word_topics)
    shown, words = shown_by(masking, basis), topics @ mean
    k, c = infinite_map(masking, len(word_topics))
    noise = k * words + c  # D
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
        >>> from topicscope.theory import optimum
        >>> from topicscope.world import Fixed, TopicModel
        >>> best = optimum(TopicModel(words_per_topic=[1, 2, 3]), Fixed(topics_per_document=2, length=20))
        >>> best.matrix().shape, round(best.loss, 4)
        ((7, 7), 0.7071)
        >>> [round(float(rate), 4) for rate in sorted(best.rates, reverse=True)[:3]]  # the fastest directions
        [0.1827, 0.0499, 0.0285]
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
        return self._limit

    @cached_property
    def _limit(self) -> ValueArray:
        return limit_of_length(self.word_topics, self.mean, self.second, self.masking)

    def least_norm_matrix(self) -> ValueArray:
        return self._least_norm

    @cached_property
    def _least_norm(self) -> ValueArray:
        return self.value if self.settings.infinite else least_norm(self.word_topics, self.second, self.masking)

    def learnt(self, difference: ValueArray, time: float) -> ValueArray:
        return (difference @ self.directions * -np.expm1(-2 * self.rates * time)) @ self.directions.T

    def numbers(self) -> dict[str, Any]:
        numbers = super().numbers() | {"method": "matrix"}
        if self.error is not None:
            numbers["numerical_error"] = self.error._asdict()
        if self.topic is None:
            return numbers
        best, limit, theorem = (
            self.entry_numbers(mean_entries(matrix, self.topic))
            for matrix in (self.value, self.limit_matrix(), self.least_norm_matrix())
        )
        return best | {"entries_are": "means over pairs of words"} | numbers | {"limit": limit, "theorem2": theorem}

    def summary(self) -> list[str]:
        entries = self.entries
        if entries is None:
            return super().summary()
        means = {name.replace("_", " "): value for name, value in self.entry_numbers(entries).items()}
        said = ", ".join(f"{value:.6g} ({name})" for name, value in means.items() if value is not None)
        return [f"Means of W*: {said}.", *super().summary()]


def mean_entries(matrix: ValueArray, topic: Int[np.ndarray, " words"]) -> Entries:
    inner, count = matrix[1:, 1:], len(topic)
    same = topic[:, None] == topic
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
    solved = [solve(part) for part in parts]
    scale = 1 / np.sqrt(len(parts) - 1)  # of the standard deviation, to the standard error of the mean
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
    mean, second = law.mean, law.second

    def endless(law: Moments) -> tuple[ValueArray, float]:
        columns = with_mask(word_topics) @ square_root(law.second)
        return least_norm(word_topics, law.second, masking), 1 - float((columns**2).sum())  # 1 - E|P|^2, as W* x = P

    def finite(law: Moments) -> tuple[ValueArray, float]:
        moments = document_moments(word_topics, law.mean, law.second, masking, weights)
        value = whole_solution(moments)
        value = solve_moments(moments)[0] if value is None else value
        return value, 1 - float((value * moments.joint).sum())

    if settings.infinite:
        value, loss = endless(law)
        vectors, sizes, _ = np.linalg.svd(
            shown_by(masking, with_mask(word_topics) @ square_root(second)), full_matrices=False
        )
        some = sizes > ZERO_ROOT * sizes.max()
        directions, rates = vectors[:, some], sizes[some] ** 2
    else:
        moments = document_moments(word_topics, mean, second, masking, weights)
        value, directions, rates = solve_moments(moments)
        loss = 1 - float((value * moments.joint).sum())
    error = None
    if len(law.parts) > 1:
        error = numerical_error(value, law.parts, endless if settings.infinite else finite)
        notes = (*notes, error.sentence)
    errors = rate_errors(directions, with_mask(word_topics), law, masking, weights)
    modes = dense_modes(value, directions, rates, errors, with_mask(word_topics), mean)
    return DenseOptimum(
        settings, loss, modes, notes, value, directions, rates, word_topics, mean, second, masking, topic, error
    )
