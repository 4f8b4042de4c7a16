"""Where commands print: results to stdout, progress and complaints to stderr."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from topicscope.figures import TableData
    from topicscope.ground import Result

WIDE = 120
"""Columns where there is no terminal to ask: in a pipe or a file tables need not be squeezed into 80."""


def results() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=max(WIDE, console.width))


def progress() -> Console:
    return Console(stderr=True)


def print_lines(lines: Iterable[str]) -> None:
    """Sentences, as they are."""
    for line in lines:
        results().print(line, soft_wrap=True, highlight=False, markup=False)


def print_table(data: TableData) -> None:
    table = Table(*data.columns, title=data.title, title_justify="left")
    for row in data.rows:
        table.add_row(*row)
    results().print(table, markup=False)


def finish(result: Result, out: Path | None, *, quiet: bool) -> None:
    """The sentences of a result, and its page where it has a folder."""
    from topicscope.cli.report import draw_result

    where = "--out DIR writes a page and the numbers"
    if out is not None:
        draw_result(result, out)
        where = f"Written to {out}; its page is {out / 'report.html'}"
    if not quiet:
        print_lines([*result.summary(), where])


def print_side_by_side(
    title: str, columns: Sequence[str], facts: Sequence[Mapping[str, Any]], *, marked: int = 0
) -> None:
    """One column per result, one row per fact; the first `marked` rows stand out."""
    table = Table(title=title or None, title_justify="left")
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    for number, label in enumerate(dict.fromkeys(label for one in facts for label in one)):
        style = "cyan" if number < marked else None
        table.add_row(label, *(cell(one.get(label)) for one in facts), style=style)
    results().print(table, markup=False)


def cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
