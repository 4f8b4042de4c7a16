"""The rows of a run that is watched: never more than MOST_ROWS, however long it is."""

import json
import re

import numpy as np
from jaxtyping import Float

from topicscope.measure import extremes

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
            self.append(parsed(lines[:taken] if self.group == 1 else chosen(lines[:taken], self.group)))
            lines = lines[taken:]
            if len(self) >= self.most:
                self.halve()
        self.waiting = lines

    def append(self, rows: list[dict[str, float]]) -> None:
        before = len(self)
        for name in dict.fromkeys([*self.held, *(name for row in rows for name in row), "dev_loss"]):
            new = np.array([row.get(name, np.nan) for row in rows], dtype=float)
            self.held[name] = np.concatenate([self.held.get(name, np.full(before, np.nan)), new])

    def halve(self) -> None:
        losses = self.held.get("loss", np.full(len(self), np.nan))
        places = extremes(losses[1:], 4, np.isfinite(self.held["dev_loss"])[1:])
        self.held = {name: column[np.append(0, 1 + places)] for name, column in self.held.items()}
        self.group = 4 if self.group == 1 else 2 * self.group

    @property
    def columns(self) -> Columns:
        """What is held, and the newest row."""
        if not self.waiting:
            return dict(self.held)
        newest = HeldRows()
        newest.append(parsed(self.waiting[-1:]))
        names, nothing = dict.fromkeys([*self.held, *newest.held]), np.array([np.nan])
        return {
            name: np.append(self.held.get(name, np.full(len(self), np.nan)), newest.held.get(name, nothing))
            for name in names
        }


def losses_of(lines: list[bytes]) -> Float[np.ndarray, " S"]:
    """Without parsing the rest of the lines; NaN where a line has no loss."""
    return np.array([float(found[1]) if (found := LOSS.search(line)) else np.nan for line in lines])


def chosen(lines: list[bytes], group: int) -> list[bytes]:
    """Two lines of each group."""
    marked = np.array([b'"dev_loss"' in line for line in lines], dtype=bool)
    return [lines[place] for place in extremes(losses_of(lines), group, marked)]


def parsed(lines: list[bytes]) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = json.loads(b"[" + b",".join(lines) + b"]")
    return rows
