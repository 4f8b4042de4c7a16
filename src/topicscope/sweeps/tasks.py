"""What an engine runs: points packed into ensembles, as a function of the grid alone, and the work of one pack."""

from __future__ import annotations

import dataclasses
import json
import traceback
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from topicscope.ground import InputError
from topicscope.language import probe, probe_point
from topicscope.measure import phase, stages
from topicscope.pretraining import build_config as build_pretrain, layer_metrics, layer_names, pretrain
from topicscope.sweeps.grid import Grid, Point
from topicscope.sweeps.inputs import inputs
from topicscope.sweeps.points import Result
from topicscope.training import TOGETHER, Run, build_config, train

CURVE_POINTS = 200
"""Points of a kept curve, at most."""

START = 0.1
"""Share of its rise with which a norm has started."""


@dataclass(frozen=True)
class Task:
    """Points that run as one program. The same pack whatever is already done, so that every point gets the same bytes."""

    points: tuple[Point, ...]


@dataclass(frozen=True)
class Place:
    """Where runs that keep folders of their own have them, and where relative paths of a config start."""

    scratch: str
    start: str


def pack(grid: Grid) -> list[Task]:
    """Runs of `train` that differ in seed, learning rate or initial scale alone go together, in the order of the grid."""
    together: dict[str, list[Point]] = {}
    for point in grid.points:
        together.setdefault(shared(point), []).append(point)
    return [
        Task(tuple(members[i : i + TOGETHER]))
        for members in together.values()
        for i in range(0, len(members), TOGETHER)
    ]


def shared(point: Point) -> str:
    """What members of an ensemble have in common; a point of another kind is alone."""
    if point.kind != "train":
        return point.name
    config = json.loads(json.dumps(point.config)) | {"seed": None}
    config["optimizer"]["lr"] = config["model"]["init_scale"] = None
    return json.dumps(config, sort_keys=True)


def compute(place: Place, task: Task) -> list[Result]:
    """In a worker, on one thread: the results of all points of a pack. An error of a point is its result; the machine's trouble is raised."""
    kind = task.points[0].kind
    try:
        if kind == "train":
            configs = [dataclasses.replace(build_config(point.config), device="cpu") for point in task.points]
            return [train_result(run) for run in train(configs, with_floors=False)]
        with chdir(place.start if Path(place.start).is_dir() else "."):  # Ray's workers start elsewhere
            return [OTHERS[kind](Path(place.scratch), point) for point in task.points]
    except (OSError, MemoryError):
        raise  # a full disk, no memory: nothing is wrong with the point, and it is still to be done
    except Exception as error:
        if len(task.points) > 1:  # one by one, so that one point's error is not the others'
            return [result for point in task.points for result in compute(place, Task((point,)))]
        return [Result(error=told(error))]


def told(error: Exception) -> str:
    """In one line, with the place where it was raised unless the message is meant for the user."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, InputError):
        return text
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {text} ({Path(place.filename).name}, line {place.lineno})"


def train_result(run: Run) -> Result:
    """Loss, stages, same-topic contrast, and which of the phases it is."""
    contrast = next(
        (
            run.results[name]["same"] - run.results[name]["different"]
            for name in ("value", "gram")
            if name in run.results
        ),
        None,
    )
    measures = {
        "status": run.status,
        "steps_done": run.results["steps"],
        "loss": run.results["loss"],
        "dev_loss": run.results.get("dev_loss"),
    }
    measures["contrast"] = contrast
    if {"norm_key", "norm_query", "norm_value"} <= set(run.metrics):
        measures |= course(run.status, run.metrics["loss"], run.results["loss"], [run.metrics])
    curves = thinned(
        {
            name: run.metrics[name]
            for name in ("step", "loss", "norm_value", "norm_key", "norm_query")
            if name in run.metrics
        }
    )
    return Result(finite(measures), curves)


def course(
    status: str, losses: np.ndarray, last_loss: float | None, layers: Sequence[dict[str, np.ndarray]]
) -> dict[str, Any]:
    """Phase and stages; of several layers, of the one with the smallest separation (a run is as two-stage as its least two-stage layer)."""
    if status == "diverged" or last_loss is None or len(losses) < 2:
        return {"phase": "diverged"}
    found = [stages(metrics) for metrics in layers]
    least = min(range(len(found)), key=lambda i: np.nan_to_num(found[i].separation, nan=np.inf))
    halves, starts = found[least], stages(layers[least], START)
    return {
        "phase": phase(halves, starts, float(losses[0]), last_loss),
        **halves.as_dict(),
        "start_separation": starts.separation,
    }


def pretrain_result(scratch: Path, point: Point) -> Result:
    """The run keeps a folder of its own, which a killed worker's successor goes on with."""
    folder = scratch / f"{point.name}-{inputs(point)}"  # another text is another run
    run = pretrain(build_pretrain(point.config), folder, resume=folder.is_dir())
    layers = {name: layer_metrics(run.metrics, name) for name in layer_names(run.metrics)}
    measures = {"status": run.status, "steps_done": run.results["steps"], "loss": run.results["loss"]}
    measures |= course(run.status, run.metrics["loss"], run.results["loss"], list(layers.values()))
    if run.status != "diverged":
        measures |= {f"separation_{name}": stages(metrics).separation for name, metrics in layers.items()}
    return Result(finite(measures), thinned(run.metrics))


def probe_result(_scratch: Path, point: Point) -> Result:
    """The effects of the trained model, those of the same architecture with fresh weights (random_...), and the commonest pairs (cooccurring_...)."""
    found = probe(probe_point(point.config))
    measures: dict[str, Any] = {"word_count": found.rows[0].words, "topic_count": found.rows[0].topics}
    for row in found.rows:
        prefix = "" if row.variant == "trained" else "random_"
        for measure in ("cosine", "dot", "attention"):
            effect = row.effects[measure]
            measures |= numbers(f"{prefix}{measure}", {} if effect is None else effect.as_dict())
    for pairs in found.cooccurrence[:1]:
        measures |= {"cooccurring_cosine": pairs.cosine.cooccurring}
        measures |= {"cooccurring_attention": pairs.attention.cooccurring}
    return Result(finite(measures))


def numbers(name: str, value: Any) -> dict[str, Any]:
    """A nested result under joined names; of an interval, its ends."""
    if isinstance(value, dict):
        return {
            key: number for inner, part in value.items() for key, number in numbers(f"{name}_{inner}", part).items()
        }
    if isinstance(value, list | tuple):
        return dict(zip((f"{name}_low", f"{name}_high"), value, strict=True))
    return {name: value}


OTHERS: dict[str, Callable[[Path, Point], Result]] = {"pretrain": pretrain_result, "probe": probe_result}


def thinned(metrics: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """At most CURVE_POINTS of each curve, the first and the last among them."""
    length = len(next(iter(metrics.values())))
    pick = (
        np.unique(np.linspace(0, length - 1, min(length, CURVE_POINTS)).round().astype(int))
        if length
        else np.empty(0, dtype=int)
    )
    return {name: values[pick].astype(np.float32) for name, values in metrics.items()}


def finite(measures: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not np.isfinite(value) else value for key, value in measures.items()
    }
