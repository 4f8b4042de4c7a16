"""Is a difference topics, or something else? Four controls, each with a rule that was fixed before any run.

chance          more than topics that are shuffled among the words, and above zero over topics or documents
frequency       still above zero where pairs of different topics have the word frequencies of those of one topic
cooccurrence    more than the pairs of words that stand together most often (Table 2)
fresh_weights   more than the same architecture with random weights

A control says yes, no, unsure (with what to raise) or off (not asked for). 'No' needs numbers that could have said yes:
a difference that is worth naming must be out of their reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np

from topicscope.language.configs import SIGNIFICANT
from topicscope.measure import Effect, Interval, interval

Grade = Literal["yes", "unsure", "no", "off"]
CONTROLS = ("chance", "frequency", "cooccurrence", "fresh_weights")
COSINE_WORTH = 0.02  # a difference of cosines worth naming
ATTENTION_WORTH = 0.05  # of attention, as a share of that to words of other topics
HALF = 0.5  # what a control leaves of a difference, below which it explains it


@dataclass(frozen=True)
class PairContrast:
    """Mean over pairs of one topic, and over the pairs that stand together most often, with its 95% interval."""

    same_topic: float | None
    cooccurring: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a control looks at: an effect at one threshold, and what it is compared with."""

    effect: Effect | None
    worth: float  # the smallest difference worth naming
    shuffles: int  # that p comes from; 0: none
    level: float = SIGNIFICANT  # that p has to reach
    p_value: float | None = None  # where it is corrected; None: that of the effect
    matched: bool = True  # whether pairs of equal frequencies were asked for
    contrast: PairContrast | None = None  # None: not measured
    fresh: Effect | None = None
    with_fresh: bool = True  # whether fresh weights were measured
    more: str = "documents"  # what makes the interval narrower


@dataclass(frozen=True, kw_only=True)
class Check:
    """What a control says, the number that it looked at, and why in words."""

    answer: Grade
    why: str = ""
    number: float | None = None
    interval: Interval | None = None


OFF = Check(answer="off")
NO_PAIRS = Check(answer="unsure", why="too few pairs of words: raise --threshold or --documents, or give more words")


def chance(of: Measured) -> Check:
    effect = of.effect
    if effect is None or effect.interval is None:
        return NO_PAIRS
    if not of.shuffles:
        return OFF
    p = effect.p_value if of.p_value is None else of.p_value
    if p is None:
        return NO_PAIRS
    said: dict[str, Any] = {"number": effect.difference, "interval": effect.interval}
    if p > of.level and 1 / (1 + of.shuffles) > of.level:
        why = f"{of.shuffles} shuffles cannot give a p below {1 / (1 + of.shuffles):.2g}: raise --shuffles"
        return Check(answer="unsure", why=f"{why} (at least {ceil(1 / of.level - 1)} are needed here)", **said)
    if p <= of.level and effect.interval[0] > 0:
        return Check(answer="yes", why=f"p = {p:.2g}", **said)
    if p <= of.level:
        return Check(answer="unsure", why=f"its interval reaches zero: raise --{of.more}", **said)
    reach = effect.null_interval[1] if effect.null_interval is not None else effect.interval[1]
    if reach > of.worth and effect.interval[1] > of.worth:
        why = f"p = {p:.2g}, and shuffled topics alone give up to {reach:.2g}: raise --{of.more}"
        return Check(answer="unsure", why=why, **said)
    return Check(answer="no", why=f"shuffled topics give as much (p = {p:.2g})", **said)


def frequency(of: Measured) -> Check:
    if not of.matched:
        return OFF
    if of.effect is None or of.effect.matched is None or of.effect.matched.interval is None:
        return Check(answer="unsure", why="too few pairs of equal word frequencies: raise --threshold or --documents")
    matched = of.effect.matched
    assert matched.interval is not None
    return remains(matched.difference, matched.interval, of, "at equal word frequencies")


def fresh_weights(of: Measured) -> Check:
    if not of.with_fresh:
        return OFF
    if of.effect is None or of.fresh is None or of.effect.resamples is None or of.fresh.resamples is None:
        return NO_PAIRS
    ours, theirs = of.effect.resamples, of.fresh.resamples
    count = min(len(ours), len(theirs))
    between = interval(np.asarray(ours[:count]) - np.asarray(theirs[:count]))  # the same topics or documents are drawn
    if between is None:
        return NO_PAIRS
    return remains(of.effect.difference - of.fresh.difference, between, of, "beyond fresh weights")


def remains(number: float, between: Interval, of: Measured, where: str) -> Check:
    """Whether something remains of a difference."""
    assert of.effect is not None
    if between[0] > 0:
        return Check(answer="yes", why=f"{where} {number:.2g}", number=number, interval=between)
    if between[1] < max(of.worth, HALF * of.effect.difference):
        why = f"{where} {number:.2g} of {of.effect.difference:.2g} remains"
        return Check(answer="no", why=why, number=number, interval=between)
    why = f"{where} {number:.2g} remains, and its interval reaches zero: raise --{of.more}"
    return Check(answer="unsure", why=why, number=number, interval=between)


def cooccurrence(of: Measured) -> Check:
    contrast = of.contrast
    if contrast is None:
        return OFF
    if contrast.same_topic is None or contrast.cooccurring is None or contrast.interval is None:
        return Check(answer="unsure", why="too few pairs that stand together in these texts: raise --documents")
    margin = contrast.same_topic - contrast.cooccurring
    between = contrast.same_topic - contrast.interval[1], contrast.same_topic - contrast.interval[0]
    both = f"{contrast.same_topic:.3g} against {contrast.cooccurring:.3g}"
    if between[0] > 0:
        return Check(answer="yes", why=both, number=margin, interval=between)
    if between[1] < 0:
        why = f"pairs that stand together most often show more ({contrast.cooccurring:.3g}) than pairs of one topic"
        return Check(answer="no", why=f"{why} ({contrast.same_topic:.3g})", number=margin, interval=between)
    more = "documents" if of.more == "documents" else "threshold"  # which sets the number of pairs
    why = f"pairs that stand together most often show about as much ({both}): raise --{more}"
    return Check(answer="unsure", why=why, number=margin, interval=between)


def checks_of(of: Measured) -> dict[str, Check]:
    """All four, by name."""
    return {
        "chance": chance(of),
        "frequency": frequency(of),
        "cooccurrence": cooccurrence(of),
        "fresh_weights": fresh_weights(of),
    }
