"""Training from Python: one call, one or many configs, in memory or into run places.

from topicscope import RunConfig, train
run = train(RunConfig(steps=500))
run.results["dev_loss"], run.weights["value"], run.metrics["norm_key"]
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from jaxtyping import Float

from topicscope.ground import InputError, files, load_settings, old_folders as folders, repeatable
from topicscope.measure import matrix_block_means, relation_masks
from topicscope.training import checkpoint
from topicscope.training.config import RunConfig
from topicscope.training.data import RunData
from topicscope.training.ensemble import Ensemble, Member, check_alike, resolve_device
from topicscope.training.floors import floors

TOGETHER = 8
"""Models that share a program on the CPU: enough to spread the calls, few enough to stay in the cache. On a GPU all run together."""

DIGITS = {"float32": 9, "float64": 17}
"""Digits of the figures in metrics.jsonl: as many as bring the number back exactly."""

Progress = Callable[[int, int, float], None]
"""Called with the model-steps done since the last call, their total number, and the present loss."""


@dataclass(frozen=True)
class Run:
    """A finished run."""

    config: RunConfig
    status: str  # 'done', 'stopped' (dev stopped improving) or 'diverged'
    results: dict[str, Any]
    metrics: dict[str, np.ndarray]  # a column a figure, a row a step; NaN where a step has no such figure
    weights: dict[str, np.ndarray]
    folder: Path | None = None
    snapshots: dict[int, dict[str, np.ndarray]] = field(
        default_factory=dict
    )  # weights by step, of runs in memory; others have them in files


@overload
def train(
    config: RunConfig,
    out: str | Path | None = ...,
    *,
    resume: bool = ...,
    force: bool = ...,
    with_floors: bool = ...,
    progress: Progress | None = ...,
) -> Run: ...
@overload
def train(
    config: Sequence[RunConfig],
    out: str | Path | None = ...,
    *,
    resume: bool = ...,
    force: bool = ...,
    with_floors: bool = ...,
    progress: Progress | None = ...,
) -> list[Run]: ...
def train(
    config: RunConfig | Sequence[RunConfig],
    out: str | Path | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    with_floors: bool = True,
    progress: Progress | None = None,
) -> Run | list[Run]:
    """Train one run, or many that differ in seed, learning rate or initial scale in one batched program.

    With `out`, a single run fills that folder and many runs fill out/run-000, out/run-001, ...; `resume` goes on with what is there.
    """
    single = isinstance(config, RunConfig)
    configs = [config] if isinstance(config, RunConfig) else list(config)
    check_alike(configs)
    size = len(configs) if resolve_device(configs[0].device, len(configs)).type == "cuda" else TOGETHER
    total = sum(c.total_steps for c in configs)
    done: list[Run] = []
    with repeatable(), ExitStack() as held:
        places: list[Path | None] = [None] * len(configs)
        if out is not None:
            root = Path(out)
            folders.check(root, resume=resume, force=force)
            RunData(configs[0])  # data files are read before anything is written
            folders.prepare(root)
            held.enter_context(folders.lock(root))
            folders.prepare(root, force=force)
            places = [root] if single else [root / f"run-{i:03d}" for i in range(len(configs))]
            for c, folder in zip(configs, places, strict=True):
                assert folder is not None
                folders.claim(folder, c.as_dict())
            if not single:
                files.write_json(root / folders.ENSEMBLE, {"runs": len(configs)})
        for start in range(0, len(configs), size):
            part = slice(start, start + size)
            done += _train_together(configs[part], places[part], resume, with_floors, progress, total)
    return done[0] if single else done


def _train_together(
    configs: Sequence[RunConfig],
    places: Sequence[Path | None],
    resume: bool,
    with_floors: bool,
    progress: Progress | None,
    total: int,
) -> list[Run]:
    began = time.perf_counter(), time.process_time()
    if resume and all(folder is not None and (folder / folders.RESULTS).exists() for folder in places):
        finished = [
            _finished(config, folder) for config, folder in zip(configs, places, strict=True) if folder is not None
        ]
        if progress is not None:
            progress(sum(c.total_steps for c in configs), total, float("nan"))
        return finished
    ensemble = Ensemble(configs)
    homes = [places[i] for i in ensemble.order]
    saved = None if places[0] is None else places[0] / folders.CHECKPOINT
    if resume and saved is not None and saved.exists():
        checkpoint.load(saved, ensemble)
    if saved is not None:
        for member, home in zip(ensemble.members, homes, strict=True):
            assert home is not None
            _start_folder(home, member, ensemble.step)
    if progress is not None and ensemble.step:
        progress(ensemble.step * len(configs), total, float("nan"))
    tables: list[list[Float[np.ndarray, "S M"]]] = [[] for _ in configs]
    first = ensemble.step

    def report(start: int, table: Float[np.ndarray, "S M E"], _running: int) -> None:
        for e, (member, home) in enumerate(zip(ensemble.members, homes, strict=True)):
            count = len(table) if member.end is None else min(len(table), _lines_until(member) - start)
            if count > 0:
                here = table[:count, :, e]
                tables[e].append(here)
                if home is not None:
                    files.append_lines(
                        home / folders.METRICS,
                        folders.metric_lines(
                            ensemble.tracker.names, here, start, member.dev, DIGITS[member.config.dtype]
                        ),
                    )
        if progress is not None and len(table) > 1:
            progress(len(table) * len(configs), total, float(np.nan_to_num(table[-1, 0]).mean()))

    every = configs[0].checkpoint_every
    state = {"saved": ensemble.step}

    def after_block() -> None:
        if saved is not None and every is not None and ensemble.step - state["saved"] >= every:
            checkpoint.save(saved, ensemble)
            state["saved"] = ensemble.step

    kept: list[dict[int, dict[str, np.ndarray]]] = [{} for _ in configs]

    def keep(e: int, step: int, weights: dict[str, np.ndarray]) -> None:
        home = homes[e]
        if home is None:
            kept[e][step] = weights
        else:
            (home / folders.SNAPSHOTS).mkdir(exist_ok=True)
            files.write_tensors(home / folders.SNAPSHOTS / f"step-{step:06d}.safetensors", weights)

    ensemble.keep = keep
    ensemble.run(report, after_block)
    seconds = {
        "wall_seconds": time.perf_counter() - began[0],
        "cpu_seconds": time.process_time() - began[1],
        "resumed_at": first or None,
        "models": len(configs),
    }
    result: list[Run | None] = [None] * len(configs)
    for e, (member, home) in enumerate(zip(ensemble.members, homes, strict=True)):
        metrics = _metrics(ensemble, member, tables[e], first, home)
        results = summary(ensemble, e, metrics, with_floors)
        assert member.weights is not None
        if home is not None:
            files.write_tensors(home / folders.WEIGHTS, member.weights)
            files.write_json(home / folders.ENVIRONMENT, folders.environment(device=str(ensemble.device), **seconds))
            files.write_json(home / folders.RESULTS, results)
        result[ensemble.order[e]] = Run(member.config, member.status, results, metrics, member.weights, home, kept[e])
    if saved is not None:
        saved.unlink(missing_ok=True)
    return [run for run in result if run is not None]


def _lines_until(member: Member) -> int:
    """Lines of a retired member: a diverged one has none for the step that failed, the others have one for their last weights."""
    assert member.end is not None
    return member.end if member.status == "diverged" else member.end + 1


def _start_folder(home: Path, member: Member, step: int) -> None:
    if step == 0:
        (home / folders.METRICS).unlink(missing_ok=True)
        files.write_json(home / folders.ENVIRONMENT, folders.environment())
    else:
        folders.truncate_metrics(home / folders.METRICS, step, None if member.end is None else _lines_until(member))


def _finished(config: RunConfig, folder: Path) -> Run:
    stored = folders.read_run(folder)
    if stored.config != config.as_dict():
        raise InputError(
            f"{folder} holds a finished run with another config; choose another folder, or replace it with --force"
        )
    return Run(config, stored.results["status"], stored.results, stored.metrics, stored.weights, folder)


def _metrics(
    ensemble: Ensemble, member: Member, tables: list[Float[np.ndarray, "S M"]], first: int, home: Path | None
) -> dict[str, np.ndarray]:
    if home is not None and first > 0:  # the steps before the resumption are in the file
        return folders.read_metrics(home)
    table = np.concatenate(tables) if tables else np.empty((0, len(ensemble.tracker.names)))
    steps = np.arange(len(table), dtype=float)
    metrics = {"step": steps} | {name: table[:, i] for i, name in enumerate(ensemble.tracker.names)}
    metrics["dev_loss"] = np.array([member.dev.get(int(step), np.nan) for step in steps])
    return metrics


def summary(ensemble: Ensemble, e: int, metrics: dict[str, np.ndarray], with_floors: bool) -> dict[str, Any]:
    """results.json: where the run ended, against the floors. Nothing in it depends on the machine's speed."""
    member = ensemble.members[e]
    assert member.weights is not None
    assert member.end is not None
    config = member.config
    results: dict[str, Any] = {"status": member.status, "seed": config.seed, "steps": member.end}
    losses = [as_written(config, loss) for loss in metrics["loss"][-101:] if np.isfinite(loss)][-100:]
    results["loss"] = float(np.mean(losses)) if losses else None
    if member.dev:
        results["dev_loss"], results["dev_step"] = member.dev[max(member.dev)], max(member.dev)
        results["best_dev_loss"], results["best_step"] = member.best
    results["norms"] = {name: float(np.linalg.norm(member.weights[name])) for name in ensemble.weights.trained}
    topics = config.topic_model.topic_of_word
    if ensemble.tracker.value_over_words:
        results["value"] = block_means(topics, member.weights["value"])
    if ensemble.tracker.gram:
        results["gram"] = block_means(topics, member.weights["embedding"].T @ member.weights["embedding"])
    if with_floors and config.floors and member.status != "diverged":
        results["floors"] = floors(config, ensemble.data[e])
        results["above_floor"] = {
            name: results["dev_loss"] - floor["loss"] for name, floor in results["floors"].items()
        }
    return results


def as_written(config: RunConfig, value: float) -> float:
    """A figure as metrics.jsonl has it: a resumed run reads it from there, and has to come to the same results."""
    return float(f"{value:.{DIGITS[config.dtype]}g}")


def block_means(topics: np.ndarray, matrix: np.ndarray) -> dict[str, float | None]:
    """Means over words of the same topic, of different topics, and over the diagonal; None where there is no such pair."""
    means = matrix_block_means(
        relation_masks(topics, torch.float64), torch.from_numpy(np.asarray(matrix, dtype=float)).reshape(1, -1)
    )[0].tolist()
    return {
        name: None if np.isnan(mean) else mean
        for name, mean in zip(("same", "different", "diagonal"), means, strict=True)
    }


def resume_config(folder: str | Path) -> dict[str, Any]:
    """The settings of the run in a folder, to go on with."""
    path = Path(folder) / folders.CONFIG
    if not path.is_file():
        raise InputError(
            f"--resume: {folder} holds no run (no {folders.CONFIG}); leave --resume out to start one there"
        )
    return load_settings(path)


def seeds(config: RunConfig, count: int) -> list[RunConfig]:
    """The same run with `count` seeds: config.seed, config.seed + 1, ..."""
    return [dataclasses.replace(config, seed=config.seed + i) for i in range(count)]
