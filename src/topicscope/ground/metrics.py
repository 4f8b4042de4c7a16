"""metrics.jsonl: one JSON object per step, written block by block, cut back to a checkpoint, read back as columns.

A checkpoint keeps the digest of the lines before it, so that a run that goes on goes on with what it had written.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Float

from topicscope.ground.checked import MOST_OWN, one_line, read_bytes, read_text, shown
from topicscope.ground.errors import InputError
from topicscope.ground.files import append, write

METRICS = "metrics.jsonl"
ANEW = "start the run anew (--force)"


def metric_lines(
    names: tuple[str, ...], table: Float[np.ndarray, "S M"], start: int, dev: dict[int, float], digits: int
) -> Iterator[str]:
    """One JSON object per step; figures that a step does not have are left out."""
    templates: dict[bytes, tuple[str, np.ndarray]] = {}
    finite = np.isfinite(table)
    for i, row in enumerate(table):
        key = finite[i].tobytes()
        if key not in templates:
            here = np.flatnonzero(finite[i])
            templates[key] = ('{"step": %d' + "".join(f', "{names[j]}": %.{digits}g' for j in here), here)
        template, here = templates[key]
        line = template % (start + i, *row[here].tolist())
        yield line + (f', "dev_loss": {dev[start + i]:.{digits}g}' if start + i in dev else "") + "}\n"


class MetricsFile:
    """The metrics of a run as they are written; `digest` is that of all lines so far."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / METRICS
        self.hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        return self.hash.hexdigest()

    def start(self) -> None:
        """No lines yet; what a run that was killed before its first checkpoint has left is removed."""
        self.path.unlink(missing_ok=True)

    def cut(self, lines: int, digest: str | None) -> None:
        """Keep the first lines, those of a checkpoint, if they are what it was made with."""
        kept = b"".join(read_bytes(self.path, "the metrics", MOST_OWN).splitlines(keepends=True)[:lines])
        self.hash = hashlib.sha256(kept)
        if self.digest != digest or kept.count(b"\n") != lines:
            raise InputError(
                f"{shown(self.path)} is not what it was at the checkpoint ({lines} whole lines expected); {ANEW}"
            )
        write(self.path, kept)

    def sync(self) -> None:
        """On the disk, before the checkpoint that counts on it."""
        with self.path.open("ab") as stream:
            os.fsync(stream.fileno())

    def append(self, lines: Iterable[str]) -> None:
        block = "".join(lines).encode()
        append(self.path, block)
        self.hash.update(block)


def read_metrics(folder: Path) -> dict[str, Float[np.ndarray, " S"]]:
    """Column by column; NaN where a step has no such figure."""
    path = folder / METRICS
    try:
        lines = [json.loads(line) for line in read_text(path, "the metrics", MOST_OWN).splitlines()]
        names = dict.fromkeys(name for line in lines for name in line)
        columns = {name: np.array([line.get(name, np.nan) for line in lines], dtype=float) for name in names}
        if lines and not np.array_equal(columns["step"], np.arange(len(lines))):
            raise ValueError("steps are missing")
    except InputError as error:
        raise InputError(f"{error}; {ANEW}") from None
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError) as error:
        raise InputError(f"{shown(path)} is damaged ({one_line(error)}); {ANEW}") from None
    return columns
