"""Same topic against different topic: both means, difference and ratio, with what chance, shuffled topics and equal frequencies make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from topicscope.measure.pairs import PairSums

Interval = tuple[float, float]


@dataclass(frozen=True)
class Matched:
    """The difference once different-topic pairs have the word frequencies of the same-topic pairs."""

    same: float
    different: float
    difference: float
    interval: Interval | None


@dataclass(frozen=True)
class Effect:
    """`interval` (bootstrap) and `null_interval` (shuffled topics) are of the difference, 95%. A ratio is None ('undefined') over what may be zero."""

    same: float
    different: float
    difference: float
    ratio: float | None
    interval: Interval | None
    ratio_interval: Interval | None = None
    null_interval: Interval | None = None
    p_value: float | None = None  # share of shuffles that do as well, the real one included
    matched: Matched | None = None
    same_word: float | None = None
    resamples: Float[np.ndarray, " R"] | None = field(default=None, repr=False, compare=False)  # of the difference

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "resamples"}


def interval(values: Float[np.ndarray, " R"]) -> Interval | None:
    """The middle 95%; None where there is nothing to resample."""
    values = values[np.isfinite(values)]
    return (float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))) if len(values) > 1 else None


def effect(
    same: float,
    different: float,
    boot: tuple[np.ndarray, np.ndarray],
    null: tuple[np.ndarray, np.ndarray] | None = None,
    matched: tuple[float, float, np.ndarray] | None = None,
    same_word: float | None = None,
) -> Effect | None:
    """None where there is no pair of the one kind or the other."""
    if not (np.isfinite(same) and np.isfinite(different)):
        return None
    denominator = interval(boot[1])
    defined = (
        denominator is not None and denominator[0] > 0
    )  # over what may be zero, or is negative, a ratio says nothing
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = boot[0] / boot[1]
    null_interval = p_value = None
    if null is not None and len(null[0]):
        shuffled = null[0] - null[1]
        null_interval = interval(shuffled)
        p_value = float((1 + (shuffled >= same - different).sum()) / (1 + len(shuffled)))
    equal = (
        None
        if matched is None or not np.isfinite(matched[:2]).all()
        else Matched(matched[0], matched[1], matched[0] - matched[1], interval(matched[2]))
    )
    return Effect(
        same,
        different,
        same - different,
        same / different if defined else None,
        interval(boot[0] - boot[1]),
        interval(ratios) if defined else None,
        null_interval,
        p_value,
        equal,
        same_word,
        boot[0] - boot[1],
    )


def embedding_effect(
    models: Sequence[PairSums], resamples: int, seed: int, null: tuple[np.ndarray, np.ndarray] | None, *, matched: bool
) -> Effect | None:
    """Bootstrap over topics; where there are several models (fresh initialisations), their mean, and bootstrap over them too."""
    topics, rng = len(models[0].same), np.random.default_rng([seed, 0xE3B])
    times = rng.multinomial(topics, np.full(topics, 1 / topics), resamples).astype(float)
    drawn = rng.multinomial(len(models), np.full(len(models), 1 / len(models)), resamples) / len(models)  # R x models

    def means(*, matched: bool) -> tuple[np.ndarray, np.ndarray]:
        """Same and different: the figure itself, then its resamples."""
        used = models if matched else [m.pooled() for m in models]
        whole = np.mean([m.means(matched=matched) for m in used], 0)  # 2
        each = np.array([m.means(times, matched=matched) for m in used])  # models x 2 x R
        resampled = np.einsum("rm,mkr->kr", drawn, each)
        return whole, resampled

    (same, different), boot = means(matched=False)
    equal = None
    if matched:
        (left, right), resampled = means(matched=True)
        equal = (float(left), float(right), resampled[0] - resampled[1])
    return effect(float(same), float(different), (boot[0], boot[1]), null, equal)


def matched_effect(sums: PairSums, resamples: int, seed: int) -> Effect | None:
    """The same at equal word frequencies alone, with the resamples that `embedding_effect` draws."""
    topics, rng = len(sums.same), np.random.default_rng([seed, 0xE3B])
    times = rng.multinomial(topics, np.full(topics, 1 / topics), resamples).astype(float)
    same, different = sums.means(matched=True)
    return effect(float(same), float(different), sums.means(times, matched=True))
