"""What a folder says it is: about.json, results.json and environment.json, written and read back."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from topicscope.ground.errors import InputError

ABOUT, CONFIG, ENVIRONMENT, RESULTS, PAGE = (
    "about.json",
    "config.yaml",
    "environment.json",
    "results.json",
    "report.html",
)
LOCK = ".lock"
UNIMPORTANT = (LOCK, f"{ABOUT}.tmp")
"""What does not make a folder hold something."""

MEMBERS = "run-[0-9][0-9][0-9]*"
"""Folders of an ensemble's runs."""

COMMON = (RESULTS, ENVIRONMENT, PAGE, "figures", "figure.png", "figure.svg", CONFIG, ABOUT)
"""What any kind of folder may hold."""

PACKAGES = (
    "topicscope",
    "torch",
    "numpy",
    "pydantic",
    "safetensors",
    "transformers",
    "tokenizers",
    "accelerate",
    "tomotopy",
)


@dataclass(frozen=True)
class Kind:
    """A kind of folder: its name, the version of its format, and the patterns of the files that it adds."""

    name: str
    format: int
    adds: tuple[str, ...] = ()


@dataclass(frozen=True)
class About:
    """about.json. `runs`: how many runs an ensemble's folder holds; None: it holds one."""

    kind: str
    format: int
    version: str
    command: str
    status: str = "running"
    runs: int | None = None


def read_about(path: str | os.PathLike[str]) -> About | None:
    """What a folder says it is; None where it does not say."""
    try:
        data = json.loads((Path(path) / ABOUT).read_text(encoding="utf-8"))
        about = About(**data)
    except (OSError, ValueError, TypeError):
        return None
    fields = (about.kind, about.version, about.command, about.status)
    whole = about.runs is None or isinstance(about.runs, int)
    return about if all(isinstance(x, str) for x in fields) and isinstance(about.format, int) and whole else None


def about_of(path: str | os.PathLike[str], kind: Kind) -> About:
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


def finished_about(path: str | os.PathLike[str], kind: Kind) -> About:
    """What a finished folder of this kind says; InputError where it is not one."""
    about = about_of(path, kind)
    if about.status in ("starting", "running"):
        raise InputError(f"{path} is not finished; run its command again to go on: {about.command}")
    return about


def read_results(path: str | os.PathLike[str]) -> Any:
    """results.json of a folder."""
    return read_json(Path(path) / RESULTS)


def read_json(path: Path) -> Any:
    """A JSON file; InputError in one line where it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} is missing; run the command that wrote {path.parent} again") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} is damaged ({reason}); run the command that wrote {path.parent} again") from None


def command() -> str:
    """The command line of this process, as a user would type it."""
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    return shlex.join(["topicscope" if name == "__main__.py" else name, *sys.argv[1:]])


def environment(**more: Any) -> dict[str, Any]:
    """What the command ran on: everything that may differ between machines and is no part of the result."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor_count": os.cpu_count(),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "packages": {name: version_of(name) for name in PACKAGES},
        **more,
    }


def version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
