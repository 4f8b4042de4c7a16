"""Same topic against different topic: both means, their difference and ratio, with a bootstrap interval.

Three controls stand beside them: topics shuffled among words, pairs of equal word frequencies, and random weights
(the same effect of another model). Over runs, the interval of a mean is Student's.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float
from pydantic import ConfigDict, Field

from topicscope.ground import Stream, adapter_of, generator
from topicscope.measure.intervals import Interval, columns, interval
from topicscope.measure.pairs import PairSums

CONTROLS = ("null_interval", "p_value", "matched")  # not measured for single heads and the steps of a timeline


@dataclass(frozen=True)
class Matched:
    """The difference once different-topic pairs have the word frequencies of the same-topic pairs.

    Attributes:
        same: Mean over pairs of one topic.
        different: Mean over pairs of different topics.
        difference: `same` less `different`.
        interval: Its 95% interval.

    Example:
        See `matched_effect`.
    """

    same: float
    different: float
    difference: float
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class Effect:
    """Same topic against different topic, with intervals and controls.

    Attributes:
        same: Mean over pairs of one topic.
        different: Mean over pairs of different topics.
        difference: `same` less `different`.
        ratio: `same` over `different`; None ('undefined') where the denominator may be zero.
        interval: 95% interval of the difference, by bootstrap.
        ratio_interval: 95% interval of the ratio.
        null_interval: 95% interval of the difference where topics are shuffled among words.
        p_value: Share of shuffles whose difference is as large, the real assignment included.
        matched: The difference at equal word frequencies.
        same_word: Mean over pairs of the same word.
        pairs: Number of pairs of one topic.
        other_pairs: Number of pairs of different topics.
        resamples: Resamples of the difference (R).
        same_resamples: Resamples of `same` (R).
        shuffled: The difference after each shuffle (S).

    Example:
        >>> one = Effect(same=0.3, different=0.1, difference=0.2, ratio=3.0, interval=(0.1, 0.3))
        >>> {name: value for name, value in one.columns(controls=False).items() if value is not None}
        {'same': 0.3, 'different': 0.1, 'difference': 0.2, 'ratio': 3.0, 'interval_low': 0.1, 'interval_high': 0.3}
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    same: float
    different: float
    difference: float
    ratio: float | None
    interval: Interval | None
    ratio_interval: Interval | None = None
    null_interval: Interval | None = None
    p_value: float | None = None
    matched: Matched | None = None
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
        """Read back what `as_dict` wrote, exactly."""
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
    """An effect from both means, their resamples, and what the controls gave.

    Args:
        same: Mean over pairs of one topic.
        different: Mean over pairs of different topics.
        boot: Resamples of both means (R each).
        pairs: Numbers of pairs of one topic, and of different ones.
        null: Both means after each shuffle (S each).
        matched: Both means at equal word frequencies, and resamples of their difference.
        same_word: Mean over pairs of the same word.

    Returns:
        The effect; None where there is no pair of one kind.

    Example:
        >>> found = effect(0.3, 0.1, (np.full(100, 0.3), np.full(100, 0.1)))
        >>> round(found.difference, 6), round(found.ratio, 6)
        (0.2, 3.0)
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
    """p of each of n differences, corrected for their number (Westfall and Young).

    It is the share of shuffles in which the largest of all n is as large, itself included. Differences are divided by
    their spread over the shuffles, so that they can be compared.

    Args:
        found: The differences (n).
        shuffled: The same after each shuffle (S x n).

    Returns:
        p values (n); NaN where no shuffle has pairs of both kinds.

    Example:
        >>> shuffled = np.sin(np.arange(198.0)).reshape(99, 2)
        >>> corrected_p(np.array([10.0, 0.0]), shuffled).round(2).tolist()
        [0.01, 0.65]
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
    """The effect of word vectors, with a bootstrap over topics.

    Args:
        models: Sums over pairs, of one model, or of several (fresh initialisations): then the mean, with a bootstrap
            over models too.
        resamples: Number of resamples of the bootstrap.
        seed: Seed of the bootstrap.
        null: Both means after each shuffle.
        matched: Also compare at equal word frequencies.

    Returns:
        The effect; None where there is no pair of one kind.

    Example:
        >>> from topicscope.measure import Membership, pair_sums
        >>> members = Membership(np.arange(6), np.array([0, 0, 1, 1, 2, 2]), words=6, topics=3)
        >>> found = embedding_effect([pair_sums(np.repeat(np.eye(3), 2, axis=0), members)], resamples=50, seed=0)
        >>> found.same, found.different, found.pairs
        (1.0, 0.0, 3.0)
    """
    means = bootstrap(models, resamples, seed)
    # each pair of words is there in both orders
    pairs = models[0].same_pairs.sum() / 2, models[0].between_pairs.sum() / 2
    if not matched:
        return effect(*means, pairs=pairs, null=null)
    same, different, boot = bootstrap(models, resamples, seed, matched=True)
    return effect(*means, pairs=pairs, null=null, matched=(same, different, boot[0] - boot[1]))


def matched_effect(sums: PairSums, *, resamples: int, seed: int) -> Effect | None:
    """The effect at equal word frequencies alone, with the resamples that `embedding_effect` draws.

    Args:
        sums: Sums over pairs, with word frequencies as strata.
        resamples: Number of resamples of the bootstrap over topics.
        seed: Seed of the bootstrap.

    Returns:
        The effect; None where there is no pair of one kind.

    Example:
        >>> from topicscope.measure import Membership, pair_sums
        >>> members = Membership(np.arange(6), np.array([0, 0, 1, 1, 2, 2]), words=6, topics=3)
        >>> sums = pair_sums(np.repeat(np.eye(3), 2, axis=0), members, bins=np.array([0, 1, 0, 1, 0, 1]))
        >>> found = matched_effect(sums, resamples=50, seed=0)
        >>> found.same, found.different, found.difference
        (1.0, 0.0, 1.0)
    """
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
