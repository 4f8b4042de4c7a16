"""When topic structure appears in training: the effect of every measure at every step, and what follows from it.

timeline = Timeline.of({"cosine": {0: effect, 10: effect}, "attention": {...}})
timeline.moments[0].appears, timeline.order, timeline.answer
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from topicscope.ground import Folder, Kind, Result, adapter_of, arrow_table, read_finished, write_csv
from topicscope.measure.effects import BareEffect, Effect, Interval, Row, columns, interval
from topicscope.measure.phases import appears, half_way

if TYPE_CHECKING:
    import pyarrow

TIMELINE = Kind("timeline", 2, ("timeline.csv", "topics-*"), ("timeline.csv",))
MATCHED = "_matched"  # ending of a measure that is taken at equal word frequencies
TITLES = {
    "cosine": "embeddings: cosine",
    "dot": "embeddings: dot product",
    "embedding": "embedding: cosine",
    "value": "value matrix",
    "attention": "attention",
}
WORDS = ("cosine", "embedding", "value")  # measures of words alone; the first there is compared with attention


def measure_title(measure: str) -> str:
    name, _, layer = measure.removesuffix(MATCHED).partition(".")
    return (
        TITLES.get(name, name)
        + (f", layer {layer}" if layer else "")
        + (", equal frequencies" if measure.endswith(MATCHED) else "")
    )


@dataclass(frozen=True)
class TimelineRow(Row):
    FLAT = "effect"

    measure: str
    step: int
    effect: BareEffect


@dataclass(frozen=True)
class Moment:
    measure: str
    appears: int | None  # the first step from which on its interval stays above zero; None: never
    half: float | None  # the step at which half of its rise is made
    half_interval: Interval | None
    first: float  # the difference at the first step
    last: float  # the difference at the last step
    last_interval: Interval | None


@dataclass(frozen=True)
class Order:
    """How much later one measure has made half of its rise than another."""

    first: str  # the earlier measure
    second: str  # the later one
    ratio: float  # half-way step of the second over that of the first
    interval: Interval | None

    def __str__(self) -> str:
        if self.interval is None:
            return ""
        low, high = self.interval
        which = (
            "attention is later" if low > 1 else "attention is earlier" if high < 1 else "which is first is not decided"
        )
        times, least, most = (f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}" for ratio in (self.ratio, low, high))
        return f"{which} (its half-way step is {times} times that of the other, 95% {least} to {most})"


@dataclass(frozen=True, repr=False)
class Timeline(Result):
    kind: ClassVar[str] = TIMELINE.name
    rows: list[TimelineRow]
    moments: list[Moment]  # when each measure appears
    order: Order | None  # which of embeddings and attention is later, and by how much; None where it is not known
    notes: list[str] = field(default_factory=list)  # what was measured

    @classmethod
    def of(cls, effects: Mapping[str, Mapping[int, Effect | None]], notes: Sequence[str] = ()) -> Self:
        """From effects by measure ('cosine', 'dot', 'attention', 'attention.0' for layer 0, ...) and step.

        Everything that needs the resamples is computed here: they are not stored.
        """
        courses = {
            name: [TimelineRow(name, step, effect) for step, effect in sorted(steps.items()) if effect is not None]
            for name, steps in effects.items()
        }
        moments = [moment(course) for course in courses.values() if len(course) > 1]
        return cls([*chain(*courses.values())], moments, order(courses, moments), list(notes))

    @property
    def answer(self) -> str:
        moments = {moment.measure: moment for moment in self.moments}
        words = [name for name in WORDS if name in moments][:1]
        parts = [_when(moments[name]) for name in (*words, "attention") if name in moments]
        return "; ".join(filter(None, [*parts, str(self.order or "")]))

    def summary(self) -> list[str]:
        return [*self.notes, self.answer]

    def records(self) -> list[dict[str, object]]:
        return [columns(row.as_dict()) for row in self.rows]

    def table(self) -> pyarrow.Table:
        return arrow_table(self.records())

    def as_dict(self) -> dict[str, Any]:
        return {
            "timeline": [row.as_dict() for row in self.rows],
            "moments": [asdict(moment) for moment in self.moments],
            "answer": self.answer,
            "order": None if self.order is None else asdict(self.order),
            "notes": self.notes,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            adapter_of(list[TimelineRow]).validate_python(data["timeline"]),
            adapter_of(list[Moment]).validate_python(data["moments"]),
            None if data["order"] is None else adapter_of(Order).validate_python(data["order"]),
            data["notes"],
        )

    def write(self, folder: Folder) -> None:
        write_csv(folder.file("timeline.csv"), self.records())
        folder.finish(self.as_dict())

    def _about(self) -> str:
        return f"{len({row.step for row in self.rows})} steps, {len(self.moments)} measures"


def read_timeline(path: str | os.PathLike[str]) -> Timeline:
    return read_finished(path, TIMELINE, Timeline.from_dict)


def moment(course: Sequence[TimelineRow]) -> Moment:
    steps, curve = np.array([row.step for row in course]), np.array([row.effect.difference for row in course])
    low = [-np.inf if row.effect.interval is None else row.effect.interval[0] for row in course]
    first, half = appears(steps, np.array(low)), float(half_way(steps, curve))
    return Moment(
        measure=course[0].measure,
        appears=first,
        half=half if first is not None and np.isfinite(half) else None,
        half_interval=None if first is None else interval(halves(course)),
        first=float(curve[0]),
        last=float(curve[-1]),
        last_interval=course[-1].effect.interval,
    )


def halves(course: Sequence[TimelineRow]) -> np.ndarray:
    return half_way(np.array([row.step for row in course]), np.array([row.effect.resamples for row in course]).T)


def order(courses: Mapping[str, Sequence[TimelineRow]], moments: Sequence[Moment]) -> Order | None:
    """Attention against the words' own measure; None where one of them is missing or has not risen."""
    half = {moment.measure: moment.half for moment in moments}
    words = next((name for name in WORDS if name in half), "")
    first, second = half.get(words), half.get("attention")
    if first is None or second is None:
        return None
    return Order(words, "attention", second / first, interval(halves(courses["attention"]) / halves(courses[words])))


def _when(moment: Moment) -> str:
    where = f"from step {moment.appears} on" if moment.appears is not None else "not seen at the end"
    spread = "" if moment.half_interval is None else "[{:.0f}, {:.0f}]".format(*moment.half_interval)
    half = f", half of its rise at step {moment.half:.0f} {spread}" if moment.half is not None else ""
    return f"{measure_title(moment.measure)}: {where}{half}"
