"""W* where words of a topic and topics are alike: disjoint topics of v equally probable words, exchangeable theta.

Every matrix then is a sum of parts on the [MASK]-and-mean plane, the topic contrasts and the differences inside
topics, so that W* is a handful of numbers whatever T and v (R1 and R5):
    W* = u rho' + a Pi + b Pi_w,  rho = 1 for finite documents,  b = p_c / (1 - (E[m]/N) (1 - p_c - p_r)).
Rates are sums of terms that are not negative, so that one is zero where it is exactly 0, however small others are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError
from topicscope.theory.document_moments import LengthWeights, length_weights
from topicscope.theory.value_optimum import (
    LARGEST_MATRIX,
    Entries,
    Mode,
    OptimumSettings,
    ValueArray,
    ValueOptimum,
    ordered,
)
from topicscope.world import Masking


class Parts(NamedTuple):
    """G and H by the parts on which they are diagonal, and W* on these."""

    plane: Float[np.ndarray, "2 2"]  # G in the basis e_0, 1/sqrt(Tv)
    shown: Float[np.ndarray, " 2"]  # E[x] in it
    topic: float  # eigenvalue of G on topic contrasts
    topic_joint: float  # and of H
    word: float  # inside topics
    word_joint: float
    rho: Float[np.ndarray, " 2"]  # of W* = u rho' on the plane, for [MASK] and for a word
    a: float
    b: float


def parts_of(topics: int, v: int, contrast: float, masking: Masking, w: LengthWeights) -> Parts:
    """`contrast` is the eigenvalue of E[theta theta'] on topic contrasts."""
    n, p_c = topics * v, masking.p_correct
    p_word, p0, root = p_c + masking.p_random, masking.p_mask_word, np.sqrt(topics * v)
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
    return Parts(
        plane,
        shown,
        topic,
        topic_joint,
        word,
        word_joint,
        rho,
        topic_joint / topic if topic > 0 else 0.0,
        word_joint / word if word > 0 else 0.0,
    )


def plane_rates(parts: Parts, words: int) -> tuple[Float[np.ndarray, " 2"], Float[np.ndarray, "2 2"]]:
    """Eigenvalues of G on the plane, the smaller first, and eigenvectors.

    Their product is the determinant: the variance of the share of [MASK]s over the number of words. It is taken from
    the moments of that share and of the words', which are of one size; infinite documents have none.
    """
    rates, vectors = np.linalg.eigh(parts.plane)
    shares = parts.plane * np.outer([1, np.sqrt(words)], [1, np.sqrt(words)])
    variance = float(np.linalg.det(shares)) if parts.word > 0 else 0.0
    return np.array([max(variance, 0.0) / words / rates[1], rates[1]]), vectors


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

    settings: OptimumSettings
    loss: float
    modes: tuple[Mode, ...]
    notes: tuple[str, ...]
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
        words, topics = self.settings.words, self.settings.topics
        if words > LARGEST_MATRIX:
            raise InputError(f"W has {words:,} words; a matrix of at most {LARGEST_MATRIX:,} is made whole")
        topic = np.arange(words) // (words // topics)
        matrix = np.zeros((words + 1, words + 1))
        matrix[1:, 0] = entries.mask_column
        matrix[1:, 1:] = np.where(topic[:, None] == topic, entries.same_topic, entries.different_topic)
        np.fill_diagonal(matrix[1:, 1:], entries.diagonal)
        return matrix

    def learnt(self, difference: ValueArray, time: float) -> ValueArray:
        words, topics, parts = self.settings.words, self.settings.topics, self.parts
        rates, vectors = plane_rates(parts, words)
        basis = np.zeros((words + 1, 2))  # e_0 and 1 / sqrt(Tv)
        basis[0, 0], basis[1:, 1] = 1, 1 / np.sqrt(words)
        plane = basis @ (vectors * -np.expm1(-2 * rates * time)) @ vectors.T @ basis.T
        inner = difference[:, 1:].reshape(len(difference), topics, -1)
        by_topic = inner.mean(2, keepdims=True)
        topic, word = (-np.expm1(-2 * rate * time) for rate in (parts.topic, parts.word))
        moved = topic * (by_topic - by_topic.mean(1, keepdims=True)) + word * (inner - by_topic)
        learnt = difference @ plane
        learnt[:, 1:] += moved.reshape(len(difference), words)
        return learnt

    def distances_between(self) -> dict[str, float]:
        best, limit, theorem = (np.array(list(vars(one).values())) for one in (self.entries, self.limit, self.theorem2))
        n, v = self.settings.words, self.settings.words // self.settings.topics
        pairs = np.array([n * (v - 1), n * (n - v), n, n], dtype=float)  # how often W has each entry
        return {
            name: math.sqrt(float(pairs @ (one - other) ** 2 / (pairs @ other**2)))
            for name, one, other in (
                ("optimum_to_limit", best, limit),
                ("optimum_to_theorem2", best, theorem),
                ("limit_to_theorem2", limit, theorem),
            )
        }

    def numbers(self) -> dict[str, Any]:
        best, limit, theorem = map(self.entry_numbers, (self.entries, self.limit, self.theorem2))
        return best | super().numbers() | {"limit": limit, "theorem2": theorem, "method": "symmetry"}

    def summary(self) -> list[str]:
        best, own = self.entries, self.entry_numbers(self.entries)
        above = (
            f"{best.diagonal:.6g} on the diagonal"
            if own["same_topic"] is None
            else f"{best.diagonal - best.same_topic:.6g} more on the diagonal"
        )
        pairs = {"inside a topic": own["same_topic"], "between topics": own["different_topic"]}
        said = [*(f"{value:.6g} {where}" for where, value in pairs.items() if value is not None), above]
        return [f"W*: {', '.join(said)}, {best.mask_column:.6g} in the [MASK] column.", *super().summary()]


def entries_of(topics: int, v: int, rho: Float[np.ndarray, " 2"], a: float, b: float) -> Entries:
    """The entries of u rho' + a Pi + b Pi_w."""
    mean = rho[1] / (topics * v)
    same = mean + a * (1 - 1 / topics) / v - b / v
    return Entries(float(same), float(mean - a / (topics * v)), float(same + b), float(rho[0] / (topics * v)))


def limit_entries(topics: int, v: int, contrast: float, masking: Masking) -> Entries:
    """As N grows: 1/N terms decide what infinite documents leave open. E[m] / N tends to p_m in every weighting."""
    seen = 1 - masking.p_mask * masking.p_mask_word  # share of positions that show a word
    b = masking.p_correct / seen  # k > 0, so that words are seen
    a = 1 / masking.k if contrast > 0 else b  # where every document has all topics alike, topics are as words
    shown = np.array([float(masking.p_mask * masking.p_mask_word > 0), 1.0])
    return entries_of(topics, v, shown, a, b)


def symmetric_optimum(
    settings: OptimumSettings, contrast: float, masking: Masking, weights: LengthWeights, notes: tuple[str, ...] = ()
) -> SymmetricOptimum:
    """From the eigenvalue of E[theta theta'] on topic contrasts alone."""
    topics, v = settings.topics, settings.words // settings.topics
    parts = parts_of(topics, v, contrast, masking, weights)
    endless = parts_of(topics, v, contrast, masking, length_weights("infinite", masking.p_mask))
    gained = parts.rho @ (parts.shown * [1, np.sqrt(settings.words)]) / settings.words
    gained += (topics - 1) * parts.a * parts.topic_joint + topics * (v - 1) * parts.b * parts.word_joint
    return SymmetricOptimum(
        settings,
        float(1 - gained),
        symmetric_modes(parts, topics, v),
        notes,
        parts,
        entries_of(topics, v, parts.rho, parts.a, parts.b),
        limit_entries(topics, v, contrast, masking),
        entries_of(topics, v, endless.rho, endless.a, endless.b),
    )


def symmetric_modes(parts: Parts, topics: int, v: int) -> tuple[Mode, ...]:
    """Four rates at most: the plane has two, topic contrasts and differences inside topics one each."""
    rates, vectors = plane_rates(parts, topics * v)
    root = np.sqrt(topics * v)
    on_plane = [float(abs(vector @ (parts.rho * [1, root])) / root) for vector in vectors.T]
    found = [
        ("mean", 1, float(rates[1]), on_plane[1]),
        ("[MASK] against words", 1, float(rates[0]), on_plane[0]),
        ("topic contrasts", topics - 1, parts.topic, parts.a * math.sqrt(topics - 1)),
        ("within-topic", topics * (v - 1), parts.word, parts.b * math.sqrt(topics * (v - 1))),
    ]
    return ordered([Mode(name, count, rate, rate, norm) for name, count, rate, norm in found])
