"""E[xx'] and E[yx'] under uniform attention, for any topics, law of theta and length of documents; and their W*.

x is the word distribution that a masked document shows ([MASK] is word 0), y the one-hot word at a masked position.
Given theta, a position holds a word of P = A theta, and a masked one shows a word of h = p_c P + c0, with
c0 = p_r u + (1 - p_c - p_r) e_0. Both moments are sums over pairs of positions; they need the number m of masked
positions only through E[m] and E[m(m-1)], under the weight that the loss gives to a document:

- `run`: the mean over the masked positions of a document, then over documents; an empty document gets one masked
  position. This is what `Masking.draw` and `train` do.
- `documents`: the same over the documents that have a masked position.
- `positions`: every masked position counts alike.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

from topicscope.world import Masking

K_FROM = 1e-9  # smallest k = 1 - (1 - p_c) p_m that is divided by
NO_K = "p_mask = 1 and p_correct = 0 show no word on purpose (k = 0 in the paper); choose a smaller p_mask"

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
    """The two moments of masked documents under uniform attention.

    x is the word distribution that a masked document shows, y the one-hot word at a masked position.
    """

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
    p = p_mask
    if isinstance(length, str):
        return LengthWeights(0, 0, p**2, (1 - p) ** 2, p * (1 - p), 0, p, 1 - p)
    low, high = length if isinstance(length, tuple) else (length, length)
    total, weights = np.zeros(len(LengthWeights._fields)), 0.0
    for start in range(low, high + 1, AT_ONCE):
        n = np.arange(start, min(start + AT_ONCE, high + 1), dtype=float)
        m1, m2, weight = masked_numbers(n, p, weighting)
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
        >>> moments = document_moments(np.eye(2), np.array([0.5, 0.5]), np.eye(2) / 2, Masking(), weights)
        >>> moments.shown.sum(1).round(6).tolist(), round(float(moments.joint.sum()), 6)  # E[x], and all words
        ([0.12, 0.44, 0.44], 1.0)
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
    """The two moments of given finite documents: the mean over documents, the exact expectation over masks.

    A pair of positions of a document with counts c is (cc' - diag c) / (N (N - 1)).
    """
    lengths, size = counts.sum(1), counts.shape[1]
    shown, joint, total = np.zeros((size, size)), np.zeros((size, size)), 0.0
    for n in np.unique(lengths):
        here = counts[lengths == n]
        words = here.sum(0)
        pair = (here.T @ here - np.diag(words)) / max(n * (n - 1), 1)
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
    """H G^+ where G has an inverse on the words that are shown; None where documents lack some mixtures of words.

    Rare words make small eigenvalues that are not zero. In D^(-1/2) G D^(-1/2), D = diag(E[x]), every word that is ever
    shown counts alike, so that the solution has full precision.
    """
    shown = moments.shown.sum(1)  # E[x], since x sums to 1
    some = np.flatnonzero(shown)
    scale = np.sqrt(shown[some])
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
    """Eigenvalues, the largest first, and eigenvectors; those too small to be seen beside the largest, once more.

    On the space that they span the matrix is small, and its own eigenvalues are seen.
    """
    rates, vectors = (part[..., ::-1] for part in np.linalg.eigh(matrix))
    small = rates <= ZERO_MOMENT * rates[0]
    if not small.any() or not rates[0] > 0:
        return rates, vectors
    inner, turn = graded_eigen(vectors[:, small].T @ matrix @ vectors[:, small])
    return np.concatenate([rates[~small], inner]), np.hstack([vectors[:, ~small], vectors[:, small] @ turn])
