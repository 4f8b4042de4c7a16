"""The files that a point reads. If they change, the point's result is that of another point, and it is run again."""

from __future__ import annotations

import functools
import glob
import hashlib
from pathlib import Path
from typing import Any

from topicscope.ground import flat
from topicscope.sweeps.grid import Point
from topicscope.sweeps.kinds import kind_of

WHOLE = 64 * 2**20
"""Bytes up to which a file is read whole; of a larger one its size and both ends count."""


def inputs(point: Point) -> str:
    """A digest of all files that the point names; a name that is no file (a hub id, a word) does not count."""
    digest = hashlib.sha256()
    settings = flat(point.config)
    for name in [name for key in kind_of(point.kind).reads for name in _names(settings.get(key))]:
        for path in sorted(glob.glob(name)):
            for file in sorted(Path(path).rglob("*")) if Path(path).is_dir() else [Path(path)]:
                if file.is_file():
                    stat = file.stat()
                    content = _content(str(file.resolve()), stat.st_size, stat.st_mtime_ns)
                    digest.update(f"{name} {file} {content}\n".encode())
    return digest.hexdigest()[:16]


def _names(value: Any) -> list[str]:
    return [name for name in (value if isinstance(value, list) else [value]) if isinstance(name, str)]


@functools.lru_cache(maxsize=100_000)
def _content(path: str, size: int, _written: int) -> str:
    """Read once per process, however many points name the file."""
    with Path(path).open("rb") as stream:
        if size <= WHOLE:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        ends = stream.read(WHOLE // 2)
        stream.seek(-WHOLE // 2, 2)
        return hashlib.sha256(ends + stream.read() + str(size).encode()).hexdigest()
