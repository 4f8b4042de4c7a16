"""metrics.jsonl: one JSON object per step. Written block by block, cut back to a checkpoint, read back as columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Float

from topicscope.ground.errors import InputError
from topicscope.ground.files import write

METRICS = "metrics.jsonl"


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


def truncate_metrics(path: Path, step: int, end: int | None = None) -> None:
    """Drop the lines of `step` and later, and a line that was cut off. `end`: lines of a model that ended before."""
    if not path.exists():
        raise InputError(f"{path} is missing, though a checkpoint is there; start the run anew (force)")
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n") or json.loads(line)["step"] >= step:
            break
        lines.append(line)
    if len(lines) != min(step, end if end is not None else step):
        raise InputError(
            f"{path} has {len(lines)} whole lines of the {step} steps that the checkpoint stands at; "
            "start the run anew (force)"
        )
    write(path, "".join(lines).encode())


def read_metrics(folder: Path) -> dict[str, Float[np.ndarray, " S"]]:
    """Column by column; NaN where a step has no such figure."""
    path = folder / METRICS
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        names = dict.fromkeys(name for line in lines for name in line)
        return {name: np.array([line.get(name, np.nan) for line in lines], dtype=float) for name in names}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({' '.join(str(error).split())}); run the command again (force)") from None
