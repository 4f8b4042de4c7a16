"""A point's folder: result.json and curves.npz, whole or not there; and the files that a point reads.

If these change, the point's result is that of another point, and it is run again.
"""

import functools
import glob
import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np

from topicscope.ground import files, flat, parse_json, read_bytes
from topicscope.sweeps.grid import Point
from topicscope.sweeps.kinds import PointResult, kind_of

RESULT, CURVES, POINTS = "result.json", "curves.npz", "points"
WHOLE = 64 * 2**20  # bytes up to which a file is read whole; of a larger one its size and both ends count
# 'failed': the point's run raised an error; 'changed': the files that the point reads have changed since
State = Literal["done", "failed", "missing", "damaged", "changed"]


def home(root: Path, point: Point) -> Path:
    return root / POINTS / point.name


def write(root: Path, point: Point, result: PointResult) -> None:
    """Written under another name, then renamed. Nothing in it depends on time or machine."""
    packed = npz(result.curves)
    content = {
        "kind": point.kind,
        "config": point.config,
        "axes": point.axes,
        "error": result.error,
        "measures": result.measures,
        "inputs": inputs(point),
        "curves": hashlib.sha256(packed).hexdigest(),
    }
    with files.whole_folder(home(root, point)) as folder:
        files.write(folder / CURVES, packed)
        files.write_json(folder / RESULT, files.sealed(content))


def read(root: Path, point: Point, *, fresh: bool = False) -> tuple[State, PointResult]:
    """What is there, or an empty result.

    Every byte is checked against its digest; with `fresh`, the files that the point read as well.
    """
    folder, nothing = home(root, point), PointResult()
    if not folder.is_dir():
        return "missing", nothing
    try:
        content = files.unsealed(parse_json(read_bytes(folder / RESULT), RESULT))
        packed = read_bytes(folder / CURVES)
        if content["curves"] != hashlib.sha256(packed).hexdigest() or content["config"] != point.config:
            return "damaged", nothing
        if fresh and content["inputs"] != inputs(point):
            return "changed", nothing
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            curves = dict(arrays)
        result = PointResult(content["measures"], curves, content["error"])
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


def inputs(point: Point) -> str:
    """A digest of all files that the point names; a name that is no file (a hub id, a word) does not count."""
    digest_of_files, settings = hashlib.sha256(), flat(point.config)
    given = [settings.get(key) for key in kind_of(point.kind).reads]
    names = [name for value in given for name in (value if isinstance(value, list) else [value])]
    for name in [name for name in names if isinstance(name, str)]:
        for path in map(Path, sorted(glob.glob(name))):
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file():
                    stat = file.stat()
                    content = _content(str(file.resolve()), stat.st_size, stat.st_mtime_ns)
                    digest_of_files.update(f"{name} {file} {content}\n".encode())
    return digest_of_files.hexdigest()[:16]


@functools.lru_cache(maxsize=100_000)
def _content(path: str, size: int, _written: int) -> str:
    """Read once per process, however many points name the file."""
    with Path(path).open("rb") as stream:
        if size <= WHOLE:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        ends = stream.read(WHOLE // 2)
        stream.seek(-WHOLE // 2, 2)
        return hashlib.sha256(ends + stream.read() + str(size).encode()).hexdigest()
