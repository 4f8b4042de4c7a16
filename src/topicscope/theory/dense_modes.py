"""Modes of W* where it is a matrix: directions of documents by the space that they lie in and the rate of learning."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from topicscope.theory.document_moments import LengthWeights, shown_instead
from topicscope.theory.value_optimum import Mode, ValueArray, ordered
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
