"""Does a model encode topics: in its embeddings, its hidden states, its attention? Yes, unsure or no, and why.

A control says yes only if it does so at all thresholds, and no if it does so at some and nowhere yes; else it is
unsure. 'Yes' needs every control. One 'no' is a no: then chance, frequency, co-occurrence or the architecture may
explain what was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import ceil
from typing import Any, Self

import numpy as np

from topicscope.language.configs import SIGNIFICANT, Measurement
from topicscope.language.probe_rows import (
    CooccurrenceRow,
    Grade,
    HeadRow,
    MeasuredRow,
    PairContrast,
    ProbeRow,
    StateRow,
    place,
    short,
    topical_heads,
)
from topicscope.measure import Effect, Interval, corrected_p, interval, with_intervals

CONTROLS = ("chance", "frequency", "cooccurrence", "fresh_weights")
COSINE_WORTH = 0.02  # a difference of cosines worth naming
ATTENTION_WORTH = 0.05  # of attention, as a share of that to words of other topics
WORD_PAIRS, POSITION_PAIRS = 20, 100  # of one topic, and of different ones: with fewer there is no answer
LISTED_PAIRS = 10  # of words that stand together most often: five words of a topic make as many
FEWEST_DOCUMENTS = 10  # resamples of fewer do not show how much documents differ
HALF = 0.5  # what a control leaves of a difference, below which it explains it


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


@dataclass(frozen=True, kw_only=True)
class CheckRow:
    """What a control says at one threshold, with the words and pairs that it saw.

    Attributes:
        control: Name of the control.
        threshold: Share of the vocabulary that each topic keeps (theta); None where the user gave the topics.
        topics_per_word: 'one' or 'many'.
        words: Number of words.
        pairs: Number of pairs of words or positions.
        check: The answer.

    Example:
        >>> about = {"threshold": 0.001, "topics_per_word": "one", "words": 50, "pairs": 200.0}
        >>> row = CheckRow(control="chance", check=Check(answer="yes"), **about)
        >>> CheckRow.from_dict(row.as_dict()) == row
        True
    """

    control: str
    threshold: float | None
    topics_per_word: str
    words: int
    pairs: float | None
    check: Check

    def as_dict(self) -> dict[str, Any]:
        about = {name: getattr(self, name) for name in ("control", "threshold", "topics_per_word", "words", "pairs")}
        return about | asdict(self.check)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        parts = with_intervals(data)
        check = Check(**{name: parts.pop(name) for name in ("answer", "why", "number", "interval")})
        return cls(**parts, check=check)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One of the three answers on a model: on embeddings, hidden states or attention.

    Attributes:
        answer: 'yes', 'unsure', 'no' or 'off'.
        controls: The answers of the four controls, by name.
        sentence: The answer in words.
        reading: What the controls say together.
        checks: What the controls are made of.

    Example:
        >>> controls = {"chance": "yes", "frequency": "yes", "cooccurrence": "no", "fresh_weights": "yes"}
        >>> answer = Answer(answer="no", controls=controls, sentence="embeddings: no. ...")
        >>> answer.reading
        'a real effect (beyond chance, word frequency and fresh weights) that cannot be told from co-occurrence'
    """

    answer: Grade
    controls: dict[str, Grade]
    sentence: str
    checks: list[CheckRow] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {
            "answer": self.answer,
            "controls": self.controls,
            "sentence": self.sentence,
            "checks": [row.as_dict() for row in self.checks],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{**data, "checks": [CheckRow.from_dict(row) for row in data["checks"]]})

    @property
    def reading(self) -> str:
        """The controls read together, in a few words."""
        by_grade = {grade: listed(self.controls, grade) for grade in ("yes", "no", "unsure", "off")}
        if self.controls.get("chance") == "no":
            return "no effect beyond chance"
        if self.controls.get("chance") != "yes":
            return "not known to be more than chance"
        real = f"a real effect (beyond {by_grade['yes']})"
        if by_grade["no"]:
            return f"{real} that cannot be told from {by_grade['no']}"
        open_ = " and ".join(filter(None, (by_grade["unsure"], by_grade["off"])))
        return f"{real}; open: {open_}" if open_ else real


def listed(controls: Mapping[str, Grade], grade: str) -> str:
    """The controls that say so, in words."""
    names = [CONTROL_NAMES[control] for control, answer in controls.items() if answer == grade]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def best(answers: Sequence[Answer]) -> Answer:
    """The best answer; of equal ones that which passes most controls, then that with the largest difference."""
    return max(answers, key=lambda one: (ORDER.index(one.answer), passed(one)))


def passed(answer: Answer) -> tuple[int, float]:
    """How many controls say yes, and the smallest difference."""
    differences = (row.check.number for row in answer.checks if row.control == "chance")
    return sum(grade == "yes" for grade in answer.controls.values()), min((x or 0.0 for x in differences), default=0.0)


ORDER = ("no", "unsure", "yes")
CONTROL_NAMES = {
    "chance": "chance",
    "frequency": "word frequency",
    "cooccurrence": "co-occurrence",
    "fresh_weights": "fresh weights",
}
PLACES = ("embeddings", "states", "attention")
PLACE_NAMES = {"embeddings": "embeddings", "states": "hidden states", "attention": "attention"}


@dataclass(frozen=True, kw_only=True)
class ModelVerdict:
    """The three answers on a model: does it encode topics in embeddings, hidden states and attention?

    Attributes:
        model: Its name.
        embeddings: Whether word embeddings encode topics.
        states: Whether hidden states do.
        attention: Whether attention does.

    Example:
        >>> embeddings = Answer(answer="yes", controls={}, sentence="embeddings: yes.")
        >>> off = Answer(answer="off", controls={}, sentence="not measured.")
        >>> verdict = ModelVerdict(model="bert", embeddings=embeddings, states=off, attention=off)
        >>> {place: answer.answer for place, answer in verdict.answers.items()}
        {'embeddings': 'yes', 'states': 'off', 'attention': 'off'}
    """

    model: str
    embeddings: Answer
    states: Answer
    attention: Answer

    @property
    def answers(self) -> dict[str, Answer]:
        return {place: getattr(self, place) for place in PLACES}

    @property
    def sentences(self) -> list[str]:
        """One for each answer, the model's name first."""
        measured = [one for one in self.answers.values() if one.checks]
        return [f"{short(self.model)}: {one.sentence}" for one in measured]

    @property
    def reading(self) -> str:
        """All answers read together; places of which the same holds are named together."""
        places: dict[str, list[str]] = {}
        for where, one in self.answers.items():
            if one.checks:
                places.setdefault(one.reading, []).append(PLACE_NAMES[where])
        said = "; ".join(f"{', '.join(names)}: {reading}" for reading, names in places.items())
        return f"{short(self.model)}, read together: {said}."

    def as_dict(self) -> dict[str, Any]:
        return {"model": self.model} | {place: answer.as_dict() for place, answer in self.answers.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(model=data["model"], **{place: Answer.from_dict(data[place]) for place in PLACES})

    def records(self) -> Iterator[dict[str, Any]]:
        """A row for each check."""
        for where, answer in self.answers.items():
            for row in answer.checks:
                yield {"model": self.model, "where": where} | row.as_dict()


EXPLAINED = {
    "chance": "chance",
    "frequency": "word frequency",
    "cooccurrence": "co-occurrence",
    "fresh_weights": "the architecture",
}
SWITCHES = {
    "chance": "shuffled topics (--shuffles)",
    "frequency": "equal frequencies (--matched)",
    "cooccurrence": "co-occurring pairs (--cooccurrence)",
    "fresh_weights": "fresh weights (--random)",
}
FEW_LABELS = Check(
    answer="unsure", why="two labels are too few for an interval over topics; about five or more are needed"
)


@dataclass(frozen=True)
class Looked:
    """An effect at one threshold, with the row that it belongs to."""

    row: MeasuredRow | StateRow
    measured: Measured
    labels: bool = False  # whether the topics that its interval resamples are labels of a corpus

    def checks(self) -> dict[str, Check]:
        """By control. Of labels there are no more than there are: to raise --topics is no advice."""
        every, effect = checks_of(self.measured), self.measured.effect
        flat = effect is not None and (effect.interval is None or effect.interval[0] == effect.interval[1])
        if not (self.labels and flat and effect is not None):
            return every
        if too_few(replace(self.measured, effect=replace(effect, interval=(0.0, 1.0)))) is not None:
            return every  # something else comes first
        return {control: check if check.answer == "off" else FEW_LABELS for control, check in every.items()}


def answered(name: str, what: str, looked: Sequence[Looked]) -> Answer:
    """The answer on `name`, where the difference of pairs is `what`, from all thresholds."""
    if not looked:
        return Answer(answer="unsure", controls=dict.fromkeys(CONTROLS, "off"), sentence=f"{name}: not measured.")
    rows = [
        CheckRow(
            control=control,
            threshold=one.row.threshold,
            topics_per_word=one.row.topics_per_word,
            words=one.row.words,
            pairs=None if one.measured.effect is None else one.measured.effect.pairs,
            check=check,
        )
        for one in looked
        for control, check in one.checks().items()
    ]
    controls = {control: over_thresholds([row for row in rows if row.control == control]) for control in CONTROLS}
    grades = list(controls.values())
    found: Grade = "no" if "no" in grades else "yes" if set(grades) == {"yes"} else "unsure"
    return Answer(answer=found, controls=controls, sentence=sentence(name, what, found, rows, looked), checks=rows)


def over_thresholds(rows: Sequence[CheckRow]) -> Grade:
    """'yes' where a control says so at all thresholds at which it is on; 'no' where it says no and nowhere yes."""
    grades = {row.check.answer for row in rows} - {"off"}
    if not grades:
        return "off"
    if grades == {"yes"}:
        return "yes"
    return "no" if "no" in grades and "yes" not in grades else "unsure"


def sentence(name: str, what: str, found: Grade, rows: Sequence[CheckRow], looked: Sequence[Looked]) -> str:
    """The answer in words: the numbers where it is yes, else what stands against it and what to raise."""
    if found == "yes":
        effect = looked[0].measured.effect
        assert effect is not None
        pairs = "" if effect.pairs is None else f", {effect.pairs:,.0f} pairs of {looked[0].row.words} words"
        beyond = ", ".join(EXPLAINED.values())
        means = f"{effect.same:.3g} for two words of one topic, {effect.different:.3g} for words of different topics"
        return f"{name}: yes. {what[0].upper()}{what[1:]}: {means}{pairs}. Explained by none of: {beyond}."
    reasons = []
    for control in CONTROLS:
        mine = [row for row in rows if row.control == control]
        grade = over_thresholds(mine)
        if grade == "off" and found == "unsure":  # of a no, what was switched off changes nothing any more
            reasons.append(not_compared(control, mine))
        elif grade == "no" or (grade == "unsure" and found == "unsure"):
            reasons.append(f"{EXPLAINED[control]}{reason(mine)}")
    if over_thresholds([row for row in rows if row.control == "chance"]) == "no":
        reasons = reasons[:1]  # there is nothing that others could explain
    return f"{name}: {found}. {'; '.join(reasons)}."


def not_compared(control: str, rows: Sequence[CheckRow]) -> str:
    if control == "cooccurrence" and all(row.topics_per_word == "many" for row in rows):
        return "co-occurrence needs one topic per word (--topics-per-word one)"
    return f"{SWITCHES[control]} were not compared"


def reason(rows: Sequence[CheckRow]) -> str:
    """What stands against a control's yes: the first no, or else what is unsure; and where the thresholds differ."""
    worst = min(rows, key=lambda row: ORDER.index(row.check.answer) if row.check.answer != "off" else len(ORDER))
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
    """The verdict on a model: does it encode topics in embeddings, hidden states and attention?

    Args:
        rows: Effects of the model, trained and with fresh weights.
        heads: Effects by head.
        pairs: Pairs that stand together most often.
        settings: What was measured.
        states: Effects in hidden states.
        documents: Number of documents with pairs of one topic.
        labels: Whether the topics are labels of the corpus.

    Returns:
        Three answers, each with four controls.

    Example:
        See `probe_model`.
    """
    trained = [row for row in rows if row.variant == "trained"]
    fresh = {setting(row): row for row in rows if row.variant != "trained"}
    contrasts = {setting(row): row for row in pairs}
    topical = topical_heads(heads, next(iter(trained[0].parts), ""))

    def looked(name: str, contrast: str, **compared: Any) -> list[Looked]:
        """An effect of every row, with its controls."""
        found = []
        for row in trained:
            effect, control, other = getattr(row, name), contrasts.get(setting(row)), fresh.get(setting(row))
            even = 0.01 if effect is None else effect.different
            measured = Measured(
                effect=effect,
                worth=COSINE_WORTH if name == "cosine" else ATTENTION_WORTH * even,
                matched=settings.matched,
                contrast=None if control is None else getattr(control, contrast),
                with_contrast=settings.cooccurrence and row.topics_per_word == "one",
                enough=WORD_PAIRS if name == "cosine" else POSITION_PAIRS,
                given=row.threshold is None,
                fresh=None if other is None else getattr(other, name),
                with_fresh=bool(fresh),
                p_value=largest_p(heads, topical, row) if name == "topical" else None,
                **compared,
            )
            found.append(Looked(row, measured, labels and name == "cosine"))
        return found

    of_attention: dict[str, Any] = {
        "more": "documents",
        "shuffles": settings.attention_shuffles,
        "documents": documents,
    }
    ways = [answered("attention (mean over heads)", ATTENTION, looked("attention", "attention", **of_attention))]
    if topical:
        name = f"attention ({named(topical)})"
        ways.append(answered(name, ATTENTION, looked("topical", "topical", **of_attention)))
    cosines = looked("cosine", "cosine", more="threshold" if labels else "topics", shuffles=settings.shuffles)
    return ModelVerdict(
        model=trained[0].model,
        embeddings=answered("embeddings", "the cosine of words", cosines),
        states=answer_on_states(states, settings, documents, labels),
        attention=best(ways),
    )


ATTENTION = "attention between words (.01 without preference)"
STATES = "the cosine of states in different documents"


def answer_on_states(
    rows: Sequence[StateRow], settings: Measurement, documents: int | None = None, labels: bool = False
) -> Answer:
    """The answer on the layer that shows most, where p is corrected for the number of layers."""
    trained = [row for row in rows if row.variant == "trained"]
    fresh = {(setting(row), layer_of(row)): row for row in rows if row.variant != "trained"}
    corrected = layers_p(trained)

    def looked(row: StateRow) -> Looked:
        mean, other = row.cooccurring.get("raw"), fresh.get((setting(row), layer_of(row)))
        measured = Measured(
            effect=row.raw,
            worth=COSINE_WORTH,
            shuffles=settings.attention_shuffles,
            p_value=corrected.get((setting(row), layer_of(row))),
            matched=settings.matched,
            contrast=None
            if mean is None or row.raw is None
            else PairContrast(row.raw.same, mean.mean, mean.interval, mean.margin_interval, mean.pairs),
            documents=documents,
            with_contrast=settings.cooccurrence and row.topics_per_word == "one",
            given=row.threshold is None,
            fresh=None if other is None else other.raw,
            with_fresh=bool(fresh),
            more="documents",
        )
        return Looked(row, measured, labels)

    layers = dict.fromkeys(map(layer_of, trained))
    answers = [
        answered(
            f"hidden states ({part} layer {layer}{', embedding output' if layer == 0 else ''})",
            STATES,
            [looked(r) for r in trained if layer_of(r) == (part, layer)],
        )
        for part, layer in layers
    ]
    if not answers:
        return answered("hidden states", STATES, [])
    return best(answers)


def layer_of(row: StateRow) -> tuple[str, int]:
    return row.part, row.layer


def layers_p(rows: Sequence[StateRow]) -> dict[tuple[tuple[float | None, str], tuple[str, int]], float]:
    """p of the raw effect at each threshold and layer, corrected for all layers of all parts."""
    found: dict[tuple[tuple[float | None, str], tuple[str, int]], float] = {}
    for here in dict.fromkeys(map(setting, rows)):
        mine = [(layer_of(row), row.raw) for row in rows if setting(row) == here]
        known = [(at, effect, effect.shuffled) for at, effect in mine if effect is not None]
        usable = [(at, effect.difference, null) for at, effect, null in known if null is not None]
        if usable:
            places, differences, nulls = zip(*usable, strict=True)
            p = corrected_p(np.array(differences), np.stack(nulls, 1))
            found |= {(here, at): float(one) for at, one in zip(places, p, strict=True) if np.isfinite(one)}
    return found


def setting(row: ProbeRow | HeadRow | CooccurrenceRow | StateRow) -> tuple[float | None, str]:
    return row.threshold, row.topics_per_word


def largest_p(heads: Sequence[HeadRow], topical: Sequence[HeadRow], row: ProbeRow) -> float | None:
    """Of the topical heads at the threshold of a row, corrected for all heads."""
    places = {place(head) for head in topical}
    here = [head.corrected_p for head in heads if setting(head) == setting(row) and place(head) in places]
    return max((p for p in here if p is not None), default=None)


def named(heads: Sequence[HeadRow], most: int = 3) -> str:
    """The heads in words, the strongest first."""
    some = ", ".join(f"{head.layer}.{head.head}" for head in heads[:most])
    rest = f" and {len(heads) - most} more" if len(heads) > most else ""
    return f"{'head' if len(heads) == 1 else 'heads'} {some}{rest} as layer.head"
