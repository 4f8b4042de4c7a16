"""Same topic against different topic: both means, their difference and ratio, with a bootstrap interval.

Three controls stand beside them: topics shuffled among words, pairs of equal word frequencies, and random weights
(the same effect of another model). Over runs, the interval of a mean is Student's.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from topicscope.ground import Stream, generator
from topicscope.measure.pairs import PairSums

Interval = tuple[float, float]
UNSTORED = ("resamples", "same_resamples", "shuffled")
CONTROLS = ("null_interval", "p_value", "matched")  # not measured for single heads and the steps of a timeline


@dataclass(frozen=True)
class Matched:
    """The difference once different-topic pairs have the word frequencies of the same-topic pairs."""

    same: float
    different: float
    difference: float
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class Effect:
    """`interval` (bootstrap) and `null_interval` (shuffled topics) are of the difference, 95%.

    A ratio is None ('undefined') where its denominator may be zero.
    """

    same: float
    different: float
    difference: float
    ratio: float | None
    interval: Interval | None
    ratio_interval: Interval | None = None
    null_interval: Interval | None = None
    p_value: float | None = None  # share of shuffles whose difference is as large, the real assignment included
    matched: Matched | None = None
    same_word: float | None = None
    pairs: float | None = None  # of one topic
    other_pairs: float | None = None  # of different topics
    resamples: Float[np.ndarray, " R"] | None = field(default=None, repr=False, compare=False)  # of the difference
    same_resamples: Float[np.ndarray, " R"] | None = field(default=None, repr=False, compare=False)  # of the mean
    shuffled: Float[np.ndarray, " S"] | None = field(
        default=None, repr=False, compare=False
    )  # the difference after each

    def as_dict(self, *, controls: bool = True) -> dict[str, Any]:
        """As JSON has it, without the resamples; `controls` False leaves CONTROLS out."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in UNSTORED and (controls or name not in CONTROLS)
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what `as_dict` wrote, exactly."""
        values = with_intervals({part.name: data.get(part.name) for part in fields(cls)})
        if values["matched"] is not None:
            values["matched"] = Matched(**with_intervals(values["matched"]))
        return cls(**values)

    def columns(self, *, controls: bool = True) -> dict[str, float | None]:
        """One number per column: an interval as two columns, `_low` and `_high`."""
        parts = self.as_dict(controls=controls)
        if controls and self.matched is None:
            parts["matched"] = dict.fromkeys(part.name for part in fields(Matched))
        return columns(parts)


def with_intervals(data: Mapping[str, Any]) -> dict[str, Any]:
    """A record as JSON has it, with its intervals (lists of two numbers, or None) as pairs."""
    return {
        name: (value[0], value[1]) if name.endswith("interval") and value is not None else value
        for name, value in data.items()
    }


def columns(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested record as flat columns. An interval becomes two, also where it is None."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        name = prefix + key
        if isinstance(value, Mapping):
            flat |= columns(value, f"{name}_")
        elif key.endswith("interval"):
            flat |= dict(zip((f"{name}_low", f"{name}_high"), value or (None, None), strict=True))
        else:
            flat[name] = value
    return flat


def interval(values: Float[np.ndarray, " R"]) -> Interval | None:
    """The middle 95%; None where there is nothing to resample."""
    values = values[np.isfinite(values)]
    return (float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))) if len(values) > 1 else None


@np.errstate(invalid="ignore", divide="ignore")
def effect(
    same: float,
    different: float,
    boot: tuple[np.ndarray, np.ndarray],
    *,
    pairs: tuple[float, float] | None = None,
    null: tuple[np.ndarray, np.ndarray] | None = None,
    matched: tuple[float, float, np.ndarray] | None = None,
    same_word: float | None = None,
) -> Effect | None:
    """None where there is no pair of one kind. Both means are given, their resamples, and what the controls gave.

    `pairs`: how many there are of one topic, and of different ones.
    """
    if not (np.isfinite(same) and np.isfinite(different)):
        return None
    defined = (interval(boot[1]) or (0.0, 0.0))[0] > 0
    shuffled = np.empty(0) if null is None else null[0] - null[1]
    return Effect(
        same=same,
        different=different,
        difference=same - different,
        ratio=same / different if defined else None,
        interval=interval(boot[0] - boot[1]),
        ratio_interval=interval(boot[0] / boot[1]) if defined else None,
        null_interval=interval(shuffled),
        p_value=float((1 + (shuffled >= same - different).sum()) / (1 + len(shuffled))) if len(shuffled) else None,
        matched=Matched(matched[0], matched[1], matched[0] - matched[1], interval(matched[2]))
        if matched is not None and np.isfinite(matched[:2]).all()
        else None,
        same_word=same_word,
        pairs=None if pairs is None else float(pairs[0]),
        other_pairs=None if pairs is None else float(pairs[1]),
        resamples=boot[0] - boot[1],
        same_resamples=boot[0],
        shuffled=shuffled if len(shuffled) else None,
    )


def corrected_p(found: Float[np.ndarray, " n"], shuffled: Float[np.ndarray, "S n"]) -> Float[np.ndarray, " n"]:
    """p of each of n differences, corrected for their number (Westfall and Young): the share of shuffles in which the
    largest of all n is as large, itself included.

    Differences are divided by their spread over the shuffles, so that they can be compared. The same shuffles serve
    all of them. NaN where no shuffle has pairs of both kinds.
    """
    usable = shuffled[np.isfinite(shuffled).all(1)]
    if not len(usable):
        return np.full(len(found), np.nan)
    middle, spread = usable.mean(0), usable.std(0)
    scale = np.where(spread > 1e-12 * np.abs(found).max(), spread, np.inf)
    largest = ((usable - middle) / scale).max(1)
    return (1 + (largest[:, None] >= (found - middle) / scale).sum(0)) / (1 + len(usable))


def embedding_effect(
    models: Sequence[PairSums],
    *,
    resamples: int,
    seed: int,
    null: tuple[np.ndarray, np.ndarray] | None = None,
    matched: bool = False,
) -> Effect | None:
    """Bootstrap over topics. Of several models (fresh initialisations) the mean, with a bootstrap over models too."""
    means = bootstrap(models, resamples, seed)
    # each pair of words is there in both orders
    pairs = models[0].same_pairs.sum() / 2, models[0].between_pairs.sum() / 2
    if not matched:
        return effect(*means, pairs=pairs, null=null)
    same, different, boot = bootstrap(models, resamples, seed, matched=True)
    return effect(*means, pairs=pairs, null=null, matched=(same, different, boot[0] - boot[1]))


def matched_effect(sums: PairSums, *, resamples: int, seed: int) -> Effect | None:
    """The effect at equal word frequencies alone, with the resamples that `embedding_effect` draws."""
    return effect(*bootstrap([sums], resamples, seed, matched=True))


def bootstrap(
    models: Sequence[PairSums], resamples: int, seed: int, *, matched: bool = False
) -> tuple[float, float, tuple[np.ndarray, np.ndarray]]:
    """Same-topic and different-topic mean over models, and their resamples: of topics, and of models."""
    times, drawn = _drawn(len(models[0].same), len(models), resamples, seed)
    used = models if matched else [m.pooled() for m in models]
    same, different = np.mean([m.means(matched=matched) for m in used], 0)
    each = np.array([m.means(times, matched=matched) for m in used])  # models x 2 x R
    boot = np.einsum("rm,mkr->kr", drawn, each)
    return float(same), float(different), (boot[0], boot[1])


@functools.lru_cache(maxsize=1)  # every layer and measure is resampled alike
def _drawn(
    topics: int, models: int, resamples: int, seed: int
) -> tuple[Float[np.ndarray, "R K"], Float[np.ndarray, "R M"]]:
    """How often each resample draws each topic, and the share of each model in it."""
    rng = generator(seed, Stream.BOOTSTRAP_TOPICS)
    times = rng.multinomial(topics, np.full(topics, 1 / topics), resamples).astype(float)
    return times, rng.multinomial(models, np.full(models, 1 / models), resamples) / models


@dataclass(frozen=True)
class Estimate:
    """A mean over runs with its 95% interval (Student's t)."""

    mean: float
    low: float
    high: float
    runs: int

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"

    @property
    def above_zero(self) -> bool:
        """Whether the interval excludes zero, from above."""
        return self.low > 0


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and interval. The interval of a single run is the whole line."""
    array = np.asarray(values, dtype=float)
    mean, count = float(array.mean()), len(array)
    if count == 1:
        return Estimate(mean, -np.inf, np.inf, 1)
    half = float(stdtrit(count - 1, 0.975) * array.std(ddof=1) / np.sqrt(count))
    return Estimate(mean, mean - half, mean + half, count)
