"""What all results of the project have in common: sentences, a table, figures, and how a notebook shows them.

@dataclass(frozen=True, repr=False)
class Run(Result):
    kind: ClassVar[str] = "train"

This is the one place in which a low module reaches for `topicscope.pages`: by name, and only
when a result is shown.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from topicscope.ground.config import Config, load_settings
from topicscope.ground.errors import InputError, one_line
from topicscope.ground.folders import CONFIG, RESULTS, Kind, check_digest, finished_about, read_about, read_results
from topicscope.ground.progress import in_notebook

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.figure import Figure


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
Made = TypeVar("Made", bound=Config)


class SeveralRuns(list[Stored], Result):
    """What a command returns for several configs: a list of runs, with one table and one summary."""

    def __init__(self, runs: Iterable[Stored], folder: Path | None = None) -> None:
        super().__init__(runs)
        self.folder = folder

    def summary(self: list[Any]) -> list[str]:
        return [sentence for run in self for sentence in run.summary()]

    def table(self: list[Any]) -> pyarrow.Table:
        """One row per run: seed and main numbers."""
        return arrow_table([{"seed": run.config.seed, **run.facts()} for run in self])

    __repr__ = Result.__repr__


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
