"""What all results of the project have in common: sentences, a table, figures, and how a notebook shows them.

@dataclass(frozen=True, repr=False)
class Run(Result):
    kind: ClassVar[str] = "train"

This is the one place in which a low module reaches for `topicscope.figures` and `topicscope.report`: by name, and only when
a result is shown.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from topicscope.ground.errors import InputError

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

    @abstractmethod
    def table(self) -> pyarrow.Table:
        """The numbers as an Arrow table."""

    def sections(self) -> list[Any]:
        """The parts of the report (`topicscope.figures.Section`): figures, tables and what they show."""
        sections: list[Any] = importlib.import_module("topicscope.figures").sections(self)
        return sections

    def plot(self) -> Figure:
        """The main figure, as matplotlib has it."""
        figures = [figure for section in self.sections() for figure in section.figures]
        if not figures:
            raise InputError(f"{self!r} has no figure; .table() has its numbers")
        drawn: Figure = importlib.import_module("topicscope.report").canvas(figures[0])
        return drawn

    def _repr_html_(self) -> str:
        html: str = importlib.import_module("topicscope.report").notebook_html(self.summary(), self.sections())
        return html

    def _about(self) -> str:
        """A few words for `__repr__`, for example 'seed 0, done, 500 steps'."""
        return self.kind

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._about()})"
