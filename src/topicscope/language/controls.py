"""Is a difference topics, or something else? Four controls, each with a rule.

chance          more than topics that are shuffled among the words, above zero, and large enough to matter
frequency       half of it still there where pairs of different topics have the word frequencies of those of one topic
cooccurrence    more than the pairs of words that stand together most often (Table 2)
fresh_weights   half of it is more than the same architecture with random weights has

A control says yes, no, unsure (with what to raise) or off (not asked for). 'No' needs numbers that could have said yes:
a difference that is worth naming must be out of their reach. Rules and limits were revised after first runs on planted
and real models, so those runs do not test them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Literal

import numpy as np

from topicscope.language.configs import SIGNIFICANT
from topicscope.measure import Effect, Interval, interval

Grade = Literal["yes", "unsure", "no", "off"]
CONTROLS = ("chance", "frequency", "cooccurrence", "fresh_weights")
COSINE_WORTH = 0.02  # a difference of cosines worth naming
ATTENTION_WORTH = 0.05  # of attention, as a share of that to words of other topics
WORD_PAIRS, POSITION_PAIRS = 20, 100  # of one topic, and of different ones: with fewer there is no answer
LISTED_PAIRS = 10  # of words that stand together most often: five words of a topic make as many
FEWEST_DOCUMENTS = 10  # resamples of fewer do not show how much documents differ
HALF = 0.5  # what a control leaves of a difference, below which it explains it


@dataclass(frozen=True)
class PairContrast:
    """Mean over pairs of one topic, and over the pairs that stand together most often (Table 2).

    Attributes:
        same_topic: Mean over pairs of one topic.
        cooccurring: Mean over pairs that stand together most often.
        interval: 95% interval of `cooccurring`.
        margin_interval: 95% interval of how much more the pairs of one topic show; both means are resampled.
        pairs: Number of pairs of words that stand together.

    Example:
        See `Measured`.
    """

    same_topic: float | None
    cooccurring: float | None
    interval: Interval | None
    margin_interval: Interval | None = None
    pairs: int = 0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a control looks at: an effect at one threshold, and what it is compared with.

    Attributes:
        effect: The effect; None where there are too few pairs.
        worth: The smallest difference that counts as one.
        shuffles: Number of shuffles that p comes from; 0: none.
        level: p has to be at most this.
        p_value: p, where it is corrected for several heads; None: that of the effect.
        matched: Whether pairs of equal frequencies were asked for.
        contrast: Pairs that stand together; None: not measured, or no such pairs.
        with_contrast: Whether these pairs were asked for.
        enough: Number of pairs that are needed.
        given: Whether the user gave the topics word by word.
        fresh: The effect of fresh weights.
        with_fresh: Whether fresh weights were measured.
        more: What makes the interval narrower, in words.
        documents: Number of documents with pairs of one topic, where documents are resampled.

    Example:
        >>> means = {"same": 0.3, "different": 0.1, "difference": 0.2, "ratio": 3.0, "interval": (0.1, 0.3)}
        >>> effect = Effect(**means, p_value=0.005, pairs=200.0, other_pairs=800.0)
        >>> pairs = {"same_topic": 0.3, "cooccurring": 0.36, "interval": (0.33, 0.39), "margin_interval": (-0.1, -0.02)}
        >>> contrast = PairContrast(**pairs, pairs=40)
        >>> measured = Measured(effect=effect, worth=0.02, shuffles=199, contrast=contrast, with_fresh=False)
        >>> checks = checks_of(measured)
        >>> checks["chance"].answer, checks["cooccurrence"].answer, checks["fresh_weights"].answer
        ('yes', 'no', 'off')
        >>> checks["cooccurrence"].why
        'the pairs that co-occur most show more (0.36) than pairs of one topic (0.3)'
    """

    effect: Effect | None
    worth: float
    shuffles: int
    level: float = SIGNIFICANT
    p_value: float | None = None
    matched: bool = True
    contrast: PairContrast | None = None
    with_contrast: bool = True
    enough: int = WORD_PAIRS
    given: bool = False
    fresh: Effect | None = None
    with_fresh: bool = True
    more: str = "documents"
    documents: int | None = None


@dataclass(frozen=True, kw_only=True)
class Check:
    """What a control says, the number that it looked at, and why.

    Attributes:
        answer: 'yes', 'unsure', 'no' or 'off'.
        why: The reason, in words.
        number: The number that decides; None: there is none.
        interval: Its 95% interval.

    Example:
        See `Measured`.
    """

    answer: Grade
    why: str = ""
    number: float | None = None
    interval: Interval | None = None


OFF = Check(answer="off")


def advice(of: Measured, *options: str) -> str:
    """What to raise. Topics that are given have no number and no threshold."""
    if of.given:
        return "give more words to the topics, or raise --documents"
    return f"raise {' or '.join(f'--{option}' for option in options)}"


def too_few(of: Measured) -> Check | None:
    """Where there are too few pairs for any answer, or too few topics or documents for an interval."""
    effect = of.effect
    if effect is None:
        return Check(answer="unsure", why=f"too few pairs of words: {advice(of, 'threshold', 'documents')}")
    counts = [count for count in (effect.pairs, effect.other_pairs) if count is not None]
    if counts and min(counts) < of.enough:
        why = f"too few pairs ({min(counts):,.0f}; at least {of.enough} are needed)"
        return Check(answer="unsure", why=f"{why}: {advice(of, 'threshold', 'documents')}")
    if of.documents is not None and of.documents < FEWEST_DOCUMENTS:
        why = f"{of.documents} documents have pairs of one topic (at least {FEWEST_DOCUMENTS} are needed)"
        return Check(answer="unsure", why=f"{why}: raise --documents, or give more text")
    if effect.interval is None or effect.interval[0] == effect.interval[1]:
        return Check(answer="unsure", why=f"there is nothing to resample: {advice(of, 'topics', 'documents')}")
    return None


def chance(of: Measured) -> Check:
    if not of.shuffles:
        return OFF
    effect, few = of.effect, too_few(of)
    if few is not None or effect is None or effect.interval is None:
        return few or OFF
    p = effect.p_value if of.p_value is None else of.p_value
    if p is None:
        return Check(answer="unsure", why=f"too few pairs to shuffle: {advice(of, 'threshold', 'documents')}")
    said: dict[str, Any] = {"number": effect.difference, "interval": effect.interval}
    if p > of.level and 1 / (1 + of.shuffles) > of.level:
        why = f"{of.shuffles} shuffles cannot give a p below {1 / (1 + of.shuffles):.2g}: raise --shuffles"
        return Check(answer="unsure", why=f"{why} (at least {ceil(1 / of.level - 1)} are needed here)", **said)
    if p <= of.level:
        low, high = effect.interval
        if high < of.worth:
            why = f"a difference of {effect.difference:.2g} is more than chance, but too small to matter (below "
            return Check(answer="no", why=f"{why}{of.worth:.2g})", **said)
        if low <= 0 or effect.difference < of.worth:
            why = "reaches zero" if low <= 0 else f"holds {of.worth:.2g}, the smallest that matters"
            return Check(answer="unsure", why=f"its interval {why}: {advice(of, of.more)}", **said)
        return Check(answer="yes", why=f"p = {p:.2g}", **said)
    reach = effect.null_interval[1] if effect.null_interval is not None else effect.interval[1]
    small = effect.difference < of.worth and effect.difference <= reach <= of.worth
    if effect.interval[1] <= of.worth or small:
        return Check(answer="no", why=f"shuffled topics give as much (p = {p:.2g})", **said)
    why = f"p = {p:.2g}, and shuffled topics alone give up to {reach:.2g}: {advice(of, of.more)}"
    return Check(answer="unsure", why=why, **said)


def frequency(of: Measured) -> Check:
    if not of.matched:
        return OFF
    few = too_few(of)
    if few is not None:
        return few
    matched = None if of.effect is None else of.effect.matched
    if matched is None or matched.interval is None or matched.interval[0] == matched.interval[1]:
        why = f"too few pairs of equal word frequencies: {advice(of, 'threshold', 'documents')}"
        return Check(answer="unsure", why=why)
    return remains(matched.difference, matched.interval, of, "at equal word frequencies")


def fresh_weights(of: Measured) -> Check:
    if not of.with_fresh:
        return OFF
    few = too_few(of) or too_few(replace(of, effect=of.fresh))
    if few is not None or of.effect is None or of.fresh is None:
        return few or OFF
    if of.effect.resamples is None or of.fresh.resamples is None:
        return OFF
    ours, theirs = of.effect.resamples, of.fresh.resamples
    count = min(len(ours), len(theirs))
    between = interval(np.asarray(ours[:count]) - np.asarray(theirs[:count]))  # the same topics or documents are drawn
    if between is None:
        return Check(answer="unsure", why=f"there is nothing to resample: {advice(of, 'topics', 'documents')}")
    return remains(of.effect.difference - of.fresh.difference, between, of, "beyond fresh weights")


def remains(number: float, between: Interval, of: Measured, where: str) -> Check:
    """Whether enough remains of a difference: half of it, and so much that it matters.

    Word frequencies are compared in classes, so that a little of what they explain always remains.
    """
    assert of.effect is not None
    said: dict[str, Any] = {"number": number, "interval": between}
    enough = max(of.worth, HALF * of.effect.difference)
    left = f"{where} {number:.2g} of {of.effect.difference:.2g} remains"
    if between[0] > 0 and number >= enough:
        return Check(answer="yes", why=f"{where} {number:.2g}", **said)
    if between[1] < (of.worth if between[0] > 0 else enough):
        return Check(answer="no", why=left, **said)
    if between[0] > 0:
        return Check(answer="unsure", why=f"{left}: most of the effect may be something other than topics", **said)
    return Check(answer="unsure", why=f"{left}, and its interval reaches zero: {advice(of, of.more)}", **said)


def cooccurrence(of: Measured) -> Check:
    if not of.with_contrast:
        return OFF
    contrast, few = of.contrast, too_few(of)
    if few is not None:
        return few
    between = None if contrast is None or contrast.pairs < LISTED_PAIRS else contrast.margin_interval
    if (
        contrast is None
        or contrast.same_topic is None
        or contrast.cooccurring is None
        or between is None
        or between[0] == between[1]
    ):
        why = "too few co-occurring pairs in these texts"
        return Check(answer="unsure", why=f"{why}: {advice(of, 'threshold', 'documents')}")
    margin = contrast.same_topic - contrast.cooccurring
    both = f"{contrast.same_topic:.3g} against {contrast.cooccurring:.3g}"
    if between[0] > 0:
        return Check(answer="yes", why=both, number=margin, interval=between)
    if between[1] < 0:
        why = f"the pairs that co-occur most show more ({contrast.cooccurring:.3g}) than pairs of one topic"
        return Check(answer="no", why=f"{why} ({contrast.same_topic:.3g})", number=margin, interval=between)
    more = "documents" if of.more == "documents" else "threshold"  # which sets the number of pairs
    why = f"the pairs that co-occur most show about as much ({both}): {advice(of, more)}"
    return Check(answer="unsure", why=why, number=margin, interval=between)


def checks_of(of: Measured) -> dict[str, Check]:
    """All four, by name."""
    return {
        "chance": chance(of),
        "frequency": frequency(of),
        "cooccurrence": cooccurrence(of),
        "fresh_weights": fresh_weights(of),
    }
