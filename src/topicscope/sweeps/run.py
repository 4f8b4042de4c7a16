"""A sweep: a grid, an engine, a folder. Run it again, and only what is missing is computed.

from topicscope.sweeps import read_grid, sweep
result = sweep(read_grid("grid.yaml"), "runs/sweep", engine="local")
result.rows[0]["phase"], result.counts

What an engine runs are points packed into tasks, as a function of the grid alone.
"""

import json
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    serial,
    usable_device,
    watched,
)
from topicscope.sweeps import points
from topicscope.sweeps.grid import Grid, Point, build_grid, grid_of, placed
from topicscope.sweeps.kinds import PointResult, kind_of
from topicscope.sweeps.result import GRID, RUNS, SWEEP, Sweep, store_grid

PHASE = "running points"


@dataclass(frozen=True)
class Task:
    """A pack of points that run as one program. Packs do not depend on what is done: every point gets the same bytes.

    Attributes:
        points: The points.

    Example:
        See `pack`.
    """

    points: tuple[Point, ...]


@dataclass(frozen=True)
class Place:
    """Where a worker runs its points.

    Attributes:
        scratch: Folder in which runs have folders of their own.
        start: Folder in which relative paths of a config start.

    Example:
        See `compute`.
    """

    scratch: str
    start: str


def pack(grid: Grid) -> list[Task]:
    """Put points that may run together into tasks, in the order of the grid.

    Args:
        grid: The grid.

    Returns:
        The tasks.

    Example:
        >>> grid = build_grid({"axes": {"batch_size": [20, 40], "seed": {"seeds": 3}}})
        >>> [len(task.points) for task in pack(grid)]  # seeds share a program, batch sizes do not
        [3, 3]
    """
    kind = kind_of(grid.kind)
    groups: dict[str, list[Point]] = {}
    for point in grid.points:
        common = placed(point.config, dict.fromkeys(kind.may_differ))
        groups.setdefault(json.dumps(common, sort_keys=True), []).append(point)
    tasks = []
    for group in groups.values():
        size = kind.pack_size(kind.build(group[0].config))
        tasks += [Task(tuple(group[i : i + size])) for i in range(0, len(group), size)]
    return tasks


def devices(grid: Grid) -> set[str]:
    """The devices that the points of a grid name.

    Args:
        grid: The grid.

    Returns:
        Their names.

    Example:
        >>> devices(build_grid({"base": {"device": "cpu"}, "axes": {"seed": [0, 1]}}))
        {'cpu'}
    """
    return {point.config.get("device", "cpu") for point in grid.points}


def compute(place: Place, task: Task) -> list[PointResult]:
    """Run a pack of points on one thread: what an engine calls in a worker.

    Args:
        place: Where the points run.
        task: The pack.

    Returns:
        One result per point. The error of a point is its result; an error of the machine is raised.

    Example:
        >>> base = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> [task] = pack(build_grid({"base": base | {"steps": 10}, "axes": {"seed": [0, 1]}}))
        >>> results = compute(Place(".", "."), task)
        >>> [(one.error, one.measures["steps_done"], len(one.curves["loss"])) for one in results]  # with the start
        [(None, 10, 11), (None, 10, 11)]
    """
    kind = kind_of(task.points[0].kind)
    try:
        # the whole grid was checked before the first pack
        with affordable(), chdir(place.start if Path(place.start).is_dir() else "."):  # Ray's workers start elsewhere
            # the folder of a run depends on the files that it reads: another text is another run
            homes = [Path(place.scratch) / f"{point.name}-{points.inputs(point)}" for point in task.points]
            return kind.run([kind.build(point.config) for point in task.points], homes)
    except (OSError, MemoryError):
        raise  # a full disk, no memory: nothing is wrong with the point, and it is still to be done
    except Exception as error:
        if len(task.points) > 1:  # one by one, so that the error of one point is not that of the others
            return [result for point in task.points for result in compute(place, Task((point,)))]
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
        if folder.fresh and not folder.file(points.POINTS).exists():
            folder.file(GRID).unlink(missing_ok=True)
        raise


def cost_of(grid: Grid, out: str | Path, workers: int) -> tuple[Cost, Callable[[], str]]:
    """Of the packs with a point that has no folder yet, so many at a time; and what makes the largest so large."""
    kind, root = kind_of(grid.kind), Path(out)
    known: dict[str, Cost] = {}
    whole, largest, of_largest = Cost(), Cost(), list[Any]()
    for task in pack(grid):
        if all(points.home(root, point).is_dir() for point in task.points):
            continue
        alike = json.dumps([placed(task.points[0].config, dict.fromkeys(kind.may_differ)), len(task.points)])
        if alike not in known:  # seeds and rates cost the same
            configs = [kind.build(point.config) for point in task.points]
            kind.check_libraries(configs[0])
            known[alike] = kind.cost(configs)  # raises where a model or a text is not there
            if known[alike].memory > largest.memory:
                largest, of_largest = known[alike], configs
        whole += known[alike]
    memory = workers * (largest.memory + PROCESS) if workers > 1 else largest.memory

    def large() -> str:
        settings = kind.large(of_largest) if of_largest else "number of points"
        return f"{settings}, workers {workers}" if workers > 1 else settings

    return Cost(memory, whole.disk, whole.seconds / workers), large


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
    gpus = int(on_gpu)
    opened: AbstractContextManager[Engine] = (
        open_engine(engine, workers=workers, address=address, gpus=gpus)
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
        shown(PHASE, finished, count, f"{failed} failed" if failed else "")
        if tasks:
            folder.mark("running")
        for number, results in run(compute, Place(str(root / RUNS), str(Path.cwd())), tasks):
            for point, result in zip(tasks[number].points, results, strict=True):
                if point.name in to_run:
                    points.write(root, point, result)
                    finished, failed = finished + 1, failed + (result.error is not None)
            shown(PHASE, finished, count, f"{failed} failed" if failed else "")
        shown("reading results")
        whole = Sweep.of(grid, out)
        folder.finish({"counts": whole.counts, "rows": whole.rows})
    return whole
