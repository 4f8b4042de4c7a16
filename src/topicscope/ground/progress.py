"""Progress, shown in one place: a bar in a terminal, one line in a notebook, plain lines elsewhere.

    with progress_shown() as progress:
        progress("training", 50, 5000, "loss 3.41")

Work calls its progress with the phase it is in, how much of it is done, how much there is, and a note.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol, TextIO

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
    """Where the work stands; called, it takes the news."""

    phase: str = "starting"
    done: float = 0.0
    total: float | None = None
    note: str = ""
    began: float = field(default_factory=time.monotonic)
    base: float = 0.0  # what was done when the phase began: a resumed run starts in the middle
    show: Callable[["State"], None] = lambda _: None  # called after all news

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
