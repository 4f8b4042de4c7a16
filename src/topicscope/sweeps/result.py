"""A sweep: what a folder holds of a grid, as rows, as a table, as a map.

result = read_sweep("runs/sweep")
result.rows[0]["phase"], result.counts, result.table().to_pandas()
"""

from __future__ import annotations

import functools
import glob
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from topicscope.ground import InputError, Kind, Result, files, flat, folders, parse_json, read_bytes, refuse
from topicscope.measure import PHASE_MEANINGS
from topicscope.sweeps.grid import Grid, Point, place_text
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
    """What is there, or an empty result.

    Every byte is checked against its digest; with `fresh`, the files that the point read as well.
    """
    folder, nothing = point_home(root, point), PointResult()
    if not folder.is_dir():
        return "missing", nothing
    try:
        content = files.unsealed(parse_json(read_bytes(folder / RESULT), RESULT))
        packed = read_bytes(folder / CURVES)
        same = content["curves"] == hashlib.sha256(packed).hexdigest() and content["config"] == point.config
        refuse((not same, "what is there is of another point"))
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
        sentences = [
            f"Points: {self.counts['done']} done, {len(failed)} failed{missing}{again}.",
            *(
                f"failed: {row['point']} ({place_text({name: row[name] for name in self.grid.axes})}): {row['error']}"
                for row in failed[:MOST_FAILURES]
            ),
        ]
        stored = {path.name for path in (self.folder / POINTS).glob("[!.]*")}
        if others := len(stored - {point.name for point in self.grid.points}):
            one, more = ("1 point of another grid is", "stays"), (f"{others} points of other grids are", "stay")
            what, stay = one if others == 1 else more
            sentences.append(
                f"{what} also in {self.folder}, and {stay} there; table, picture and page show this grid only."
            )
        return sentences

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
