"""What a pack of runs leaves behind as it trains: metrics block by block, snapshots, checkpoints, and the results.

A checkpoint holds everything that the rest of a run depends on. Random streams are named: their state is the step.
"""

import json
import math
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from topicscope.ground import (
    Folder,
    InputError,
    Interrupted,
    MetricsFile,
    Progress,
    check_tensors,
    files,
    fingerprint,
    metric_lines,
    parse_json,
    read_checkpoint,
    read_metrics,
)
from topicscope.laws import TrainingOptimum, contributions, optimum_seconds, topic_relations, training_optimum
from topicscope.measure import matrix_block_means, relation_masks
from topicscope.theory import relative_distance
from topicscope.training.ensemble import Ensemble, Member
from topicscope.training.result import (
    CHECKPOINT,
    DIGITS,
    PAUSE,
    SNAPSHOTS,
    STOP,
    WEIGHTS,
    Run,
    Weights,
    stored_snapshots,
)
from topicscope.training.track import RELATIONS

ANEW = "start the run again with --force"


class Recorder:
    """Keeps the figures of an ensemble's members, in memory and, where they have folders, in files."""

    def __init__(
        self, ensemble: Ensemble, homes: Sequence[Folder | None], progress: Progress, before: int, total: int
    ) -> None:
        """`homes` in the order of the members. `before` model-steps of `total` were done by other packs."""
        self.ensemble, self.homes, self.progress, self.before, self.total = ensemble, homes, progress, before, total
        paths = [home.path for home in homes if home is not None]
        # the members of a pack share one checkpoint, in the folder of the first of them by name
        self.checkpoint = min(paths) / CHECKPOINT if paths else None
        self.metrics_files = [None if home is None else MetricsFile(home.path) for home in homes]
        digests = [""] * len(homes)
        if self.checkpoint is not None and self.checkpoint.exists():
            digests = load_checkpoint(self.checkpoint, ensemble)
        self.began = time.perf_counter(), time.process_time()
        self.first = self.saved = ensemble.step
        self.tables: list[list[Float[np.ndarray, "S M"]]] = [[] for _ in homes]
        self.snapshots: list[dict[int, Weights]] = [{} for _ in homes]
        ensemble.keep = self.keep
        for member, file, digest in zip(ensemble.members, self.metrics_files, digests, strict=True):
            if file is not None and ensemble.step > 0:
                check_snapshots(file.path.parent, member, ensemble.step)
                file.cut(ensemble.step if member.rows is None else min(ensemble.step, member.rows), digest)
            elif file is not None:
                file.start()
        self.report_progress("")

    def asked_to(self, wish: str) -> bool:
        """Whether a file in the folder asks the run to end at this block."""
        return self.checkpoint is not None and self.checkpoint.with_name(wish).exists()

    def block(self, start: int, table: Float[np.ndarray, "S M E"]) -> None:
        """The figures of a block of steps; then a checkpoint, where it is time for one."""
        ensemble, config, names = self.ensemble, self.ensemble.config, tuple(self.ensemble.tracker.index)
        for e, (member, file) in enumerate(zip(ensemble.members, self.metrics_files, strict=True)):
            here = table[: None if member.rows is None else max(0, member.rows - start), :, e]
            self.tables[e].append(here)
            if file is not None:  # the file of a run that diverged at once is there too, and empty
                file.append(metric_lines(names, here, start, member.dev, DIGITS[config.dtype]))
        losses = table[-1, 0][np.isfinite(table[-1, 0])]
        if len(table) > 1 and len(losses):
            self.report_progress(f"loss {losses.mean():.4f}")
        ensemble.stopping = self.asked_to(STOP)
        paused = self.asked_to(PAUSE) and not ensemble.stopping
        due = paused or ensemble.step - self.saved >= (config.checkpoint_every or math.inf)
        if self.checkpoint is not None and due and ensemble.step < config.total_steps and ensemble.running():
            written = [file for file in self.metrics_files if file is not None]
            for file in written:
                file.sync()
            save_checkpoint(self.checkpoint, ensemble, [file.digest for file in written])
            self.saved = ensemble.step
            if paused:
                forget_wishes(self.checkpoint.parent)
                raise Interrupted(f"paused at step {ensemble.step:,}; 'train --resume' continues from there")

    def report_progress(self, note: str) -> None:
        made = (self.ensemble.step - self.first) * len(self.homes)
        speed = f"{made / max(1e-9, time.perf_counter() - self.began[0]):,.0f} steps/s" if made else ""
        done = self.before + self.ensemble.step * len(self.homes)
        self.progress("training", done, self.total, ", ".join(text for text in (note, speed) if text))

    def keep(self, e: int, step: int, weights: Weights) -> None:
        """A snapshot of member e."""
        home = self.homes[e]
        if home is None:
            self.snapshots[e][step] = weights
        else:
            (home.path / SNAPSHOTS).mkdir(exist_ok=True)
            name = f"step-{step:06d}"
            files.write_tensors(home.path / SNAPSHOTS / f"{name}.safetensors", weights, {"snapshot": name})

    def finish(self, with_floors: bool) -> list[Run]:
        """Results of all members, in their order; their folders are whole then."""
        measured = {
            "device": str(self.ensemble.device),
            "wall_seconds": time.perf_counter() - self.began[0],
            "cpu_seconds": time.process_time() - self.began[1],
            "resumed_at": self.first or None,
            "models": len(self.homes),
        }
        runs = []
        for e, (member, home) in enumerate(zip(self.ensemble.members, self.homes, strict=True)):
            if with_floors and member.config.floors:
                self.progress("floors", e, len(self.homes))
            runs.append(self.result(e, with_floors))
            if home is not None:
                files.write_tensors(home.path / WEIGHTS, member.weights)
                home.finish(runs[e].results, member.status, **measured)
        if self.checkpoint is not None:
            self.checkpoint.unlink(missing_ok=True)
            forget_wishes(self.checkpoint.parent)
        return runs

    @cached_property
    def optimum(self) -> TrainingOptimum:
        """W* of the world that all members share, or why it is not given."""
        if optimum_seconds(self.ensemble.config) > 1:
            self.progress("W*", 0, 1)
        return training_optimum(self.ensemble.config)

    def metrics(self, e: int) -> dict[str, np.ndarray]:
        home, member, names = self.homes[e], self.ensemble.members[e], self.ensemble.tracker.index
        if home is not None and self.first > 0:  # the steps before the resumption are in the file
            return read_metrics(home.path)
        table = np.concatenate([np.empty((0, len(names))), *self.tables[e]])
        dev = np.array([member.dev.get(step, np.nan) for step in range(len(table))])
        return {"step": np.arange(len(table), dtype=float), **dict(zip(names, table.T, strict=True)), "dev_loss": dev}

    def result(self, e: int, with_floors: bool) -> Run:
        """Where the run ended, against the floors. Nothing in its results depends on the machine's speed."""
        member, home, ensemble = self.ensemble.members[e], self.homes[e], self.ensemble
        config, weights, metrics = member.config, member.weights, self.metrics(e)
        results: dict[str, Any] = {"status": member.status, "seed": config.seed, "steps": member.end}
        folder = None if home is None else home.path
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
        return run


def forget_wishes(folder: Path) -> None:
    """To pause or to stop: they were asked of the run before, or are granted."""
    for wish in (PAUSE, STOP):
        (folder / wish).unlink(missing_ok=True)


def check_snapshots(folder: Path, member: Member, step: int) -> None:
    """Raise InputError unless the snapshots before a checkpoint are there: they are not made again."""
    stored, end = stored_snapshots(folder, ANEW), step if member.end is None else min(step, member.end)
    missing = [kept for kept in member.config.snapshot_steps if kept < end and kept not in stored]
    if missing:
        raise InputError(f"{folder / SNAPSHOTS} lacks the snapshot of step {missing[0]}; {ANEW}")


def block_means(same: np.ndarray, matrix: np.ndarray) -> dict[str, float | None]:
    """Means over pairs of one topic, of different topics, and over the diagonal; None where there is no such pair."""
    flat = torch.from_numpy(np.asarray(matrix, dtype=float)).reshape(1, -1)
    means = matrix_block_means(relation_masks(same, torch.float64), flat)[0].tolist()
    return {name: mean if math.isfinite(mean) else None for name, mean in zip(RELATIONS, means, strict=True)}


def ensemble_fingerprint(ensemble: Ensemble) -> str:
    """What has to be the same for a checkpoint to be of use: the configs, and which of them run together."""
    return fingerprint([member.config.as_dict() for member in ensemble.members])


def save_checkpoint(path: Path, ensemble: Ensemble, metrics: Sequence[str]) -> None:
    """`metrics`: the digests of what the members have written so far."""
    tensors = {
        **{f"block.{i}": block.cpu().numpy() for i, block in enumerate(ensemble.weights.blocks)},
        **{f"last.{i}": block.cpu().numpy() for i, block in enumerate(ensemble.last or [])},
        **{f"optimiser.{name}": value.cpu().numpy() for name, value in ensemble.optimiser.state().items()},
        **{f"member.{e}.{name}": part for e, m in enumerate(ensemble.members) for name, part in m.weights.items()},
        "history": ensemble.tracker.history.cpu().numpy(),
        "past_norms": ensemble.tracker.past_norms,
        "first_loss": ensemble.first_loss,
    }
    members = [
        {"dev": list(m.dev.items()), "status": m.status, "end": m.end, "metrics": digest}
        for m, digest in zip(ensemble.members, metrics, strict=True)
    ]
    note = {"step": str(ensemble.step), "members": json.dumps(members), "fingerprint": ensemble_fingerprint(ensemble)}
    files.write_tensors(path, tensors, note)


def with_prefix(prefix: str, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def load_checkpoint(path: Path, ensemble: Ensemble) -> list[str]:
    """Bring a fresh ensemble to where the checkpoint stands. Returns the digests of the members' metrics."""
    with read_checkpoint(path, ensemble_fingerprint(ensemble), ANEW) as (tensors, note):
        members, blocks = (
            parse_json(note["members"], "members"),
            [block.numpy(force=True) for block in ensemble.weights.blocks],
        )
        optimiser, last = with_prefix("optimiser.", tensors), with_prefix("last.", tensors)
        expected = {
            **{f"block.{i}": block for i, block in enumerate(blocks)},
            **{f"last.{i}": block for i, block in enumerate(blocks) if last},
            **{f"optimiser.{name}": value.numpy(force=True) for name, value in ensemble.optimiser.state().items()},
            **{
                f"member.{e}.{name}": part
                for e, stored in enumerate(members)
                for name, part in (ensemble.snapshot(e) if stored["status"] != "running" else {}).items()
            },
            "history": ensemble.tracker.history.numpy(force=True),
            "past_norms": ensemble.tracker.past_norms,
            "first_loss": np.empty(len(members), tensors["first_loss"].dtype),
        }
        check_tensors(tensors, expected, path, ANEW)
        ensemble.step = int(note["step"])
        for i, block in enumerate(ensemble.weights.blocks):
            block.copy_(torch.from_numpy(tensors[f"block.{i}"]))
        ensemble.last = [torch.from_numpy(last[str(i)]).to(ensemble.device) for i in range(len(last))] or None
        ensemble.optimiser.load({name: torch.from_numpy(value) for name, value in optimiser.items()})
        ensemble.tracker.history.copy_(torch.from_numpy(tensors["history"]))
        ensemble.tracker.past_norms, ensemble.first_loss = tensors["past_norms"], tensors["first_loss"]
        for e, (member, stored) in enumerate(zip(ensemble.members, members, strict=True)):
            member.dev = {int(step): float(loss) for step, loss in stored["dev"]}
            member.status, member.end = stored["status"], stored["end"]
            member.weights = with_prefix(f"member.{e}.", tensors)
        return [stored["metrics"] for stored in members]
