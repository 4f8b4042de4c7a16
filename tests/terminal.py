"""A command in a terminal of a given width, as its user sees it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

ANSI = re.compile(r"\x1b\[[0-9;?]*([A-Za-z])")
"""An escape sequence; those that end in 'm' set colours and weights."""


def in_terminal(*arguments: str, columns: int = 80, **environment: str) -> tuple[int, str]:
    """The exit code, and all that the terminal was sent."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    with subprocess.Popen(
        [sys.executable, "-m", "topicscope", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=kept | {"TERM": "xterm-256color"} | environment,
    ) as process:
        os.close(slave)
        sent = b""
        while True:
            try:
                block = os.read(master, 65536)
            except OSError:  # the last one that held the terminal has gone
                break
            if not block:
                break
            sent += block
    os.close(master)
    return process.returncode, sent.decode().replace("\r\n", "\n")


def plain_lines(sent: str) -> list[str]:
    return ANSI.sub("", sent).splitlines()
