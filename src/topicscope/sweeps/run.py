"""A sweep: a grid, an engine, a folder. What is done is kept; run again, and only what is missing is computed.

from topicscope.sweep import read_grid, sweep
found = sweep(read_grid("grid.yaml"), "runs/sweep", engine="local")
found.rows[0]["phase"], found.counts
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topicscope.ground import InputError, engines, files, old_folders as folders
from topicscope.sweeps import points
from topicscope.sweeps.grid import Grid, Point, build_grid, grid_of
from topicscope.sweeps.tasks import Place, compute, pack

ABOUT = "sweep.json"

Progress = Callable[[int, int, int], None]
"""Called with the points done, those failed, and all."""


@dataclass(frozen=True)
class Sweep:
    """What a folder holds of a grid: a row a point (its place on the axes, its measures or its error), in the order of the grid."""

    grid: Grid
    folder: Path
    rows: list[dict[str, Any]]

    @property
    def measures(self) -> list[str]:
        """Names of what was measured, of any point."""
        return list(
            dict.fromkeys(
                key for row in self.rows for key in row if key not in {"point", "state", "error", *self.grid.axes}
            )
        )

    @property
    def counts(self) -> dict[str, int]:
        return {state: sum(row["state"] == state for row in self.rows) for state in ("done", "failed", "missing")}


def sweep(
    grid: Grid | dict[str, Any] | Sequence[Any],
    out: str | Path,
    engine: engines.Name | engines.Engine = "serial",
    *,
    workers: int | None = None,
    address: str | None = None,
    retry_failed: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Run what is missing of a grid (or of what a grid file would hold, or of a list of configs), on an engine that is named or one that is open."""
    if not isinstance(grid, Grid):
        grid = build_grid(grid) if isinstance(grid, dict) else grid_of(grid)
    if isinstance(engine, str):
        with engines.open_engine(engine, workers=workers, address=address) as opened:
            return sweep(grid, out, opened, retry_failed=retry_failed, progress=progress)
    root = Path(out).resolve()
    check(root)
    folders.prepare(root)
    with folders.lock(root):
        remember(root, grid)
        states = {point.name: points.read(root, point, fresh=True)[0] for point in grid.points}
        wanted = {
            name
            for name, state in states.items()
            if state in ("missing", "damaged", "changed") or (retry_failed and state == "failed")
        }
        # a pack is run whole, whatever of it is there: its points get the bytes that they would have got without any interruption
        tasks = [task for task in pack(grid) if any(point.name in wanted for point in task.points)]
        done, failed = (
            sum(state == wish and name not in wanted for name, state in states.items()) for wish in ("done", "failed")
        )
        tell = progress or (lambda *_: None)
        tell(done, failed, len(grid.points))
        for number, results in engine(compute, Place(str(root / "runs"), str(Path.cwd())), tasks):
            for point, result in zip(tasks[number].points, results, strict=True):
                if point.name in wanted:
                    points.write(root, point, result)
                    done, failed = done + (result.error is None), failed + (result.error is not None)
            tell(done, failed, len(grid.points))
    return read_sweep(grid, root)


def read_sweep(grid: Grid, out: str | Path, *, fresh: bool = False) -> Sweep:
    """What is there of a grid, without running anything; with `fresh`, what is there and would not be made again."""
    return Sweep(grid, Path(out), [row_of(Path(out), point, fresh) for point in grid.points])


def stored_grid(out: str | Path) -> Grid:
    """The grid that a folder was last used for."""
    try:
        found = json.loads((Path(out) / ABOUT).read_text(encoding="utf-8"))
        return Grid(
            found["kind"],
            found["axes"],
            [Point(found["kind"], found["first"] | own, axes) for axes, own in found["points"]],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{out} holds no sweep ({type(error).__name__}: {error}); run 'topicscope sweep GRID --out {out}'"
        ) from None


def check(root: Path) -> None:
    """A new folder, an empty one, or one of a sweep; grids may share it, since points are named by what they are."""
    if root.exists() and not root.is_dir():
        raise InputError(f"--out {root} is a file; give a folder that is new, empty, or a sweep's")
    if root.is_dir() and any(path.name != ".lock" for path in root.iterdir()) and not (root / ABOUT).is_file():
        raise InputError(
            f"--out {root} holds something else (no {ABOUT}); choose a folder that is new, empty, or a sweep's"
        )


def remember(root: Path, grid: Grid) -> None:
    first = grid.points[0].config
    listed = [
        [point.axes, {key: value for key, value in point.config.items() if value != first[key]}]
        for point in grid.points
    ]
    files.write_json(
        root / ABOUT, {"made_by": "topicscope", "kind": grid.kind, "axes": grid.axes, "first": first, "points": listed}
    )


def row_of(root: Path, point: Point, fresh: bool) -> dict[str, Any]:
    state, result = points.read(root, point, fresh=fresh)
    place = {"point": point.name, **point.axes, "state": state if state in ("done", "failed") else "missing"}
    return place | (
        {} if result is None else result.measures | ({} if result.error is None else {"error": result.error})
    )
