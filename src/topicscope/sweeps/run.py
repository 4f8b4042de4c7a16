"""A sweep: a grid, an engine, a folder; and what the folder holds, as rows, as a table, as a map.

result = sweep(read_grid("grid.yaml"), "runs/sweep", engine="local")  # again: only what is missing is computed
result.rows[0]["phase"], result.counts, result.table().to_pandas()

What an engine runs are points packed into tasks, as a function of the grid alone.
"""

from __future__ import annotations

import functools
import glob
import hashlib
import io
import json
import os
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from topicscope.ground import (
    PROCESS,
    Cost,
    Engine,
    Folder,
    InputError,
    Kind,
    Name,
    Progress,
    Result,
    afford,
    affordable,
    check_gpu,
    files,
    flat,
    folders,
    open_engine,
    open_folder,
    parse_json,
    read_bytes,
    refuse_if,
    serial,
    silent,
    usable_device,
    watched,
)
from topicscope.measure import PHASE_MEANINGS
from topicscope.sweeps.grid import Grid, Point, build_grid, grid_of, place_text, placed
from topicscope.sweeps.kinds import PointResult, kind_of

if TYPE_CHECKING:
    import pyarrow

RESULT, CURVES, POINTS = "result.json", "curves.npz", "points"
WHOLE = 64 * 2**20  # bytes up to which a file is read whole; of a larger one its size and both ends count
# 'failed': the point's run raised an error; 'changed': the files that the point reads have changed since
State = Literal["done", "failed", "missing", "damaged", "changed"]


def point_home(root: Path, point: Point) -> Path:
    return root / POINTS / point.name


def write_point(root: Path, point: Point, result: PointResult) -> None:
    """Written under another name, then renamed. Nothing in it depends on time or machine."""
    packed = npz(result.curves)
    content = {
        "kind": point.kind,
        "config": point.config,
        "axes": point.axes,
        "error": result.error,
        "measures": result.measures,
        "inputs": input_digest(point),
        "curves": hashlib.sha256(packed).hexdigest(),
    }
    with files.whole_folder(point_home(root, point)) as folder:
        files.write(folder / CURVES, packed)
        files.write_json(folder / RESULT, files.sealed(content))


def read_point(root: Path, point: Point, *, fresh: bool = False) -> tuple[State, PointResult]:
    """What is there, or an empty result. Digests are checked; with `fresh`, of the files that it read as well."""
    folder, nothing = point_home(root, point), PointResult()
    if not folder.is_dir():
        return "missing", nothing
    try:
        content = files.unsealed(parse_json(read_bytes(folder / RESULT), RESULT))
        packed = read_bytes(folder / CURVES)
        if content["curves"] != hashlib.sha256(packed).hexdigest() or content["config"] != point.config:
            return "damaged", nothing
        if fresh and content["inputs"] != input_digest(point):
            return "changed", nothing
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            result = PointResult(content["measures"], dict(arrays), content["error"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile):
        return "damaged", nothing
    return ("done" if result.error is None else "failed"), result


def npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The same bytes for the same arrays: numpy would write the time of day into the archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            inner = io.BytesIO()
            np.lib.format.write_array(inner, np.ascontiguousarray(array), allow_pickle=False)
            # an entry without a date is of 1980
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), inner.getvalue(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def input_digest(point: Point) -> str:
    """A digest of all files that the point names; a name that is no file (a hub id, a word) does not count."""
    digest_of_files, settings = hashlib.sha256(), flat(point.config)
    given = [settings.get(key) for key in kind_of(point.kind).reads]
    names = [name for value in given for name in (value if isinstance(value, list) else [value])]
    for name in [name for name in names if isinstance(name, str)]:
        for path in map(Path, sorted(glob.glob(name))):
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file():
                    stat = file.stat()
                    content = file_digest(str(file.resolve()), stat.st_size, stat.st_mtime_ns)
                    digest_of_files.update(f"{name} {file} {content}\n".encode())
    return digest_of_files.hexdigest()[:16]


@functools.lru_cache(maxsize=100_000)
def file_digest(path: str, size: int, _written: int) -> str:
    """Read once per process, however many points name the file."""
    with Path(path).open("rb") as stream:
        if size <= WHOLE:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        ends = stream.read(WHOLE // 2)
        stream.seek(-WHOLE // 2, 2)
        return hashlib.sha256(ends + stream.read() + str(size).encode()).hexdigest()


GRID, CSV, PARQUET, RUNS = "sweep.json", "points.csv", "points.parquet", "runs"
SWEEP = Kind("sweep", 3, (GRID, CSV, PARQUET, RUNS, POINTS, "map.png", "map.svg"), resumes="always")
MOST_FAILURES = 5  # that the summary names

# a point as a row of a table: name, values on the axes, state, measures, error; the columns depend on the sweep
Row = dict[str, Any]


@dataclass(frozen=True, repr=False)
class Sweep(Result):
    """A sweep: what a folder holds of a grid, one row per point, in the order of the grid.

    Attributes:
        grid: The grid.
        folder: The folder.
        rows: For each point its state ('done', 'failed' or 'missing'), its values on the axes, and its measures.

    Example:
        See `sweep`.
    """

    kind: ClassVar[str] = SWEEP.name

    grid: Grid
    folder: Path
    rows: list[Row]

    @classmethod
    def of(cls, grid: Grid, folder: str | Path, *, fresh: bool = False) -> Sweep:
        """What a folder holds of a grid, without running anything; with `fresh`, without what would be run again."""
        return cls(grid, Path(folder), [row_of(Path(folder), point, fresh) for point in grid.points])

    @property
    def measures(self) -> list[str]:
        known = {"point", "state", "error", *self.grid.axes}
        return list(dict.fromkeys(key for row in self.rows for key in row if key not in known))

    @property
    def main_measures(self) -> list[str]:
        return [name for name in kind_of(self.grid.kind).measures if name in self.measures]

    def meanings(self) -> list[str]:
        about = kind_of(self.grid.kind).measures
        lines = [f"{name}: {about[name]}" for name in self.main_measures]
        if "phase" in self.main_measures:
            lines[1:1] = [f"phase {name}: {meaning}" for name, meaning in PHASE_MEANINGS.items()]
        return lines

    @property
    def counts(self) -> dict[str, int]:
        return {state: sum(row["state"] == state for row in self.rows) for state in ("done", "failed", "missing")}

    def curves(self) -> Iterator[Mapping[str, np.ndarray]]:
        return map(self.curves_of, range(len(self.rows)))

    def curves_of(self, number: int) -> Mapping[str, np.ndarray]:
        return read_point(self.folder, self.grid.points[number])[1].curves

    def summary(self) -> list[str]:
        failed = [row for row in self.rows if row["state"] == "failed"]
        missing = f", {self.counts['missing']} missing" if self.counts["missing"] else ""
        again = "; --retry-failed tries them again" if failed else ""
        stored = {path.name for path in (self.folder / POINTS).glob("[!.]*")}
        others = len(stored - {point.name for point in self.grid.points})
        one, more = ("1 point of another grid is", "stays"), (f"{others} points of other grids are", "stay")
        what, stay = one if others == 1 else more
        elsewhere = f"{what} also in {self.folder}, and {stay} there; table, picture and page show this grid only."
        return [
            f"Points: {self.counts['done']} done, {len(failed)} failed{missing}{again}.",
            *(
                f"failed: {row['point']} ({place_text({name: row[name] for name in self.grid.axes})}): {row['error']}"
                for row in failed[:MOST_FAILURES]
            ),
            *([elsewhere] if others else []),
        ]

    def table(self) -> pyarrow.Table:
        """One row per point: values on the axes, state, measures, error, and the rest of the config.

        One type of value per column: lists as JSON, and a column that mixes words and numbers as words.
        """
        import pyarrow

        axes = list(self.grid.axes)
        configs = [flat(point.config) for point in self.grid.points]
        settings = [key for key in dict.fromkeys(key for config in configs for key in config) if key not in axes]
        names = ["point", *axes, "state", *self.measures, "error"]
        columns = {name: [row.get(name) for row in self.rows] for name in names}
        for name in settings:  # a measure may have the name of a setting
            columns[f"config.{name}" if name in names else name] = [config.get(name) for config in configs]
        return pyarrow.table({name: alike(values) for name, values in columns.items()})

    def write_table(self) -> None:
        import pyarrow.parquet

        table, buffer = self.table(), io.BytesIO()
        files.write_csv(self.folder / CSV, table.to_pylist())
        pyarrow.parquet.write_table(table, buffer)
        files.write(self.folder / PARQUET, buffer.getvalue())

    def _about(self) -> str:
        counts = ", ".join(f"{count} {state}" for state, count in self.counts.items() if count)
        return f"{len(self.rows)} points of {self.grid.kind}: {counts}"


def row_of(root: Path, point: Point, fresh: bool) -> Row:
    state, result = read_point(root, point, fresh=fresh)
    row = {"point": point.name, **point.axes, "state": state if state in ("done", "failed") else "missing"}
    return row | result.measures | ({} if result.error is None else {"error": result.error})


def alike(values: list[Any]) -> list[Any]:
    values = [json.dumps(value) if isinstance(value, list | dict) else value for value in values]
    types = {type(value) for value in values if value is not None}
    if types <= {int, float}:
        return [None if value is None else float(value) for value in values] if float in types else values
    return values if len(types) == 1 else [None if value is None else str(value) for value in values]


def read_sweep(folder: str | os.PathLike[str]) -> Sweep:
    """Read the sweep in a folder, finished or not, with the grid that the folder was last used for."""
    path = Path(folder)
    folders.about_of(path, SWEEP)
    stored = files.read_json(path / GRID)
    try:
        content = files.unsealed(stored)
        kind, first = content["kind"], content["first"]
        grid = Grid(kind, content["axes"], [Point(kind, first | own, axes) for axes, own in content["points"]])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path / GRID} is damaged; run the sweep again with its grid file") from None
    return Sweep.of(grid, path)


def stored_points(grid: Grid, folder: str | Path) -> int:
    return sum(point_home(Path(folder), point).is_dir() for point in grid.points)


def store_grid(path: Path, grid: Grid) -> None:
    """sweep.json: the first config whole, and of every other point what differs from it."""
    first = grid.points[0].config
    differing = [
        [point.axes, {key: value for key, value in point.config.items() if value != first[key]}]
        for point in grid.points
    ]
    content = {"kind": grid.kind, "axes": grid.axes, "first": first, "points": differing}
    files.write_json(path / GRID, files.sealed(content))


PHASE = "running points"
# points that run as one program; packs do not depend on what is done: every point gets the same bytes
Pack = tuple[Point, ...]


@dataclass(frozen=True)
class Place:
    scratch: str  # folder in which runs have folders of their own
    start: str  # folder in which relative paths of a config start


def common(point: Point) -> str:
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
    whole = largest = Cost()
    of_largest: list[Any] = []
    known: dict[tuple[str, int], Cost] = {}
    for task in pack(grid):
        if all(point_home(Path(out), point).is_dir() for point in task):
            continue
        alike = common(task[0]), len(task)
        if alike not in known:  # seeds and rates cost the same
            configs = configs_of(task)
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
    refuse_if(error, f"a trial of the point {task[0].name} failed: {error}")
    return seconds


def shortened(point: Point, sizes: dict[str, int]) -> Point:
    kind = kind_of(point.kind)
    changes = sizes | kind.for_trial(kind.build(point.config), sizes)
    return Point(point.kind, kind.build(placed(point.config, changes)).as_dict(), point.axes)
