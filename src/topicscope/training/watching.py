"""A run as it goes on: what its folder holds by now, as the same object that a finished run is.

watched = WatchedRun("runs/live")
watched.update()                     # reads what was written since; True where there is something new
run = watched.run()                  # curves so far, and the weights of the last snapshot
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import deque
from pathlib import Path

import numpy as np
from jaxtyping import Float

from topicscope.ground import METRICS, InputError, folders, load_settings, read_about, read_tensors, refuse
from topicscope.measure import extremes
from topicscope.training.config import RunConfig
from topicscope.training.result import ADVICE, PAUSE, STOP, WEIGHTS, Run, Weights, read_snapshot, snapshot_paths

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
        """By name, one number per row that is held; 'step' says which rows these are."""
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
        refuse((step is not None and step not in paths, f"no weights are kept of step {step}; {ends}"))
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
