"""The course of training: the two stages (Section 5.1, Figure 4), and when topic structure appears (timelines).

Timeline.of({"cosine": {0: effect, 10: effect}, "attention": {...}}) has `moments`, `order` and `answer`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from topicscope.ground import Folder, Kind, Result, adapter_of, arrow_table, read_finished, write_csv
from topicscope.measure.effects import BareEffect, Effect, Interval, Row, columns, interval

if TYPE_CHECKING:
    import pyarrow


def appears(steps: Int[np.ndarray, " S"], low: Float[np.ndarray, " S"]) -> int | None:
    """The first step from which on the lower end of an interval stays above zero."""
    below = np.flatnonzero(~(low > 0))
    first = 0 if not len(below) else int(below[-1]) + 1
    return int(steps[first]) if first < len(steps) else None


def half_way(steps: Int[np.ndarray, " S"], curves: Float[np.ndarray, "*R S"]) -> Float[np.ndarray, "*R"]:
    """Where a curve has first made half of the way from its first to its last value; linear between steps."""
    first, last = curves[..., :1], curves[..., -1:]
    reached = curves - (first + last) / 2
    place = np.clip((reached >= 0).argmax(-1), 1, None)[..., None]
    after, before = np.take_along_axis(reached, place, -1), np.take_along_axis(reached, place - 1, -1)
    x1, x0 = steps[place], steps[place - 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(last > first, x0 + (x1 - x0) * -before / (after - before), np.nan)[..., 0]


ROTATION_SPAN = 10  # steps between the two value matrices whose rotation is measured (Figure 5)

RISEN = 1.05  # times its start that a norm must reach


def risen(norm: Float[np.ndarray, " S"], share: float = 0.5, steps: Float[np.ndarray, " S"] | None = None) -> float:
    """The first step (t50) with this share of the rise of a norm to its plateau, the mean of its last tenth."""
    start, plateau = float(norm[0]), float(norm[-max(1, len(norm) // 10) :].mean())
    if not plateau > start * RISEN:
        return float("nan")
    place = int(np.argmax(norm >= start + share * (plateau - start)))
    return float(place if steps is None else steps[place])


def still_rising(norm: Float[np.ndarray, " S"]) -> bool:
    """Whether the last tenth of the steps adds more than a twentieth of the rise: then there is no plateau yet."""
    if len(norm) < 2:
        return False
    tenth = max(1, len(norm) // 10)
    plateau, before = float(norm[-tenth:].mean()), float(norm[-2 * tenth : -tenth].mean())
    return plateau > norm[0] * RISEN and plateau - before > (plateau - norm[0]) / 20


PARTS = ("value", "key", "query")


@dataclass(frozen=True)
class Stages:
    """Half-way steps of the norms (t50); NaN where one has not risen."""

    value: float
    key: float
    query: float

    @property
    def separation(self) -> float:
        """t50(key and query, the earlier of them) / t50(value): above 1 the value matrix is first."""
        return float(np.fmin(self.key, self.query)) / max(self.value, 1.0)

    def as_dict(self) -> dict[str, float | None]:
        steps = {"t50_value": self.value, "t50_key": self.key, "t50_query": self.query, "separation": self.separation}
        return {name: value if np.isfinite(value) else None for name, value in steps.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, float | None]) -> Stages:
        return cls(*(np.nan if (step := data[f"t50_{part}"]) is None else step for part in PARTS))


LAYER = re.compile(r"norm_key(?:_((?:[a-z]+_)?\d+))?")  # in the names of metrics: a layer, if there are several


def layer_names(metrics: Mapping[str, Float[np.ndarray, " S"]]) -> list[str]:
    """The layers of a run: '0' of norm_key_0, 'cross_1' of norm_key_cross_1, '' of norm_key, which has no layer."""
    return [match[1] or "" for name in metrics if (match := LAYER.fullmatch(name))]


def layer_metrics(metrics: Mapping[str, Float[np.ndarray, " S"]], layer: str) -> dict[str, Float[np.ndarray, " S"]]:
    return {f"norm_{part}": metrics[f"norm_{part}_{layer}".rstrip("_")] for part in ("key", "query", "value")}


def rotations(products: Float[np.ndarray, "S ..."], norms: Float[np.ndarray, "S2 ..."]) -> Float[np.ndarray, "S ..."]:
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = products / (norms[ROTATION_SPAN:] * norms[:-ROTATION_SPAN])
    return (1 - np.clip(cosine, -1, 1)) / 2


def stages(metrics: Mapping[str, Float[np.ndarray, " S"]], share: float = 0.5) -> Stages:
    return Stages(*(risen(metrics[f"norm_{part}"], share, metrics.get("step")) for part in PARTS))


FIRST, SECOND = "stage 1: value", "stage 2: key and query"


def stage_bands(metrics: Mapping[str, Float[np.ndarray, " S"]]) -> list[tuple[float, float, str]]:
    """The two stages of a run, for figures. The second starts when key or query has made a tenth of its rise.

    What counts is which rise comes first. The value matrix may rise again later, and be half-way only then.
    """
    starts = stages(metrics, START)
    if not (stages(metrics).separation > 1 or starts.separation >= TWO_STAGE):
        return []
    begins = float(np.nanmin([starts.key, starts.query]))
    return [(0.0, begins, FIRST), (begins, last_step(metrics), SECOND)]


def last_step(metrics: Mapping[str, Float[np.ndarray, " S"]]) -> float:
    return float(metrics["step"][-1] if "step" in metrics else len(metrics["norm_key"]) - 1)


Phase = Literal["two-stage", "staggered", "at once", "first stage only", "never", "diverged"]
PHASES: tuple[Phase, ...] = get_args(Phase)
NOT_COVERED = "not covered"  # in place of a phase, where no law predicts one

TWO_STAGE = 2.0  # from this stage separation on a run counts as two-stage

WORSE = 1.01  # a run whose loss ends above this multiple of its start has diverged, even where it is still finite
START = 0.1  # share of its rise with which a norm has started


def phase(halves: Stages, starts: Stages, first_loss: float, last_loss: float) -> Phase:
    """Which course a run took, from the steps at which half and a tenth of each rise were made: see PHASE_MEANINGS."""
    rules: list[tuple[Phase, bool]] = [  # the first that holds
        ("diverged", not last_loss <= WORSE * first_loss),  # NaN too
        ("never", not np.isfinite(halves.value)),
        ("first stage only", not np.isfinite(halves.separation)),
        ("two-stage", halves.separation >= TWO_STAGE),
        ("staggered", starts.separation >= TWO_STAGE),
        ("at once", True),
    ]
    return next(name for name, holds in rules if holds)


# the rules of `phase` in words, for tables and pages
PHASE_MEANINGS: dict[Phase, str] = {
    "two-stage": f"key and query are half-way at least {TWO_STAGE:g} times as late as W_V (t50)",
    "staggered": f"key and query start at least {TWO_STAGE:g} times as late as W_V, but are half-way earlier than that",
    "at once": f"key and query are neither half-way nor start {TWO_STAGE:g} times as late as W_V",
    "first stage only": f"the norm of W_V rises, those of key and query by less than {RISEN - 1:.0%}",
    "never": f"the norm of W_V rises by less than {RISEN - 1:.0%}; the loss may still fall",
    "diverged": f"the loss ends more than {WORSE - 1:.0%} above its start, or is not finite",
}
READINGS: dict[Phase, str] = {
    "two-stage": "The value matrix has learnt topics before attention forms, as the paper's two stages say.",
    "staggered": "Key and query start later than value, but value keeps rising once attention has formed.",
    "at once": "Key and query are less than a factor of two later than value: this run does not show two stages.",
    "first stage only": "The value matrix rises; key and query have not, within these steps.",
    "never": "The norm of W_V has risen by less than 5%: the run is too short, or it starts at a large scale.",
    "diverged": "The loss ends above its start, or is not a number; try a smaller learning rate.",
}


@dataclass(frozen=True)
class Course:
    phase: Phase
    halves: Stages | None = None  # when half of each norm's rise was made (t50)
    starts: Stages | None = None  # when a tenth of it was made
    rising: tuple[str, ...] = ()  # norms without a plateau

    @property
    def sentence(self) -> str:
        if self.halves is None or not np.isfinite(self.halves.value):
            return f"Phase: {self.phase}. {READINGS[self.phase]}"
        steps = ", ".join(
            f"{name} {f'{step:,.0f}' if np.isfinite(step) else 'not yet'}" for name, step in asdict(self.halves).items()
        )
        ratio = "" if not np.isfinite(self.halves.separation) else f", separation {self.halves.separation:.3g}"
        said = f"Phase: {self.phase} (half of the rise at step: {steps}{ratio}). {READINGS[self.phase]}"
        if not self.rising:
            return said
        return f"{said} Not final: {', '.join(self.rising)} still rising at the end; more steps may change the phase."

    def as_dict(self) -> dict[str, float | str | None]:
        if self.halves is None or self.starts is None:
            return {"phase": self.phase}
        return {"phase": self.phase, **self.halves.as_dict(), "start_separation": self.starts.as_dict()["separation"]}


def course(
    status: str,
    losses: Float[np.ndarray, " S"],
    last_loss: float | None,
    layers: Sequence[Mapping[str, Float[np.ndarray, " S"]]],
) -> Course:
    """The course of a run from the norms of its layers: a run is as two-stage as its least two-stage layer."""
    if status == "diverged" or last_loss is None or len(losses) < 2:
        return Course("diverged")
    halves = [stages(metrics) for metrics in layers]
    least = min(range(len(halves)), key=lambda i: np.nan_to_num(halves[i].separation, nan=np.inf))
    starts = stages(layers[least], START)
    rising = tuple(part for part in PARTS if still_rising(layers[least][f"norm_{part}"]))
    return Course(phase(halves[least], starts, float(losses[0]), last_loss), halves[least], starts, rising)


Act = Literal["start", "stage 1", "between", "stage 2", "at once", "third act", "ended"]
MOVING = 0.02  # share of its norm that a part gains in the last tenth of the steps
CLEARLY = 1.5  # times its start that key or query must reach, before their rest can be a plateau


def act(metrics: Mapping[str, Float[np.ndarray, " S"]]) -> Act:
    """Where a run that goes on stands: which norms have risen, and which are rising now. It knows no plateau yet."""
    norms = [metrics[f"norm_{part}"] for part in PARTS]
    if len(norms[0]) < 3:
        return "start"
    has_risen = [norm[-1] > RISEN * norm[0] for norm in norms]
    moves = [norm[-1] > (1 + MOVING) * norm[-1 - max(1, len(norm) // 10)] for norm in norms]
    value, attention = has_risen[0], any(has_risen[1:])
    separation = stages(metrics, START).separation  # not a number as long as the last tenth of attention has not risen
    apart = separation >= TWO_STAGE  # value had started long before key and query
    clearly = max(norm[-1] / norm[0] for norm in norms[1:]) >= CLEARLY
    rules: list[tuple[Act, bool]] = [  # the first that holds
        ("start", not value and not attention),
        ("stage 1", not attention and moves[0]),
        ("between", not attention),
        ("stage 2", any(moves[1:]) and not moves[0]),
        ("at once", any(moves[1:]) and not apart),
        ("third act", moves[0] and apart),
        ("at once", moves[0]),
        ("between", value and not clearly and not separation < TWO_STAGE),  # attention has only begun, slowly
        ("ended", True),
    ]
    return next(name for name, holds in rules if holds)


def bands_so_far(metrics: Mapping[str, Float[np.ndarray, " S"]]) -> list[tuple[float, float, str]]:
    """The stages of a run that goes on, as far as they can be told: the first alone, as long as attention rests."""
    apart = stages(metrics, START).separation  # not a number as long as attention has not risen
    if not apart < TWO_STAGE and act(metrics) in ("stage 1", "between"):
        return [(0.0, last_step(metrics), FIRST)]
    return stage_bands(metrics) if apart >= TWO_STAGE else []


def extremes(
    values: Float[np.ndarray, " S"], size: int, marked: Bool[np.ndarray, " S"] | None = None
) -> Int[np.ndarray, " P"]:
    """The places of the lowest and of the highest value in every `size` values, in order; S is a multiple of `size`.

    Where some are `marked`, the last of those stands for the lowest. NaN is neither. Always two places per group.
    """
    table = values.reshape(-1, size)
    unknown = np.isnan(table)
    low, high = np.where(unknown, np.inf, table).argmin(1), np.where(unknown, -np.inf, table).argmax(1)
    if marked is not None:
        chosen = marked.reshape(-1, size)
        low = np.where(chosen.any(1), size - 1 - chosen[:, ::-1].argmax(1), low)
    high = np.where(high == low, (high + 1) % size, high)
    return (np.sort(np.stack([low, high], 1), 1) + size * np.arange(len(table))[:, None]).ravel()


def thinned(values: Float[np.ndarray, " S"], most: int) -> Int[np.ndarray, " P"]:
    """At most so many places of a curve: its first and last point, its extremes, and extremes all along it."""
    count = len(values)
    if count <= most:
        return np.arange(count)
    groups = (most - 2) // 2
    size = -(-(count - 2) // groups)
    inner = np.full(groups * size, np.nan)
    inner[: count - 2] = values[1:-1]
    places = extremes(inner, size)
    return np.concatenate([[0], 1 + places[places < count - 2], [count - 1]])


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
