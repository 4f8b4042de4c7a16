"""What a point reads: files and folders that its config names. Changed, they make it another point's result."""

from __future__ import annotations

import functools
import glob
import hashlib
from pathlib import Path
from typing import Any

from topicscope.sweeps.grid import Point, flat

READS = {
    "train": ("data.train_file", "data.dev_file", "documents.proportions", "model.value_matrix"),
    "pretrain": ("text.corpus", "tokenizer.existing"),
    "probe": ("models", "corpus", "topics_from", "stop_words"),
}
"""Settings of each kind that may name files."""

WHOLE = 64 * 2**20
"""Bytes up to which a file is read whole; of a larger one its size and both ends count."""


def inputs(point: Point) -> str:
    """A digest of all files that the point names; a name that is no file (a hub id, a word) counts as none."""
    found = hashlib.sha256()
    settings = flat(point.config)
    for name in [name for key in READS[point.kind] for name in _names(settings.get(key))]:
        for path in sorted(glob.glob(name)):
            for file in sorted(Path(path).rglob("*")) if Path(path).is_dir() else [Path(path)]:
                if file.is_file():
                    stat = file.stat()
                    found.update(
                        f"{name} {file} {_content(str(file.resolve()), stat.st_size, stat.st_mtime_ns)}\n".encode()
                    )
    return found.hexdigest()[:16]


def _names(value: Any) -> list[str]:
    return [name for name in (value if isinstance(value, list) else [value]) if isinstance(name, str)]


@functools.lru_cache(maxsize=100_000)
def _content(path: str, size: int, _written: int) -> str:
    """Once a process for every file, however many points read it."""
    with Path(path).open("rb") as stream:
        if size <= WHOLE:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        ends = stream.read(WHOLE // 2)
        stream.seek(-WHOLE // 2, 2)
        return hashlib.sha256(ends + stream.read() + str(size).encode()).hexdigest()
