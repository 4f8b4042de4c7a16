"""A sweep: a grid, an engine, a folder. What is done is kept; run again, and only what is missing is computed.

from topicscope.sweep import read_grid, sweep
found = sweep(read_grid("grid.yaml"), "runs/sweep", engine="local")
found.rows[0]["phase"], found.counts
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from topicscope import runs
from topicscope.errors import InputError
from topicscope.sweep import engines, points
from topicscope.sweep.grid import Grid, Point, grid_of
from topicscope.sweep.tasks import Task, pack

EngineName = Literal["serial", "local"]
ABOUT = "sweep.json"


@dataclass(frozen=True)
class Sweep:
    """What a folder holds: a row a point (its place on the axes, its measures or its error), in the order of the grid."""

    grid: Grid
    folder: Path
    rows: list[dict[str, Any]]

    @property
    def counts(self) -> dict[str, int]:
        return {state: sum(row["state"] == state for row in self.rows) for state in ("done", "failed", "missing")}


def sweep(
    grid: Grid | Sequence[Any],
    out: str | Path,
    engine: EngineName = "serial",
    *,
    workers: int | None = None,
    retry_failed: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
) -> Sweep:
    """Run what is missing. `progress` is told of points done, failed, and of all."""
    grid = grid if isinstance(grid, Grid) else grid_of(grid)
    root = Path(out)
    claim(root, grid)
    with runs.lock(root):
        states = {point.name: points.read(root, point)[0] for point in grid.points}
        wanted = {name for name, state in states.items() if state in ("missing", "damaged") or (retry_failed and state == "failed")}
        # a pack is run whole, whatever of it is there: its points get the bytes that they would have got without any interruption
        tasks = [task for task in pack(grid) if any(point.name in wanted for point in task.points)]
        done, failed = (sum(state == wish and name not in wanted for name, state in states.items()) for wish in ("done", "failed"))
        if progress is not None:
            progress(done, failed, len(grid.points))
        for task, results in run_on(engine, tasks, str(root / "runs"), workers):
            for point, result in zip(task.points, results, strict=True):
                if point.name in wanted:
                    points.write(root, point, result)
                    done, failed = done + (result.error is None), failed + (result.error is not None)
            if progress is not None:
                progress(done, failed, len(grid.points))
    return Sweep(grid, root, [row_of(root, point) for point in grid.points])


def run_on(engine: EngineName, tasks: list[Task], scratch: str, workers: int | None) -> Iterator[engines.Finished]:
    if not tasks:
        return iter(())
    if engine == "serial":
        return engines.serial(tasks, scratch)
    if engine == "local":
        return engines.local(tasks, scratch, workers)
    raise InputError(f"engine {engine!r}; expected serial or local")


def claim(root: Path, grid: Grid) -> None:
    """A new folder, an empty one, or one of a sweep; grids may share it, since points are named by what they are."""
    if root.exists() and not root.is_dir():
        raise InputError(f"--out {root} is a file; give a folder that is new, empty, or a sweep's")
    if root.is_dir() and any(path.name != ".lock" for path in root.iterdir()) and not (root / ABOUT).is_file():
        raise InputError(f"--out {root} holds something else (no {ABOUT}); choose a folder that is new, empty, or a sweep's")
    runs.prepare(root)
    runs.write_json(root / ABOUT, {"made_by": "topicscope", "kind": grid.kind, "axes": grid.axes, "points": len(grid.points)})


def row_of(root: Path, point: Point) -> dict[str, Any]:
    state, result = points.read(root, point)
    about = {"point": point.name, **point.axes, "state": "missing" if state == "damaged" else state}
    return about | ({} if result is None else {**result.measures, "error": result.error})
