"""A run: finished, as `train` returns it and `read` reads it from its folder; or still going on.

watched = WatchedRun("runs/live")
watched.update()                     # reads what was written since; True where there is something new
run = watched.run()                  # curves so far, and the weights of the last snapshot
"""

from __future__ import annotations

import json
import math
import os
import re
import statistics
from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from topicscope.ground import (
    METRICS,
    InputError,
    Kind,
    Result,
    SeveralRuns,
    check_tensors,
    configs_to_resume,
    flat,
    folders,
    load_settings,
    read_about,
    read_metrics,
    read_runs,
    read_tensors,
    refuse_if,
)
from topicscope.laws import TrainingOptimum, contributions, training_optimum
from topicscope.measure import Course, course, extremes
from topicscope.model import Reading
from topicscope.training.config import RunConfig
from topicscope.training.data import RunData
from topicscope.world import Documents

if TYPE_CHECKING:
    import pyarrow

WEIGHTS, CHECKPOINT, SNAPSHOTS = "weights.safetensors", "checkpoint.safetensors", "snapshots"
SHOWN = "shown.safetensors"  # what figures show beside weights and results
PAUSE, STOP = "pause", "stop"  # files that ask the run to end: with a checkpoint, or with its results so far
TRAIN = Kind(
    "train", 4, (METRICS, WEIGHTS, SHOWN, CHECKPOINT, SNAPSHOTS, PAUSE, STOP), (METRICS, WEIGHTS), resumes="asked"
)
ADVICE = "train again (--force)"
DOCUMENTS = 2  # dev documents whose attention is shown

DIGITS = {"float32": 9, "float64": 17}  # of the figures in metrics.jsonl: as many as bring the number back exactly

Weights = dict[str, np.ndarray]

# what a table of runs shows, and where results.json has it (its dotted name)
FACTS = {
    "status": "status",
    "steps": "steps",
    "training loss (last 100 steps)": "loss",
    "dev loss": "dev_loss",
    "Bayes-optimal loss": "floors.bayes.loss",
    "standard error of the Bayes loss": "floors.bayes.standard_error",
    "numerical error of the Bayes loss": "floors.bayes.numerical_error",
    "no Bayes-optimal loss": "no_floor",
    "dev loss on the same documents": "floor_dev_loss",
    "dev loss above Bayes": "above_floor.bayes",
    "standard error of the gap": "above_floor_error.bayes",
    "Bayes-optimal loss from topics alone": "floors.bayes_topics.loss",
    "dev loss above Bayes from topics alone": "above_floor.bayes_topics",
    "best uniform-attention fit of dev": "floors.least_squares.loss",
    "dev loss above that fit": "above_floor.least_squares",
    "exact loss of W* (all documents)": "optimum_loss",
    "W_V, same topic": "value.same",
    "W_V, different topic": "value.different",
    "W_V, one topic in common": "relations.value.shared.1",
    "W_V, two topics in common": "relations.value.shared.2",
    "W_V, topics of one group": "relations.value.partners.partner",
    "W_V, no group in common": "relations.value.partners.other",
    "W_V, diagonal": "value.diagonal",
    "W_E'W_E, same topic": "gram.same",
    "W_E'W_E, different topic": "gram.different",
    "W_E'W_E, diagonal": "gram.diagonal",
    "W_V, distance to W* (relative)": "distance_to_optimum",
    "phase": "course.phase",
    "half of value's rise at step": "course.t50_value",
    "half of key's rise at step": "course.t50_key",
    "half of query's rise at step": "course.t50_query",
    "separation (key and query over value)": "course.separation",
}


@dataclass(frozen=True, repr=False)
class Run(Result):
    """A finished run: what `train` returns, and what `read` reads from its folder.

    Attributes:
        config: The config that was run.
        status: 'done', 'stopped' (dev no longer improved, or it was asked to) or 'diverged'.
        results: The content of results.json: losses, norms, floors, the course of the run.
        metrics: One column per measure, with one number per step (and one for the start); NaN where there is none.
        weights: Trained parts by name, after the last step.
        folder: Where it was written, or None.
        in_memory: Snapshots by step, of a run without a folder.
        beside: Of a run without a folder, what figures show beside weights and results.
        shown_step: The step of `weights`, where they are a snapshot; None: the last step.

    Example:
        >>> from topicscope import RunConfig, train
        >>> small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> run = train(RunConfig.of(small, steps=30, snapshots=[10]))
        >>> run, sorted(run.snapshots), run.table().num_rows
        (Run(seed 0, done, 30 steps), [10], 31)
        >>> float(run.metrics["norm_value"][-1]) > float(run.metrics["norm_value"][0])
        True
    """

    kind: ClassVar[str] = TRAIN.name
    config: RunConfig
    status: str
    results: dict[str, Any]
    metrics: dict[str, np.ndarray]
    weights: Weights
    folder: Path | None = None
    in_memory: dict[int, Weights] = field(default_factory=dict)
    beside: dict[str, np.ndarray] | None = None
    shown_step: int | None = None

    @cached_property
    def snapshots(self) -> dict[int, Weights]:
        return self.in_memory if self.folder is None else stored_snapshots(self.folder, ADVICE)

    @cached_property
    def shown(self) -> dict[str, np.ndarray]:
        """'document.0' and on: words of some dev documents; 'optimum': W* as W_V should be, if words have names."""
        if self.beside is not None:
            return self.beside
        if self.folder is not None and (self.folder / SHOWN).exists():
            return read_tensors(self.folder / SHOWN, ADVICE)[0]
        return shown_beside(self, RunData(self.config), training_optimum(self.config))  # of an earlier version

    @cached_property
    def reading(self) -> Reading:
        return self.config.model.read(self.weights)

    @cached_property
    def course(self) -> Course | None:
        """Which phase the run took; None where key, query and value are not all trained.

        From the figures as metrics.jsonl has them: a resumed run reads them from there, and ends in the same results.
        """
        norms, digits = ("norm_key", "norm_query", "norm_value"), DIGITS[self.config.dtype]
        if not set(norms) <= set(self.metrics):
            return None
        written = {name: np.array([float(f"{x:.{digits}g}") for x in self.metrics[name]]) for name in (*norms, "loss")}
        written |= {"step": self.metrics["step"]} if "step" in self.metrics else {}
        return course(self.status, written["loss"], self.results["loss"], [written])

    def facts(self) -> dict[str, Any]:
        values = flat(self.results)
        facts = {label: values[name] for label, name in FACTS.items() if values.get(name) is not None}
        if self.status == "diverged" and "dev loss" in facts:  # no loss of the run's end
            before = f"dev loss at step {values['dev_step']:,}, before it diverged"
            return {before if label == "dev loss" else label: value for label, value in facts.items()}
        return facts

    def summary(self) -> list[str]:
        if self.status == "diverged":
            return [
                f"Seed {self.config.seed} diverged at step {self.results['steps']}: loss or weights are no longer "
                "finite. Its figures up to there are kept; try a smaller learning rate."
            ]
        results = self.results
        above, distance = results.get("above_floor", {}).get("bayes"), results.get("distance_to_optimum")
        loss = f"Seed {self.config.seed}: dev loss {results['dev_loss']:.5g} after {results['steps']:,} steps"
        gap = "" if above is None else f", {above:.4g} above the best possible (Bayes){self._floor_errors()}"
        unknown = f" No best possible loss: {results['no_floor']}." if "no_floor" in results else ""
        far = "" if distance is None else f"Its value matrix is at relative distance {distance:.3g} from W*"
        return [
            f"{loss}{gap}.{unknown}",
            *([f"{far}, the exact optimum under uniform attention."] if far else []),
            *([f"No distance to W*: {results['no_optimum']}."] if "no_optimum" in results else []),
            *([] if self.course is None else [self.course.sentence]),
            *self._predicted(),
        ]

    def _floor_errors(self) -> str:
        """On which documents a run was compared with the Bayes floor, and how far off the difference may be."""
        floor = self.results.get("floors", {}).get("bayes", {})
        errors = {
            "standard error": self.results.get("above_floor_error", {}).get("bayes"),
            "numerical error of the estimated floor": floor.get("numerical_error"),
        }
        some = "" if "floor_dev_loss" not in self.results else f" on the first {floor['documents']:,} dev documents"
        said = ", ".join(f"{name} {error:.2g}" for name, error in errors.items() if error is not None)
        return some + (f"; {said}" if said else "")

    def _predicted(self) -> list[str]:
        from topicscope.laws import prediction_or_none

        predicted = prediction_or_none(self.config)
        halves = [] if predicted is None else [f"{part} {step:,.0f}" for part, step in predicted.half_way.items()]
        return [f"Predicted half-way steps (theory dynamics): {', '.join(halves)}."] if halves else []

    def table(self) -> pyarrow.Table:
        import pyarrow

        return pyarrow.table(self.metrics)

    def _about(self) -> str:
        return f"seed {self.config.seed}, {self.status}, {self.results['steps']:,} steps"


class Runs(SeveralRuns[Run]):
    """Several runs: a list of `Run`, with one table and one summary. `train` returns it for a list of configs.

    Args:
        runs: The runs.
        folder: Where they were written, or None.

    Example:
        >>> from topicscope import RunConfig, train
        >>> small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> runs = train([RunConfig.of(small, steps=30, seed=seed) for seed in (0, 1)])
        >>> runs.table()["seed"].to_pylist(), [round(run.results["dev_loss"], 1) for run in runs]
        ([0, 1], [1.6, 1.6])
    """

    kind: ClassVar[str] = TRAIN.name

    def summary(self) -> list[str]:
        done = [run for run in self if run.status != "diverged"]
        losses = [run.results["dev_loss"] for run in done if run.results.get("dev_loss") is not None]
        if len(losses) < 2:
            return super().summary()
        mean, spread = statistics.fmean(losses), statistics.stdev(losses)
        diverged = [run.summary()[0] for run in self if run.status == "diverged"]
        return [f"{len(self)} runs: dev loss {mean:.5g} on average (sd {spread:.2g}).", *diverged]

    def _about(self) -> str:
        seeds = ", ".join(str(run.config.seed) for run in self[:5])
        return f"{len(self)} runs, seeds {seeds}{', ...' if len(self) > 5 else ''}"


def shown_beside(run: Run, data: RunData, best: TrainingOptimum) -> dict[str, np.ndarray]:
    """What figures show that neither weights nor results hold."""
    shown: dict[str, np.ndarray] = {}
    if run.reading.scores is not None and isinstance(data.dev, Documents):
        shown |= {f"document.{i}": words[words > 0] for i, words in enumerate(data.dev.words[:DOCUMENTS])}
    named = run.config.topic_model.word_names is not None
    if named and best.matrix is not None and {"value", "distance_to_optimum"} <= set(run.results):
        biases = contributions(run.config, run.weights) - run.reading.tables["value"].matrix
        shown["optimum"] = best.matrix - biases
    return shown


def snapshot_paths(folder: Path) -> dict[int, Path]:
    paths = {path.stem.removeprefix("step-"): path for path in (folder / SNAPSHOTS).glob("step-*.safetensors")}
    return {int(step): paths[step] for step in sorted(filter(str.isdigit, paths), key=int)}


def read_snapshot(path: Path, advice: str = ADVICE) -> Weights:
    weights, note = read_tensors(path, advice)
    refuse_if(note.get("snapshot") != path.stem, f"{path} is the snapshot of another step; {advice}")
    return weights


def stored_snapshots(folder: Path, advice: str) -> dict[int, Weights]:
    """Weights by step, all of the same names and shapes."""
    paths = snapshot_paths(folder)
    snapshots = {step: read_snapshot(path, advice) for step, path in paths.items()}
    for step, weights in snapshots.items():
        check_tensors(weights, next(iter(snapshots.values())), paths[step], advice)
    return snapshots


def read_run(folder: str | os.PathLike[str]) -> Run | Runs:
    return read_runs(folder, TRAIN, read_one, Runs)


def read_one(path: Path) -> Run:
    folders.finished_about(path, TRAIN)
    config, results = RunConfig.of(load_settings(path / folders.CONFIG, own=True)), folders.read_results(path)
    whole = isinstance(results, dict) and {"status", "steps", "loss"} <= set(results)
    refuse_if(not whole, f"{path / folders.RESULTS} is damaged: it holds no results of a run; {ADVICE}")
    return Run(config, results["status"], results, read_metrics(path), read_tensors(path / WEIGHTS, ADVICE)[0], path)


def stored_configs(folder: str | os.PathLike[str]) -> RunConfig | list[RunConfig]:
    return configs_to_resume(folder, TRAIN, RunConfig)


RECENT = 100  # steps whose mean is the loss of a run that goes on


class WatchedRun:
    """A run that is still going on: reads metrics.jsonl as it grows, and all of it anew after the run was resumed.

    It holds a bounded number of rows.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.config = RunConfig.of(load_settings(self.folder / folders.CONFIG, own=True))
        self.start_anew()

    def start_anew(self) -> None:
        self.read, self.held = 0, HeldRows()
        self.recent: deque[float] = deque(maxlen=RECENT)

    def update(self) -> bool:
        """Whether something was written since the last call. A line that is not whole yet waits."""
        before = self.read
        try:
            with (self.folder / METRICS).open("rb") as stream:
                if os.fstat(stream.fileno()).st_size < self.read:
                    self.start_anew()
                    before = -1
                stream.seek(self.read)
                rest = b""
                while block := stream.read(4_000_000):
                    *lines, rest = (rest + block).split(b"\n")
                    self.add(lines)
        except FileNotFoundError:
            return False
        return self.read != before

    def add(self, lines: list[bytes]) -> None:
        try:
            self.held.add(lines)
            self.recent.extend(losses_of(lines[-RECENT:]).tolist())
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise InputError(f"{self.folder / METRICS} is damaged ({error}); {ADVICE}") from None
        self.read += sum(map(len, lines)) + len(lines)

    @property
    def rows(self) -> int:
        return self.held.count

    @property
    def columns(self) -> Columns:
        return self.held.columns

    @property
    def steps(self) -> int:
        return max(0, self.rows - 1)

    def snapshot_steps(self) -> list[int]:
        return list(snapshot_paths(self.folder))

    def run(self, step: int | None = None) -> Run:
        """The run up to now, with the weights of a snapshot: of this step, or the last one."""
        paths, about = snapshot_paths(self.folder), read_about(self.folder)
        ends = f"there are those of {list(paths)[:1]} to {list(paths)[-1:]}"
        refuse_if(step is not None and step not in paths, f"no weights are kept of step {step}; {ends}")
        status = "running" if about is None else str(about.status)
        weights: Weights = {}
        shown = step if step is not None else next(reversed(paths), None)
        if step is None and (self.folder / WEIGHTS).exists():
            weights, shown = read_tensors(self.folder / WEIGHTS, ADVICE)[0], None
        elif shown is not None:
            weights = read_snapshot(paths[shown])
        finite = [loss for loss in self.recent if math.isfinite(loss)]
        loss = sum(finite) / len(finite) if finite else None
        results = {"status": status, "steps": self.steps, "seed": self.config.seed, "loss": loss}
        if status not in folders.UNFINISHED:
            results = folders.read_results(self.folder)
        return Run(self.config, status, results, self.columns, weights, None, beside={}, shown_step=shown)


def ask_to_pause(folder: str | os.PathLike[str]) -> None:
    """Ask a run to pause: it writes a checkpoint at its next block of steps and ends. `resume` continues it."""
    (Path(folder) / PAUSE).touch()


def ask_to_stop(folder: str | os.PathLike[str]) -> None:
    """Ask a run to end for good at its next block of steps: its results are those of the steps so far."""
    (Path(folder) / STOP).touch()


MOST_ROWS = 4001  # the first, and a multiple of four
LOSS = re.compile(rb'"loss": ([^,}]+)')

Columns = dict[str, Float[np.ndarray, " S"]]


class HeldRows:
    """All rows of a short run. Of a long one the first and the last, and of every `group` rows two: those of the
    highest and of the lowest loss, or the last one with a dev loss in place of the lowest. `count`: rows so far.

    When there is no room left, `group` doubles, and half of the rows go. Lines that are not chosen are not even parsed.
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self.most, self.group, self.count = most, 1, 0
        self.held: Columns = {}
        self.waiting: list[bytes] = []  # lines of a group that is not whole yet

    def __len__(self) -> int:
        return len(next(iter(self.held.values()), ()))

    def add(self, lines: list[bytes]) -> None:
        self.count += len(lines)
        lines = self.waiting + lines
        while len(lines) >= self.group:
            room = self.most - len(self)
            taken = room if self.group == 1 else min(room // 2, len(lines) // self.group) * self.group
            self.held = joined(self.held, lines[:taken] if self.group == 1 else chosen(lines[:taken], self.group))
            lines = lines[taken:]
            if len(self) >= self.most:
                self.halve()
        self.waiting = lines

    def halve(self) -> None:
        losses = self.held.get("loss", np.full(len(self), np.nan))
        places = extremes(losses[1:], 4, np.isfinite(self.held["dev_loss"])[1:])
        self.held = {name: column[np.append(0, 1 + places)] for name, column in self.held.items()}
        self.group = 4 if self.group == 1 else 2 * self.group

    @property
    def columns(self) -> Columns:
        """What is held, and the newest row."""
        return joined(self.held, self.waiting[-1:]) if self.waiting else self.held


def losses_of(lines: list[bytes]) -> Float[np.ndarray, " S"]:
    """Without parsing the rest of the lines; NaN where a line has no loss."""
    return np.array([float(found[1]) if (found := LOSS.search(line)) else np.nan for line in lines])


def chosen(lines: list[bytes], group: int) -> list[bytes]:
    marked = np.array([b'"dev_loss"' in line for line in lines], dtype=bool)
    return [lines[place] for place in extremes(losses_of(lines), group, marked)]


def joined(columns: Columns, lines: list[bytes]) -> Columns:
    """Columns with more rows; NaN where a row lacks a number."""
    rows: list[dict[str, float]] = json.loads(b"[" + b",".join(lines) + b"]")
    before = np.full(len(next(iter(columns.values()), ())), np.nan)
    names = dict.fromkeys([*columns, *(name for row in rows for name in row), "dev_loss"])
    added = {name: np.array([row.get(name, np.nan) for row in rows], dtype=float) for name in names}
    return {name: np.concatenate([columns.get(name, before), new]) for name, new in added.items()}
