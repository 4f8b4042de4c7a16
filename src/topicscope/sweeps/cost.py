"""What a grid would cost: trials of a few of its points, cut short in two ways, and the straight line through them."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from topicscope.ground import InputError, Progress, silent
from topicscope.sweeps import points
from topicscope.sweeps.grid import Grid, Point, placed
from topicscope.sweeps.kinds import kind_of
from topicscope.sweeps.run import Place, Task, compute, pack

TRIALS = 4  # packs that are tried, from the first to the last of the grid
BLOCK = 4096  # bytes that a file takes at least


@dataclass(frozen=True)
class Cost:
    """What a sweep still has to do, from short trials of a few points.

    Attributes:
        packs: Number of packs of points.
        core_seconds: Seconds of one core.
        bytes: Bytes on disk.

    Example:
        See `estimate`.
    """

    packs: int
    core_seconds: float
    bytes: int


def estimate(grid: Grid, missing: set[str], progress: Progress = silent) -> Cost:
    """Estimate what some points of a grid cost, by short trials of a few of them.

    Args:
        grid: The grid.
        missing: Names of the points that are to be run.
        progress: Called as progress(phase, done, total, note).

    Returns:
        The cost of these points.

    Raises:
        InputError: A point cannot be run.

    Example:
        >>> from topicscope.sweeps import build_grid
        >>> grid = build_grid({"base": {"steps": 100}, "axes": {"seed": {"seeds": 3}}})
        >>> estimate(grid, missing=set())  # all points are done
        Cost(packs=0, core_seconds=0.0, bytes=0)
    """
    tasks = [task for task in pack(grid) if any(point.name in missing for point in task.points)]
    if not tasks:
        return Cost(0, 0.0, 0)
    chosen = [tasks[i] for i in np.unique(np.linspace(0, len(tasks) - 1, TRIALS).round().astype(int))]
    costs = []
    for number, task in enumerate(chosen):
        progress("short trials of a few points, up to a minute", number, len(chosen))
        costs.append(trial(task))
    seconds, size = (len(tasks) / len(chosen) * sum(column) for column in zip(*costs, strict=True))
    return Cost(len(tasks), seconds, round(size))


def trial(task: Task) -> tuple[float, float]:
    """Seconds and bytes of one pack: those of a short trial, and for every knob its slope times what is left."""
    kind = kind_of(task.points[0].kind)
    config = kind.build(task.points[0].config)
    whole = kind.sizes(config)
    small = {knob: min(kind.knobs[knob][0], size) for knob, size in whole.items()}
    timed(task, small)  # imports, caches
    seconds, size = timed(task, small)
    total = seconds
    for knob, full_size in whole.items():
        more = min(kind.knobs[knob][1], full_size)
        if more > small[knob]:
            longer, _ = timed(task, small | {knob: more})
            total += max(0.0, longer - seconds) / (more - small[knob]) * (full_size - small[knob])
    size *= kind.stored(config) / kind.stored(kind.build(shortened(task.points[0], small).config))
    return total, size + 2 * BLOCK * len(task.points)


def timed(task: Task, sizes: dict[str, int]) -> tuple[float, float]:
    """Seconds and bytes of a pack with its knobs at these sizes."""
    short = Task(tuple(shortened(point, sizes) for point in task.points))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        results = compute(Place(folder, str(Path.cwd())), short)
        seconds = time.perf_counter() - began
        if errors := [result.error for result in results if result.error is not None]:
            raise InputError(f"a trial of the point {task.points[0].name} failed: {errors[0]}")
        stored = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return seconds, stored + sum(len(points.npz(result.curves)) for result in results)


def shortened(point: Point, sizes: dict[str, int]) -> Point:
    kind = kind_of(point.kind)
    changes = sizes | kind.for_trial(kind.build(point.config), sizes)
    return Point(point.kind, kind.build(placed(point.config, changes)).as_dict(), point.axes)
