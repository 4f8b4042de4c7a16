"""What an experiment hands on: the numbers, the verdict, and its figures as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from topicscope.figures import Figure, TableData, Verdict


@dataclass
class Outcome:
    """What an experiment found. `paper`, `theory` and `measured` are short texts with the numbers that are compared."""

    paper: str
    theory: str
    measured: str
    verdict: Verdict
    reason: str
    figures: list[Figure] = field(default_factory=list)
    tables: list[TableData] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)  # everything measured, for results.json
    config: dict[str, Any] = field(default_factory=dict)  # the settings of the runs
