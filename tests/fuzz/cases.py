"""What a case is: a command line, the files that it finds, and what it may come to.

A case is data and can be pickled. `Place`s make its files in a fresh folder; the same seed makes the same cases.
"""

import os
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Literal, Protocol


class Verdict(StrEnum):
    """What a case came to."""

    OK = "ok"
    TRACEBACK = "traceback"
    WRONG_CODE = "wrong code"
    HANG = "hang"
    ALLOCATION = "allocation"
    FALSE_RESULT = "false result"
    LEFT_BEHIND = "left behind"


class Expect(StrEnum):
    """What a case should come to. `SAME`: refused, or the same as without the damage."""

    REFUSED = "refused"
    WORKS = "works"
    EITHER = "either"
    SAME = "same"


class Place(Protocol):
    """Something that is done to a case's folder before the command runs."""

    def apply(self, home: Path) -> None: ...


@dataclass(frozen=True)
class File:
    """A file with this content."""

    path: str
    content: bytes

    def apply(self, home: Path) -> None:
        target = home / self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(self.content)


Special = Literal["folder", "fifo", "link", "sparse"]


@dataclass(frozen=True)
class Node:
    """Something else than a plain file: a folder, a FIFO, a link to `target`, or a sparse file of `size` bytes."""

    path: str
    what: Special
    target: str = ""
    size: int = 0

    def apply(self, home: Path) -> None:
        place = home / self.path
        place.parent.mkdir(parents=True, exist_ok=True)
        if self.what == "folder":
            place.mkdir(exist_ok=True)
        elif self.what == "fifo":
            os.mkfifo(place)
        elif self.what == "link":
            place.symlink_to(self.target)
        else:
            with place.open("wb") as stream:
                stream.truncate(self.size)


@dataclass(frozen=True)
class Case:
    """A command line and its surroundings.

    `uses` names the fixtures that are copied into the case's folder. `products` are patterns of files that have to be
    the same as without the damage; `compares_stdout`: what is printed has to be the same too.
    """

    id: str
    group: str  # the row of the table: a command, or a kind of file
    argv: tuple[str, ...]
    expect: Expect
    uses: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    products: tuple[str, ...] = ()
    compares_stdout: bool = False
    extra: tuple[str, ...] = ()  # fixtures that only the damage needs
    note: str = field(default="", compare=False)

    @property
    def command(self) -> str:
        """As a user would type it; what no terminal can show is written as Python writes it."""
        return ascii(shlex.join(("topicscope", *self.argv)))[1:-1].replace("\\'", "'")

    @property
    def out(self) -> str | None:
        """The folder that the command is to write, where it is named."""
        for name in ("--out", "-o"):
            if name in self.argv[:-1]:
                return self.argv[self.argv.index(name) + 1]
        return None


@dataclass(frozen=True)
class Finding:
    """A case and its verdict."""

    case: Case
    verdict: Verdict
    reason: str = ""
    code: int | None = None
    last_line: str = ""
    seconds: float = 0.0


Maker = Callable[[Random, str], Case]
"""Draws a case of one class; the string is the case's id."""


def drawn(part: str, makers: dict[str, Maker], count: int, seed: int) -> Iterable[Case]:
    """`count` cases, class by class in turn, so that every class has its share; each from a random stream of its own.

    The ids say how to draw a case again: 'inputs/CLASS/NUMBER'.
    """
    names = list(makers)
    for number in range(count):
        name = names[number % len(names)]
        id_ = f"{part}/{name}/{number // len(names)}"
        yield makers[name](Random(f"{seed}/{id_}"), id_)
