"""What the explorer starts (runs and experiments, each a process that writes a folder and goes on alone), and what runs
show while they go on, as a stream of events.

Pausing is asked for by a file in the folder, so any server can, also one that did not start the run. A page has one
stream for all of its runs: a browser opens six connections to a server at most. An event has the run's id and state,
its step, the sentence of the moment, and HTML of what has changed. One reader per run serves all browsers.
"""

import asyncio
import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio.to_thread

from topicscope import pages, paper, training
from topicscope.explorer.workspace import Place, View, Workspace, damage, identity, place_of, written
from topicscope.ground import METRICS, InputError, assign, flat, folders, parsed, refuse, refuse_if, shown, write_yaml

MOST_AT_ONCE = 4
PRINTED = "topicscope: "  # how lines of a command begin
PROGRESS = re.compile(r"[^:]* \d+%(:|$)|starting$")  # a line that says how far the work is
END_OF_LOG = 20_000  # bytes that are read
INSIST = ", or go ahead anyway (--yes)"  # how a command ends what it refuses; a page has no such choice
PAUSED = "paused at step"  # how the last words of a run begin that was asked to pause
LEAST_SPACE = 1_000_000  # bytes; below, a disk counts as full
FULL = "The disk is full. Free some space, then resume: the run continues from its last checkpoint."
WITHOUT_A_MESSAGE = (
    "Its process ended without a message: it was killed, or the machine went down. What it wrote is kept; 'Resume' "
    "continues from its last checkpoint."
)
LIVE_SNAPSHOTS = 60  # steps whose weights are kept, where the user says nothing else


class Runs:
    def __init__(self, workspace: Workspace, *, read_only: bool = False) -> None:
        self.workspace, self.own, self.read_only = workspace, workspace.own, read_only
        # by the folder's id: what this server has started
        self.started: dict[str, tuple[Path, subprocess.Popen[bytes]]] = {}
        self.lock = threading.Lock()

    def start(self, settings: Mapping[str, object], name: str = "") -> Path:
        config = config_of(settings)
        with self.lock:
            self.check_room()
            folder = self.new_folder(name)
            self.own.mkdir(parents=True, exist_ok=True)
            file = self.own / f"{folder.name}.yaml"
            write_yaml(file, config.as_dict())
            self.spawn(folder, "--config", str(file))
        return folder

    def resume(self, place: Place) -> None:
        check_alone(place)
        refuse_if(place.state != "interrupted", f"{place.name} cannot be resumed: it is {place.state}")
        with self.lock:
            self.check_room()
            self.spawn(place.path, "--resume")

    def ask(self, to_end: Callable[[Path], None], place: Place) -> None:
        """Ask a run to pause, or to stop for good."""
        self.check_allowed()
        check_alone(place)
        refuse_if((place.kind, place.state) != ("train", "running"), f"{place.name} is not running")
        to_end(place.path)

    def check_allowed(self) -> None:
        refuse_if(self.read_only, "this explorer is read-only; start it without --read-only to run things")

    def check_room(self) -> None:
        self.check_allowed()
        active = {name for name in self.started if self.is_starting(name)}
        active |= {place.id for place in self.workspace.places() if place.kind == "train" and place.state == "running"}
        refuse_if(
            len(active) >= MOST_AT_ONCE,
            f"{MOST_AT_ONCE} runs are active, the most that can be started here; pause one, or wait",
        )

    def new_folder(self, name: str) -> Path:
        plain = re.sub(r"[^A-Za-z0-9-]+", "-", name).strip("-")[:40] or "live"
        there = {path.name for path in self.workspace.home.glob(f"{plain}-*")}
        taken = there | {path.name for path, _ in self.started.values()}  # what has just been started has no folder yet
        names = (f"{plain}-{number}" for number in itertools.count(1))
        return self.workspace.home / next(name for name in names if name not in taken)

    def log_of(self, folder: Path) -> Path:
        return self.own / f"{folder.name}-{identity(folder)}.log"

    def spawn(self, folder: Path, *options: str, command: str = "train") -> None:
        """Start a process that works on a folder; under the lock, so that two browsers do not start two."""
        name = identity(folder)
        refuse_if(self.is_starting(name), f"something is being run in {folder.name}; wait until it is done")
        line = [sys.executable, "-m", "topicscope", command, "--out", str(folder), "--json", *options]
        self.own.mkdir(parents=True, exist_ok=True)
        with self.log_of(folder).open("wb") as log:
            process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.started[name] = folder, process

    def is_starting(self, identity: str) -> bool:
        """Whether a process of this server works on a folder, though it may have written nothing yet."""
        return identity in self.started and self.started[identity][1].poll() is None

    def last_words_of(self, identity: str) -> str:
        return self.last_words(self.started[identity][0]) if identity in self.started else ""

    def last_words(self, folder: Path) -> str:
        """The last line that a run's process printed about an end that it did not want."""
        said = [line.removeprefix(PRINTED) for line in self.printed(folder) if line.startswith(PRINTED)]
        ends = [line for line in said if not PROGRESS.match(line)]
        return ends[-1].removesuffix(INSIST)[:500] if ends else ""

    def why_interrupted(self, place: Place) -> str:
        """What ended a run that can be resumed: its own words, or what can be seen from here."""
        words = self.last_words(place.path)
        if words and written(self.log_of(place.path)) >= written(place.path / METRICS):  # else it has gone on since
            return words
        return FULL if shutil.disk_usage(place.path).free < LEAST_SPACE else WITHOUT_A_MESSAGE

    def state_of(self, place: Place) -> str:
        wished = place.state == "interrupted" and self.why_interrupted(place).startswith(PAUSED)
        return "paused" if wished else place.state

    def last_line(self, folder: Path) -> str:
        lines = [line.strip() for line in self.printed(folder) if line.strip() and line[0] not in "{} "]
        return lines[-1].removeprefix(PRINTED)[:300] if lines else ""

    def printed(self, folder: Path) -> list[str]:
        try:
            with self.log_of(folder).open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - END_OF_LOG))
                return re.split(r"[\r\n]", log.read().decode(errors="replace"))
        except OSError:
            return []

    def wait_until_there(self, folder: Path, seconds: float) -> None:
        """Until a run that has just been started has its folder, or its process has ended without one."""
        end = time.monotonic() + seconds
        while (
            time.monotonic() < end
            and self.is_starting(identity(folder))
            and place_of(folder, self.workspace.home) is None
        ):
            time.sleep(0.1)


def settings_of(lines: str) -> dict[str, str]:
    settings = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        name, _, value = (part.strip() for part in line.partition("="))
        refuse_if(
            not (name and value), f"more settings: {line!r:.80} is no NAME=VALUE; expected a line such as steps=500"
        )
        settings[name] = value
    return settings


def config_of(settings: Mapping[str, object]) -> training.RunConfig:
    """A run's config from dotted names; texts are read as YAML. Settings that name files are not taken."""
    whole: dict[str, object] = {}
    for name, value in flat(settings).items():
        if not isinstance(value, str) or value.strip():
            assign(whole, name, parsed(value) if isinstance(value, str) else value)
    config = training.RunConfig.of(whole)
    given = flat(config.as_dict())
    for name in training.RunConfig.FILES:
        why = f"{name} names a file, which the explorer does not open; use 'topicscope train'"
        refuse_if(isinstance(given.get(name), str), why)
    if "snapshots" in whole:
        return config
    every = sorted({round(config.total_steps * i / LIVE_SNAPSHOTS) for i in range(LIVE_SNAPSHOTS + 1)})
    return config.changed({"snapshots": every})


def paper_view(place: Place) -> View:
    found = paper.outcomes_so_far(place.path)
    return View(f"topicscope reproduce: {shown(place.name)}", found.sections(), found.intro(), place.path / "figures")


class PaperRoom:
    """Claims are run by processes of their own, one at a time per folder."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs

    def claims(self, place: Place | None) -> dict[str, object]:
        if place is None:
            seconds: dict[str, float] = {name: one.seconds for name, one in paper.EXPERIMENTS.items()}
            answer: dict[str, object] = {"html": "", "intro": [], "running": False}
        else:
            found, view = paper.outcomes_so_far(place.path), paper_view(place)
            seconds = {name: found.expected_seconds(name) for name in paper.EXPERIMENTS if name not in found.outcomes}
            answer = {"html": view.fragment(), "intro": view.intro, "running": self.is_running(place)}
        missing = [{"id": name, "claim": paper.EXPERIMENTS[name].claim, "seconds": s} for name, s in seconds.items()]
        return answer | {"missing": missing}

    def run(self, name: str, place: Place | None) -> dict[str, str]:
        (experiment,) = paper.chosen([name])
        options = ["--yes", "--engine", "serial"]  # one claim: no workers to start
        if place is not None:
            refuse(
                (place.kind != "reproduce", f"{place.name} holds no reproduction"),
                (self.is_running(place), f"an experiment is running in {place.name}; wait until it is done"),
            )
            context = paper.outcomes_so_far(place.path).context
            options += ["--scale", context.scale, "--seed", str(context.seed)]
        with self.runs.lock:
            self.runs.check_room()
            folder = self.runs.new_folder("reproduce") if place is None else place.path
            self.runs.spawn(folder, experiment.id, *options, command="reproduce")
        return {"id": identity(folder), "name": folder.name}

    def is_running(self, place: Place) -> bool:
        return self.runs.is_starting(place.id) or place.state == "running"

    def state(self, name: str) -> dict[str, object]:
        if self.runs.is_starting(name):  # it may have no folder yet
            return {"running": True, "said": self.runs.last_line(self.runs.started[name][0])}
        try:
            place = self.runs.workspace.find(name)
        except InputError:
            if name not in self.runs.started:
                raise
            return {"running": False, "said": self.runs.last_words_of(name) or "Its folder is no longer there."}
        return {"running": self.is_running(place), "said": self.runs.last_line(place.path)}


def check_alone(place: Place) -> None:
    refuse_if(
        place.several or place.whole is not None,
        f"{place.name} is one of several runs that are trained together; use 'topicscope train' for all of them",
    )


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
            numbers = {"total": self.run.config.total_steps, "snapshots": self.run.snapshot_steps()}
            return {"step": self.run.steps, **numbers, **self.drawn}

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
            if starting:
                return {"state": "starting"}
            return {"state": "gone", "why": self.runs.last_words_of(identity) or "Its folder was removed or renamed."}
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

    async def events(self, identities: Collection[str]) -> AsyncIterator[str]:
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
            drawn = [*pages.live_curves(run), *pages.live_matrices(run)]
            return View(f"topicscope train: {shown(place.name)}", drawn, [pages.happening(run)])


def event(news: Mapping[str, object]) -> str:
    return f"data: {json.dumps(news, allow_nan=False)}\n\n"
