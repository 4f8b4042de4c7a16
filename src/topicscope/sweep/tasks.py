"""What an engine runs: points packed into ensembles, as a function of the grid alone, and the work of one pack."""

from __future__ import annotations

import dataclasses
import json
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from topicscope.errors import InputError
from topicscope.measure import stages
from topicscope.pretraining import build_config as build_pretrain
from topicscope.pretraining import pretrain, stages_by_layer
from topicscope.sweep.grid import Grid, Point
from topicscope.sweep.points import Result
from topicscope.training import Run, build_config, train
from topicscope.training.run import TOGETHER

CURVE_POINTS = 200
"""Points of a kept curve, at most."""

TWO_STAGE = 2.0
"""From this stage separation on a run counts as two-stage."""


@dataclass(frozen=True)
class Task:
    """Points that run as one program. The same pack whatever is already done, so that every point gets the same bytes."""

    number: int
    points: tuple[Point, ...]


def pack(grid: Grid) -> list[Task]:
    """Runs of `train` that differ in seed, learning rate or initial scale alone go together, in the order of the grid."""
    together: dict[str, list[Point]] = {}
    for point in grid.points:
        together.setdefault(shared(point), []).append(point)
    packs = [tuple(members[i : i + TOGETHER]) for members in together.values() for i in range(0, len(members), TOGETHER)]
    return [Task(number, members) for number, members in enumerate(packs)]


def shared(point: Point) -> str:
    """What members of an ensemble have in common; a point of another kind is alone."""
    if point.kind != "train":
        return point.name
    config = json.loads(json.dumps(point.config)) | {"seed": None}
    config["optimizer"]["lr"] = config["model"]["init_scale"] = None
    return json.dumps(config, sort_keys=True)


def compute(task: Task, scratch: str) -> list[Result]:
    """In a worker, on one thread: the results of all points of a pack. An error of a point is its result; the machine's trouble is raised."""
    kind = task.points[0].kind
    try:
        if kind == "train":
            configs = [dataclasses.replace(build_config(point.config), device="cpu") for point in task.points]
            return [train_result(run) for run in train(configs, with_floors=False)]
        return [pretrain_result(Path(scratch), point) for point in task.points]
    except (OSError, MemoryError):
        raise  # a full disk, no memory: nothing is wrong with the point, and it is still to be done
    except Exception as error:
        if len(task.points) > 1:  # one by one, so that one point's error is not the others'
            return [result for point in task.points for result in compute(Task(task.number, (point,)), scratch)]
        return [Result(error=told(error))]


def told(error: Exception) -> str:
    """In one line, with the place where it was raised unless the message is meant for the user."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, InputError):
        return text
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {text} ({Path(place.filename).name}, line {place.lineno})"


def train_result(run: Run) -> Result:
    """Loss, stages, same-topic contrast, and which of the four phases it is."""
    contrast = next((run.results[name]["same"] - run.results[name]["different"] for name in ("value", "gram") if name in run.results), None)
    has_stages = {"norm_key", "norm_query", "norm_value"} <= set(run.metrics)
    found = stages(run.metrics).as_dict() if has_stages and len(run.metrics["loss"]) > 1 and run.status != "diverged" else {}
    measures = {"status": run.status, "steps": run.results["steps"], "loss": run.results["loss"], "dev_loss": run.results.get("dev_loss")}
    measures |= {"contrast": contrast, "phase": phase(run.status, found.get("separation") if found else None), **found}
    curves = thinned({name: run.metrics[name] for name in ("step", "loss", "norm_key", "norm_query", "norm_value") if name in run.metrics})
    return Result(finite(measures), curves)


def phase(status: str, separation: float | None) -> str:
    """'diverged'; 'never' where a norm does not rise; 'two-stage' where key and query are at least TWO_STAGE times as late as value; else 'at once'."""
    if status == "diverged":
        return "diverged"
    if separation is None:
        return "never"
    return "two-stage" if separation >= TWO_STAGE else "at once"


def pretrain_result(scratch: Path, point: Point) -> Result:
    """The run keeps a folder of its own, which a killed worker's successor goes on with."""
    folder = scratch / point.name
    run = pretrain(build_pretrain(point.config), folder, resume=folder.is_dir())
    layers = stages_by_layer(run.metrics)
    separation = min((s.separation for s in layers.values()), default=float("nan"))
    measures = {"status": run.status, "steps": run.results["steps"], "loss": run.results["loss"], "separation": separation}
    measures |= {f"separation_{name}": s.separation for name, s in layers.items()}
    measures["phase"] = phase(run.status, separation if np.isfinite(separation) else None)
    return Result(finite(measures), thinned(run.metrics))


def thinned(metrics: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """At most CURVE_POINTS of each curve, the first and the last among them."""
    length = len(next(iter(metrics.values())))
    pick = np.unique(np.linspace(0, length - 1, min(length, CURVE_POINTS)).round().astype(int)) if length else np.empty(0, dtype=int)
    return {name: values[pick].astype(np.float32) for name, values in metrics.items()}


def finite(measures: dict[str, Any]) -> dict[str, Any]:
    return {key: None if isinstance(value, float) and not np.isfinite(value) else value for key, value in measures.items()}
