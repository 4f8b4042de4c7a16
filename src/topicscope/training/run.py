"""Training from Python: one call, one or many configs, in memory or into folders.

A pack of runs leaves metrics block by block, snapshots, checkpoints and results. A checkpoint holds everything that the
rest of a run depends on. Random streams are named: their state is the step.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.ground import (
    FORCE_NEEDS_OUT,
    RESUME_NEEDS_OUT,
    Folder,
    Interrupted,
    MetricsFile,
    Progress,
    afford,
    check_gpu,
    check_tensors,
    compiling_announced,
    files,
    fingerprint,
    folders,
    metric_lines,
    parse_json,
    read_checkpoint,
    read_metrics,
    refuse,
    refuse_if,
    repeatable,
    watched,
)
from topicscope.laws import TrainingOptimum, contributions, optimum_seconds, topic_relations, training_optimum
from topicscope.measure import matrix_block_means, relation_masks
from topicscope.theory import relative_distance
from topicscope.training.config import TOGETHER, RunConfig, cost_of, settings_that_cost
from topicscope.training.data import RunData
from topicscope.training.ensemble import RELATIONS, Ensemble, Member, check_alike, resolve_device
from topicscope.training.result import (
    CHECKPOINT,
    DIGITS,
    PAUSE,
    SHOWN,
    SNAPSHOTS,
    STOP,
    TRAIN,
    WEIGHTS,
    Run,
    Runs,
    Weights,
    read_one,
    shown_beside,
    stored_snapshots,
)


@overload
def train(
    config: RunConfig,
    out: str | Path | None = ...,
    *,
    resume: bool = ...,
    force: bool = ...,
    with_floors: bool = ...,
    progress: Progress | None = ...,
    yes: bool = ...,
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
    yes: bool = ...,
) -> Runs: ...
def train(
    config: RunConfig | Sequence[RunConfig],
    out: str | Path | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    with_floors: bool = True,
    progress: Progress | None = None,
    yes: bool = False,
) -> Run | Runs:
    """Train one run, or several runs that differ only in seed, learning rate or initial scale, in one program.

    Args:
        config: One config, or a list of them.
        out: Folder for the results; several runs fill out/run-000, out/run-001, ... None: nothing is written.
        resume: Continue the run in that folder.
        force: Replace what topicscope wrote there.
        with_floors: Compute the floors of the dev loss.
        progress: Called as progress(phase, done, total, note); None: a bar in terminals and notebooks.
        yes: Train even if the estimate does not fit into memory or onto the disk.

    Returns:
        A `Run` for one config, `Runs` (a list) for several.

    Raises:
        InputError: The configs differ in more than that, the folder is in use, or the run does not fit on this machine.

    Example:
        >>> from topicscope import RunConfig, train
        >>> small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> run = train(RunConfig.of(small, steps=30))
        >>> run.status, round(run.results["dev_loss"], 2), run.weights["value"].shape, len(run.metrics["norm_key"])
        ('done', 1.62, (7, 7), 31)
        >>> len(train([RunConfig.of(small, steps=30, seed=seed) for seed in (0, 1)]))
        2
    """
    single = isinstance(config, RunConfig)
    configs = [config] if isinstance(config, RunConfig) else list(config)
    check_alike(configs)
    if (whole := configs[0].with_world()) is not configs[0]:
        configs = [replace(config, topic_model=whole.topic_model, documents=whole.documents) for config in configs]
    refuse((force and out is None, FORCE_NEEDS_OUT), (resume and out is None, RESUME_NEEDS_OUT))
    gpu = resolve_device(configs).type == "cuda"
    cost = cost_of(configs, floors=with_floors, gpu=gpu)
    if out is not None:
        folders.check_folder(out, TRAIN, resume=resume, force=force)
    if gpu:
        check_gpu(cost, lambda: settings_that_cost(configs, gpu=True), yes=yes)
    # a run that goes on has most of its files already
    afford(cost, lambda: settings_that_cost(configs, gpu=gpu), None if resume else out, yes=yes)
    size = len(configs) if gpu else TOGETHER
    with repeatable(), watched(progress) as shown, compiling_announced(shown), ExitStack() as held:
        data = RunData(configs[0])
        if out is not None:
            data.read_files()  # before anything is written
        settings = [] if out is None else [c.as_dict() for c in configs]
        place = folders.open_runs(out, TRAIN, settings, single=single, resume=resume, force=force)
        root, homes = held.enter_context(place)
        for home in homes:  # at once: from now on it counts as running, and somebody may ask
            forget_wishes(home.path)
        done: list[Run] = []
        for start in range(0, len(configs), size):
            part = slice(start, start + size)
            done += _train_together(configs[part], homes[part], data, with_floors, shown, start, len(configs))
        if root is not None and not single:
            root.finish([run.results for run in done])
        return done[0] if single else Runs(done, None if root is None else root.path)


def _train_together(
    configs: Sequence[RunConfig],
    homes: Sequence[Folder],
    data: RunData,
    with_floors: bool,
    progress: Progress,
    before: int,
    models: int,
) -> list[Run]:
    if homes and all(home.finished for home in homes):
        for home in homes:  # killed after its last file was whole, a run has left its checkpoint
            home.file(CHECKPOINT).unlink(missing_ok=True)
        return [read_one(home.path) for home in homes]
    ensemble = Ensemble(configs, data)
    steps = ensemble.config.total_steps
    ordered = [homes[i] for i in ensemble.order] if homes else []
    recorder = Recorder(ensemble, ordered, progress, before * steps, models * steps)
    try:
        ensemble.run(recorder.block)
    except torch.OutOfMemoryError as error:  # of a GPU: as of the machine, nothing is wrong with the run
        raise MemoryError(str(error).split(". ", 1)[0]) from None
    runs = dict(zip(ensemble.order, recorder.finish(with_floors), strict=True))
    return [runs[i] for i in range(len(configs))]


ANEW = "start the run again with --force"


class Recorder:
    """Keeps the figures of an ensemble's members, in memory and, where they have folders, in files."""

    def __init__(
        self, ensemble: Ensemble, homes: Sequence[Folder], progress: Progress, before: int, total: int
    ) -> None:
        """`homes` in the order of the members, if any. `before` model-steps of `total` were done by other packs."""
        self.ensemble, self.homes, self.progress, self.before, self.total = ensemble, homes, progress, before, total
        # the members of a pack share one checkpoint, in the folder of the first of them by name
        self.checkpoint = min(home.path for home in homes) / CHECKPOINT if homes else None
        self.files = [MetricsFile(home.path) for home in homes]
        digests: list[str] = []
        if self.checkpoint is not None and self.checkpoint.exists():
            digests = load_checkpoint(self.checkpoint, ensemble)
        self.began = time.perf_counter(), time.process_time()
        self.first = self.saved = ensemble.step
        self.tables: list[list[Float[np.ndarray, "S M"]]] = [[] for _ in ensemble.members]
        self.snapshots: list[dict[int, Weights]] = [{} for _ in ensemble.members]
        ensemble.keep = self.keep
        for e, file in enumerate(self.files):
            if digests:
                check_snapshots(homes[e].path, ensemble.members[e], ensemble.step)
                file.cut(min(ensemble.step, ensemble.members[e].rows), digests[e])
            else:
                file.start()
        self.report_progress("")

    def asked_to(self, wish: str) -> bool:
        return self.checkpoint is not None and self.checkpoint.with_name(wish).exists()

    def block(self, start: int, table: Float[np.ndarray, "S M E"]) -> None:
        """The figures of a block of steps; then a checkpoint, where it is time for one."""
        ensemble, config, names = self.ensemble, self.ensemble.config, tuple(self.ensemble.tracker.index)
        for e, member in enumerate(ensemble.members):
            rows = table[: max(0, member.rows - start), :, e]
            self.tables[e].append(rows)
            if self.files:  # the file of a run that diverged at once is there too, and empty
                self.files[e].append(metric_lines(names, rows, start, member.dev, DIGITS[config.dtype]))
        losses = table[-1, 0][np.isfinite(table[-1, 0])]
        if len(table) > 1 and len(losses):
            self.report_progress(f"loss {losses.mean():.4f}")
        ensemble.stopping = self.asked_to(STOP)
        paused = self.asked_to(PAUSE) and not ensemble.stopping
        due = paused or ensemble.step - self.saved >= (config.checkpoint_every or math.inf)
        if self.checkpoint is not None and due and ensemble.step < config.total_steps and ensemble.running():
            for file in self.files:
                file.sync()
            save_checkpoint(self.checkpoint, ensemble, [file.digest for file in self.files])
            self.saved = ensemble.step
            if paused:
                forget_wishes(self.checkpoint.parent)
                raise Interrupted(f"paused at step {ensemble.step:,}; 'train --resume' continues from there")

    def report_progress(self, note: str) -> None:
        models = len(self.ensemble.members)
        if made := (self.ensemble.step - self.first) * models:
            speed = f"{made / max(1e-9, time.perf_counter() - self.began[0]):,.0f} steps/s"
            note = f"{note}, {speed}" if note else speed
        self.progress("training", self.before + self.ensemble.step * models, self.total, note)

    def keep(self, e: int, step: int, weights: Weights) -> None:
        if self.homes:
            path = self.homes[e].path / SNAPSHOTS / f"step-{step:06d}.safetensors"
            path.parent.mkdir(exist_ok=True)
            files.write_tensors(path, weights, {"snapshot": path.stem})
        else:
            self.snapshots[e][step] = weights

    def finish(self, with_floors: bool) -> list[Run]:
        """Results of all members, in their order; their folders are whole then."""
        measured = {
            "device": str(self.ensemble.device),
            "wall_seconds": time.perf_counter() - self.began[0],
            "cpu_seconds": time.process_time() - self.began[1],
            "resumed_at": self.first or None,
            "models": len(self.ensemble.members),
        }
        runs = []
        for e, member in enumerate(self.ensemble.members):
            if with_floors and member.config.floors:
                self.progress("floors", e, len(self.ensemble.members))
            runs.append(self.result(e, with_floors))
            if self.homes:
                files.write_tensors(self.homes[e].path / WEIGHTS, member.weights)
                if shown := runs[e].beside:
                    files.write_tensors(self.homes[e].path / SHOWN, shown)
                self.homes[e].finish(runs[e].results, member.status, **measured)
        if self.checkpoint is not None:
            self.checkpoint.unlink(missing_ok=True)
            forget_wishes(self.checkpoint.parent)
        return runs

    @cached_property
    def optimum(self) -> TrainingOptimum:
        if optimum_seconds(self.ensemble.config) > 1:
            self.progress("W*", 0, 1)
        return training_optimum(self.ensemble.config)

    def metrics(self, e: int) -> dict[str, np.ndarray]:
        if self.homes and self.first > 0:  # the steps before the resumption are in the file
            return read_metrics(self.homes[e].path)
        names, dev = self.ensemble.tracker.index, self.ensemble.members[e].dev
        table = np.concatenate([np.empty((0, len(names))), *self.tables[e]])
        return {
            "step": np.arange(len(table), dtype=float),
            **dict(zip(names, table.T, strict=True)),
            "dev_loss": np.array([dev.get(step, np.nan) for step in range(len(table))]),
        }

    def result(self, e: int, with_floors: bool) -> Run:
        """Where the run ended, against the floors. Nothing in its results depends on the machine's speed."""
        member, ensemble = self.ensemble.members[e], self.ensemble
        config, weights, metrics = member.config, member.weights, self.metrics(e)
        results: dict[str, Any] = {"status": member.status, "seed": config.seed, "steps": member.end}
        folder = self.homes[e].path if self.homes else None
        run = Run(config, member.status, results, metrics, weights, folder, self.snapshots[e])
        losses = [float(f"{loss:.{DIGITS[config.dtype]}g}") for loss in metrics["loss"][-101:] if np.isfinite(loss)]
        results["loss"] = float(np.mean(losses[-100:])) if losses else None
        if member.dev:
            results["dev_loss"], results["dev_step"] = member.dev[max(member.dev)], max(member.dev)
            results["best_dev_loss"], results["best_step"] = member.best
        results["norms"] = {
            name: norm if math.isfinite(norm := float(np.linalg.norm(weights[name]))) else None
            for name in ensemble.weights.trained
        }
        for name in ensemble.tracker.matrices:
            matrix = run.reading.tables[name].matrix
            results[name] = block_means(config.topic_model.same_topic, matrix)
            if relations := topic_relations(config, matrix):
                results.setdefault("relations", {})[name] = relations
        if run.course is not None:
            results["course"] = run.course.as_dict() | {"sentence": run.course.sentence}
        best = TrainingOptimum() if member.status == "diverged" else self.optimum
        if best.why_not:
            results["no_optimum"] = best.why_not
        if best.matrix is not None:
            whole = contributions(config, weights)
            results["distance_to_optimum"] = relative_distance(whole, best.matrix)
            results["optimum_loss"] = best.loss
            if "value" in results.get("relations", {}):  # W* less the run's bias is what W_V should be
                results["relations"]["optimum"] = topic_relations(config, best.matrix - (whole - weights["value"]))
        if with_floors and config.floors and member.status != "diverged":
            task = ensemble.data[e].task
            results["floors"] = floors = task.floors()
            if task.no_floor:
                results["no_floor"] = task.no_floor
            results |= task.above_floors(weights, results["dev_loss"], floors)
        return replace(run, beside=shown_beside(run, ensemble.data[e], best))


def forget_wishes(folder: Path) -> None:
    """To pause or to stop: they were asked of the run before, or are granted."""
    for wish in (PAUSE, STOP):
        (folder / wish).unlink(missing_ok=True)


def check_snapshots(folder: Path, member: Member, step: int) -> None:
    """Raise InputError unless the snapshots before a checkpoint are there: they are not made again."""
    end = step if member.end is None else min(step, member.end)
    missing = {kept for kept in member.config.snapshot_steps if kept < end} - set(stored_snapshots(folder, ANEW))
    refuse_if(missing, f"{folder / SNAPSHOTS} lacks the snapshot of step {min(missing, default=0)}; {ANEW}")


def block_means(same: np.ndarray, matrix: np.ndarray) -> dict[str, float | None]:
    """Means over pairs of one topic, of different topics, and over the diagonal; None where there is no such pair."""
    flat = torch.from_numpy(np.asarray(matrix, dtype=float)).reshape(1, -1)
    means = matrix_block_means(relation_masks(same, torch.float64), flat)[0].tolist()
    return {name: mean if math.isfinite(mean) else None for name, mean in zip(RELATIONS, means, strict=True)}


def ensemble_fingerprint(ensemble: Ensemble) -> str:
    """What has to be the same for a checkpoint to be of use: the configs, and which of them run together."""
    return fingerprint([member.config.as_dict() for member in ensemble.members])


def state_of(ensemble: Ensemble) -> dict[str, Tensor]:
    """The tensors that the rest of the run depends on."""
    return ensemble.state() | {
        **{f"last.{i}": block for i, block in enumerate(ensemble.last)},
        "history": ensemble.tracker.history,
        "past_norms": torch.from_numpy(ensemble.tracker.past_norms),
        "first_loss": torch.from_numpy(ensemble.first_loss),
    }


def save_checkpoint(path: Path, ensemble: Ensemble, metrics: Sequence[str]) -> None:
    """`metrics`: the digests of what the members have written so far."""
    tensors = {name: value.numpy(force=True) for name, value in state_of(ensemble).items()}
    tensors |= {f"member.{e}.{name}": part for e, m in enumerate(ensemble.members) for name, part in m.weights.items()}
    members = [
        {"dev": list(m.dev.items()), "status": m.status, "end": m.end, "metrics": digest}
        for m, digest in zip(ensemble.members, metrics, strict=True)
    ]
    note = {"step": str(ensemble.step), "members": json.dumps(members), "fingerprint": ensemble_fingerprint(ensemble)}
    files.write_tensors(path, tensors, note)


def load_checkpoint(path: Path, ensemble: Ensemble) -> list[str]:
    """Bring a fresh ensemble to where the checkpoint stands. Returns the digests of the members' metrics."""
    with read_checkpoint(path, ensemble_fingerprint(ensemble), ANEW) as (tensors, note):
        members, state = parse_json(note["members"], "members"), state_of(ensemble)
        ended = {e: ensemble.snapshot(e) for e, stored in enumerate(members) if stored["status"] != "running"}
        expected = {name: value.numpy(force=True) for name, value in state.items()}
        expected |= {f"member.{e}.{name}": part for e, parts in ended.items() for name, part in parts.items()}
        check_tensors(tensors, expected, path, ANEW)
        for name, value in state.items():
            value.copy_(torch.from_numpy(tensors[name]))
        ensemble.step = int(note["step"])
        for e, (member, stored) in enumerate(zip(ensemble.members, members, strict=True)):
            member.dev = {int(step): float(loss) for step, loss in stored["dev"]}
            member.status, member.end = stored["status"], stored["end"]
            member.weights = {name: tensors[f"member.{e}.{name}"] for name in ended.get(e, ())}
        return [stored["metrics"] for stored in members]
