"""What a grid would cost: trials of a few of its points, cut short in two ways, and the straight line through them."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from topicscope.ground import InputError
from topicscope.pretraining import build_config as build_pretrain
from topicscope.sweeps import points
from topicscope.sweeps.grid import Grid, Point
from topicscope.sweeps.tasks import CURVE_POINTS, Place, Task, compute, pack
from topicscope.training import build_config as build_train

KNOBS: dict[str, dict[str, tuple[int, int]]] = {
    "train": {"steps": (20, 120)},
    "pretrain": {"steps": (2, 6)},
    "probe": {"documents": (8, 24), "iterations": (10, 20)},
}
"""By what the time grows, and the two sizes of the trials."""

TRIALS = 4
"""Packs that are tried, from the first to the last of the grid."""

BLOCK = 4096
"""Bytes that a file takes at least."""


@dataclass(frozen=True)
class Cost:
    """Of what is still to do: seconds of one core, and bytes on disk."""

    points: int
    packs: int
    core_seconds: float
    bytes: int


def estimate(grid: Grid, missing: set[str]) -> Cost:
    """A point that cannot be run is told here, before the sweep."""
    tasks = [task for task in pack(grid) if any(point.name in missing for point in task.points)]
    if not tasks:
        return Cost(0, 0, 0.0, 0)
    chosen = [tasks[i] for i in np.unique(np.linspace(0, len(tasks) - 1, TRIALS).round().astype(int))]
    costs = [trial(task) for task in chosen]
    count = sum(len(task.points) for task in tasks)
    share = len(tasks) / len(chosen)
    return Cost(
        count, len(tasks), share * sum(seconds for seconds, _ in costs), round(share * sum(size for _, size in costs))
    )


def trial(task: Task) -> tuple[float, float]:
    """Seconds and bytes of one pack: those of a short trial, and for each knob its slope times what is left of the way."""
    kind, first = task.points[0].kind, task.points[0].config
    whole = {"steps": build_train(first).total_steps} if kind == "train" else {key: first[key] for key in KNOBS[kind]}
    small = {key: min(sizes[0], whole[key]) for key, sizes in KNOBS[kind].items()}
    timed(task, small)  # imports, caches
    seconds, size = timed(task, small)
    total = seconds
    for key, (_, more) in KNOBS[kind].items():
        if more < whole[key] and not (key == "iterations" and first["topics_from"]):
            longer, _ = timed(task, small | {key: more})
            total += max(0.0, longer - seconds) / (more - small[key]) * (whole[key] - small[key])
    if kind == "train":
        size *= min(CURVE_POINTS, whole["steps"]) / min(CURVE_POINTS, small["steps"])
    if kind == "pretrain":
        kept, planned = (
            max(1, len(build_pretrain(config).checkpoint_steps))
            for config in (cut(task.points[0], small).config, first)
        )
        size *= planned / kept
    return total, size + 2 * BLOCK * len(task.points)


def timed(task: Task, sizes: dict[str, int]) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        results = compute(Place(folder, str(Path.cwd())), Task(tuple(cut(point, sizes) for point in task.points)))
        seconds = time.perf_counter() - began
        if errors := [result.error for result in results if result.error is not None]:
            raise InputError(f"a trial of the point {task.points[0].name} failed: {errors[0]}")
        kept = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return seconds, kept + sum(len(points.npz(result.curves)) for result in results)


def cut(point: Point, sizes: dict[str, int]) -> Point:
    config: dict[str, Any] = point.config | sizes
    if point.kind == "train":
        config |= {"epochs": None, "snapshots": "none"}
    if point.kind == "pretrain":
        config |= {"checkpoints": "none" if config["checkpoints"] == "none" else "log"}
    return Point(point.kind, config, point.axes)
