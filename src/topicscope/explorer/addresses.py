"""Addresses of servers that were killed: the next one in the workspace takes one up, so that open pages go on.

A page knows its server by a port and a token. Both are kept in a file of the workspace that this user alone can read,
and removed when the server ends in order. A token is believed only if the file is still as it was made.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

START = "server-"  # how the names of files begin; the port follows
TOKEN = re.compile(r"[\w-]{32}", re.ASCII)


class Addresses:
    """Those of a workspace; `folder` is its own one for what the explorer notes down."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ports(self) -> list[int]:
        """Of servers that go on or were killed, the newest first."""
        with suppress(OSError):
            with os.scandir(self.folder) as inside:
                found = [entry for entry in inside if re.fullmatch(rf"{START}\d{{1,5}}", entry.name, re.ASCII)]
            newest = sorted(found, key=lambda entry: -entry.stat(follow_symlinks=False).st_mtime)
            return [int(entry.name.removeprefix(START)) for entry in newest]
        return []

    def token(self, port: int) -> str | None:
        """Of a server that was killed on this port; None where there is none that can be believed."""
        with suppress(OSError, UnicodeDecodeError):
            number = os.open(self.folder / f"{START}{port}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(number) as stream:
                about = os.fstat(number)
                if stat.S_ISREG(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077:
                    text = stream.read(100)
                    return text if TOKEN.fullmatch(text) else None
        return None

    @contextmanager
    def kept(self, port: int, token: str) -> Iterator[None]:
        """Keep them as long as this lasts, or for good where it is killed. A full disk is no reason not to serve."""
        path = self.folder / f"{START}{port}"
        missing = [place for place in (self.folder, *self.folder.parents) if not place.exists()]
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
                stream.write(token)
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()
                for place in missing:  # nothing is left behind where nothing was written
                    place.rmdir()
