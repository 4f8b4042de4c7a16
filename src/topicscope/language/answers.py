"""The verdict on a model, as data: three answers, each with four controls, a sentence, and what the controls saw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from topicscope.language.controls import Check, Grade
from topicscope.language.probe_rows import short
from topicscope.measure import with_intervals


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
        for place, one in self.answers.items():
            if one.checks:
                places.setdefault(one.reading, []).append(PLACE_NAMES[place])
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
