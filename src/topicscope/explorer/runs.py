"""Runs that the explorer starts: each a process of its own that writes a run folder, and goes on without the server.

Pausing is asked for by a file in the folder, so any server can, also one that did not start the run.
"""

import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topicscope import training
from topicscope.explorer.workspace import Place, Workspace, identity
from topicscope.ground import InputError, assign, flat, parsed, refuse, write_yaml

MOST_AT_ONCE = 4
OWN = ".explorer"  # in the workspace: configs of new runs, and what their processes print
PRINTED = "topicscope: "  # how lines of a command begin
PROGRESS = re.compile(r"[^:]* \d+%(:|$)|starting$")  # a line that says how far the work is
INSIST = ", or insist (--yes)"  # how a command ends what it refuses; a page has no such choice
PAUSED = "paused at step"  # how the last words of a run begin that was asked to pause
LEAST_SPACE = 1_000_000  # bytes; below, a disk counts as full
FULL = "The disk is full. Make room, then resume: it goes on from its last checkpoint."
WITHOUT_A_WORD = (
    "Its process ended without a word: it was killed, or the machine went down. What it wrote is there; 'Resume' goes "
    "on from its last checkpoint."
)
LIVE_SNAPSHOTS = 60  # steps whose weights are kept, where the user says nothing else


class Runs:
    """Starts, pauses and resumes runs in a workspace."""

    def __init__(self, workspace: Workspace, *, read_only: bool = False) -> None:
        self.workspace, self.read_only = workspace, read_only
        self.processes: dict[str, subprocess.Popen[bytes]] = {}  # by the folder's id; those of this server
        self.names: dict[str, str] = {}  # of their folders
        self.lock = threading.Lock()

    def start(self, settings: Mapping[str, Any], name: str = "") -> dict[str, str]:
        """Check the settings and start a run of them in a new folder. Returns its id and name."""
        config = config_of(settings)
        with self.lock:
            self.check_room()
            folder = self.new_folder(name)
            file = self.own(f"{folder.name}.yaml")
            write_yaml(file, config.as_dict())
            self.spawn(folder, "--config", str(file))
        return {"id": identity(folder), "name": folder.name}

    def resume(self, place: Place) -> None:
        check_alone(place)
        refuse((place.state != "interrupted", f"{place.name} cannot be resumed: it is {place.state}"))
        with self.lock:
            self.check_room()
            self.spawn(place.path, "--resume")

    def pause(self, place: Place) -> None:
        self.check_allowed()
        check_running(place)
        training.ask_to_pause(place.path)

    def stop(self, place: Place) -> None:
        """For good, with the results of the steps so far."""
        self.check_allowed()
        check_running(place)
        training.ask_to_stop(place.path)

    def check_allowed(self) -> None:
        refuse((self.read_only, "this explorer is read-only; start it without --read-only to run things"))

    def check_room(self) -> None:
        self.check_allowed()
        going = [name for name, process in self.processes.items() if process.poll() is None]
        running = {place.id for place in self.workspace.places() if place.kind == "train" and place.state == "running"}
        refuse(
            (
                len(running | set(going)) >= MOST_AT_ONCE,
                f"{MOST_AT_ONCE} runs are going on, which is as many as are started here; pause one, or wait",
            )
        )

    def new_folder(self, name: str) -> Path:
        """A folder that is not there yet: the name with a number behind it."""
        plain = re.sub(r"[^A-Za-z0-9-]+", "-", name).strip("-")[:40] or "live"
        there = {path.name for path in self.workspace.home.glob(f"{plain}-*")}
        taken = there | set(self.names.values())  # a run that has just been started has no folder yet
        number = next(number for number in range(1, 10**6) if f"{plain}-{number}" not in taken)
        return self.workspace.home / f"{plain}-{number}"

    def own(self, name: str) -> Path:
        folder = self.workspace.home / OWN
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name

    def spawn(self, folder: Path, *options: str, command: str = "train") -> None:
        line = [sys.executable, "-m", "topicscope", command, "--out", str(folder), "--json", *options]
        self.names[identity(folder)] = folder.name
        with self.own(f"{folder.name}.log").open("wb") as log:
            self.processes[identity(folder)] = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def is_starting(self, identity: str) -> bool:
        """Whether a process of this server works on a folder, though it may have written nothing yet."""
        process = self.processes.get(identity)
        return process is not None and process.poll() is None

    def last_words_of(self, identity: str) -> str:
        """Of a run that this server started, and that left no folder."""
        return self.last_words(self.names[identity]) if identity in self.names else ""

    def last_words(self, name: str) -> str:
        """The last line that a run's process printed about an end that it did not want."""
        try:
            lines = (self.workspace.home / OWN / f"{Path(name).name}.log").read_text(errors="replace").splitlines()
        except OSError:
            return ""
        said = [line.removeprefix(PRINTED) for line in lines if line.startswith(PRINTED)]
        ends = [line for line in said if not PROGRESS.match(line)]
        return ends[-1].removesuffix(INSIST)[:500] if ends else ""

    def why_interrupted(self, place: Place) -> str:
        """What ended a run that can be resumed: by its own words, or by what can be seen from here."""
        words = self.last_words(place.name)
        if words:
            return words
        free = shutil.disk_usage(place.path).free
        return FULL if free < LEAST_SPACE else WITHOUT_A_WORD

    def state_of(self, place: Place) -> str:
        """As the place says; of a run that was interrupted by its user's wish 'paused'."""
        wished = place.state == "interrupted" and self.last_words(place.name).startswith(PAUSED)
        return "paused" if wished else place.state

    def last_line(self, identity: str) -> str:
        """What a process of this server printed last about its progress."""
        try:
            text = self.own(f"{self.names[identity]}.log").read_text(errors="replace")
        except OSError:
            return ""
        lines = [line.strip() for line in re.split(r"[\r\n]", text) if line.strip() and line[0] not in "{} "]
        return lines[-1].removeprefix("topicscope: ")[:300] if lines else ""

    def wait_until_there(self, identity: str, seconds: float = 30.0) -> Place | None:
        """The folder of a run that has just been started; None where its process ended without one."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            place = next((place for place in self.workspace.places() if place.id == identity), None)
            if place is not None:
                return place
            if not self.is_starting(identity):
                return None
            time.sleep(0.1)
        return None


def check_alone(place: Place) -> None:
    why = f"{place.name} is one of several runs that are trained together; use 'topicscope train' for all of them"
    refuse((place.together or place.several, why))


def check_running(place: Place) -> None:
    check_alone(place)
    refuse((place.kind != "train" or place.state != "running", f"{place.name} is not running"))


def settings_of(lines: str) -> dict[str, str]:
    """Settings by name, from a text that has NAME=VALUE in each line."""
    settings = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        name, _, value = (part.strip() for part in line.partition("="))
        wrong = f"more settings: {line!r:.80} is no NAME=VALUE; expected a line such as steps=500"
        refuse((not name or not value, wrong))
        settings[name] = value
    return settings


def config_of(settings: Mapping[str, Any]) -> training.RunConfig:
    """A run's config from dotted names; texts are read as YAML. Settings that name files are not taken."""
    whole: dict[str, Any] = {}
    for name, value in flat(settings).items():
        if isinstance(value, str) and not value.strip():
            continue
        assign(whole, name, parsed(value) if isinstance(value, str) else value)
    config = training.RunConfig.of(whole)
    given = flat(config.as_dict())
    named = [name for name in training.RunConfig.FILES if isinstance(given.get(name), str)]
    if named:
        raise InputError(f"{named[0]} names a file, which the explorer does not open; use 'topicscope train'")
    if "snapshots" in whole:
        return config
    steps = config.total_steps
    every = sorted({round(steps * i / LIVE_SNAPSHOTS) for i in range(LIVE_SNAPSHOTS + 1)})
    return config.changed({"snapshots": every})
