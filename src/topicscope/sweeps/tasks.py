"""What an engine runs: points packed into tasks, as a function of the grid alone, and the work of one task."""

from __future__ import annotations

import copy
import json
import traceback
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from topicscope.ground import InputError, assign
from topicscope.sweeps.grid import Grid, Point
from topicscope.sweeps.inputs import inputs
from topicscope.sweeps.kinds import PointResult, kind_of


@dataclass(frozen=True)
class Task:
    """A pack of points that run as one program.

    The packs do not depend on what is already done, so that every point gets the same bytes.
    """

    points: tuple[Point, ...]


@dataclass(frozen=True)
class Place:
    """Where runs have folders of their own, and where the relative paths of a config start."""

    scratch: str
    start: str


def pack(grid: Grid) -> list[Task]:
    """Points that may run together, in the order of the grid."""
    kind = kind_of(grid.kind)
    size = kind.pack_size()
    groups: dict[str, list[Point]] = {}
    for point in grid.points:
        common = copy.deepcopy(point.config)
        for name in kind.may_differ:
            assign(common, name, None)
        groups.setdefault(json.dumps(common, sort_keys=True), []).append(point)
    return [Task(tuple(group[i : i + size])) for group in groups.values() for i in range(0, len(group), size)]


def compute(place: Place, task: Task) -> list[PointResult]:
    """In a worker, on one thread: the results of a pack. A point's error is its result; the machine's is raised."""
    kind = kind_of(task.points[0].kind)
    try:
        with chdir(place.start if Path(place.start).is_dir() else "."):  # Ray's workers start elsewhere
            # the folder of a run depends on the files that it reads: another text is another run
            homes = [Path(place.scratch) / f"{point.name}-{inputs(point)}" for point in task.points]
            return kind.run([kind.build(point.config) for point in task.points], homes)
    except (OSError, MemoryError):
        raise  # a full disk, no memory: nothing is wrong with the point, and it is still to be done
    except Exception as error:
        if len(task.points) > 1:  # one by one, so that the error of one point is not that of the others
            return [result for point in task.points for result in compute(place, Task((point,)))]
        return [PointResult(error=error_text(error))]


def error_text(error: Exception) -> str:
    """In one line; errors that are not about the input say where they were raised."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, InputError):
        return text
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {text} ({Path(frame.filename).name}, line {frame.lineno})"
