"""What users see of work: its progress, and its results, in a terminal, in a notebook and elsewhere.

This is the one place in which a low module reaches for `topicscope.pages`: by name, and only when a result is shown.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TextIO, TypeVar, cast

from topicscope.ground.config import Config, load_settings
from topicscope.ground.errors import InputError, one_line
from topicscope.ground.folders import (
    CONFIG,
    RESULTS,
    Kind,
    check_digest,
    finished_about,
    member_paths,
    read_about,
    read_results,
)

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.figure import Figure


PERIOD = 10.0  # seconds between plain lines
PACE = 0.2  # seconds between changes of a notebook's line


class Progress(Protocol):
    """Called by work that takes time, as progress(phase, done, total, note).

    `total` None: not known. A new phase starts a new count.
    """

    def __call__(self, phase: str, done: float = 0, total: float | None = None, note: str = "") -> None: ...


def silent(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
    """Progress that nobody watches."""


@dataclass
class State:
    phase: str = "starting"
    done: float = 0.0
    total: float | None = None
    note: str = ""
    began: float = field(default_factory=time.monotonic)
    base: float = 0.0  # what was done when the phase began: a resumed run starts in the middle
    show: Callable[[State], None] = lambda _: None  # called after all news

    def __call__(self, phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        if phase != self.phase:
            self.began, self.base = time.monotonic(), done
        self.phase, self.done, self.total, self.note = phase, done, total, note
        self.show(self)

    @property
    def percent(self) -> int | None:
        """Below 100 as long as there is work."""
        return None if not self.total else max(0, min(99, int(100 * self.done / self.total)))

    @property
    def seconds_left(self) -> float | None:
        made, spent = self.done - self.base, time.monotonic() - self.began
        return None if not self.total or made <= 0 or spent < 1 else spent / made * max(0.0, self.total - self.done)

    def line(self) -> str:
        percent = "" if self.percent is None else f" {self.percent}%"
        left = "" if self.seconds_left is None else f"about {duration(self.seconds_left)} left"
        rest = ", ".join(text for text in (self.note, left) if text)
        return f"{self.phase}{percent}{': ' if rest else ''}{rest}"


def duration(seconds: float) -> str:
    longer = f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
    return f"{seconds:.0f} s" if seconds < 90 else longer


def progress_shown(stream: TextIO | None = None, period: float = PERIOD) -> AbstractContextManager[Progress]:
    """A bar where there is a terminal, a line that changes in a notebook cell, plain lines elsewhere."""
    stream = stream or sys.stderr
    if in_notebook():
        return _cell()
    return _bar(stream) if stream.isatty() else _lines(stream, period)


def watched(progress: Progress | None) -> AbstractContextManager[Progress]:
    """The caller's progress; without one, a line in a notebook and silence elsewhere."""
    return progress_shown() if progress is None and in_notebook() else nullcontext(progress or silent)


def in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def _bar(stream: TextIO) -> Iterator[Progress]:
    from rich.console import Console
    from rich.markup import escape  # a name may hold brackets
    from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task("starting", total=None, text="")

        def show(state: State) -> None:
            text = escape(state.line().removeprefix(state.phase).strip())
            bar.update(task, completed=state.done, total=state.total, description=escape(state.phase), text=text)

        yield State(show=show)


@contextmanager
def _cell() -> Iterator[Progress]:
    """A line in the output of a notebook's cell, empty at the end. Text and no widget, so that programs that execute
    notebooks need none either.
    """
    display = import_module("IPython").display.display  # the kernel has it
    line, shown = display({"text/plain": State().line()}, raw=True, display_id=True), time.monotonic()

    def show(state: State) -> None:
        nonlocal shown
        if time.monotonic() - shown >= PACE:
            shown = time.monotonic()
            line.update({"text/plain": state.line()}, raw=True)

    try:
        yield State(show=show)
    finally:
        line.update({"text/plain": ""}, raw=True)


@contextmanager
def _lines(stream: TextIO, period: float) -> Iterator[Progress]:
    """A thread prints the state: also while a phase takes long and reports nothing."""
    state, ended = State(), threading.Event()

    def watch() -> None:
        while not ended.wait(period):
            print(f"topicscope: {state.line()}", file=stream, flush=True)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        ended.set()
        thread.join()


class Result(ABC):
    """What a command returns and `read` reads back. It shows itself in a notebook.

    Data classes take `repr=False` to have the short `__repr__` made here.
    """

    kind: ClassVar[str]

    @abstractmethod
    def summary(self) -> list[str]:
        """The sentences that the command prints."""

    def intro(self) -> list[str]:
        """The paragraphs that its page begins with."""
        return self.summary()

    @abstractmethod
    def table(self) -> pyarrow.Table:
        """The numbers as an Arrow table."""

    def sections(self) -> list[Any]:
        """The parts of the report (`topicscope.pages.Section`): figures, tables and what they show."""
        return list(importlib.import_module("topicscope.pages").sections(self))

    def plot(self) -> Figure:
        """The main figure, as matplotlib has it."""
        figures = [figure for section in self.sections() for figure in section.figures]
        if not figures:
            raise InputError(f"{self!r} has no figure; .table() has its numbers")
        return cast("Figure", importlib.import_module("topicscope.pages").canvas(figures[0]))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any] | None:
        """In a notebook that has anywidget: all that the page of the result has. Elsewhere `_repr_html_` is shown.

        The static view goes along, for whoever reads the saved notebook without a kernel.
        """
        if not in_notebook() or importlib.util.find_spec("anywidget") is None:
            return None
        pages, sections = importlib.import_module("topicscope.pages"), self.sections()
        widget, _ = pages.notebook_view(self, sections)._repr_mimebundle_()
        return {**widget, "text/html": pages.notebook_html(self.summary(), sections), "text/plain": repr(self)}

    def _repr_html_(self) -> str:
        return str(importlib.import_module("topicscope.pages").notebook_html(self.summary(), self.sections()))

    @abstractmethod
    def _about(self) -> str:
        """A few words for `__repr__`, for example 'seed 0, done, 500 steps'."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._about()})"


Stored = TypeVar("Stored")
Several = TypeVar("Several")
Made = TypeVar("Made", bound=Config)


class SeveralRuns(list[Stored], Result):
    def __init__(self, runs: Iterable[Stored], folder: Path | None = None) -> None:
        super().__init__(runs)
        self.folder = folder

    def summary(self: list[Any]) -> list[str]:
        return [sentence for run in self for sentence in run.summary()]

    def table(self: list[Any]) -> pyarrow.Table:
        return arrow_table([{"seed": run.config.seed, **run.facts()} for run in self])

    __repr__ = Result.__repr__


def read_runs(
    folder: str | os.PathLike[str], kind: Kind, read_one: Callable[[Path], Stored], several: Callable[..., Several]
) -> Stored | Several:
    """What a finished folder holds: one run, or several."""
    path, runs = Path(folder), finished_about(folder, kind).runs
    return read_one(path) if runs is None else several(map(read_one, member_paths(path, runs)), path)


def configs_to_resume(
    folder: str | os.PathLike[str], kind: Kind, config: type[Made], what: str = "run"
) -> Made | list[Made]:
    """The config, or the configs, of the runs that a folder was opened for: to resume them."""
    about = read_about(folder)
    if about is not None and about.kind != kind.name:
        raise InputError(
            f"{folder} was made by 'topicscope {about.kind}', not by 'topicscope {kind.name}'; continue with "
            f"'topicscope {about.kind}', or choose another folder"
        )
    if about is None or about.status == "starting":
        raise InputError(f"{folder} holds no {what} to resume; leave resume (--resume) out to start one there")
    check_digest(folder, about, CONFIG)
    settings = load_settings(Path(folder) / CONFIG, own=True)
    return config.of(settings) if about.runs is None else [config.of(one) for one in settings["runs"]]


def read_finished(path: str | os.PathLike[str], kind: Kind, parse: Callable[[Any], Stored]) -> Stored:
    finished_about(path, kind)
    try:
        return parse(read_results(path))
    except InputError:
        raise
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            f"{RESULTS} in {path} is damaged ({type(error).__name__}: {one_line(error)}); "
            "run the command that wrote the folder again"
        ) from None


def arrow_table(records: Sequence[Mapping[str, object]]) -> pyarrow.Table:
    import pyarrow

    names = dict.fromkeys(name for record in records for name in record)
    return pyarrow.table({name: [record.get(name) for record in records] for name in names})
