"""A sweep: a grid, an engine, a folder. Run it again, and only what is missing is computed.

from topicscope.sweeps import read_grid, sweep
result = sweep(read_grid("grid.yaml"), "runs/sweep", engine="local")
result.rows[0]["phase"], result.counts

What an engine runs are points packed into tasks, as a function of the grid alone.
"""

import json
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from topicscope.ground import (
    PROCESS,
    Cost,
    Engine,
    Folder,
    InputError,
    Name,
    Progress,
    afford,
    affordable,
    check_gpu,
    open_engine,
    open_folder,
    refuse,
    serial,
    silent,
    usable_device,
    watched,
)
from topicscope.sweeps.grid import Grid, Point, build_grid, grid_of, placed
from topicscope.sweeps.kinds import PointResult, kind_of
from topicscope.sweeps.result import (
    GRID,
    POINTS,
    RUNS,
    SWEEP,
    State,
    Sweep,
    input_digest,
    point_home,
    read_point,
    store_grid,
    write_point,
)

PHASE = "running points"
# points that run as one program; packs do not depend on what is done: every point gets the same bytes
Pack = tuple[Point, ...]


@dataclass(frozen=True)
class Place:
    scratch: str  # folder in which runs have folders of their own
    start: str  # folder in which relative paths of a config start


def common(point: Point) -> str:
    """What the points of a pack share."""
    may_differ = dict.fromkeys(kind_of(point.kind).may_differ)
    return json.dumps(placed(point.config, may_differ), sort_keys=True)


def configs_of(task: Pack) -> list[Any]:
    return [kind_of(point.kind).build(point.config) for point in task]


def pack(grid: Grid) -> list[Pack]:
    groups: dict[str, list[Point]] = {}
    for point in grid.points:
        groups.setdefault(common(point), []).append(point)
    tasks = []
    for group in groups.values():
        size = kind_of(grid.kind).pack_size(*configs_of((group[0],)))
        tasks += [tuple(group[i : i + size]) for i in range(0, len(group), size)]
    return tasks


def devices(grid: Grid) -> set[str]:
    return {str(point.config.get("device", "cpu")) for point in grid.points}


def compute(place: Place, task: Pack) -> list[PointResult]:
    """Run a pack of points on one thread: what an engine calls in a worker."""
    try:
        # the whole grid was checked before the first pack
        with affordable(), chdir(place.start if Path(place.start).is_dir() else "."):  # Ray's workers start elsewhere
            # the folder of a run depends on the files that it reads: another text is another run
            homes = [Path(place.scratch) / f"{point.name}-{input_digest(point)}" for point in task]
            return kind_of(task[0].kind).run(configs_of(task), homes)
    except (OSError, MemoryError):
        raise  # a full disk, no memory: nothing is wrong with the point, and it is still to be done
    except Exception as error:
        if len(task) > 1:  # one by one, so that the error of one point is not that of the others
            return [result for point in task for result in compute(place, (point,))]
        text = " ".join(str(error).split()) or type(error).__name__
        if not isinstance(error, InputError):  # which are about the input; others say where they were raised
            frame = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {text} ({Path(frame.filename).name}, line {frame.lineno})"
        return [PointResult(error=text)]


@contextmanager
def nothing_left(folder: Folder) -> Iterator[None]:
    """A sweep that fails before its first point does not leave its grid in the way of a better one."""
    try:
        yield
    except (InputError, MemoryError):
        if folder.fresh and not folder.file(POINTS).exists():
            folder.file(GRID).unlink(missing_ok=True)
        raise


def cost_of(grid: Grid, out: str | Path, workers: int) -> tuple[Cost, Callable[[], str]]:
    """Of the packs with a point that has no folder yet, so many at a time; and what makes the largest so large."""
    kind = kind_of(grid.kind)
    whole = Cost()
    known: dict[tuple[str, int], tuple[Cost, list[Any]]] = {}
    for task in pack(grid):
        if all(point_home(Path(out), point).is_dir() for point in task):
            continue
        alike = common(task[0]), len(task)
        if alike not in known:  # seeds and rates cost the same
            configs = configs_of(task)
            kind.check_libraries(configs[0])
            known[alike] = kind.cost(configs), configs  # raises where a model or a text is not there
        whole += known[alike][0]
    largest, of_largest = max(known.values(), key=lambda found: found[0].memory, default=(Cost(), []))
    memory = workers * (largest.memory + PROCESS) if workers > 1 else largest.memory

    def large() -> str:
        settings = kind.large(of_largest) if of_largest else "number of points"
        return f"{settings}, workers {workers}" if workers > 1 else settings

    return Cost(memory, whole.disk, whole.seconds / workers), large


def sweep(
    grid: Grid | Mapping[str, object] | Sequence[Any],
    out: str | Path,
    engine: Name | Engine = "serial",
    *,
    workers: int | None = None,
    address: str | None = None,
    resume: bool = True,
    force: bool = False,
    retry_failed: bool = False,
    progress: Progress | None = None,
    yes: bool = False,
) -> Sweep:
    """Run what is missing of a grid. Run it again, and only what is still missing is computed.

    Args:
        grid: A `Grid`, what a grid file holds (kind, base, axes, zipped), or a list of configs.
        out: Folder of the sweep. Grids may share one: points are named by what they are.
        engine: 'serial', 'local' (processes), 'ray', or an open engine.
        workers: Number of workers; of an open engine, how many it has.
        address: Address of a Ray cluster.
        resume: Continue the sweep in that folder; False: the folder must be new.
        force: Replace the sweep that is there.
        retry_failed: Run failed points again.
        progress: Called as progress(phase, done, total, note); None: a bar in terminals and notebooks.
        yes: Run even if the estimate does not fit into memory or onto the disk.

    Returns:
        The sweep: one row per point.

    Raises:
        InputError: The grid or the folder is wrong, or the sweep does not fit on this machine.
        EngineError: The workers failed; what is done is kept.

    Example:
        >>> import tempfile
        >>> from topicscope import sweep
        >>> base = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> grid = {"base": base | {"steps": 10}, "axes": {"optimizer.lr": [0.01, 0.1]}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = sweep(grid, f"{folder}/sweep")
        >>> result.counts, [(row["optimizer.lr"], round(row["dev_loss"], 1)) for row in result.rows]
        ({'done': 2, 'failed': 0, 'missing': 0}, [(0.01, 1.8), (0.1, 1.1)])
    """
    if not isinstance(grid, Grid):
        grid = build_grid(grid) if isinstance(grid, Mapping) else grid_of(grid)
    on_gpu = "cuda" in devices(grid)
    if on_gpu and engine == "local" and workers is None:
        workers = 1  # a GPU is shared by the models of a pack, not by processes
    in_turn = engine in ("serial", serial)
    cost, large = cost_of(grid, out, 1 if in_turn else workers or os.cpu_count() or 1)
    if on_gpu and engine in ("serial", "local", serial):
        usable_device("cuda")
        check_gpu(cost, large, yes=yes)
    afford(cost, large, out, yes=yes)
    opened: AbstractContextManager[Engine] = (
        open_engine(engine, workers=workers, address=address, gpus=int(on_gpu))
        if isinstance(engine, str)
        else nullcontext(engine)
    )
    with (
        opened as run,
        watched(progress) as shown,
        open_folder(out, SWEEP, resume=resume and not force, force=force) as folder,
        nothing_left(folder),
    ):
        root, count = folder.path.resolve(), len(grid.points)
        store_grid(root, grid)
        states: dict[str, State] = {}
        for point in grid.points:
            shown("reading points", len(states), count)
            states[point.name] = read_point(root, point, fresh=True)[0]
        stays = ("done",) if retry_failed else ("done", "failed")
        to_run = {name for name, state in states.items() if state not in stays}
        # a pack is run whole, whatever of it is there: its points get the bytes that an undisturbed sweep gives them
        tasks = [task for task in pack(grid) if any(point.name in to_run for point in task)]
        failed = sum(state == "failed" for name, state in states.items() if name not in to_run)
        finished = count - len(to_run)
        shown(PHASE, finished, count, f"{failed} failed" if failed else "")
        if tasks:
            folder.mark("running")
        for number, results in run(compute, Place(str(root / RUNS), str(Path.cwd())), tasks):
            for point, result in zip(tasks[number], results, strict=True):
                if point.name in to_run:
                    write_point(root, point, result)
                    finished, failed = finished + 1, failed + (result.error is not None)
            shown(PHASE, finished, count, f"{failed} failed" if failed else "")
        shown("reading results")
        whole = Sweep.of(grid, out)
        folder.finish({"counts": whole.counts, "rows": whole.rows})
    return whole


TRIALS = 4  # packs that are tried, from the first to the last of the grid


@dataclass(frozen=True)
class Estimate:
    """What a sweep still has to do, from short trials of a few points."""

    packs: int  # number of packs of points
    core_seconds: float  # seconds of one core
    bytes: int  # bytes on disk


def estimate(grid: Grid, missing: set[str], progress: Progress = silent) -> Estimate:
    tasks = [task for task in pack(grid) if any(point.name in missing for point in task)]
    if not tasks:
        return Estimate(0, 0.0, 0)
    chosen = [tasks[i] for i in np.unique(np.linspace(0, len(tasks) - 1, TRIALS).round().astype(int))]
    share = len(tasks) / len(chosen)
    seconds = 0.0
    for number, task in enumerate(chosen):
        progress("short trials of a few points, up to a minute", number, len(chosen))
        seconds += trial(task)
    disk = sum(kind_of(grid.kind).cost(configs_of(task)).disk for task in chosen)
    return Estimate(len(tasks), share * seconds, round(share * disk))


def trial(task: Pack) -> float:
    """Seconds of one pack: those of a short trial, and for every knob its slope times what is left."""
    kind = kind_of(task[0].kind)
    whole = kind.sizes(*configs_of(task[:1]))
    small = {knob: min(kind.knobs[knob][0], size) for knob, size in whole.items()}
    timed(task, small)  # imports, caches
    seconds = total = timed(task, small)
    for knob, full_size in whole.items():
        more = min(kind.knobs[knob][1], full_size)
        if more > small[knob]:
            slope = max(0.0, timed(task, small | {knob: more}) - seconds) / (more - small[knob])
            total += slope * (full_size - small[knob])
    return total


def timed(task: Pack, sizes: dict[str, int]) -> float:
    short = tuple(shortened(point, sizes) for point in task)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        results = compute(Place(folder, str(Path.cwd())), short)
        seconds = time.perf_counter() - began
    error = next((result.error for result in results if result.error is not None), "")
    refuse((error, f"a trial of the point {task[0].name} failed: {error}"))
    return seconds


def shortened(point: Point, sizes: dict[str, int]) -> Point:
    kind = kind_of(point.kind)
    changes = sizes | kind.for_trial(kind.build(point.config), sizes)
    return Point(point.kind, kind.build(placed(point.config, changes)).as_dict(), point.axes)
