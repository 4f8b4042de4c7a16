"""Does a model encode topics: in its embeddings, its hidden states, its attention? Yes, unsure or no, and why.

Each check is one entry of CONTROLS: its name, what may explain an effect, what is compared, and the rule that judges.
A control says yes only if it does so at all thresholds, and no if it does so at some and nowhere yes; else it is
unsure. 'Yes' needs every control. One 'no' is a no: then chance, frequency, co-occurrence or the architecture may
explain what was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Annotated

import numpy as np
from pydantic import Field

from topicscope.language.configs import SIGNIFICANT, Measurement
from topicscope.language.probe_rows import (
    CooccurrenceRow,
    Grade,
    HeadRow,
    ModelRow,
    PairContrast,
    ProbeRow,
    SettingOf,
    StateRow,
    place,
    short,
    topical_heads,
)
from topicscope.measure import Effect, Interval, Row, corrected_p, interval

COSINE_WORTH = 0.02  # a difference of cosines worth naming
ATTENTION_WORTH = 0.05  # of attention, as a share of that to words of other topics
WORD_PAIRS, POSITION_PAIRS = 20, 100  # of one topic, and of different ones: with fewer there is no answer
LISTED_PAIRS = 10  # of words that stand together most often: five words of a topic make as many
FEWEST_DOCUMENTS = 10  # resamples of fewer do not show how much documents differ
HALF = 0.5  # what a control leaves of a difference, below which it explains it
ORDER = ("no", "unsure", "yes", "off")


@dataclass(frozen=True)
class Check:
    """What a control says and why: in words, and as a short code, which is not stored."""

    answer: Grade
    why: str = ""
    number: float | None = None
    interval: Interval | None = None
    code: Annotated[str, Field(exclude=True)] = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class CheckRow(Row):
    """What a control says at one threshold, with the words and the pairs (of words or positions) that it saw."""

    FLAT = "check"

    control: str
    threshold: float | None
    topics_per_word: str
    words: int
    pairs: float | None
    check: Check


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a control looks at: an effect at one threshold, and what it is compared with."""

    effect: Effect | None
    worth: float  # the smallest difference that counts as one
    shuffles: int  # that p comes from
    off: Collection[str] = ()  # controls that are not compared
    p_value: float | None = None  # p that is corrected for several heads; None: that of the effect
    contrast: PairContrast | None = None  # None: not measured, or no such pairs
    enough: int = WORD_PAIRS
    given: bool = False  # whether the user gave the topics word by word
    fresh: Effect | None = None  # of fresh weights
    more: str = "documents"  # what makes the interval narrower
    documents: int | None = None  # with pairs of one topic, where documents are resampled
    labels: bool = False  # whether the topics that the interval resamples are labels of a corpus

    def advice(self, *options: str) -> str:
        """What to raise. Given topics have no number and no threshold."""
        if self.given:
            return "give more words to the topics, or raise --documents"
        return f"raise {' or '.join(f'--{option}' for option in options)}"

    @property
    def more_pairs(self) -> str:
        return self.advice("threshold", "documents")

    def usable(self, effect: Effect | None) -> Effect | Check:
        """The effect, if it has an interval and pairs enough for an answer; else why not."""
        if effect is None:
            return Check("unsure", f"too few pairs of words: {self.more_pairs}", code="no pairs")
        fewest = min((count for count in (effect.pairs, effect.other_pairs) if count is not None), default=self.enough)
        if fewest < self.enough:
            return Check(
                "unsure",
                f"too few pairs ({fewest:,.0f}; at least {self.enough} are needed): {self.more_pairs}",
                code="few pairs",
            )
        if self.documents is not None and self.documents < FEWEST_DOCUMENTS:
            return Check(
                "unsure",
                f"{self.documents} documents have pairs of one topic (at least {FEWEST_DOCUMENTS} are needed): "
                "raise --documents, or give more text",
                code="few documents",
            )
        return effect if wide(effect.interval) else self.nothing_to_resample

    @property
    def nothing_to_resample(self) -> Check:
        if self.labels:  # a corpus has no more labels than it has, so no option helps
            return Check(
                "unsure",
                "two labels are too few for an interval over topics; about five or more are needed",
                code="few labels",
            )
        none = f"there is nothing to resample: {self.advice('topics', 'documents')}"
        return Check("unsure", none, code="nothing to resample")

    def remains(self, number: float, between: Interval, effect: Effect, where: str) -> Check:
        """Whether half of a difference remains: classes of word frequency leave a little of what they explain."""
        enough, surely = max(self.worth, HALF * effect.difference), between[0] > 0
        left = f"{where} {number:.2g} of {effect.difference:.2g} remains"
        if surely and number >= enough:
            return Check("yes", f"{where} {number:.2g}", number, between)
        if between[1] < (self.worth if surely else enough):
            return Check("no", left, number, between, "little remains")
        why = ": most of the effect may be something other than topics"
        if not surely:
            why = f", and its interval reaches zero: {self.advice(self.more)}"
        return Check("unsure", f"{left}{why}", number, between, "half" if surely else "zero")


def wide(between: Interval | None) -> Interval | None:
    return None if between is None or between[0] == between[1] else between


def chance(of: Measured, effect: Effect) -> Check:
    assert effect.interval is not None
    p = effect.p_value if of.p_value is None else of.p_value
    if p is None:
        return Check("unsure", f"too few pairs to shuffle: {of.more_pairs}", code="no shuffled pairs")
    seen, (low, high) = (effect.difference, effect.interval), effect.interval
    if p <= SIGNIFICANT:
        if high < of.worth:
            why = f"a difference of {effect.difference:.2g} is more than chance, but too small to matter (below "
            return Check("no", f"{why}{of.worth:.2g})", *seen, "small")
        if low <= 0 or effect.difference < of.worth:
            why = "reaches zero" if low <= 0 else f"holds {of.worth:.2g}, the smallest that matters"
            code = "zero" if low <= 0 else "maybe small"
            return Check("unsure", f"its interval {why}: {of.advice(of.more)}", *seen, code)
        return Check("yes", f"p = {p:.2g}", *seen)
    smallest = 1 / (1 + of.shuffles)
    if smallest > SIGNIFICANT:
        return Check(
            "unsure",
            f"{of.shuffles} shuffles cannot give a p below {smallest:.2g}: raise --shuffles "
            f"(at least {ceil(1 / SIGNIFICANT - 1)} are needed here)",
            *seen,
            "few shuffles",
        )
    reach = high if effect.null_interval is None else effect.null_interval[1]
    if high <= of.worth or (effect.difference < of.worth and effect.difference <= reach <= of.worth):
        return Check("no", f"shuffled topics give as much (p = {p:.2g})", *seen, "shuffles")
    why = f"p = {p:.2g}, and shuffled topics alone give up to {reach:.2g}: {of.advice(of.more)}"
    return Check("unsure", why, *seen, "maybe chance")


def frequency(of: Measured, effect: Effect) -> Check:
    between = wide(effect.matched.interval) if effect.matched else None
    if effect.matched is None or between is None:
        return Check("unsure", f"too few pairs of equal word frequencies: {of.more_pairs}", code="few matched pairs")
    return of.remains(effect.matched.difference, between, effect, "at equal word frequencies")


def fresh_weights(of: Measured, effect: Effect) -> Check:
    fresh = of.usable(of.fresh)
    if isinstance(fresh, Check):
        return fresh
    if effect.resamples is None or fresh.resamples is None:  # they are not stored: the rows were read from a folder
        return Check("off")
    between = interval(effect.resamples - fresh.resamples)  # the same topics or documents are drawn
    if between is None:
        return of.nothing_to_resample
    return of.remains(effect.difference - fresh.difference, between, effect, "beyond fresh weights")


def cooccurrence(of: Measured, _: Effect) -> Check:
    contrast = of.contrast
    between = None if contrast is None or contrast.pairs < LISTED_PAIRS else wide(contrast.margin_interval)
    if contrast is None or contrast.same_topic is None or contrast.cooccurring is None or between is None:
        return Check("unsure", f"too few co-occurring pairs in these texts: {of.more_pairs}", code="few listed pairs")
    margin = contrast.same_topic - contrast.cooccurring
    both = f"{contrast.same_topic:.3g} against {contrast.cooccurring:.3g}"
    if between[0] > 0:
        return Check("yes", both, margin, between)
    if between[1] < 0:
        which = f"({contrast.cooccurring:.3g}) than pairs of one topic ({contrast.same_topic:.3g})"
        return Check("no", f"the pairs that co-occur most show more {which}", margin, between, "more")
    more = of.advice("documents" if of.more == "documents" else "threshold")  # it sets the number of pairs
    return Check(
        "unsure", f"the pairs that co-occur most show about as much ({both}): {more}", margin, between, "as much"
    )


@dataclass(frozen=True)
class Control:
    name: str
    explains: str  # what may explain the effect where the answer is no
    compared: str  # what the effect is compared with
    option: str  # the setting that switches it on
    rule: Callable[[Measured, Effect], Check]


CONTROLS = {
    "chance": Control("chance", "chance", "shuffled topics", "shuffles", chance),
    "frequency": Control("word frequency", "word frequency", "equal frequencies", "matched", frequency),
    "cooccurrence": Control("co-occurrence", "co-occurrence", "co-occurring pairs", "cooccurrence", cooccurrence),
    "fresh_weights": Control("fresh weights", "the architecture", "fresh weights", "random", fresh_weights),
}
PLACE_NAMES = {"embeddings": "embeddings", "states": "hidden states", "attention": "attention"}


def checked(control: str, of: Measured) -> Check:
    if control in of.off:
        return Check("off")
    effect = of.usable(of.effect)
    return effect if isinstance(effect, Check) else CONTROLS[control].rule(of, effect)


@dataclass(frozen=True, kw_only=True)
class Answer(Row):
    answer: Grade
    controls: dict[str, Grade]
    sentence: str
    checks: list[CheckRow] = field(default_factory=list)

    @property
    def reading(self) -> str:
        if self.controls.get("chance") == "no":
            return "no effect beyond chance"
        if self.controls.get("chance") != "yes":
            return "not known to be more than chance"
        real = f"a real effect (beyond {self._listed('yes')})"
        if explained := self._listed("no"):
            return f"{real} that cannot be told from {explained}"
        undecided = " and ".join(filter(None, map(self._listed, ("unsure", "off"))))
        return f"{real}; open: {undecided}" if undecided else real

    def _listed(self, grade: str) -> str:
        names = [CONTROLS[control].name for control, answer in self.controls.items() if answer == grade]
        return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


@dataclass(frozen=True, kw_only=True)
class ModelVerdict(ModelRow):
    embeddings: Answer
    states: Answer
    attention: Answer

    @property
    def answers(self) -> dict[str, Answer]:
        return {where: getattr(self, where) for where in PLACE_NAMES}

    @property
    def sentences(self) -> list[str]:
        return [f"{short(self.model)}: {answer.sentence}" for answer in self.answers.values() if answer.checks]

    @property
    def reading(self) -> str:
        """All answers read together; places of which the same holds are named together."""
        places: dict[str, list[str]] = {}
        for where, answer in self.answers.items():
            if answer.checks:
                places.setdefault(answer.reading, []).append(PLACE_NAMES[where])
        said = "; ".join(f"{', '.join(names)}: {reading}" for reading, names in places.items())
        return f"{short(self.model)}, read together: {said}."

    def records(self) -> Iterator[dict[str, object]]:
        for where, answer in self.answers.items():
            for row in answer.checks:
                yield {"model": self.model, "where": where} | row.as_dict()


def best(answers: Sequence[Answer]) -> Answer:
    """The best answer; of equal ones that which passes most controls, then that with the largest difference."""
    return max(answers, key=lambda one: (ORDER.index(one.answer), passed(one)))


def passed(answer: Answer) -> tuple[int, float]:
    differences = (row.check.number or 0.0 for row in answer.checks if row.control == "chance")
    return sum(grade == "yes" for grade in answer.controls.values()), min(differences, default=0.0)


Looked = tuple[ProbeRow | StateRow, Measured]  # an effect at one threshold, with the row that it belongs to


def answered(name: str, what: str, looked: Sequence[Looked]) -> Answer:
    if not looked:
        return Answer(answer="unsure", controls=dict.fromkeys(CONTROLS, "off"), sentence=f"{name}: not measured.")
    rows = [
        CheckRow(
            control=control,
            threshold=row.threshold,
            topics_per_word=row.topics_per_word,
            words=row.words,
            pairs=None if of.effect is None else of.effect.pairs,
            check=checked(control, of),
        )
        for row, of in looked
        for control in CONTROLS
    ]
    controls = {control: over_thresholds([row for row in rows if row.control == control]) for control in CONTROLS}
    grades = set(controls.values())
    grade: Grade = "no" if "no" in grades else "yes" if grades == {"yes"} else "unsure"
    reasons = against(controls, grade, rows)
    row, effect = looked[0][0], looked[0][1].effect
    if grade == "yes" and effect is not None:
        pairs = "" if effect.pairs is None else f", {effect.pairs:,.0f} pairs of {row.words} words"
        beyond = ", ".join(control.explains for control in CONTROLS.values())
        means = f"{effect.same:.3g} for two words of one topic, {effect.different:.3g} for words of different topics"
        reasons = f"{what[0].upper()}{what[1:]}: {means}{pairs}. Explained by none of: {beyond}"
    return Answer(answer=grade, controls=controls, sentence=f"{name}: {grade}. {reasons}.", checks=rows)


def over_thresholds(rows: Sequence[CheckRow]) -> Grade:
    """'yes' where a control says so at all thresholds at which it is on; 'no' where it says no and nowhere yes."""
    grades = {row.check.answer for row in rows} - {"off"}
    if len(grades) < 2:
        return next(iter(grades), "off")
    return "no" if "no" in grades and "yes" not in grades else "unsure"


def against(controls: Mapping[str, Grade], answer: Grade, rows: Sequence[CheckRow]) -> str:
    reasons = []
    for control, grade in controls.items():
        mine = [row for row in rows if row.control == control]
        if grade == "off" and answer == "unsure":  # what was switched off does not change a no
            many = control == "cooccurrence" and all(row.topics_per_word == "many" for row in mine)
            compared = f"{CONTROLS[control].compared} (--{CONTROLS[control].option}) were not compared"
            reasons.append("co-occurrence needs one topic per word (--topics-per-word one)" if many else compared)
        elif grade == "no" or (grade == "unsure" and answer == "unsure"):
            reasons.append(f"{CONTROLS[control].explains}{reason(mine)}")
    # where chance is enough, there is nothing that others could explain
    return "; ".join(reasons[:1] if controls["chance"] == "no" else reasons)


def reason(rows: Sequence[CheckRow]) -> str:
    """What stands against a control's yes: the first no, or else what is unsure; and where the thresholds differ."""
    worst = min(rows, key=lambda row: ORDER.index(row.check.answer))
    at = "" if worst.threshold is None or len(rows) == 1 else f" at threshold {worst.threshold:g}"
    passed = [f"{row.threshold:g}" for row in rows if row.check.answer == "yes" and row.threshold is not None]
    mixed = f" (but yes at {', '.join(passed)}: choose a threshold by how many words a topic should have)"
    return f"{at}: {worst.check.why}{mixed if worst.check.answer == 'no' and passed else ''}"


def verdict_of(
    rows: Sequence[ProbeRow],
    heads: Sequence[HeadRow],
    pairs: Sequence[CooccurrenceRow],
    settings: Measurement,
    states: Sequence[StateRow] = (),
    documents: int | None = None,
    *,
    labels: bool = False,
) -> ModelVerdict:
    """The verdict on a model: does it encode topics in embeddings, hidden states and attention?"""
    trained = [row for row in rows if row.variant == "trained"]
    fresh = {row.setting: row for row in rows if row.variant != "trained"}
    contrasts = {row.setting: row for row in pairs}
    topical = topical_heads(heads, next(iter(trained[0].parts), ""))
    places = {place(head) for head in topical}

    def looked(name: str, row: ProbeRow) -> Looked:
        listed = contrasts.get(row.setting)
        contrast = None if listed is None else getattr(listed, name)
        of = compared(row, name, fresh.get(row.setting), contrast, settings, with_fresh=bool(fresh))
        if name == "cosine":
            more = "threshold" if labels else "topics"
            return row, replace(of, shuffles=settings.shuffles, more=more, labels=labels)
        worth = ATTENTION_WORTH * (0.01 if of.effect is None else of.effect.different)
        mine = [head for head in heads if head.setting == row.setting and place(head) in places]
        p = max((head.corrected_p for head in mine if head.corrected_p is not None), default=None)
        p_value = p if name == "topical" else None  # the largest of the topical heads, corrected for all heads
        return row, replace(of, worth=worth, enough=POSITION_PAIRS, documents=documents, p_value=p_value)

    def answer(name: str, title: str, what: str = "attention between words (.01 without preference)") -> Answer:
        return answered(title, what, [looked(name, row) for row in trained])

    ways = [answer("attention", "attention (mean over heads)")]
    if topical:
        ways.append(answer("topical", f"attention ({named(topical)})"))
    return ModelVerdict(
        model=trained[0].model,
        embeddings=answer("cosine", "embeddings", "the cosine of words"),
        states=answer_on_states(states, settings, documents, labels),
        attention=best(ways),
    )


def compared(
    row: ProbeRow | StateRow,
    name: str,
    fresh: ProbeRow | StateRow | None,
    contrast: PairContrast | None,
    settings: Measurement,
    *,
    with_fresh: bool,
) -> Measured:
    off = {control for control, entry in CONTROLS.items() if not getattr(settings, entry.option)}
    off |= set() if with_fresh else {"fresh_weights"}
    return Measured(
        effect=getattr(row, name),
        worth=COSINE_WORTH,
        shuffles=settings.attention_shuffles,
        off=off if row.topics_per_word == "one" else off | {"cooccurrence"},
        contrast=contrast,
        given=row.threshold is None,
        fresh=None if fresh is None else getattr(fresh, name),
    )


def answer_on_states(
    rows: Sequence[StateRow], settings: Measurement, documents: int | None = None, labels: bool = False
) -> Answer:
    """The answer on the layer that shows most, where p is corrected for the number of layers."""
    what = "the cosine of states in different documents"
    trained = [row for row in rows if row.variant == "trained"]
    fresh = {row.at: row for row in rows if row.variant != "trained"}
    corrected = layers_p(trained)

    def looked(row: StateRow) -> Looked:
        mean, contrast = row.cooccurring.get("raw"), None
        if mean is not None and row.raw is not None:
            contrast = PairContrast(row.raw.same, mean.mean, mean.interval, mean.margin_interval, mean.pairs)
        of = compared(row, "raw", fresh.get(row.at), contrast, settings, with_fresh=bool(fresh))
        return row, replace(of, p_value=corrected.get(row.at), documents=documents, labels=labels)

    answers = [
        answered(
            f"hidden states ({part} layer {layer}{', embedding output' if layer == 0 else ''})",
            what,
            [looked(row) for row in trained if (row.part, row.layer) == (part, layer)],
        )
        for part, layer in dict.fromkeys((row.part, row.layer) for row in trained)
    ]
    return best(answers) if answers else answered("hidden states", what, [])


def layers_p(rows: Sequence[StateRow]) -> dict[tuple[SettingOf, str, int], float]:
    p: dict[tuple[SettingOf, str, int], float] = {}
    shuffled = [(row, row.raw.difference, row.raw.shuffled) for row in rows if row.raw and row.raw.shuffled is not None]
    for setting in dict.fromkeys(row.setting for row, *_ in shuffled):
        mine, differences, nulls = zip(*(one for one in shuffled if one[0].setting == setting), strict=True)
        values = corrected_p(np.array(differences), np.stack(nulls, 1))
        p |= {row.at: float(one) for row, one in zip(mine, values, strict=True) if np.isfinite(one)}
    return p


def named(heads: Sequence[HeadRow], most: int = 3) -> str:
    some = ", ".join(f"{head.layer}.{head.head}" for head in heads[:most])
    rest = f" and {len(heads) - most} more" if len(heads) > most else ""
    return f"{'head' if len(heads) == 1 else 'heads'} {some}{rest} as layer.head"
