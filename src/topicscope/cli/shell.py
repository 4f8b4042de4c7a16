"""What commands share: options, each declared once; and printing: results to stdout, all else to stderr."""

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import pydantic
import typer
from jaxtyping import Float, Int
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from topicscope import language, pages
from topicscope.ground import (
    ENGINES,
    MOST_WORKERS,
    WIDEST,
    Engine,
    Name,
    Result,
    check_out,
    folders,
    merged,
    open_engine,
    plain_words,
    read_about,
    refuse_if,
    shown,
    usable_device,
)

if TYPE_CHECKING:
    from topicscope.language import Probe, Topics, WordMap
    from topicscope.measure import Timeline

# The base of typer's complaints about arguments; typer has it from click or, since 0.20, within itself
UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__bases__[0])


def misuse(error: typer.BadParameter) -> str:
    message = error.format_message().removesuffix(".")
    if isinstance(error.__cause__, pydantic.ValidationError):  # of typer since 0.26; before, it gave the value itself
        first = error.__cause__.errors()[0]
        said, value = plain_words(first["type"], first["msg"]), repr(first["input"])
        message = message.replace(error.message.removesuffix("."), said if value in said else f"{value}: {said}")
    return message


OUTPUT, SETTINGS, ENGINE = "Output", "Settings", "Engine"


def option(text: str, panel: str, *names: str, **more: Any) -> object:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


def out_option(text: str) -> object:
    """--out, checked before anything else: can a folder be made there and written to?"""
    return option(text, OUTPUT, "--out", "-o", callback=lambda out: out if out is None else check_out(out))


ConfigFile = Annotated[
    Path | None, option("YAML file of settings; other options and --set override it.", SETTINGS, "--config", "-c")
]
Assignments = Annotated[
    list[str] | None, option("Any setting by its name; may be repeated.", SETTINGS, "--set", metavar="KEY=VALUE")
]
Device = Annotated[str | None, option("auto, cpu or cuda.", SETTINGS)]
Out = Annotated[Path | None, out_option("Folder to write (new or empty).")]
Resume = Annotated[bool, option("Continue the run in --out.", OUTPUT, "--resume")]
Force = Annotated[bool, option("Replace the run in --out.", OUTPUT, "--force")]
Yes = Annotated[bool, option("Go ahead even if it may not fit in memory or on the disk.", OUTPUT, "--yes")]
AsJson = Annotated[bool, option("Print only JSON to stdout.", OUTPUT, "--json")]

PLACES = ", ".join(f"{name} ({engine.place})" for name, engine in ENGINES.items())
EngineOption = Annotated[str, option(f"Where the work runs: {PLACES}.", ENGINE, "--engine")]
AddressOption = Annotated[
    str | None, option("For Ray: local (default), auto, or HOST[:PORT] of a running head node.", ENGINE, "--address")
]
WorkersOption = Annotated[
    int | None,
    option(
        "Number of processes, for local or a Ray started here (default: one per core).", ENGINE, min=1, max=MOST_WORKERS
    ),
]


def chosen_engine(
    engine: str, address: str | None = None, workers: int | None = None, *, device: str = "cpu"
) -> AbstractContextManager[Engine]:
    return open_engine(
        cast("Name", engine),
        workers=workers,
        address=address,
        gpus=int(engine == "ray" and (device == "cuda" or usable_device(device) == "cuda")),  # Ray's may have one
    )


WORLD = "World"
WorldFrom = Annotated[
    Path | None, option("Take the topics and mixtures of a corpus: a folder of 'topicscope topics'.", WORLD)
]
KeptWords = Annotated[
    int | None,
    option("With --world-from: number of most probable words to keep (default 500).", WORLD, min=1, max=WIDEST),
]


def world_of(folder: Path | None, words: int | None) -> "language.TopicWorld | None":
    refuse_if(words is not None and folder is None, "--words says how many words of --world-from are kept; give both")
    if folder is None:
        return None
    topics = language.Topics.load(folder)
    return language.topic_world(topics) if words is None else language.topic_world(topics, words)


def in_world(world: "language.TopicWorld | None", settings: Mapping[str, object]) -> dict[str, object]:
    """Settings on top of a world. A prior of their own takes the place of the corpus's mixtures, not of its lengths.

    The kind 'infinite' is a length as well, and takes the place of both.
    """
    if world is None:
        return dict(settings)
    given, documents = world.settings, settings.get("documents")
    if isinstance(documents, Mapping) and "kind" in documents:
        lengths = {} if documents["kind"] == "infinite" else {"length": given["documents"]["length"]}
        given = {**given, "documents": lengths}
    return merged(given, settings)


WIDE = 120  # columns where there is no terminal to ask: in a pipe or a file tables need not be squeezed into 80
SHADES = " ░▒▓█"

Printed = str | Table | Text  # a sentence, a table, a picture

ANSWERS: ContextVar[list[object] | None] = ContextVar("ANSWERS", default=None)  # of a caller in this thread who asks


def results() -> Console:
    """Prints text as it is: brackets in a name are no markup, and numbers are not coloured."""
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = max(WIDE, console.width)
    return console


def coloured(text: str, colour: str) -> str:
    """For `typer.echo`, which leaves colours out where there is no terminal, but not where NO_COLOR is set."""
    return text if os.environ.get("NO_COLOR") else typer.style(text, fg=colour)


def emit(payload: object, printed: Iterable[Printed], *, as_json: bool, failures: Collection[str] = ()) -> int:
    """Print JSON for programs, or what people read; and on stderr what failed. Returns the exit code."""
    if not as_json:
        print_all(printed)
    elif (asked := ANSWERS.get()) is None:
        print(json.dumps(payload, allow_nan=False))
    else:
        asked.append(payload)
    for line in failures:
        typer.echo(line, err=True)
    return 1 if failures else 0


def print_all(printed: Iterable[Printed]) -> None:
    for one in printed:
        results().print(shown(one) if isinstance(one, str) else one, soft_wrap=isinstance(one, str))


def table(headings: Iterable[str | Column], rows: Iterable[Iterable[str]], title: str = "") -> Table:
    made = Table(
        *(Column(one, overflow="fold") if isinstance(one, str) else one for one in headings),
        title=title or None,
        title_justify="left",
    )
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
    code = emit(result.as_dict(), tables(given), as_json=as_json)
    if out is not None:
        draw_result(result, out)
    page = f"Written to {out}; its page is {out / 'report.html'}" if out else "--out DIR writes a page and the numbers"
    if not as_json:
        print_all([*result.summary(), page])
    return code


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
