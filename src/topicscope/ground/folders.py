"""The folder of anything that ran: one protocol for every command.

about.json says what a folder is: kind, format, version, command, status, and the digests of its files. The folder also
holds config.yaml, environment.json, results.json and what its kind adds. This module alone decides whether a folder may
be opened, resumed or replaced. A finished folder is read only if its files are still those that were written.

A command that cannot be resumed keeps its results in memory, and the folder as it was, until `folder.begin()`: a
probe that is killed or fails takes no older probe with it.
"""

import errno
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import filelock
import pydantic

from topicscope.ground.errors import InputError, one_line, refuse, refuse_if, refusing
from topicscope.ground.files import (
    FULL,
    AnyPath,
    file_digest,
    named,
    parse_json,
    parse_yaml,
    read_bytes,
    read_json as read_json,
    read_text,
    shown,
    sound,
    write_json,
    write_yaml,
)

ABOUT, CONFIG, ENVIRONMENT, RESULTS = "about.json", "config.yaml", "environment.json", "results.json"
Status = Literal["starting", "running", "done", "stopped", "diverged"]
UNFINISHED = ("starting", "running")


@dataclass(frozen=True)
class Kind:
    name: str
    format: int
    adds: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    resumes: Literal["never", "asked", "always"] = "never"


@pydantic.dataclasses.dataclass(frozen=True, config=pydantic.ConfigDict(extra="forbid", strict=True))
class About:
    """about.json. `runs`: how many runs an ensemble's folder holds; None: it holds one."""

    kind: str
    format: int
    version: str
    command: str
    status: Status = "running"
    runs: Annotated[int, pydantic.Field(ge=1, le=100_000)] | None = None
    digests: dict[str, str] = pydantic.Field(default_factory=dict)


def read_about(path: AnyPath) -> About | None:
    file = Path(path) / ABOUT
    if not os.path.lexists(file):
        return None
    with refusing((InputError,), f"{shown(file)} is damaged (", "); choose another folder, or remove this one"):
        content = parse_json(read_bytes(file), ABOUT)
        try:
            return About(**content if isinstance(content, dict) else {})
        except (pydantic.ValidationError, TypeError):
            raise InputError("not what topicscope writes") from None


def about_of(path: AnyPath, kind: Kind) -> About:
    """What a folder of this kind says, finished or not; InputError where it is of another kind."""
    about = read_about(path)
    if about is None:
        raise InputError(f"{shown(path)} is not a folder that topicscope wrote (no {ABOUT})")
    refuse(
        (about.kind != kind.name, f"{shown(path)} holds a {about.kind} folder, not a {kind.name} folder"),
        (
            about.format != kind.format,
            f"{shown(path)} holds a {kind.name} folder of format {about.format}, this topicscope reads {kind.format}; "
            f"{_again(path, about)}; or use topicscope {about.version}",
        ),
    )
    return about


def finished_about(path: AnyPath, kind: Kind) -> About:
    """What a finished folder of a kind says, with the digests of its files checked."""
    about = about_of(path, kind)
    again = f"topicscope {kind.name} --resume --out {path}" if kind.resumes == "asked" else about.command
    refuse_if(about.status in UNFINISHED, f"{shown(path)} is not finished; to continue: {again}")
    for name in (RESULTS, *about.digests):
        check_digest(path, about, name)
    return about


def check_digest(path: AnyPath, about: About, name: str) -> None:
    file, again = Path(path) / name, _again(path, about)
    refuse(
        (
            Path(name).name != name or name not in about.digests,
            f"{shown(Path(path) / ABOUT)} is damaged (it has no digest of {name!r}); {again}",
        ),
        (not file.is_file(), f"{shown(file)} is missing; {again}"),
    )
    refuse_if(
        file_digest(file) != about.digests[name], f"{shown(file)} is damaged: it is not what topicscope wrote; {again}"
    )


def _again(path: AnyPath, about: About) -> str:
    """How to make a folder anew: its command, where it was one, with what lets it replace the folder."""
    if not about.command.startswith("topicscope "):
        return f"make {shown(path)} again (--force)"
    # the commands of other kinds go on, or replace
    forced = about.kind in ("train", "pretrain", "landscape") and "--force" not in about.command
    # of a folder that was moved the command names the old place
    return f"make it again (its command was: {about.command}{' --force' if forced else ''})"


def read_results(path: AnyPath) -> Any:
    return read_json(Path(path) / RESULTS)


def command() -> str:
    path = Path(sys.argv[0] if sys.argv and sys.argv[0] else "python")
    as_module = path.name == "__main__.py" and path.parent.name == "topicscope"
    return shown(shlex.join(["topicscope" if as_module else path.name, *sys.argv[1:]]))


def version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


LOCK = ".lock"
LOCK_ATTEMPTS = 100  # at a folder that others make and remove meanwhile
LOCK_SECONDS = 0.3  # seconds: who only looks whether a folder is held (`is_held`) keeps its lock for an instant


def check_out(path: Path) -> Path:
    """Check that a folder is there that can be written to, or can be made there."""
    # no config can store a name that is not UTF-8
    refuse_if(
        "\0" not in str(path) and not sound(str(path)), f"{shown(path)}: its name is not UTF-8; choose another folder"
    )
    with usable(path):
        path.exists()  # raises where the name is too long, which lexists does not
        place = next(place for place in (path.absolute(), *path.absolute().parents) if os.path.lexists(place))
        refuse_if(
            place == path.absolute() and not path.is_dir(),
            f"{shown(path)} is a file, or a broken link; give a folder that is new or empty",
        )
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return path


@contextmanager
def usable(path: Path) -> Iterator[None]:
    """A system error inside means that the folder cannot be used, unless the disk is full."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError) as error:  # also a name that is too long, or has a null character
        if isinstance(error, OSError) and error.errno in FULL:
            raise named(error, path) from None
        raise InputError(
            f"{shown(path)} cannot be made or written to: {one_line(error)}; choose another folder"
        ) from None


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """One process at a time writes to a folder, which is made where there is none. The lock file stays with it."""
    for left in reversed(range(LOCK_ATTEMPTS)):
        make_folder(path)
        # a process that had made the folder, and failed, may just have removed it
        with usable(path), suppress(*[FileNotFoundError] if left else ()):
            try:
                held = filelock.FileLock(path / LOCK, timeout=LOCK_SECONDS).acquire(poll_interval=0.02)
                break
            except filelock.Timeout:
                raise InputError(
                    f"another process is writing to {shown(path)}; wait for it or choose another folder"
                ) from None
    with held:
        yield


def is_held(path: Path) -> bool:
    if not (path / LOCK).exists():
        return False
    with suppress(OSError), filelock.FileLock(path / LOCK, timeout=0, is_singleton=False):
        return False
    return True


def make_folder(path: Path) -> None:
    with usable(path):
        path.mkdir(parents=True, exist_ok=True)


def remove_empty(path: Path, first: Path) -> None:
    """Remove a folder and those above it that were made with it, as far as they are empty."""
    with suppress(OSError):  # not empty: another process has begun to write there
        for place in (path, *path.parents):
            place.rmdir()
            if place == first:
                break


def member_paths(path: AnyPath, runs: int) -> list[Path]:
    return [Path(path) / f"run-{number:03d}" for number in range(runs)]


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
    path: Path
    kind: Kind
    about: About
    fresh: bool
    config: Mapping[str, object] | None = field(repr=False)
    place: Path  # where files are written: the folder itself, or one inside it until all of them are whole

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

    def finish(self, results: object, status: str = "done", **measured: object) -> None:
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
        if self.place == self.path:
            return
        # the new files in place of the old ones; nothing is written: a full disk is no matter here
        self.file(STARTING).rename(self.path / ABOUT)  # killed from here on, the folder counts as empty
        remove_own(self.path, self.kind)
        for entry in self.place.iterdir():
            entry.rename(self.path / (f"{ABOUT}.tmp" if entry.name == ABOUT else entry.name))
        self.place.rmdir()
        self.place = self.path
        self.file(f"{ABOUT}.tmp").replace(self.file(ABOUT))  # last of all: with it the folder is whole

    def mark(self, status: str) -> None:
        self.about = replace(self.about, status=cast("Status", status))
        write_json(self.file(ABOUT), asdict(self.about))


def check_folder(path: AnyPath, kind: Kind, *, resume: bool = False, force: bool = False) -> About | None:
    """Check that a folder may be opened: new and empty ones may; one of the same kind with `resume` or `force`."""
    refuse_if(
        resume and force, "resume and force are both given; give one: resume continues what is there, force replaces it"
    )
    path = check_out(Path(path))
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
    refuse_if(
        about.kind != kind.name,
        f"{shown(path)} holds a {about.kind} folder, not a {kind.name} folder; choose another one",
    )
    if about.status == "starting" or (about.status == "running" and kind.resumes == "never"):
        return None  # killed before anything was done, or while it was written: nothing is whole
    ways = "replace it (--force)" if kind.resumes == "never" else "resume it (--resume), replace it (--force)"
    refuse(
        (
            not resume and not force,
            f"{shown(path)} is not empty: it holds a {kind.name} folder; {ways}, or choose another folder",
        ),
        (
            resume and about.format != kind.format,
            f"{shown(path)} holds a {kind.name} folder of format {about.format}, this topicscope writes {kind.format}; "
            "choose another folder",
        ),
    )
    return about


@contextmanager
def open_folder(
    path: AnyPath,
    kind: Kind,
    config: Mapping[str, object] | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    runs: int | None = None,
) -> Iterator[Folder]:
    """Open and lock a folder that `check_folder` allows. An error before any work leaves the folder as it was."""
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
    config: Mapping[str, object] | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    runs: int | None = None,
) -> Folder:
    """The same for a folder that this process has locked, or that lies in one: a member of an ensemble."""
    there = check_folder(path, kind, resume=resume, force=force)
    if there is not None and not force:
        stored = None
        with suppress(InputError):
            stored = parse_yaml(read_text(path / CONFIG), CONFIG)
        refuse_if(
            config is not None and stored != config,
            f"{shown(path)} was made with another config; choose another folder, or replace it (--force)",
        )
        return Folder(path, kind, there, False, config, path)
    about = About(kind.name, kind.format, version_of("topicscope") or "", command(), "starting", runs)
    folder = Folder(path, kind, about, True, config, path)
    if kind.resumes != "never":
        folder.begin()
    return folder


@contextmanager
def open_runs(
    path: AnyPath | None,
    kind: Kind,
    settings: Sequence[Mapping[str, object]],
    *,
    single: bool,
    resume: bool,
    force: bool,
) -> Iterator[tuple[Folder | None, list[Folder]]]:
    """The folder of one run or of several, and that of each run; None and no folders where nothing is written."""
    if path is None:
        yield None, []
        return
    stored, runs = (settings[0], None) if single else ({"runs": list(settings)}, len(settings))
    with open_folder(path, kind, stored, resume=resume, force=force, runs=runs) as whole:
        members = zip(member_paths(path, len(settings)), settings, strict=True)
        yield whole, [whole] if single else [join_folder(place, kind, one, resume=True) for place, one in members]


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


def _untouched(path: Path) -> bool:
    """Whether a folder holds nothing but the files with which it was opened."""
    return all(
        _untouched(entry)
        if entry.is_dir() and entry.match(MEMBERS)
        else entry.name.removesuffix(".tmp") in (ABOUT, CONFIG, *UNIMPORTANT)
        for entry in path.iterdir()
    )
