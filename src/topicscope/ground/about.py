"""about.json: what a folder says it is (kind, format, version, command, status), and the digests of its files.

A finished folder is read only if its files are still those that were written.
"""

import os
import shlex
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from topicscope.ground.checked import file_digest, one_line, read_bytes, shown
from topicscope.ground.errors import InputError
from topicscope.ground.files import read_json, write_json
from topicscope.ground.values import parse_json

AnyPath = str | os.PathLike[str]

ABOUT, CONFIG, ENVIRONMENT, RESULTS = "about.json", "config.yaml", "environment.json", "results.json"
UNFINISHED = ("starting", "running")
REPLACED_BY_FORCE = ("train", "pretrain", "landscape")  # the commands of other kinds go on, or replace


@dataclass(frozen=True)
class Kind:
    """A kind of folder that topicscope writes.

    Attributes:
        name: Such as 'train'.
        format: Version of the format.
        adds: Patterns of the files that it adds.
        sealed: Those of them whose digests about.json keeps.
        resumes: Whether its command continues an unfinished folder: 'never', 'asked' (--resume) or 'always'.

    Example:
        >>> Kind("demo", 1, adds=("*.csv",)).resumes
        'never'
    """

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
    status: Literal["starting", "running", "done", "stopped", "diverged"] = "running"
    runs: Annotated[int, pydantic.Field(ge=1, le=100_000)] | None = None
    digests: dict[str, str] = pydantic.Field(default_factory=dict)

    def write(self, path: Path) -> None:
        write_json(path / ABOUT, asdict(self))


def new_about(kind: Kind, runs: int | None) -> About:
    return About(kind.name, kind.format, version_of("topicscope") or "", command(), "starting", runs)


def read_about(path: AnyPath) -> About | None:
    """What a folder says it is.

    Args:
        path: The folder.

    Returns:
        The content of about.json; None where there is none.

    Raises:
        InputError: about.json is damaged.

    Example:
        >>> read_about("no/such/folder") is None
        True
    """
    file = Path(path) / ABOUT
    if not os.path.lexists(file):
        return None
    try:
        content = parse_json(read_bytes(file), ABOUT)
        return About(**content if isinstance(content, dict) else {})
    except InputError as error:
        reason = one_line(error)
    except (pydantic.ValidationError, TypeError):
        reason = "not what topicscope writes"
    raise InputError(f"{shown(file)} is damaged ({reason}); choose another folder, or remove this one")


def about_of(path: AnyPath, kind: Kind) -> About:
    """What a folder of this kind says, finished or not; InputError where it is of another kind."""
    about = read_about(path)
    if about is None:
        raise InputError(f"{shown(path)} is not a folder that topicscope wrote (no {ABOUT})")
    if about.kind != kind.name:
        raise InputError(f"{shown(path)} holds a {about.kind} folder, not a {kind.name} folder")
    if about.format != kind.format:
        raise InputError(
            f"{shown(path)} holds a {kind.name} folder of format {about.format}, this topicscope reads {kind.format}; "
            f"{_again(path, about)}; or use topicscope {about.version}"
        )
    return about


def finished_about(path: AnyPath, kind: Kind) -> About:
    """What a finished folder of a kind says, with the digests of its files checked.

    Args:
        path: The folder.
        kind: Kind of the folder.

    Returns:
        The content of about.json.

    Raises:
        InputError: The folder is of another kind, is not finished, or its files have changed.

    Example:
        >>> finished_about("no/such/folder", Kind("demo", 1))
        Traceback (most recent call last):
        topicscope.ground.errors.InputError: no/such/folder is not a folder that topicscope wrote (no about.json)
    """
    about = about_of(path, kind)
    if about.status in UNFINISHED:
        again = f"topicscope {kind.name} --resume --out {path}" if kind.resumes == "asked" else about.command
        raise InputError(f"{shown(path)} is not finished; to continue: {again}")
    for name in (RESULTS, *about.digests):
        check_digest(path, about, name)
    return about


def check_digest(path: AnyPath, about: About, name: str) -> None:
    """Raise InputError unless a file of a folder is the one that was written."""
    file, again = Path(path) / name, _again(path, about)
    if Path(name).name != name or name not in about.digests:
        raise InputError(f"{shown(Path(path) / ABOUT)} is damaged (it has no digest of {name!r}); {again}")
    if not file.is_file():
        raise InputError(f"{shown(file)} is missing; {again}")
    if file_digest(file) != about.digests[name]:
        raise InputError(f"{shown(file)} is damaged: it is not what topicscope wrote; {again}")


def _again(path: AnyPath, about: About) -> str:
    """How to make a folder anew: its command, where it was one, with what lets it replace the folder."""
    force = " --force" if about.kind in REPLACED_BY_FORCE and "--force" not in about.command else ""
    by_command = about.command.startswith("topicscope ")
    # of a folder that was moved the command names the old place
    made = f"make it again (its command was: {about.command}{force})"
    return made if by_command else f"make {shown(path)} again (--force)"


def read_results(path: AnyPath) -> Any:
    return read_json(Path(path) / RESULTS)


def command() -> str:
    """The command line of this process, as a user would type it."""
    path = Path(sys.argv[0] if sys.argv and sys.argv[0] else "python")
    as_module = path.name == "__main__.py" and path.parent.name == "topicscope"
    return shown(shlex.join(["topicscope" if as_module else path.name, *sys.argv[1:]]))


def version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
