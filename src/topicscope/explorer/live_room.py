"""The room of runs: starting them, and what a run shows while it goes on, as a stream of events.

An event has the run's state, its step, the sentence of the moment, and HTML of what has changed: curves, or matrices.
One reader per run serves all browsers; what nobody watches is not read.
"""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio.to_thread

from topicscope import figures, training
from topicscope.explorer.live_floors import LiveFloors
from topicscope.explorer.runs import Runs
from topicscope.explorer.views import View
from topicscope.explorer.workspace import Place, damage
from topicscope.ground import InputError, shown

PACE = 0.5  # seconds from one look at a run to the next
REST = 0.1  # seconds between two looks, where looking takes long
SILENCE = 15.0  # seconds after which a stream says that it is still there
MOST_STREAMS = 24
MOST_WATCHED = 16
RESUMABLE = ("paused", "interrupted")


@dataclass
class Watch:
    """What is known of a run, made anew only when its files have changed."""

    place: Place
    run: training.WatchedRun
    curves: str = ""
    matrices: str = ""
    shown: int | None = -1  # the step of the matrices
    sentence: str = ""
    state: str = ""
    floors: LiveFloors | None = None
    seen: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> None:
        """One at a time: two browsers that look at the same run would read its new lines twice."""
        self.seen = time.monotonic()
        with self.lock:
            self.make_anew()

    def make_anew(self) -> None:
        if not self.run.update() and self.curves and self.state == self.place.state:
            return
        self.state = self.place.state  # the end of a run, too, is news: its last lines were read before
        run = self.run.run()
        if "floors" not in run.results:
            self.floors = self.floors or LiveFloors(run.config)
            run.results["floors"] = self.floors.found
        self.curves = View("", figures.live_curves(run)).fragment()
        self.sentence = figures.happening(run)
        if run.shown_step != self.shown or run.shown_step is None:
            self.shown = run.shown_step
            self.matrices = View("", figures.live_matrices(run)).fragment()


class LiveRoom:
    """The watched runs of a server."""

    def __init__(self, runs: Runs) -> None:
        self.runs, self.workspace = runs, runs.workspace
        self.watches: dict[str, Watch] = {}
        self.streams = 0
        self.ending = False

    def watch(self, place: Place) -> Watch:
        watch = self.watches.get(place.id)
        if watch is None:
            if len(self.watches) >= MOST_WATCHED:
                del self.watches[min(self.watches, key=lambda name: self.watches[name].seen)]
            watch = self.watches[place.id] = Watch(place, training.WatchedRun(place.path))
        watch.place = place
        return watch

    def state(self, identity: str, known: dict[str, str]) -> dict[str, Any]:
        """What is new of a run, for a browser that has `known` already."""
        try:
            place = self.workspace.find(identity)
        except InputError:
            self.watches.pop(identity, None)
            if self.runs.is_starting(identity):
                return {"state": "starting"}
            said = self.runs.last_words_of(identity)
            return {"state": "gone", "why": said or "Its folder was removed or renamed."}
        if place.state == "starting":
            return {"state": "starting"}
        if place.state == "damaged":
            return {"state": "damaged", "name": place.name, "why": damage(place.path)}
        state = self.runs.state_of(place)
        if state in RESUMABLE and self.runs.is_starting(identity):
            state = "starting"
        watch = self.watch(place)
        watch.look()
        news: dict[str, Any] = {
            "state": state,
            "name": place.name,
            "step": watch.run.steps,
            "total": watch.run.config.total_steps,
            "sentence": watch.sentence,
            "snapshots": watch.run.snapshot_steps(),
        }
        if state == "interrupted":
            news["why"] = self.runs.why_interrupted(place)
        return news | {
            name: html
            for name, html in (("curves", watch.curves), ("matrices", watch.matrices))
            if html != known.get(name)
        }

    async def events(self, identity: str) -> AsyncIterator[str]:
        """Server-sent events until the run has ended, or the browser has gone."""
        if self.streams >= MOST_STREAMS:
            yield event({"state": "refused", "why": "too many windows are open on this server; close one"})
            return
        self.streams += 1
        known: dict[str, str] = {}
        last: dict[str, Any] = {}
        spoke = time.monotonic()
        try:
            while not self.ending:
                began = time.monotonic()
                news = await anyio.to_thread.run_sync(partial(self.answer, identity, known))
                known |= {name: news[name] for name in ("curves", "matrices") if name in news}
                if news != last:
                    yield event(news)
                    spoke = time.monotonic()
                elif time.monotonic() - spoke > SILENCE:
                    yield ": still there\n\n"
                    spoke = time.monotonic()
                last = {name: value for name, value in news.items() if name not in known}
                if news["state"] not in ("starting", "running", *RESUMABLE):
                    return
                await asyncio.sleep(max(REST, PACE - (time.monotonic() - began)))
        finally:
            self.streams -= 1

    def answer(self, identity: str, known: dict[str, str]) -> dict[str, Any]:
        try:
            return self.state(identity, known)
        except (InputError, OSError) as error:  # a file that is just being replaced, a disk that fails
            return {"state": "unreadable", "why": str(error)}

    def at_step(self, identity: str, step: int) -> View:
        """The matrices of a snapshot."""
        watch = self.watch(self.workspace.find(identity))
        return View("Matrices", figures.live_matrices(watch.run.run(step)))


def live_view(place: Place, step: int | None = None) -> View:
    """What the room shows of a run, to be kept: up to now, with the matrices of a step or the newest ones."""
    watched = training.WatchedRun(place.path)
    while watched.update():
        pass
    run = watched.run(step)
    sections = [*figures.live_curves(run), *figures.live_matrices(run)]
    return View(f"topicscope train: {shown(place.name)}", sections, [figures.happening(run)])


def event(news: dict[str, Any]) -> str:
    return f"data: {json.dumps(news, allow_nan=False)}\n\n"
