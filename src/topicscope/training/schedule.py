"""Which parts of the model train when: phases as data, and the schedules that have a name."""

from __future__ import annotations

import itertools
import math
from typing import Annotated

from pydantic import Field, model_validator

from topicscope.ground import Count, InputError, Text, nearest, section
from topicscope.model import ATTENTION_PARTS, PARTS, ModelConfig


@section
class Phase:
    """A stretch of a run in which only some parts of the model train.

    Attributes:
        parts: Names of the parts that train, such as 'value', 'key' and 'query'.
        steps: Number of steps; None: to the end of the run.

    Example:
        See `Schedule`.
    """

    parts: Annotated[list[Text], Field(max_length=len(PARTS))]
    steps: Count | None = None


@section
class Schedule:
    """Which parts train when: phases one after another. Without phases all trained parts train throughout.

    Attributes:
        phases: The phases.
        repeat: Start again with the first phase after the last one.

    Example:
        >>> from topicscope import Phase, Schedule
        >>> schedule = Schedule([Phase(["value"], 100), Phase(["key", "query"])])
        >>> schedule.active(step=99, trained=("key", "query", "value")), schedule.active(100, ("key", "query", "value"))
        (('value',), ('key', 'query'))
    """

    phases: list[Phase] = Field(default_factory=list, max_length=1000)
    repeat: bool = False

    @model_validator(mode="after")
    def _check(self) -> Schedule:
        unknown = next((part for phase in self.phases for part in phase.parts if part not in PARTS), None)
        unbounded = [phase.steps is None for phase in self.phases]
        for wrong, message in (
            (self.repeat and not self.phases, "schedule: repeat needs phases to repeat"),
            (
                not all(phase.parts for phase in self.phases),
                "schedule: a phase without parts trains nothing; name at least one part",
            ),
            (unknown is not None, f"schedule: unknown part {unknown!r}; {nearest(unknown or '', PARTS)}"),
            (
                any(unbounded[:-1]) or (self.repeat and any(unbounded)),
                "schedule: only the last phase of a schedule that does not repeat may leave out its steps",
            ),
        ):
            if wrong:
                raise ValueError(message)
        return self

    def active(self, step: int, trained: tuple[str, ...]) -> tuple[str, ...]:
        """The parts that train at `step`. Behind the last phase the last phase goes on."""
        if not self.phases:
            return trained
        ends = list(itertools.accumulate(phase.steps or math.inf for phase in self.phases))
        place = step % ends[-1] if self.repeat else step
        phase = next((phase for phase, end in zip(self.phases, ends, strict=True) if place < end), self.phases[-1])
        return tuple(part for part in trained if part in phase.parts)

    def groups(self, trained: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Trained parts that are always active together, which the optimiser can treat as one."""
        together: dict[tuple[bool, ...], list[str]] = {}
        for part in trained:
            together.setdefault(tuple(part in phase.parts for phase in self.phases), []).append(part)
        return [tuple(parts) for parts in together.values()]


SCHEDULES = ("joint", "two-stage", "alternating")


def named_schedule(name: str, model: ModelConfig, vocabulary: int, steps: int) -> Schedule:
    """A schedule by its name.

    'joint': all at once. 'two-stage': everything but attention for half of the steps, then key and query.
    'alternating': the same in turns of 100 steps.
    """
    if name not in SCHEDULES:
        raise InputError(f"unknown schedule {name!r}; {nearest(name, SCHEDULES)}")
    if name == "joint":
        return Schedule()
    trained = model.trained_shapes(vocabulary)
    attention = [part for part in trained if part in ATTENTION_PARTS]
    others = [part for part in trained if part not in ATTENTION_PARTS]
    if not attention or not others:
        raise InputError(
            f"schedule {name!r} needs a trained key or query and another trained part; "
            f"trained here: {', '.join(trained) or 'nothing'}"
        )
    if name == "two-stage":
        return Schedule([Phase(others, max(1, steps // 2)), Phase(attention)])
    return Schedule([Phase(others, 100), Phase(attention, 100)], repeat=True)
