"""A figure from outside, in one file: a result of its own kind, and what builds its sections."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow

from topicscope.ground import Result
from topicscope.pages import Figure, Lines, Section, Series, TableData


@dataclass(frozen=True, repr=False)
class Coins(Result):
    """How often each of some throws was heads."""

    kind: ClassVar[str] = "coins"

    heads: list[float]

    def summary(self) -> list[str]:
        return [f"{sum(self.heads):g} of {len(self.heads)} throws were heads."]

    def table(self) -> pyarrow.Table:
        return pyarrow.table({"heads": self.heads})

    def _about(self) -> str:
        return f"{len(self.heads)} throws"


def coin_sections(coins: Coins) -> list[Section]:
    throws = [float(number) for number in range(1, 1 + len(coins.heads))]
    share = [sum(coins.heads[: int(number)]) / number for number in throws]
    panel = Lines("share of heads", [Series("coin", throws, share)], "throw", "share", levels=[(0.5, "fair")])
    return [
        Section(
            "Is the coin fair?",
            figures=[Figure("coins", "Throws of a coin", "Share of heads against throws.", [panel])],
            tables=[TableData("Throws", ["number", "heads"], [[f"{len(throws)}", f"{sum(coins.heads):g}"]])],
        )
    ]
