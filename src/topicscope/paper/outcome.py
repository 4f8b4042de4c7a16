"""What an experiment reports: the numbers, the verdict, and its figures as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from topicscope.figures import Figure, Heat, Lines, Map, Panel, Points, Series, TableData, Verdict

PANELS: dict[str, Callable[..., Panel]] = {"heat": Heat, "map": Map, "lines": Lines, "points": Points}


@dataclass
class Outcome:
    """An experiment's result. `paper`, `theory` and `measured` are short texts with the numbers that are compared."""

    paper: str
    theory: str
    measured: str
    verdict: Verdict
    reason: str
    figures: list[Figure] = field(default_factory=list)
    tables: list[TableData] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)  # everything measured, for results.json
    config: dict[str, Any] = field(default_factory=dict)  # the settings of the runs

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Outcome:
        """The outcome that `asdict` wrote; KeyError, TypeError or ValueError where the data is something else."""
        if data["verdict"] not in get_args(Verdict):
            raise ValueError(f"no verdict: {data['verdict']}")
        figures = [Figure(**figure | {"panels": list(map(panel_from, figure["panels"]))}) for figure in data["figures"]]
        return cls(**data | {"figures": figures, "tables": [TableData(**table) for table in data["tables"]]})


def panel_from(data: dict[str, Any]) -> Panel:
    series = {"series": [Series(**line) for line in data["series"]]} if "series" in data else {}
    return PANELS[data["kind"]](**data | series)


def verdict(holds: bool) -> Verdict:
    return "reproduced" if holds else "not reproduced"


def cell(value: float | None) -> str:
    """A number of a table; '-' where there is none."""
    return "-" if value is None else f"{value:.3g}"
