"""Does a model encode topics: in its embeddings, its hidden states, its attention? Yes, unsure or no, and why.

A control has the answer that it gives at all thresholds; where these differ it is unsure. 'Yes' needs every control.
One 'no' is a no: then chance, frequency, co-occurrence or the architecture explains what was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from topicscope.language.configs import Measurement
from topicscope.language.controls import (
    ATTENTION_WORTH,
    CONTROLS,
    COSINE_WORTH,
    Check,
    Grade,
    Measured,
    checks_of,
)
from topicscope.language.probe_rows import CooccurrenceRow, HeadRow, MeasuredRow, ProbeRow, place, short, topical_heads
from topicscope.measure import with_intervals

ORDER = ("no", "unsure", "yes")
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


@dataclass(frozen=True, kw_only=True)
class CheckRow:
    """What a control says at one threshold, with the words and pairs of words (or of positions) that it saw."""

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
    """One of the three answers on a model. `controls` has the four by name; `checks` what they are made of."""

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


PLACES = ("embeddings", "states", "attention")


@dataclass(frozen=True, kw_only=True)
class ModelVerdict:
    """The three answers on a model."""

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


@dataclass(frozen=True)
class Looked:
    """An effect at one threshold, with the row that it belongs to."""

    row: MeasuredRow
    measured: Measured


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
        for control, check in checks_of(one.measured).items()
    ]
    controls = {control: over_thresholds([row for row in rows if row.control == control]) for control in CONTROLS}
    grades = list(controls.values())
    found: Grade = "no" if "no" in grades else "yes" if set(grades) == {"yes"} else "unsure"
    return Answer(answer=found, controls=controls, sentence=sentence(name, what, found, rows, looked), checks=rows)


def over_thresholds(rows: Sequence[CheckRow]) -> Grade:
    """The answer that a control gives wherever it is on; 'unsure' where it gives several."""
    grades = {row.check.answer for row in rows} - {"off"}
    return "off" if not grades else grades.pop() if len(grades) == 1 else "unsure"


def sentence(name: str, what: str, found: Grade, rows: Sequence[CheckRow], looked: Sequence[Looked]) -> str:
    """The answer in words: the numbers where it is yes, else what stands against it and what to raise."""
    if found == "yes":
        effect = looked[0].measured.effect
        assert effect is not None
        pairs = "" if effect.pairs is None else f", {effect.pairs:,.0f} pairs of {looked[0].row.words} words"
        beyond = ", ".join(EXPLAINED.values())
        means = f"{what} is {effect.same:.3g} inside topics, {effect.different:.3g} between{pairs}"
        return f"{name}: yes. Of a pair, {means}; {beyond} do not explain it."
    reasons = []
    for control in CONTROLS:
        mine = [row for row in rows if row.control == control]
        grade = over_thresholds(mine)
        if grade == "off":
            reasons.append(f"{SWITCHES[control]} were not compared")
        elif grade == "no" or (grade == "unsure" and found == "unsure"):
            worst = next(row for row in mine if row.check.answer in ("no", "unsure"))
            at = "" if worst.threshold is None or len(mine) == 1 else f" at threshold {worst.threshold:g}"
            reasons.append(f"{EXPLAINED[control]}{at}: {worst.check.why}")
    if found == "no":  # what was switched off changes nothing any more
        reasons = [reason for reason in reasons if not reason.endswith("were not compared")]
    return f"{name}: {found}. {'; '.join(reasons)}."


def verdict_of(
    rows: Sequence[ProbeRow], heads: Sequence[HeadRow], pairs: Sequence[CooccurrenceRow], settings: Measurement
) -> ModelVerdict:
    """The verdict on the model of these rows, trained and fresh."""
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
                fresh=None if other is None else getattr(other, name),
                with_fresh=bool(fresh),
                p_value=largest_p(heads, topical, row) if name == "topical" else None,
                **compared,
            )
            found.append(Looked(row, measured))
        return found

    of_attention: dict[str, Any] = {"more": "documents", "shuffles": settings.attention_shuffles}
    ways = [answered("attention (mean over heads)", ATTENTION, looked("attention", "attention", **of_attention))]
    if topical:
        name = f"attention ({named(topical)})"
        ways.append(answered(name, ATTENTION, looked("topical", "topical", **of_attention)))
    cosines = looked("cosine", "cosine", more="topics", shuffles=settings.shuffles)
    return ModelVerdict(
        model=trained[0].model,
        embeddings=answered("embeddings", "the cosine of words", cosines),
        states=answered("hidden states", "the cosine of states", []),
        attention=max(ways, key=lambda one: ORDER.index(one.answer)),
    )


ATTENTION = "attention between words (.01 without preference)"


def setting(row: ProbeRow | HeadRow | CooccurrenceRow) -> tuple[float | None, str]:
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
