"""What a pack of runs leaves behind as it trains: metrics block by block, snapshots, checkpoints, and the results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from topicscope.ground import METRICS, Folder, Progress, files, metric_lines, read_metrics, truncate_metrics
from topicscope.measure import matrix_block_means, relation_masks
from topicscope.training import checkpoint
from topicscope.training.ensemble import Ensemble, Member
from topicscope.training.floors import floors
from topicscope.training.result import CHECKPOINT, DIGITS, SNAPSHOTS, WEIGHTS, Run, Weights, course_of


class Recorder:
    """Keeps the figures of an ensemble's members, in memory and, where they have folders, in files."""

    def __init__(
        self, ensemble: Ensemble, homes: Sequence[Folder | None], progress: Progress, before: int, total: int
    ) -> None:
        """`homes` in the order of the members. `before` model-steps of `total` were done by other packs."""
        self.ensemble, self.homes, self.progress, self.before, self.total = ensemble, homes, progress, before, total
        self.began = time.perf_counter(), time.process_time()
        self.first = self.saved = ensemble.step
        self.tables: list[list[Float[np.ndarray, "S M"]]] = [[] for _ in homes]
        self.snapshots: list[dict[int, Weights]] = [{} for _ in homes]
        ensemble.keep = self.keep
        for member, home in zip(ensemble.members, homes, strict=True):
            if home is not None:
                start_metrics(home.path / METRICS, member, ensemble.step)
        self.report_progress("")

    @property
    def checkpoint(self) -> Path | None:
        return checkpoint_path([home for home in self.homes if home is not None])

    def block(self, start: int, table: Float[np.ndarray, "S M E"], _running: int) -> None:
        """The figures of a block of steps."""
        names = self.ensemble.tracker.names
        for e, (member, home) in enumerate(zip(self.ensemble.members, self.homes, strict=True)):
            count = len(table) if member.end is None else min(len(table), lines_until(member) - start)
            if count > 0:
                here = table[:count, :, e]
                self.tables[e].append(here)
                if home is not None:
                    lines = metric_lines(names, here, start, member.dev, DIGITS[member.config.dtype])
                    files.append_lines(home.path / METRICS, lines)
        losses = table[-1, 0][np.isfinite(table[-1, 0])]
        if len(table) > 1 and len(losses):
            self.report_progress(f"loss {losses.mean():.4f}")

    def report_progress(self, note: str) -> None:
        made = (self.ensemble.step - self.first) * len(self.homes)
        rate = made / max(1e-9, time.perf_counter() - self.began[0])
        speed = f"{rate:,.0f} steps/s" if made else ""
        done = self.before + self.ensemble.step * len(self.homes)
        self.progress("training", done, self.total, ", ".join(text for text in (note, speed) if text))

    def after_block(self) -> None:
        every = self.ensemble.config.checkpoint_every
        if self.checkpoint is not None and every is not None and self.ensemble.step - self.saved >= every:
            checkpoint.save(self.checkpoint, self.ensemble)
            self.saved = self.ensemble.step

    def keep(self, e: int, step: int, weights: Weights) -> None:
        """A snapshot of member e."""
        home = self.homes[e]
        if home is None:
            self.snapshots[e][step] = weights
        else:
            (home.path / SNAPSHOTS).mkdir(exist_ok=True)
            files.write_tensors(home.path / SNAPSHOTS / f"step-{step:06d}.safetensors", weights)

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
            metrics = self.metrics(e)
            results, weights = results_of(self.ensemble, e, metrics, with_floors), member.final_weights
            if home is not None:
                files.write_tensors(home.path / WEIGHTS, weights)
                home.finish(results, member.status, **measured)
            folder = None if home is None else home.path
            runs.append(Run(member.config, member.status, results, metrics, weights, folder, self.snapshots[e]))
        if self.checkpoint is not None:
            self.checkpoint.unlink(missing_ok=True)
        return runs

    def metrics(self, e: int) -> dict[str, np.ndarray]:
        home, member, names = self.homes[e], self.ensemble.members[e], self.ensemble.tracker.names
        if home is not None and self.first > 0:  # the steps before the resumption are in the file
            return read_metrics(home.path)
        table = np.concatenate(self.tables[e]) if self.tables[e] else np.empty((0, len(names)))
        steps = np.arange(len(table), dtype=float)
        metrics = {"step": steps} | {name: table[:, i] for i, name in enumerate(names)}
        metrics["dev_loss"] = np.array([member.dev.get(int(step), np.nan) for step in steps])
        return metrics


def checkpoint_path(homes: Sequence[Folder]) -> Path | None:
    """The members of a pack share one checkpoint, in the folder of the first of them by name."""
    return min(home.path for home in homes) / CHECKPOINT if homes else None


def lines_until(member: Member) -> int:
    """Lines of a retired member: none for a step that diverged, one for the last weights of the others."""
    if member.end is None:
        raise RuntimeError(f"member with seed {member.config.seed} is still running")
    return member.end if member.status == "diverged" else member.end + 1


def start_metrics(path: Path, member: Member, step: int) -> None:
    if step == 0:
        path.unlink(missing_ok=True)
    else:
        truncate_metrics(path, step, None if member.end is None else lines_until(member))


def results_of(ensemble: Ensemble, e: int, metrics: dict[str, np.ndarray], with_floors: bool) -> dict[str, Any]:
    """results.json: where the run ended, against the floors. Nothing in it depends on the machine's speed."""
    member, config = ensemble.members[e], ensemble.members[e].config
    weights = member.final_weights
    results: dict[str, Any] = {"status": member.status, "seed": config.seed, "steps": member.end}
    losses = [float(f"{loss:.{DIGITS[config.dtype]}g}") for loss in metrics["loss"][-101:] if np.isfinite(loss)]
    results["loss"] = float(np.mean(losses[-100:])) if losses else None
    if member.dev:
        results["dev_loss"], results["dev_step"] = member.dev[max(member.dev)], max(member.dev)
        results["best_dev_loss"], results["best_step"] = member.best
    results["norms"] = {name: float(np.linalg.norm(weights[name])) for name in ensemble.weights.trained}
    topics = config.topic_model.topic_of_word
    if ensemble.tracker.value_over_words:
        results["value"] = block_means(topics, weights["value"])
    if ensemble.tracker.gram:
        results["gram"] = block_means(topics, weights["embedding"].T @ weights["embedding"])
    if (course := course_of(config, member.status, metrics, results["loss"])) is not None:
        results["course"] = course.as_dict() | {"sentence": course.sentence}
    if with_floors and config.floors and member.status != "diverged":
        results["floors"] = floors(config, ensemble.data[e])
        results["above_floor"] = {
            name: results["dev_loss"] - floor["loss"] for name, floor in results["floors"].items()
        }
    return results


def block_means(topics: np.ndarray, matrix: np.ndarray) -> dict[str, float | None]:
    """Means over pairs of one topic, of different topics, and over the diagonal; None where there is no such pair."""
    flat = torch.from_numpy(np.asarray(matrix, dtype=float)).reshape(1, -1)
    means = matrix_block_means(relation_masks(topics, torch.float64), flat)[0].tolist()
    names = ("same", "different", "diagonal")
    return {name: None if np.isnan(mean) else mean for name, mean in zip(names, means, strict=True)}
