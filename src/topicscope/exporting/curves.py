"""The curves of a result, by run: those of `train` and `pretrain`, of their ensembles, and of sweeps."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from topicscope.ground import InputError, SeveralRuns
from topicscope.pretraining import PretrainRun
from topicscope.sweeps import Sweep
from topicscope.training import Run

LONGEST = 100  # characters of a sweep's axes in the name of a folder
Curves = Mapping[str, np.ndarray]  # by figure, 'step' among them


def curves_of(result: Any) -> Iterator[tuple[str, Curves]]:
    """The folder of each run inside the export ('' where there is one run only), and its curves."""
    if isinstance(result, Run | PretrainRun):
        yield "", result.metrics
    elif isinstance(result, SeveralRuns):
        for number, run in enumerate(result):
            yield f"run-{number:03d}-seed-{run.config.seed}", run.metrics
    elif isinstance(result, Sweep):
        for row, curves in zip(result.rows, result.curves(), strict=True):
            if row["state"] == "done" and "step" in curves:
                yield place_of(row, list(result.grid.axes)), curves


def place_of(row: Mapping[str, Any], axes: list[str]) -> str:
    """A point's values on the axes as the name of a folder; a part of its own name makes it the only one.

    >>> place_of({"point": "0123456789abcdef", "optimizer.lr": 0.1, "seed": 2}, ["optimizer.lr", "seed"])
    'optimizer.lr=0.1,seed=2-012345'
    """
    text = ",".join(f"{name}={row[name]}" for name in axes)
    return f"{re.sub(r'[^A-Za-z0-9_.=,+-]+', '_', text)[:LONGEST]}-{row['point'][:6]}"


def all_curves(result: Any) -> list[tuple[str, Curves]]:
    """The same as a list; InputError where there are none."""
    found = [(name, curves) for name, curves in curves_of(result) if len(curves.get("step", ()))]
    if not found:
        raise InputError(
            f"{result!r} has no curves over steps for TensorBoard: expected a folder of train or pretrain, or a sweep "
            "of them with points that are done; --to parquet accepts any"
        )
    return found
