"""The room of time: a run or a timeline at one of its steps."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from topicscope import pages, training
from topicscope.explorer.folder_views import read_again
from topicscope.explorer.views import View
from topicscope.explorer.workspace import Place, written
from topicscope.ground import InputError, read_about, refuse, shown

MOST_STEPS = 80  # of a run that has no snapshots
RESAMPLES = 200  # of the intervals that are computed here
NO_SNAPSHOTS = "No weights of earlier steps were saved, so words cannot be followed: train with --snapshots log."


@dataclass(frozen=True)
class Course:
    """What a folder has of its steps. `note`: what it does not have."""

    kind: str
    steps: list[int]
    result: Any  # a run, runs, or a timeline
    plane: pages.WordPlane | None = None
    timeline: Any = None
    note: str = ""

    def at(self, step: int) -> list[pages.Section]:
        if step not in self.steps:
            raise InputError(f"nothing was saved at step {step}; there are steps {self.steps[0]} to {self.steps[-1]}")
        if self.kind == "timeline":
            return pages.timeline_moment(self.result, step)
        if self.kind == "pretrain":
            return pages.pretrain_moment(self.result, step)
        return pages.run_moment(self.result, self.plane, self.timeline, step)


def course(place: Place) -> Course:
    """Read once; kept until the folder is written anew, a snapshot is added, or others are asked for."""
    kept = len(training.WatchedRun(place.path).snapshot_steps()) if place.kind == "train" and is_one(place) else 0
    return _course(place, written(place.path), kept)


def is_one(place: Place) -> bool:
    about = read_about(place.path)
    return about is not None and about.runs is None


@lru_cache(maxsize=4)
def _course(place: Place, _written: float, _snapshots: int) -> Course:
    if place.kind == "timeline":
        timeline = read_again(place)
        return Course("timeline", sorted({row.step for row in timeline.rows}), timeline)
    if place.kind == "pretrain":
        result = read_again(place)
        runs = list(result) if isinstance(result, list | tuple) else [result]
        return Course("pretrain", some_steps(min(len(run.metrics["step"]) for run in runs)), runs)
    if place.kind == "train":
        return run_course(place)
    raise InputError(f"{place.name} has no saved steps to show")


def run_course(place: Place) -> Course:
    refuse((not is_one(place), f"{place.name} holds several runs; open the explorer with one of them, such as run-000"))
    watched = training.WatchedRun(place.path)
    while watched.update():
        pass
    run = watched.run()
    if not watched.rows:
        raise InputError(f"{place.name} has not written its first steps yet; come back in a moment")
    if len(watched.snapshot_steps()) < 2:
        return Course("train", some_steps(watched.rows), run, note=NO_SNAPSHOTS)
    config, snapshots = training.read_snapshots(place.path)
    try:
        timeline = training.snapshot_timeline(config, snapshots, RESAMPLES)
    except InputError:  # neither embedding, value matrix nor attention is trained
        timeline = None
    plane = pages.word_plane(config, snapshots)
    return Course("train", sorted(snapshots), run, plane, timeline)


def some_steps(count: int) -> list[int]:
    """Of the steps 0 to count - 1 some, closer together at the start, where most happens."""
    if count < 2:
        return [0]
    return [0, *np.unique(np.geomspace(1, count - 1, MOST_STEPS).round().astype(int)).tolist()]


def time_view(place: Place, step: int | None = None) -> View:
    """At a step; at the last one where none is given."""
    found = course(place)
    note = [found.note] if found.note else []
    chosen = found.steps[-1] if step is None else step
    return View(f"topicscope {place.kind}: {shown(place.name)}, step {chosen:,}", found.at(chosen), note)
