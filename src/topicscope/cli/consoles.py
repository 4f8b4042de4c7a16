"""Where commands print: results to stdout, progress and complaints to stderr."""

from __future__ import annotations

from rich.console import Console

WIDE = 120
"""Columns where there is no terminal to ask: in a pipe or a file tables need not be squeezed into 80."""


def results() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=max(WIDE, console.width))


def progress() -> Console:
    return Console(stderr=True)
