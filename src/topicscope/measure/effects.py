"""Same topic against different topic: means, differences and ratios with intervals and controls.

Three controls stand beside an effect: topics shuffled among words, pairs of equal word frequencies, and random weights
(the same effect of another model). Over runs, the interval of a mean is Student's.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float, Int
from pydantic import ConfigDict, Field, PlainSerializer, model_serializer, model_validator
from scipy.special import stdtrit

from topicscope.ground import Stream, adapter_of, generator
from topicscope.measure.pairs import PairSums

Interval = tuple[float, float]


def columns(record: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """The numbers of a nested record as one row of a table: an interval is two columns, `_low` and `_high`."""
    flat: dict[str, object] = {}
    for key, value in record.items():
        name = prefix + key
        if isinstance(value, Mapping):
            flat |= columns(value, f"{name}_")
        elif key.endswith("interval"):
            flat[f"{name}_low"], flat[f"{name}_high"] = value or (None, None)
        else:
            flat[name] = value
    return flat


def interval(values: Float[np.ndarray, " R"]) -> Interval | None:
    """The middle 95% of resampled values."""
    values = values[np.isfinite(values)]
    return (float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))) if len(values) > 1 else None


@dataclass(frozen=True)
class Estimate:
    mean: float
    low: float
    high: float
    runs: int

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"

    @property
    def above_zero(self) -> bool:
        return self.low > 0


def estimate(values: Sequence[float]) -> Estimate:
    """Mean over runs and its 95% interval. The interval of a single run is the whole line."""
    array = np.asarray(values, dtype=float)
    mean, count = float(array.mean()), len(array)
    if count == 1:
        return Estimate(mean, -np.inf, np.inf, 1)
    half = float(stdtrit(count - 1, 0.975) * array.std(ddof=1) / np.sqrt(count))
    return Estimate(mean, mean - half, mean + half, count)


class Record:
    def as_dict(self) -> dict[str, Any]:
        return dict(adapter_of(type(self)).dump_python(self, warnings=False))


class Row(Record):
    """A row of results.json. The parts of the field FLAT stand among the other fields, without a name of their own."""

    FLAT: ClassVar[str] = ""

    @model_serializer(mode="wrap")
    def _flattened(self, nested: Callable[[Self], dict[str, Any]]) -> dict[str, object]:
        record: dict[str, object] = {}
        for name, value in nested(self).items():
            record |= value if name == self.FLAT else {name: value}
        return record

    @model_validator(mode="before")
    @classmethod
    def _nested(cls, data: object) -> object:
        if not cls.FLAT or not isinstance(data, dict):
            return data
        own = {part.name: data[part.name] for part in fields(cls) if part.name in data}  # type: ignore[arg-type]
        return own | {cls.FLAT: {name: value for name, value in data.items() if name not in own}}


CONTROLS = {"null_interval", "p_value", "matched"}  # not measured for single heads and the steps of a timeline
Unstored = Field(exclude=True)


@dataclass(frozen=True)
class Matched:
    same: float  # mean over pairs of one topic
    different: float  # mean over pairs of different topics
    difference: float
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class Effect(Record):
    """Same topic against different topic, with intervals and controls. Resamples are not stored."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    same: float  # mean over pairs of one topic
    different: float  # mean over pairs of different topics
    difference: float
    ratio: float | None  # `same` over `different`; None ('undefined') where the denominator may be zero
    interval: Interval | None  # 95% interval of the difference, by bootstrap
    ratio_interval: Interval | None = None
    null_interval: Interval | None = None  # 95% interval of the difference where topics are shuffled among words
    p_value: float | None = None  # share of shuffles whose difference is as large, the real assignment included
    matched: Matched | None = None  # the difference at equal word frequencies
    same_word: float | None = None
    pairs: float | None = None
    other_pairs: float | None = None
    resamples: Annotated[Float[np.ndarray, " R"] | None, Unstored] = field(default=None, repr=False, compare=False)
    same_resamples: Annotated[Float[np.ndarray, " R"] | None, Unstored] = field(default=None, repr=False, compare=False)
    shuffled: Annotated[Float[np.ndarray, " S"] | None, Unstored] = field(default=None, repr=False, compare=False)

    def columns(self) -> dict[str, Any]:
        unmatched = {} if self.matched else {"matched": dict.fromkeys(part.name for part in fields(Matched))}
        return columns(self.as_dict() | unmatched)


BareEffect = Annotated[
    Effect, PlainSerializer(lambda effect: {name: of for name, of in effect.as_dict().items() if name not in CONTROLS})
]
Resamples = tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]  # of the same-topic and the different-topic mean


@np.errstate(invalid="ignore", divide="ignore")
def effect(
    same: float,
    different: float,
    boot: Resamples,
    *,
    pairs: tuple[float, float] | None = None,
    null: Resamples | None = None,
    matched: tuple[float, float, Resamples] | None = None,
    same_word: float | None = None,
) -> Effect | None:
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
        matched=matched_difference(*matched) if matched and np.isfinite(matched[:2]).all() else None,
        same_word=same_word,
        pairs=None if pairs is None else float(pairs[0]),
        other_pairs=None if pairs is None else float(pairs[1]),
        resamples=boot[0] - boot[1],
        same_resamples=boot[0],
        shuffled=shuffled if len(shuffled) else None,
    )


def matched_difference(same: float, different: float, boot: Resamples) -> Matched:
    return Matched(same, different, same - different, interval(boot[0] - boot[1]))


def corrected_p(differences: Float[np.ndarray, " n"], shuffled: Float[np.ndarray, "S n"]) -> Float[np.ndarray, " n"]:
    """p of each of n differences, corrected for their number (Westfall and Young).

    It is the share of shuffles in which the largest of all n is as large, itself included. Differences are divided by
    their spread over the shuffles, so that they can be compared.
    """
    usable = shuffled[np.isfinite(shuffled).all(1)]
    if not len(usable):
        return np.full(len(differences), np.nan)
    middle, spread = usable.mean(0), usable.std(0)
    scale = np.where(spread > 1e-12 * np.abs(differences).max(), spread, np.inf)
    largest = ((usable - middle) / scale).max(1)
    return (1 + (largest[:, None] >= (differences - middle) / scale).sum(0)) / (1 + len(usable))


def embedding_effect(
    models: Sequence[PairSums],
    *,
    resamples: int,
    seed: int,
    null: Resamples | None = None,
    matched: bool = False,
) -> Effect | None:
    # each pair of words is there in both orders
    pairs = models[0].same_pairs.sum() / 2, models[0].between_pairs.sum() / 2
    return effect(
        *bootstrap(models, resamples, seed),
        pairs=pairs,
        null=null,
        matched=bootstrap(models, resamples, seed, matched=True) if matched else None,
    )


def matched_effect(sums: PairSums, *, resamples: int, seed: int) -> Effect | None:
    return effect(*bootstrap([sums], resamples, seed, matched=True))


def bootstrap(
    models: Sequence[PairSums], resamples: int, seed: int, *, matched: bool = False
) -> tuple[float, float, Resamples]:
    times, drawn = _drawn(len(models[0].same), len(models), resamples, seed)
    used = models if matched else [m.pooled() for m in models]
    same, different = np.mean([m.means(matched=matched) for m in used], 0)
    boot = np.einsum("rm,mkr->kr", drawn, np.array([m.means(times, matched=matched) for m in used]))
    return float(same), float(different), (boot[0], boot[1])


def draws(rng: np.random.Generator, count: int, resamples: int) -> Float[np.ndarray, "R n"]:
    """How often each resample of `count` things draws each of them."""
    return rng.multinomial(count, np.full(count, 1 / count), resamples).astype(float)


@functools.lru_cache(maxsize=1)  # every layer and measure is resampled alike
def _drawn(
    topics: int, models: int, resamples: int, seed: int
) -> tuple[Float[np.ndarray, "R K"], Float[np.ndarray, "R M"]]:
    rng = generator(seed, Stream.BOOTSTRAP_TOPICS)
    return draws(rng, topics, resamples), draws(rng, models, resamples) / models


LEVEL = 0.05  # a difference that so few of all dealings reach is one of the groups
MOST_DEALINGS = 20_000  # that are all tried; of more, as many are drawn
Answer = Literal["yes", "some", "no", "undecided"]


@dataclass(frozen=True)
class Separation:
    inside: float | None  # mean similarity inside groups; None where there is no such pair
    between: float | None  # mean similarity between groups; None where there is no such pair
    p_value: float | None  # share of ways to deal the things out to the groups whose difference is at least as large
    smallest: float | None  # the least that p could be with so few things
    apart: dict[int, bool]

    @property
    def answer(self) -> Answer:
        """Yes: p is at most .05, and every group is apart. Some: p is, but not every group is apart.

        Undecided: there are too few things for p to be .05, or there is nothing to compare.
        """
        if self.p_value is None or self.smallest is None or self.smallest > LEVEL:
            return "undecided"
        if self.p_value > LEVEL:
            return "no"
        return "yes" if all(self.apart.values()) else "some"


def separation(similarity: Float[np.ndarray, "n n"], groups: Int[np.ndarray, " n"]) -> Separation:
    """Are things of one group more alike? The difference of means is compared with those of all ways to deal them."""
    first, second = np.triu_indices(len(groups), 1)
    values = similarity[first, second]
    same = groups[first] == groups[second]
    inside, between = (float(values[some].mean()) if some.any() else None for some in (same, ~same))
    if inside is None or between is None or not math.isfinite(inside - between):
        return Separation(inside, between, None, None, {})
    observed = inside - between
    apart = {}
    for group in dict.fromkeys(groups.tolist()):
        ours, theirs = groups[first] == group, groups[second] == group
        if (ours & theirs).any():
            apart[group] = bool(values[ours & theirs].mean() > values[ours ^ theirs].mean())
    sizes = tuple(Counter(groups.tolist()).values())
    ways = math.factorial(len(groups)) // math.prod(map(math.factorial, sizes))
    alike = math.prod(map(math.factorial, Counter(sizes).values()))  # dealings that only exchange groups of one size
    tolerance = 1e-12 * max(1.0, abs(observed))

    def reached(labels: Int[np.ndarray, " n"]) -> bool:
        together = labels[first] == labels[second]
        return bool(values[together].mean() - values[~together].mean() >= observed - tolerance)

    if ways <= MOST_DEALINGS:
        return Separation(inside, between, sum(map(reached, dealings(len(groups), sizes))) / ways, alike / ways, apart)
    rng = generator(0, Stream.DEALT_GROUPS)
    count = 1 + sum(reached(rng.permutation(groups)) for _ in range(MOST_DEALINGS - 1))
    return Separation(inside, between, count / MOST_DEALINGS, 1 / MOST_DEALINGS, apart)


def dealings(count: int, sizes: Sequence[int]) -> Iterator[Int[np.ndarray, " n"]]:
    def deal(labels: Int[np.ndarray, " n"], label: int) -> Iterator[Int[np.ndarray, " n"]]:
        if label == len(sizes):
            yield labels
            return
        for chosen in combinations(np.flatnonzero(labels < 0), sizes[label]):
            dealt = labels.copy()
            dealt[list(chosen)] = label
            yield from deal(dealt, label + 1)

    return deal(np.full(count, -1), 0)
