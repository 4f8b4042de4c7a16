"""The folder of anything that ran: one protocol for every command.

A folder says what it is (about.json), and holds config.yaml, environment.json, results.json and what its kind adds.
This module alone decides whether a folder may be opened, resumed or replaced.

A command that cannot be resumed keeps its results in memory, and the folder as it was, until `folder.begin()`: a
probe that is killed or fails takes no older probe with it.
"""

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from topicscope.ground.about import (
    ABOUT as ABOUT,
    CONFIG as CONFIG,
    ENVIRONMENT as ENVIRONMENT,
    RESULTS as RESULTS,
    UNFINISHED as UNFINISHED,
    About as About,
    AnyPath as AnyPath,
    Kind as Kind,
    about_of as about_of,
    check_digest as check_digest,
    command as command,
    finished_about as finished_about,
    new_about,
    read_about as read_about,
    read_results as read_results,
    version_of as version_of,
)
from topicscope.ground.checked import file_digest, read_text, shown
from topicscope.ground.errors import InputError
from topicscope.ground.files import read_json as read_json, write_json, write_yaml
from topicscope.ground.places import (
    LOCK,
    check_out as check_out,
    lock as lock,
    make_folder,
    member_paths as member_paths,
    remove_empty,
)
from topicscope.ground.values import parse_yaml

NEW, STARTING = ".new", "starting.json"
UNIMPORTANT = (LOCK, NEW, f"{ABOUT}.tmp")  # does not make a folder hold something
MEMBERS = "run-[0-9][0-9][0-9]*"  # folders of an ensemble's runs
COMMON = (RESULTS, ENVIRONMENT, "report.html", "figures", "figure.png", "figure.svg", CONFIG)  # of any kind

PACKAGES = (
    *("topicscope", "torch", "numpy", "pydantic", "safetensors"),
    *("transformers", "tokenizers", "accelerate", "tomotopy"),
)


@dataclass
class Folder:
    """An open folder, locked by this process.

    Attributes:
        path: The folder.
        kind: Kind of the folder.
        about: What about.json says.
        fresh: Nothing was there before, or it is to be replaced.
        config: The settings that were stored.
        place: Where files are written.

    Example:
        See `read_finished`.
    """

    path: Path
    kind: Kind
    about: About
    fresh: bool
    config: Mapping[str, Any] | None = field(default=None, repr=False)
    place: Path = field(init=False)

    def __post_init__(self) -> None:
        self.place = self.path

    @property
    def finished(self) -> bool:
        return self.about.status not in UNFINISHED

    def file(self, name: str) -> Path:
        return self.place / name

    def begin(self) -> None:
        """From here on the folder is this command's: what topicscope wrote there before is removed, nothing else.

        A command that cannot be resumed writes beside the old files, which go when the new ones are whole.
        """
        if self.kind.resumes == "never":
            self.place = self.path / NEW
            shutil.rmtree(self.place, ignore_errors=True)
        make_folder(self.place)
        self.mark("starting")  # killed before 'running', the folder counts as empty
        if self.place == self.path:
            remove_own(self.path, self.kind)
        else:
            self.file(ABOUT).rename(self.file(STARTING))
        if self.config is not None:
            write_yaml(self.file(CONFIG), dict(self.config))
            self.about = replace(self.about, digests={CONFIG: file_digest(self.file(CONFIG))})
        self.mark("running")

    def finish(self, results: Any, status: str = "done", **measured: Any) -> None:
        """The last files, about.json last of all: with it the folder is whole."""
        environment = {  # all that may differ between machines and is no part of the result
            "python": platform.python_version(),
            "platform": platform.platform(),
            "processor_count": os.cpu_count(),
            "command": [shown(Path(sys.argv[0]).name), *map(shown, sys.argv[1:])],
            "packages": {name: version_of(name) for name in PACKAGES},
        }
        write_json(self.file(ENVIRONMENT), environment | measured)
        write_json(self.file(RESULTS), results)
        sealed = [file for name in (CONFIG, RESULTS, *self.kind.sealed) for file in self.place.glob(name)]
        self.about = replace(self.about, digests={file.name: file_digest(file) for file in sealed})
        self.mark(status)
        if self.place != self.path:
            self._replace()

    def _replace(self) -> None:
        """The new files in place of the old ones. Nothing is written: a full disk is no matter here."""
        self.file(STARTING).rename(self.path / ABOUT)  # killed from here on, the folder counts as empty
        remove_own(self.path, self.kind)
        for entry in self.place.iterdir():
            entry.rename(self.path / (f"{ABOUT}.tmp" if entry.name == ABOUT else entry.name))
        self.place.rmdir()
        self.place = self.path
        self.file(f"{ABOUT}.tmp").replace(self.file(ABOUT))  # last of all: with it the folder is whole

    def mark(self, status: Any) -> None:
        self.about = replace(self.about, status=status)
        self.about.write(self.place)


def check_folder(path: AnyPath, kind: Kind, *, resume: bool = False, force: bool = False) -> About | None:
    """Check that a folder may be opened: new and empty ones may; one of the same kind with `resume` or `force`.

    Args:
        path: The folder.
        kind: Kind of the folder.
        resume: Continue with what is there.
        force: Replace it.

    Returns:
        What is there; None where nothing was done yet. InputError where it may not be opened so.

    Example:
        >>> check_folder("no-such-folder", Kind("demo", 1)) is None
        True
    """
    path = Path(path)
    if resume and force:
        raise InputError("resume and force are both given; give one: resume continues what is there, force replaces it")
    check_out(path)
    try:
        if not path.is_dir() or not any(entry.name not in UNIMPORTANT for entry in path.iterdir()):
            return None
    except FileNotFoundError:  # another process has just removed it
        return None
    about = read_about(path)
    if about is None:
        raise InputError(
            f"{shown(path)} is not empty and holds something else (no {ABOUT}); choose a folder that is new or empty"
        )
    if about.kind != kind.name:
        raise InputError(f"{shown(path)} holds a {about.kind} folder, not a {kind.name} folder; choose another one")
    if about.status == "starting" or (about.status == "running" and kind.resumes == "never"):
        return None  # killed before anything was done, or while it was written: nothing is whole
    if not resume and not force:
        ways = "replace it (--force)" if kind.resumes == "never" else "resume it (--resume), replace it (--force)"
        raise InputError(f"{shown(path)} is not empty: it holds a {kind.name} folder; {ways}, or choose another folder")
    if resume and about.format != kind.format:
        raise InputError(
            f"{shown(path)} holds a {kind.name} folder of format {about.format}, this topicscope writes {kind.format}; "
            "choose another folder"
        )
    return about


@contextmanager
def open_folder(
    path: AnyPath,
    kind: Kind,
    config: Mapping[str, Any] | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    runs: int | None = None,
) -> Iterator[Folder]:
    """Open and lock a folder that `check_folder` allows. An error before any work leaves the folder as it was.

    Args:
        path: The folder.
        kind: Kind of the folder.
        config: Settings to store.
        resume: Continue with what is there.
        force: Replace what topicscope wrote there, and nothing else.
        runs: Number of runs, where there are several.

    Returns:
        A context manager that gives the folder.

    Example:
        See `read_finished`.
    """
    path = Path(path)
    if not os.path.lexists(path / LOCK):  # nothing is written to a folder of others, not even a lock
        check_folder(path, kind, resume=resume, force=force)
    first_new = next((place for place in reversed((path, *path.parents)) if not place.exists()), None)
    with lock(path):
        folder = None
        try:
            folder = join_folder(path, kind, config, resume=resume, force=force, runs=runs)
            yield folder
        except BaseException:
            shutil.rmtree(path / NEW, ignore_errors=True)
            (path / f"{ABOUT}.tmp").unlink(missing_ok=True)
            opened = folder.fresh if folder is not None else check_folder(path, kind, force=True) is None
            if opened and _untouched(path):
                _forget(path)
            raise
        finally:
            if first_new is not None and not any(entry.name != LOCK for entry in path.iterdir()):
                (path / LOCK).unlink(missing_ok=True)  # others that have it open see that it is gone, and try again
                remove_empty(path, first_new)


def join_folder(
    path: Path,
    kind: Kind,
    config: Mapping[str, Any] | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    runs: int | None = None,
) -> Folder:
    """The same for a folder that this process has locked, or that lies in one: a member of an ensemble."""
    there = check_folder(path, kind, resume=resume, force=force)
    if there is not None and not force:
        if config is not None and _stored_config(path) != config:
            raise InputError(
                f"{shown(path)} was made with another config; choose another folder, or replace it (--force)"
            )
        return Folder(path, kind, there, False, config)
    folder = Folder(path, kind, new_about(kind, runs), True, config)
    if kind.resumes != "never":
        folder.begin()
    return folder


def _forget(path: Path) -> None:
    """Remove what opening a folder leaves, members that were not yet whole included."""
    for member in path.glob(MEMBERS):
        _forget(member)
        member.rmdir()
    for entry in (*path.glob(f"{CONFIG}*"), *path.glob(f"{ABOUT}*")):  # with what a write that failed has left
        entry.unlink()


def remove_own(path: Path, kind: Kind) -> None:
    """Remove what topicscope wrote in a folder of this kind but about.json; the folders of an ensemble's runs too."""
    for member in path.glob(MEMBERS):
        if member.is_dir() and ((member / ABOUT).exists() or not any(member.iterdir())):
            remove_own(member, kind)
            for entry in member.glob(f"{ABOUT}*"):
                entry.unlink()
            if not any(member.iterdir()):
                member.rmdir()
    for pattern in (*kind.adds, *COMMON):
        for entry in (*path.glob(pattern), *path.glob(f"{pattern}.tmp")):
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink(missing_ok=True)


def _stored_config(path: Path) -> Any:
    try:
        return parse_yaml(read_text(path / CONFIG), CONFIG)
    except InputError:
        return None


def _untouched(path: Path) -> bool:
    """Whether a folder holds nothing but the files with which it was opened."""
    own = (ABOUT, CONFIG, *UNIMPORTANT)
    return all(
        _untouched(one) if one.is_dir() and one.match(MEMBERS) else one.name.removesuffix(".tmp") in own
        for one in path.iterdir()
    )
