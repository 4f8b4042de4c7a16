"""Where commands print: results to stdout, progress and complaints to stderr."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer
from jaxtyping import Float, Int
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from topicscope import pages
from topicscope.ground import Result, folders, read_about, shown

WIDE = 120  # columns where there is no terminal to ask: in a pipe or a file tables need not be squeezed into 80
SHADES = " ░▒▓█"

if TYPE_CHECKING:
    from topicscope.language import Probe, Topics, WordMap
    from topicscope.measure import Timeline

Printed = str | Table | Text  # a sentence, a table, a picture

_taken: ContextVar[list[object] | None] = ContextVar("taken", default=None)  # of this thread alone


def results() -> Console:
    """Prints text as it is: brackets in a name are no markup, and numbers are not coloured."""
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = max(WIDE, console.width)
    return console


def coloured(text: str, colour: str) -> str:
    """For `typer.echo`, which leaves colours out where there is no terminal, but not where NO_COLOR is set."""
    return text if os.environ.get("NO_COLOR") else typer.style(text, fg=colour)


def emit(payload: object, printed: Iterable[Printed], *, as_json: bool, failed: bool = False) -> int:
    """Print JSON for programs, or what people read. Returns the exit code."""
    if as_json:
        print_json(payload)
    else:
        print_all(printed)
    return int(failed)


def print_all(printed: Iterable[Printed]) -> None:
    for one in printed:
        if isinstance(one, str):
            results().print(shown(one), soft_wrap=True)
        else:
            results().print(one)


def print_json(value: object) -> None:
    """The result for a program, or for a caller in this process (`answered`)."""
    taken = _taken.get()
    if taken is None:
        print(json.dumps(value, allow_nan=False))
    else:
        taken.append(value)


def answered(run: Callable[[], object]) -> object:
    """What `run` prints as JSON; nothing is printed."""
    taken: list[object] = []
    context = copy_context()
    context.run(_taken.set, taken)
    context.run(run)
    return taken[0]


def table(headings: Iterable[str | Column], rows: Iterable[Iterable[str]], title: str = "") -> Table:
    """A table to print. Cells are folded in a narrow terminal, so that no digit is cut off."""
    columns = (Column(one, overflow="fold") if isinstance(one, str) else one for one in headings)
    made = Table(*columns, title=title or None, title_justify="left")
    for row in rows:
        made.add_row(*row)
    return made


def tables(given: Iterable[pages.TableData]) -> list[Table]:
    return [table(data.columns, data.rows, data.title) for data in given]


def section_tables(sections: Iterable[pages.Section]) -> list[Table]:
    return tables(table for section in sections for table in section.tables)


def finish(
    result: "Probe | Timeline | Topics | WordMap", out: Path | None, given: Iterable[pages.TableData], *, as_json: bool
) -> int:
    """Print a result, and draw its page where it has a folder."""
    page = "--out DIR writes a page and the numbers"
    if out is not None:
        draw_result(result, out)
        page = f"Written to {out}; its page is {out / 'report.html'}"
    return emit(result.as_dict(), [*tables(given), *result.summary(), page], as_json=as_json)


def title_of(result: Result, folder: Path) -> str:
    return f"topicscope {result.kind}: {shown(folder.name)}"


def draw_result(result: Result, folder: Path, drawn: Collection[str] = frozenset()) -> list[Path]:
    """The page of a result in its folder, with the command that made it; and its figures. Returns the main ones.

    `drawn` names sections whose figures are there already. The last section without a command of its own has that of
    the folder.
    """
    about = read_about(folder)
    sections = result.sections()
    last = max((number for number, section in enumerate(sections) if not section.command), default=None)
    if about is not None and last is not None:
        sections[last] = replace(sections[last], command=about.command)
    with folders.lock(folder):  # no other process may replace the folder meanwhile
        pages.write_report(folder, title_of(result, folder), "\n\n".join(result.intro()), sections, drawn)
    main = [folder / "figures" / f"figure.{kind}" for kind in ("png", "svg")]
    return [*(path for path in main if path.exists()), folder / "report.html"]


def side_by_side(
    title: str, columns: Sequence[str], facts: Sequence[Mapping[str, object]], *, marked: int = 0
) -> Table:
    """One column per result, one row per fact; the first `marked` rows stand out."""
    made = table(["", *(Column(column, justify="right", overflow="fold") for column in columns)], [], title)
    for number, label in enumerate(dict.fromkeys(label for one in facts for label in one)):
        made.add_row(label, *(cell(one.get(label)) for one in facts), style="cyan" if number < marked else None)
    return made


def cell(value: object) -> str:
    return "-" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)


CELLS = 24  # per side of a picture: two characters each, since characters are tall


def heat_map(
    matrix: Float[np.ndarray, "m n"],
    title: str,
    size: int = CELLS,
    groups: Sequence[Int[np.ndarray, " g"]] | None = None,
) -> Text:
    """A matrix in shades, averaged down to at most `size` rows; it says so below.

    `groups`: the rows, and as many columns, of each cell. The title has to say what they are.
    """
    rows, columns = (groups or np.array_split(np.arange(n), min(n, size)) for n in matrix.shape)
    small = np.array([[matrix[np.ix_(r, c)].mean() for c in columns] for r in rows])
    low, high = small.min(), small.max()
    level = np.zeros_like(small) if high == low else (small - low) / (high - low)
    picture = "\n".join(
        "  " + "".join(SHADES[min(int(x * len(SHADES)), len(SHADES) - 1)] * 2 for x in row) for row in level
    )
    averaged = groups is None and small.shape != matrix.shape
    said = f"\n  {' x '.join(map(str, matrix.shape))}, averaged into {' x '.join(map(str, small.shape))} cells"
    return Text(f"{title}\n{picture}{said if averaged else ''}")


def word_map(matrix: Float[np.ndarray, "V V"], title: str, topics: Sequence[int]) -> Text:
    """A matrix of [MASK] and words, where `topics` are the numbers of words of each topic, one topic after another.

    A cell has a word, or where that is too much, a topic: no cell lies over a border of topics, and [MASK] has its own.
    """
    if len(matrix) <= CELLS:
        return heat_map(matrix, title)
    borders = 1 + np.cumsum([0, *topics])
    cells = [np.arange(first, end) for first, end in pairwise(borders.tolist())]
    if len(cells) < CELLS:
        return heat_map(matrix, f"{title}, one cell per topic", groups=[np.array([0]), *cells])
    several = [np.concatenate([cells[t] for t in part]) for part in np.array_split(np.arange(len(cells)), CELLS - 1)]
    said = f"\n  [MASK], and {len(cells)} topics averaged into {len(several)} x {len(several)} cells"
    return heat_map(matrix, title, groups=[np.array([0]), *several]).append(said)
