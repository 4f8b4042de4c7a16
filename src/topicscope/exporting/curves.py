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
    """The curves of a result, run by run, with the name that each run has in an export.

    Args:
        result: Of `train` or `pretrain`, of their ensembles, or a sweep; other results have no curves.

    Returns:
        An iterator of (folder inside the export, '' for a single run; curves by name, 'step' among them).

    Example:
        >>> from topicscope.training import RunConfig, train
        >>> small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> runs = train([RunConfig.of(small, steps=10, seed=seed) for seed in (0, 1)])
        >>> [(name, len(curves["loss"])) for name, curves in curves_of(runs)]  # 10 steps and the start
        [('run-000-seed-0', 11), ('run-001-seed-1', 11)]
    """
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
