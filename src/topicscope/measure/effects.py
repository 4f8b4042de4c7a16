"""Same topic against different topic: means, differences and ratios with intervals and controls.

Three controls stand beside an effect: topics shuffled among words, pairs of equal word frequencies, and random weights
(the same effect of another model). Over runs, the interval of a mean is Student's.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float, Int
from pydantic import ConfigDict, Field
from scipy.special import stdtrit

from topicscope.ground import Stream, adapter_of, generator
from topicscope.measure.pairs import PairSums

Interval = tuple[float, float]


def columns(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
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
    """The middle 95% of resampled values."""
    values = values[np.isfinite(values)]
    return (float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))) if len(values) > 1 else None


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
        return self.low > 0


def estimate(values: Sequence[float]) -> Estimate:
    """Mean over runs and its 95% interval. The interval of a single run is the whole line."""
    array = np.asarray(values, dtype=float)
    mean, count = float(array.mean()), len(array)
    if count == 1:
        return Estimate(mean, -np.inf, np.inf, 1)
    half = float(stdtrit(count - 1, 0.975) * array.std(ddof=1) / np.sqrt(count))
    return Estimate(mean, mean - half, mean + half, count)


CONTROLS = ("null_interval", "p_value", "matched")  # not measured for single heads and the steps of a timeline


@dataclass(frozen=True)
class Matched:
    """The difference once different-topic pairs have the word frequencies of the same-topic pairs."""

    same: float  # mean over pairs of one topic
    different: float  # mean over pairs of different topics
    difference: float
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class Effect:
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
    resamples: Annotated[Float[np.ndarray, " R"] | None, Field(exclude=True)] = field(
        default=None, repr=False, compare=False
    )
    same_resamples: Annotated[Float[np.ndarray, " R"] | None, Field(exclude=True)] = field(
        default=None, repr=False, compare=False
    )
    shuffled: Annotated[Float[np.ndarray, " S"] | None, Field(exclude=True)] = field(
        default=None, repr=False, compare=False
    )

    def as_dict(self, *, controls: bool = True) -> dict[str, Any]:
        """As JSON has it, without the resamples; `controls` False leaves CONTROLS out."""
        values = adapter_of(Effect).dump_python(self, warnings=False)
        return {name: value for name, value in values.items() if controls or name not in CONTROLS}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        effect: Self = adapter_of(cls).validate_python(data)
        return effect

    def columns(self, *, controls: bool = True) -> dict[str, float | None]:
        """One number per column: an interval as two columns, `_low` and `_high`."""
        parts = self.as_dict(controls=controls)
        if controls and self.matched is None:
            parts["matched"] = dict.fromkeys(part.name for part in fields(Matched))
        return columns(parts)


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
    null: tuple[np.ndarray, np.ndarray] | None = None,
    matched: bool = False,
) -> Effect | None:
    means = bootstrap(models, resamples, seed)
    # each pair of words is there in both orders
    pairs = models[0].same_pairs.sum() / 2, models[0].between_pairs.sum() / 2
    if not matched:
        return effect(*means, pairs=pairs, null=null)
    same, different, boot = bootstrap(models, resamples, seed, matched=True)
    return effect(*means, pairs=pairs, null=null, matched=(same, different, boot[0] - boot[1]))


def matched_effect(sums: PairSums, *, resamples: int, seed: int) -> Effect | None:
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
    """Are things of one group more alike than things of different groups?

    Mean inside less mean between is compared with the same difference for all ways to deal the things out to the
    groups.
    """
    groups = np.asarray(groups)
    pairs = np.triu_indices(len(groups), 1)
    values = similarity[pairs]
    same = groups[pairs[0]] == groups[pairs[1]]
    inside, between = (float(values[some].mean()) if some.any() else None for some in (same, ~same))
    if inside is None or between is None or not math.isfinite(inside - between):
        return Separation(inside, between, None, None, {})
    apart = {}
    for group in dict.fromkeys(groups.tolist()):
        ours = [groups[side] == group for side in pairs]
        if (ours[0] & ours[1]).any():
            apart[group] = bool(values[ours[0] & ours[1]].mean() > values[ours[0] ^ ours[1]].mean())
    sizes = list(Counter(groups.tolist()).values())
    ways = math.factorial(len(groups)) // math.prod(map(math.factorial, sizes))
    alike = math.prod(map(math.factorial, Counter(sizes).values()))  # dealings that only exchange groups of one size
    observed = inside - between
    dealt = dealings(len(groups), tuple(sizes)) if ways <= MOST_DEALINGS else drawn_dealings(groups)
    tolerance = 1e-12 * max(1.0, abs(observed))
    reached = count = 0
    for labels in dealt:
        together = labels[pairs[0]] == labels[pairs[1]]
        reached += values[together].mean() - values[~together].mean() >= observed - tolerance
        count += 1
    if ways <= MOST_DEALINGS:
        return Separation(inside, between, reached / ways, alike / ways, apart)
    return Separation(inside, between, (1 + reached) / (1 + count), 1 / (1 + count), apart)


def dealings(count: int, sizes: tuple[int, ...]) -> Iterator[Int[np.ndarray, " n"]]:
    """Every way to give `count` things labels, each label as often as its size."""

    def deal(free: tuple[int, ...], label: int) -> Iterator[list[tuple[int, int]]]:
        if label == len(sizes):
            yield []
            return
        for chosen in combinations(free, sizes[label]):
            left = tuple(thing for thing in free if thing not in chosen)
            for rest in deal(left, label + 1):
                yield [*((thing, label) for thing in chosen), *rest]

    for pairs in deal(tuple(range(count)), 0):
        labels = np.empty(count, dtype=np.int64)
        for thing, label in pairs:
            labels[thing] = label
        yield labels


def drawn_dealings(groups: Int[np.ndarray, " n"]) -> Iterator[Int[np.ndarray, " n"]]:
    rng = generator(0, Stream.DEALT_GROUPS)
    for _ in range(MOST_DEALINGS - 1):
        yield rng.permutation(groups)
