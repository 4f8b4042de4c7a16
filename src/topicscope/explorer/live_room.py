"""The room of runs: what runs show while they go on, as a stream of events.

An event has the run's id and state, its step, the sentence of the moment, and HTML of what has changed: curves, or
matrices. One reader per run serves all browsers; what nobody watches is not read. A page has one stream for all of its
runs: a browser opens six connections to a server at most, and a stream holds one as long as it lasts.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio.to_thread

from topicscope import pages, training
from topicscope.explorer.runs import Runs
from topicscope.explorer.workspace import Place, View, damage
from topicscope.ground import InputError, folders, shown

PACE = 0.5  # seconds from one look at the runs to the next
REST = 0.1  # seconds between two looks, where looking takes long
SILENCE = 15.0  # seconds after which a stream says that it is still there
MOST_STREAMS = 24
MOST_WATCHED = 24  # runs, over all streams
RESUMABLE = ("paused", "interrupted")
GOING_ON = ("starting", "running", "unreadable", *RESUMABLE)  # states after which more may come
HTML = ("curves", "matrices")  # parts of an event that are sent only where they have changed
MOST_MEMORY = 200e6  # bytes; the floors of larger runs are shown when these have ended
ONE_AT_A_TIME = threading.Semaphore()


class LiveFloors:
    """`found` stays empty until the floors are known, and for good if there are none."""

    def __init__(self, config: training.RunConfig) -> None:
        self.config = config
        self.found: Mapping[str, Mapping[str, float]] = {}
        if config.floors and config.data.dev_file is None and training.cost_of([config]).memory < MOST_MEMORY:
            threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        with ONE_AT_A_TIME, contextlib.suppress(InputError, OSError, MemoryError):  # the run will say why
            self.found = training.RunData(self.config).task.floors()


@dataclass
class Watch:
    """What is known of a run. HTML is made anew only when something has changed."""

    run: training.WatchedRun
    config_written: int
    drawn: dict[str, str] = field(default_factory=dict)  # the sentence of the moment, HTML of curves and matrices
    matrices_step: int | None = -1
    floors: LiveFloors | None = None
    made_of: tuple[int, str, bool] | None = None
    seen: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, state: str) -> dict[str, Any]:
        """A lock keeps two browsers that watch one run from reading its new lines twice."""
        self.seen = time.monotonic()
        with self.lock:
            self.run.update()
            made_of = (self.run.read, state, bool(self.floors and self.floors.found))
            if made_of != self.made_of:
                self.make_anew()
                self.made_of = made_of
            total, snapshots = self.run.config.total_steps, self.run.snapshot_steps()
            return {"step": self.run.steps, "total": total, "snapshots": snapshots, **self.drawn}

    def make_anew(self) -> None:
        run = self.run_at()
        self.drawn |= {"curves": View("", pages.live_curves(run)).fragment(), "sentence": pages.happening(run)}
        if run.shown_step != self.matrices_step or run.shown_step is None:
            self.matrices_step = run.shown_step
            self.drawn["matrices"] = View("", pages.live_matrices(run)).fragment()

    def run_at(self, step: int | None = None) -> training.Run:
        """The run up to the last look, with its floors and the weights of a step, or the newest ones."""
        run = self.run.run(step)
        if "floors" not in run.results:
            self.floors = self.floors or LiveFloors(run.config)
            run.results["floors"] = self.floors.found
        return run


class LiveRoom:
    def __init__(self, runs: Runs) -> None:
        self.runs, self.workspace = runs, runs.workspace
        self.watches: dict[str, Watch] = {}
        self.lock = threading.Lock()  # of the watches
        self.streams = 0
        self.ending = False

    def watch(self, place: Place) -> Watch:
        """The reader of a run; a new one where another run has taken its place."""
        config_written = (place.path / folders.CONFIG).stat().st_mtime_ns
        with self.lock:
            watch = self.watches.get(place.id)
            if watch is None or watch.config_written != config_written:
                watch = self.watches[place.id] = Watch(training.WatchedRun(place.path), config_written)
                if len(self.watches) > MOST_WATCHED:
                    del self.watches[min(self.watches, key=lambda name: self.watches[name].seen)]
            return watch

    def state(self, identity: str, known: Mapping[str, str]) -> dict[str, Any]:
        """What is new of a run, for a browser that has `known` already."""
        starting = self.runs.is_starting(identity)
        try:
            place = self.workspace.find(identity)
        except InputError:
            with self.lock:
                self.watches.pop(identity, None)
            why = self.runs.last_words_of(identity) or "Its folder was removed or renamed."
            return {"state": "starting"} if starting else {"state": "gone", "why": why}
        if place.state == "starting":
            return {"state": "starting"}
        if place.state == "damaged":
            return {"state": "damaged", "name": place.name, "why": damage(place.path)}
        state = self.runs.state_of(place)
        if state in RESUMABLE and starting:
            state = "starting"
        news = {"state": state, "name": place.name, **self.watch(place).look(place.state)}
        if state == "interrupted":
            news["why"] = self.runs.why_interrupted(place)
        return {name: value for name, value in news.items() if name not in HTML or value != known.get(name)}

    async def events(self, identities: Sequence[str]) -> AsyncIterator[str]:
        """Server-sent events of some runs, until all have ended or the browser has gone."""
        if self.streams >= MOST_STREAMS or len(identities) > MOST_WATCHED:
            many = (
                "runs are shown here" if len(identities) > MOST_WATCHED else "browser windows are open on this server"
            )
            for identity in identities:
                yield event({"id": identity, "state": "refused", "why": f"too many {many}; close one"})
            return
        self.streams += 1
        known: dict[str, dict[str, str]] = {identity: {} for identity in identities}
        last: dict[str, dict[str, object]] = {}
        spoke = time.monotonic()
        try:
            while known and not self.ending:
                began = time.monotonic()
                for identity, mine in list(known.items()):
                    news = await anyio.to_thread.run_sync(self.answer, identity, mine)
                    mine |= {name: news[name] for name in HTML if name in news}
                    if news != last.get(identity):
                        yield event({"id": identity, **news})
                        spoke = time.monotonic()
                    last[identity] = {name: value for name, value in news.items() if name not in HTML}
                    if news["state"] not in GOING_ON:
                        del known[identity]
                if time.monotonic() - spoke > SILENCE:
                    yield ": still there\n\n"
                    spoke = time.monotonic()
                if known:
                    await asyncio.sleep(max(REST, PACE - (time.monotonic() - began)))
        finally:
            self.streams -= 1

    def answer(self, identity: str, known: Mapping[str, str]) -> dict[str, Any]:
        try:
            return self.state(identity, known)
        except (InputError, OSError) as error:  # a file that is just being replaced, a disk that fails
            return {"state": "unreadable", "why": str(error)}

    def matrices_at(self, place: Place, step: int) -> str:
        watch = self.watch(place)
        with watch.lock:
            return View("", pages.live_matrices(watch.run_at(step))).fragment()

    def kept(self, place: Place, step: int | None = None) -> View:
        watch = self.watch(place)
        with watch.lock:
            watch.run.update()
            run = watch.run_at(step)
            sections = [*pages.live_curves(run), *pages.live_matrices(run)]
            return View(f"topicscope train: {shown(place.name)}", sections, [pages.happening(run)])


def event(news: Mapping[str, object]) -> str:
    return f"data: {json.dumps(news, allow_nan=False)}\n\n"
