"""W* for any topics: words of several topics, unequal topics, unequal words, any law of theta.

Finite documents: W* = H G^+ with both moments as matrices (R5). Infinite ones: with U a basis of the words'
distributions that documents have, W* = U (R U)^+ (R6). This is A (R A)^+ where the columns of A are independent and no
mixture of topics is missing from the documents, and it needs neither: dependent topics only make the basis smaller.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import InputError
from topicscope.theory.document_moments import DocumentMoments, LengthWeights, document_moments, infinite_map, with_mask
from topicscope.theory.value_optimum import Entries, Mode, OptimumSettings, ValueArray, ValueOptimum, ordered
from topicscope.world import Masking

WordTopics = Float[np.ndarray, "words T"]

ZERO_MOMENT = 1e-13  # eigenvalues of E[xx'] below this share of the largest are zero
ZERO_ROOT = 1e-9  # singular values of A E[theta theta']^(1/2) likewise: roots of eigenvalues
EQUAL = 1e-8  # relative difference of eigenvalues that are one


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
    """W* = A (R A)^+ (R6), for infinite documents, independent topics and an invertible E[theta theta']."""
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


@dataclass(frozen=True, repr=False, eq=False)
class DenseOptimum(ValueOptimum):
    """W* as a matrix. `directions` are the eigenvectors of E[xx'] and `rates` its eigenvalues, zero ones left out."""

    settings: OptimumSettings
    loss: float
    modes: tuple[Mode, ...]
    notes: tuple[str, ...]
    value: ValueArray
    directions: Float[np.ndarray, "V r"]
    rates: Float[np.ndarray, " r"]
    word_topics: WordTopics
    mean: Float[np.ndarray, " T"]
    second: Float[np.ndarray, "T T"]
    masking: Masking
    topic: Int[np.ndarray, " words"] | None = None  # of each word, where it has one only

    def matrix(self) -> ValueArray:
        return self.value

    @property
    def entries(self) -> Entries | None:
        """Means of W* by the relation of two words, where topics are disjoint."""
        return None if self.topic is None else mean_entries(self.value, self.topic)

    def limit_matrix(self) -> ValueArray:
        return self._limit

    @cached_property
    def _limit(self) -> ValueArray:
        return limit_of_length(self.word_topics, self.mean, self.second, self.masking)

    def least_norm_matrix(self) -> ValueArray:
        return least_norm(self.word_topics, self.second, self.masking)

    def learnt(self, difference: ValueArray, time: float) -> ValueArray:
        return (difference @ self.directions * -np.expm1(-2 * self.rates * time)) @ self.directions.T

    def numbers(self) -> dict[str, Any]:
        entries = self.entries
        means = {} if entries is None else asdict(entries) | {"entries_are": "means over pairs of words"}
        return means | super().numbers() | {"method": "matrix"}

    def summary(self) -> list[str]:
        entries = self.entries
        if entries is None:
            return super().summary()
        means = ", ".join(f"{value:.6g} ({name.replace('_', ' ')})" for name, value in asdict(entries).items())
        return [f"Means of W*: {means}.", *super().summary()]


def mean_entries(matrix: ValueArray, topic: Int[np.ndarray, " words"]) -> Entries:
    """Means over pairs of words; 0 where there is no such pair."""
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


def solve_moments(moments: DocumentMoments) -> tuple[ValueArray, Float[np.ndarray, "V r"], Float[np.ndarray, " r"]]:
    """H G^+, and the eigenvectors and eigenvalues of G that are not zero, the largest first."""
    rates, vectors = np.linalg.eigh(moments.shown)
    some = rates > ZERO_MOMENT * rates[-1]
    directions, rates = vectors[:, some][:, ::-1], rates[some][::-1]
    return (moments.joint @ directions / rates) @ directions.T, directions, rates


def dense_optimum(
    settings: OptimumSettings,
    word_topics: WordTopics,
    mean: Float[np.ndarray, " T"],
    second: Float[np.ndarray, "T T"],
    masking: Masking,
    weights: LengthWeights,
    notes: tuple[str, ...] = (),
    topic: Int[np.ndarray, " words"] | None = None,
) -> DenseOptimum:
    """From A, E[theta], E[theta theta'], masking and length."""
    if settings.infinite:
        value = least_norm(word_topics, second, masking)
        columns = with_mask(word_topics) @ square_root(second)
        vectors, sizes, _ = np.linalg.svd(shown_by(masking, columns), full_matrices=False)
        some = sizes > ZERO_ROOT * sizes.max()
        directions, rates = vectors[:, some], sizes[some] ** 2
        loss = 1 - float((columns**2).sum())  # 1 - E|P|^2, since W* x = P
    else:
        moments = document_moments(word_topics, mean, second, masking, weights)
        value, directions, rates = solve_moments(moments)
        loss = 1 - float((value * moments.joint).sum())
    modes = dense_modes(value, directions, rates, with_mask(word_topics), mean)
    return DenseOptimum(
        settings, loss, modes, notes, value, directions, rates, word_topics, mean, second, masking, topic
    )


def dense_modes(
    value: ValueArray,
    directions: Float[np.ndarray, "V r"],
    rates: Float[np.ndarray, " r"],
    topics: Float[np.ndarray, "V T"],
    mean: Float[np.ndarray, " T"],
) -> tuple[Mode, ...]:
    """Directions of one kind and one rate together. The kind is the space in which most of a direction lies.

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
    group, last = 0, np.inf
    for i, rate in enumerate(rates):
        group, last = (group if rate > last * (1 - EQUAL) else group + 1), rate
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
