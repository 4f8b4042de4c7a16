"""Lines of files, packed or not, as a stream: no line and no document is held in memory without limit."""

import bz2
import gzip
import importlib
import io
import lzma
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import IO, Any

from topicscope.ground import InputError

PEEK = 200  # lines of a text file that decide how it is split
MOST_LINE = 2**26  # bytes of a line, and of a document: more are not held in memory
DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError)  # what unpacking raises
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
Line = tuple[str, str]  # where it stands, and what it says


@dataclass
class Gathered:
    """Lines of one document, up to MOST_LINE characters."""

    parts: list[str] = field(default_factory=list)
    size: int = 0

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def add(self, line: str) -> bool:
        """Whether there was room. False once: what comes later is left out in silence."""
        before, self.size = self.size, self.size + len(line)
        if self.size <= MOST_LINE:
            self.parts.append(line)
        return self.size <= MOST_LINE or before > MOST_LINE


def bounded_line(stream: IO[bytes]) -> tuple[bytes, bool]:
    """The next line; of one that is too long nothing is kept, and the stream stands behind it."""
    line = stream.readline(MOST_LINE + 1)
    if len(line) <= MOST_LINE:
        return line, False
    while line and not line.endswith(b"\n"):
        line = stream.readline(2**20)
    return b"", True


def peeked(lines: Iterator[Line]) -> list[Line]:
    """The first lines, which decide how a text is split: PEEK of them, or fewer where they are long."""
    first: list[Line] = []
    for line in lines:
        first.append(line)
        if len(first) == PEEK or sum(len(text) for _, text in first) > MOST_LINE:
            break
    return first


def separator_hint(columns: Sequence[str]) -> str:
    """What to do about a table whose header is one name that holds another separator; empty for other tables."""
    found = next((name for sign, name in SEPARATORS.items() if len(columns) == 1 and sign in columns[0]), None)
    expected = "expected commas in .csv and tabs in .tsv"
    return "" if found is None else f" (its columns seem to be separated by {found}; {expected})"


def unpack_zst(raw: IO[bytes]) -> io.BufferedReader:
    zstandard = needed("zstandard", "zstandard", "to unpack .zst files")
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True))


UNPACK: dict[str | None, Callable[[Any], Any]] = {
    None: nullcontext,
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".zst": unpack_zst,
}


def needed(module: str, package: str, purpose: str) -> Any:
    """Import an optional library.

    Args:
        module: Name of the module.
        package: Name of the package to install.
        purpose: What it is needed for, in words.

    Returns:
        The module.

    Raises:
        InputError: It is missing; the message says how to install it.

    Example:
        >>> needed("json", "json", "to read JSON").dumps([1])
        '[1]'
        >>> needed("nosuchmodule", "nosuchmodule", "for this")
        Traceback (most recent call last):
        topicscope.ground.errors.InputError: nosuchmodule is needed for this; install it with: pip install nosuchmodule
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # what a library says about its own parts
            return importlib.import_module(module)
    except ImportError:
        raise InputError(f"{package} is needed {purpose}; install it with: pip install {package}") from None
