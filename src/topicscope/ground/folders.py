"""The folder of anything that ran: one protocol for every command.

A folder says what it is (about.json: kind, format, version, command, status), and holds config.yaml, environment.json,
results.json and what its kind adds. This module alone decides whether a folder may be opened, resumed or replaced.

    with open_folder("runs/demo", TRAIN, config.as_dict(), resume=True) as folder:
        ...                                # about.json says 'running'
        folder.finish(results)             # results.json, environment.json, then about.json says 'done'
"""

import json
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import filelock
import pydantic
import yaml

from topicscope.ground.errors import InputError
from topicscope.ground.files import read_json as read_json, write_json, write_yaml

AnyPath = str | os.PathLike[str]

ABOUT, CONFIG, ENVIRONMENT, RESULTS = "about.json", "config.yaml", "environment.json", "results.json"
LOCK, UNFINISHED = ".lock", ("starting", "running")
UNIMPORTANT = (LOCK, f"{ABOUT}.tmp")  # does not make a folder hold something
MEMBERS = "run-[0-9][0-9][0-9]*"  # folders of an ensemble's runs
COMMON = (RESULTS, ENVIRONMENT, "report.html", "figures", "figure.png", "figure.svg", CONFIG, ABOUT)  # of any kind

PACKAGES = (
    *("topicscope", "torch", "numpy", "pydantic", "safetensors"),
    *("transformers", "tokenizers", "accelerate", "tomotopy"),
)


@dataclass(frozen=True)
class Kind:
    """A kind of folder: its name, the version of its format, the patterns of the files that it adds.

    `resumes`: whether its command goes on with an unfinished folder, if asked to (--resume) or always.
    """

    name: str
    format: int
    adds: tuple[str, ...] = ()
    resumes: Literal["never", "asked", "always"] = "never"


@pydantic.dataclasses.dataclass(frozen=True, config=pydantic.ConfigDict(extra="forbid", strict=True))
class About:
    """about.json. `runs`: how many runs an ensemble's folder holds; None: it holds one."""

    kind: str
    format: int
    version: str
    command: str
    status: str = "running"
    runs: int | None = None


def read_about(path: AnyPath) -> About | None:
    """What a folder says it is; None where it does not say."""
    try:
        return About(**json.loads((Path(path) / ABOUT).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def about_of(path: AnyPath, kind: Kind) -> About:
    """What a folder of this kind says, finished or not; InputError where it is of another kind."""
    about = read_about(path)
    if about is None:
        raise InputError(f"{path} is not a folder that topicscope wrote (no {ABOUT})")
    if about.kind != kind.name:
        raise InputError(f"{path} holds a {about.kind} folder, not a {kind.name} folder")
    if about.format != kind.format:
        raise InputError(
            f"{path} holds a {kind.name} folder of format {about.format}; this topicscope reads {kind.format}"
        )
    return about


def finished_about(path: AnyPath, kind: Kind) -> About:
    """What a finished folder of this kind says; InputError where it is not one."""
    about = about_of(path, kind)
    if about.status in UNFINISHED:
        again = f"topicscope {kind.name} --resume --out {path}" if kind.resumes == "asked" else about.command
        raise InputError(f"{path} is not finished; to go on: {again}")
    return about


def read_results(path: AnyPath) -> Any:
    return read_json(Path(path) / RESULTS)


def command() -> str:
    """The command line of this process, as a user would type it."""
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    return shlex.join(["topicscope" if name == "__main__.py" else name, *sys.argv[1:]])


def version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@dataclass
class Folder:
    """An open folder, locked by this process. `fresh`: nothing was there before."""

    path: Path
    about: About
    fresh: bool

    @property
    def finished(self) -> bool:
        return self.about.status not in UNFINISHED

    def file(self, name: str) -> Path:
        return self.path / name

    def finish(self, results: Any, status: str = "done", **measured: Any) -> None:
        """The last files, about.json last of all: with it the folder is whole."""
        environment = {  # all that may differ between machines and is no part of the result
            "python": platform.python_version(),
            "platform": platform.platform(),
            "processor_count": os.cpu_count(),
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "packages": {name: version_of(name) for name in PACKAGES},
        }
        write_json(self.path / ENVIRONMENT, environment | measured)
        write_json(self.path / RESULTS, results)
        self.mark(status)

    def mark(self, status: str) -> None:
        self.about = replace(self.about, status=status)
        write_json(self.path / ABOUT, asdict(self.about))


def check_folder(path: AnyPath, kind: Kind, *, resume: bool = False, force: bool = False) -> About | None:
    """Raise InputError unless the folder may be opened so. Returns what is there; None where nothing was done yet.

    New and empty folders always may. A folder of the same kind may with `resume` (go on with what is there) or `force`
    (replace it). Anything else is left alone.
    """
    path = Path(path)
    if resume and force:
        raise InputError("resume and force are both given: go on with what is there, or replace it?")
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file; give a folder that is new or empty")
    if not path.is_dir() or not any(entry.name not in UNIMPORTANT for entry in path.iterdir()):
        return None
    about = read_about(path)
    if about is None:
        raise InputError(
            f"{path} is not empty and holds something else (no {ABOUT}); choose a folder that is new or empty"
        )
    if about.kind != kind.name:
        raise InputError(f"{path} holds a {about.kind} folder, not a {kind.name} folder; choose another one")
    if about.status == "starting":  # killed before any work was done
        return None
    if not resume and not force:
        ways = "replace it (force)" if kind.resumes == "never" else "resume it (resume), replace it (force)"
        raise InputError(f"{path} is not empty: it holds a {kind.name} folder; {ways}, or choose another folder")
    if resume and about.format != kind.format:
        raise InputError(
            f"{path} holds a {kind.name} folder of format {about.format}, this topicscope writes {kind.format}; "
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
    """Open and lock a folder; `force` removes first what topicscope wrote there, and nothing else.

    If an error ends the block before any work was done, the folder is as it was: nothing hinders a better try.
    """
    path = Path(path)
    check_folder(path, kind, resume=resume, force=force)
    created = not path.exists()
    _make(path)
    with lock(path):
        folder = join_folder(path, kind, config, resume=resume, force=force, runs=runs)
        try:
            yield folder
        except BaseException:
            if folder.fresh and _untouched(path):
                _forget(path)
            raise
        finally:
            if created and not any(entry.name != LOCK for entry in path.iterdir()):
                (path / LOCK).unlink(missing_ok=True)
                path.rmdir()


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
    if there is not None and force:
        remove_own(path, kind)
        there = None
    if there is not None and config is not None and _stored_config(path) != config:
        raise InputError(f"{path} was made with another config; choose another folder, or replace it (force)")
    about = there or About(kind.name, kind.format, version_of("topicscope") or "", command(), "starting", runs)
    folder = Folder(path, about, there is None)
    if folder.fresh:
        _make(path)
        folder.mark("starting")
        if config is not None:
            write_yaml(path / CONFIG, dict(config))
        folder.mark("running")
    return folder


def _forget(path: Path) -> None:
    """Remove what opening a folder leaves, members that were not yet whole included."""
    for member in path.glob(MEMBERS):
        _forget(member)
        member.rmdir()
    for entry in (*path.glob(f"{CONFIG}*"), *path.glob(f"{ABOUT}*")):  # with what a write that failed has left
        entry.unlink()


def remove_own(path: Path, kind: Kind) -> None:
    """Remove what topicscope wrote in a folder of this kind, the folders of an ensemble's runs included."""
    for member in path.glob(MEMBERS):
        if read_about(member) is not None:
            remove_own(member, kind)
            if not any(member.iterdir()):
                member.rmdir()
    for pattern in (*kind.adds, *COMMON):  # about.json last: until then the folder says what it is
        for entry in path.glob(pattern):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """One process at a time writes to a folder. The lock file stays: removing it would let two processes in."""
    try:
        held = filelock.FileLock(path / LOCK, timeout=0).acquire()
    except filelock.Timeout:
        raise InputError(f"another process is writing to {path}; wait for it or choose another folder") from None
    with held:
        yield


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be made: {error.strerror}; choose another folder") from None


def _stored_config(path: Path) -> Any:
    try:
        return yaml.safe_load((path / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None


def _untouched(path: Path) -> bool:
    """Whether a folder holds nothing but the files with which it was opened."""
    own = (ABOUT, CONFIG, *UNIMPORTANT)
    return all(
        _untouched(one) if one.is_dir() and one.match(MEMBERS) else one.name.removesuffix(".tmp") in own
        for one in path.iterdir()
    )


def member_paths(path: AnyPath, runs: int) -> list[Path]:
    return [Path(path) / f"run-{number:03d}" for number in range(runs)]
