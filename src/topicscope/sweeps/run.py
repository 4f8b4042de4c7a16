"""A sweep: a grid, an engine, a folder. Run it again, and only what is missing is computed.

from topicscope.sweeps import read_grid, sweep
result = sweep(read_grid("grid.yaml"), "runs/sweep", engine="local")
result.rows[0]["phase"], result.counts
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from topicscope.ground import Engine, Name, Progress, open_engine, open_folder, watched
from topicscope.sweeps import points
from topicscope.sweeps.grid import Grid, build_grid, grid_of
from topicscope.sweeps.result import RUNS, SWEEP, Sweep, store_grid
from topicscope.sweeps.tasks import Place, compute, pack

PHASE = "running points"


def sweep(
    grid: Grid | Mapping[str, Any] | Sequence[Any],
    out: str | Path,
    engine: Name | Engine = "serial",
    *,
    workers: int | None = None,
    address: str | None = None,
    resume: bool = True,
    force: bool = False,
    retry_failed: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Run what is missing of a grid, on an engine by its name or an open one.

    `grid`: a `Grid`, what a grid file would hold, or a list of configs. Grids may share a folder, since points are
    named by what they are. `resume=False` wants a new folder; `force` replaces the sweep that is there.
    """
    if not isinstance(grid, Grid):
        grid = build_grid(grid) if isinstance(grid, Mapping) else grid_of(grid)
    if isinstance(engine, str):
        with open_engine(engine, workers=workers, address=address) as opened:
            return sweep(grid, out, opened, resume=resume, force=force, retry_failed=retry_failed, progress=progress)
    with watched(progress) as shown, open_folder(out, SWEEP, resume=resume and not force, force=force) as folder:
        root, count = folder.path.resolve(), len(grid.points)
        store_grid(root, grid)
        states: dict[str, points.State] = {}
        for point in grid.points:
            shown("reading points", len(states), count)
            states[point.name] = points.read(root, point, fresh=True)[0]
        stays = ("done",) if retry_failed else ("done", "failed")
        to_run = {name for name, state in states.items() if state not in stays}
        # a pack is run whole, whatever of it is there: its points get the bytes that an undisturbed sweep gives them
        tasks = [task for task in pack(grid) if any(point.name in to_run for point in task.points)]
        failed = sum(state == "failed" for name, state in states.items() if name not in to_run)
        finished = count - len(to_run)
        shown(PHASE, finished, count, note(failed))
        if tasks:
            folder.mark("running")
        for number, results in engine(compute, Place(str(root / RUNS), str(Path.cwd())), tasks):
            for point, result in zip(tasks[number].points, results, strict=True):
                if point.name in to_run:
                    points.write(root, point, result)
                    finished, failed = finished + 1, failed + (result.error is not None)
            shown(PHASE, finished, count, note(failed))
        shown("reading results")
        whole = Sweep.of(grid, out)
        folder.finish({"counts": whole.counts, "rows": whole.rows})
    return whole


def note(failed: int) -> str:
    return f"{failed} failed" if failed else ""
