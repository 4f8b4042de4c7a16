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
ANEW = "start the run again (--force)"


def metric_lines(
    names: tuple[str, ...], table: Float[np.ndarray, "S M"], start: int, dev: dict[int, float], digits: int
) -> Iterator[str]:
    r"""The lines of metrics.jsonl: one JSON object per step. Measures that a step does not have are left out.

    Args:
        names: Of the measures.
        table: Their values (S x M).
        start: The first step.
        dev: Dev losses by step.
        digits: Digits of the numbers.

    Returns:
        The lines.

    Example:
        >>> list(metric_lines(("loss",), np.array([[1.5], [1.25]]), start=0, dev={1: 1.4}, digits=3))
        ['{"step": 0, "loss": 1.5}\n', '{"step": 1, "loss": 1.25, "dev_loss": 1.4}\n']
    """
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
    r"""The metrics of a run as they are written; `digest` is that of all lines so far.

    Args:
        folder: Folder of the run.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     metrics = MetricsFile(Path(folder))
        ...     metrics.append(['{"step": 0, "loss": 1.5}\n'])
        ...     read_metrics(Path(folder))["loss"].tolist()
        [1.5]
    """

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
                f"{shown(self.path)} is not as it was at the checkpoint ({lines} whole lines expected); {ANEW}"
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
    """Read metrics.jsonl column by column.

    Args:
        folder: Folder of the run.

    Returns:
        Columns by name (S each); NaN where a step has no such measure.

    Raises:
        InputError: The file is missing or damaged.

    Example:
        See `MetricsFile`.
    """
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
