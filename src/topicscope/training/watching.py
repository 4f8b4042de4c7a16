"""A run as it goes on: what its folder holds by now, as the same object that a finished run is.

watched = WatchedRun("runs/live")
watched.update()                     # reads what was written since; True where there is something new
run = watched.run()                  # curves so far, and the weights of the last snapshot
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from topicscope.ground import METRICS, InputError, folders, load_settings, read_about, read_tensors
from topicscope.training.config import RunConfig
from topicscope.training.result import ADVICE, PAUSE, SNAPSHOTS, STOP, WEIGHTS, Run, Weights, read_snapshot

MOST_AT_ONCE = 32_000_000  # bytes that one update reads


class WatchedRun:
    """A run that is still going on: reads metrics.jsonl as it grows, and all of it anew after the run was resumed.

    Args:
        folder: The folder of the run.

    Example:
        >>> import tempfile
        >>> from topicscope.training import train
        >>> small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = train(RunConfig.of(small, steps=30, snapshots=[30]), f"{folder}/run")
        ...     watched = WatchedRun(f"{folder}/run")
        ...     watched.update(), watched.update(), watched.steps  # new lines, then none
        (True, False, 30)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.config = RunConfig.of(load_settings(self.folder / folders.CONFIG, own=True))
        self.start_anew()

    def start_anew(self) -> None:
        self.read, self.rows = 0, 0
        self.columns: dict[str, np.ndarray] = {}

    def update(self) -> bool:
        """Whether something was written since the last call. A line that is not whole yet waits."""
        try:
            with (self.folder / METRICS).open("rb") as stream:
                if os.fstat(stream.fileno()).st_size < self.read:
                    self.start_anew()
                stream.seek(self.read)
                block = stream.read(MOST_AT_ONCE)
        except FileNotFoundError:
            return False
        whole = block[: block.rfind(b"\n") + 1]
        if not whole:
            return False
        self.read += len(whole)
        try:
            lines = json.loads(b"[" + whole.rstrip().replace(b"\n", b",") + b"]")
            self.add(lines)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise InputError(f"{self.folder / METRICS} is damaged ({error}); {ADVICE}") from None
        return True

    def add(self, lines: list[dict[str, float]]) -> None:
        names = dict.fromkeys([*self.columns, *(name for line in (lines[0], lines[-1]) for name in line), "dev_loss"])
        for name in names:
            new = np.array([line.get(name, np.nan) for line in lines], dtype=float)
            old = self.columns.get(name, np.full(self.rows, np.nan))
            self.columns[name] = np.concatenate([old, new])
        self.rows += len(lines)

    @property
    def steps(self) -> int:
        return max(0, self.rows - 1)

    def snapshot_steps(self) -> list[int]:
        """The steps whose weights are kept so far."""
        names = (path.stem.removeprefix("step-") for path in (self.folder / SNAPSHOTS).glob("step-*.safetensors"))
        return sorted(int(name) for name in names if name.isdigit())

    def run(self, step: int | None = None) -> Run:
        """The run up to now, with the weights of a snapshot: of this step, or the last one."""
        kept = self.snapshot_steps()
        if step is not None and step not in kept:
            raise InputError(f"no weights are kept of step {step}; there are those of {kept[:1]} to {kept[-1:]}")
        about = read_about(self.folder)
        status = "running" if about is None else str(about.status)
        weights: Weights = {}
        shown = step if step is not None else kept[-1] if kept else None
        if step is None and (self.folder / WEIGHTS).exists():
            weights, shown = read_tensors(self.folder / WEIGHTS, ADVICE)[0], None
        elif shown is not None:
            weights = read_snapshot(self.folder, shown)
        losses = self.columns.get("loss", np.empty(0))
        finite = losses[-100:][np.isfinite(losses[-100:])]
        results: dict[str, Any] = {"status": status, "steps": self.steps, "seed": self.config.seed}
        results["loss"] = float(finite.mean()) if len(finite) else None
        if status not in folders.UNFINISHED:
            results = folders.read_results(self.folder)
        return Run(self.config, status, results, dict(self.columns), weights, None, shown_step=shown)


def ask_to_pause(folder: str | os.PathLike[str]) -> None:
    """Ask a run to pause: it writes a checkpoint at its next block of steps and ends. `resume` continues it.

    Args:
        folder: The folder of the run.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ask_to_pause(folder)
        ...     (Path(folder) / PAUSE).exists()
        True
    """
    (Path(folder) / PAUSE).touch()


def ask_to_stop(folder: str | os.PathLike[str]) -> None:
    """Ask a run to end for good at its next block of steps: its results are those of the steps so far.

    Args:
        folder: The folder of the run.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ask_to_stop(folder)
        ...     (Path(folder) / STOP).exists()
        True
    """
    (Path(folder) / STOP).touch()
