"""The predicted half of the phase diagram: each cell's phase by the laws of learning beside the measured one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mode
from typing import Any, NamedTuple

from topicscope import training
from topicscope.measure import NOT_COVERED, PHASES
from topicscope.pages import Axes, Figure, Map, Row, TableData, map_figure, tick
from topicscope.paper.experiment import cell
from topicscope.paper.stage_findings import EMBEDDING, EPS, LOSS, LR, SCALE

BATCH_NOISE = 0.38
"""|mean| / rms of the gradients of key and query over batches of 40 documents (T = v = 10, Dirichlet of .1).

In topic contrasts it is .19 where queries are random and .75 where they lie in topic contrasts; this is the geometric
mean."""

ENOUGH = 0.9
"""Share of the SGD and gradient-flow cells that must take the predicted phase; one that is not covered does not."""

PLACE = (LOSS, EMBEDDING, LR, EPS, SCALE)


def predictions(configs: Sequence[training.RunConfig]) -> list[Row]:
    """Columns of what the laws predict for these runs."""
    return [dict(found.as_dict()) for found in training.predicted_phases(configs, batch_noise=BATCH_NOISE)]


class Cell(NamedTuple):
    """One place of a map: the phase that most seeds take, the one that most predictions say, and a row of each."""

    optimiser: str
    place: dict[str, Any]
    measured: str
    predicted: str
    row: Row

    @property
    def right(self) -> bool:
        return self.measured == self.predicted

    @property
    def covered(self) -> bool:
        return self.predicted != NOT_COVERED


def cells(optimiser: str, rows: Iterable[Row]) -> list[Cell]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in PLACE), []).append(row)
    found = []
    for place, here in groups.items():
        measured, predicted = (mode(row[name] for row in here) for name in ("phase", "predicted_phase"))
        typical = next(row for row in here if row["phase"] == measured)
        found.append(Cell(optimiser, dict(zip(PLACE, place, strict=True)), measured, predicted, typical))
    return found


class Shares(NamedTuple):
    """How many cells there are, have a prediction, and take it."""

    cells: int
    covered: int
    right: int

    @classmethod
    def of(cls, found: Sequence[Cell]) -> Shares:
        return cls(len(found), sum(one.covered for one in found), sum(one.right for one in found))

    @property
    def share(self) -> float:
        """Of all cells."""
        return self.right / self.cells if self.cells else 0.0

    @property
    def sentence(self) -> str:
        of_covered = f"{self.right / self.covered:.0%}" if self.covered else "-"
        return (
            f"{self.right} of {self.cells} cells take the predicted phase ({self.share:.0%}; "
            f"{of_covered} of the {self.covered} that the laws cover)"
        )


@dataclass(frozen=True)
class Law:
    """The cells of SGD and gradient flow, by which the laws are judged, and those of Adam."""

    flow: list[Cell]
    adam: list[Cell]

    @classmethod
    def of(cls, maps: Mapping[str, Sequence[Row]], along_epsilon: Sequence[Row], along_flow: Sequence[Row]) -> Law:
        return cls(
            [*cells("sgd", maps["sgd"]), *cells("gradient flow", along_flow)],
            [*cells("adam", maps["adam"]), *cells("adam", along_epsilon)],
        )

    @property
    def holds(self) -> bool:
        return Shares.of(self.flow).share >= ENOUGH

    @property
    def sentences(self) -> list[str]:
        return [
            f"The laws {'hold' if self.holds else 'do not hold'} (at least {ENOUGH:.0%} of the SGD and gradient-flow "
            f"cells must take the predicted phase): {Shares.of(self.flow).sentence}.",
            f"Adam, which is not judged: {Shares.of(self.adam).sentence}.",
        ]

    @property
    def numbers(self) -> dict[str, Any]:
        """For results.json."""
        shares = {"sgd and gradient flow": Shares.of(self.flow), "adam": Shares.of(self.adam)}
        return {"holds": self.holds} | {name: one._asdict() | {"share": one.share} for name, one in shares.items()}

    @property
    def table(self) -> TableData:
        """Cells in another phase than predicted, and why."""
        lines = [
            [
                one.optimiser,
                *("-" if one.place[name] is None else tick(one.place[name]) for name in PLACE),
                one.measured,
                one.predicted,
                cell(one.row.get("separation")),
                cell(one.row.get("predicted_separation")),
                why(one),
            ]
            for one in (*self.flow, *self.adam)
            if one.covered and not one.right
        ]
        columns = ["optimiser", "loss", "embedding", "rate", "epsilon", "scale", "measured phase", "predicted phase"]
        more = ["separation", "predicted separation", "why"]
        return TableData("Cells in another phase than predicted", [*columns, *more], lines)


def why(one: Cell) -> str:
    """What makes the two phases differ, in the numbers that part them."""
    row = one.row
    if "diverged" in (one.measured, one.predicted):
        return "the law has no noise of batches: it describes gradient flow, or descent with full batches"
    if (one.measured, one.predicted) == ("staggered", "two-stage"):
        return "W_V rises again once attention has formed: the third act is not in the law"
    if "never" in (one.measured, one.predicted):
        return f"W_V's norm is predicted to rise by {100 * (row.get('predicted_rise') or 0):.2g}%; from 5% on it counts"
    starts = [cell(row.get(name)) for name in ("start_separation", "predicted_start_separation")]
    return f"the limit between them is a separation of 2; that of the starts is {starts[0]}, predicted {starts[1]}"


def figure(
    sgd: tuple[Axes, Sequence[Row]], adam: tuple[Axes, Sequence[Row]], along_epsilon: tuple[Axes, Sequence[Row]]
) -> Figure:
    """SGD: measured maps over those of the laws. Adam: side by side, where the laws cover something."""
    title = "Which course a run takes: measured, and predicted by the laws (x: they differ)"
    over, under = zip(*pairs("sgd", sgd, LR), strict=True)
    beside = [
        panel
        for maps, across in ((adam, LR), (along_epsilon, EPS))
        for pair in pairs("adam", maps, across)
        if any(value != len(PHASES) for line in pair[1].z for value in line)
        for panel in pair
    ]
    alt = (
        f"{title}: learning rate or Adam's epsilon to the right, initial scale upwards. SGD: four measured maps over "
        "those of the laws; Adam: a measured map beside that of the laws."
    )
    return Figure("two-stage-predicted", title, alt, [*over, *under, *beside], columns=4)


def pairs(optimiser: str, maps: tuple[Axes, Sequence[Row]], across: str) -> list[tuple[Map, Map]]:
    """Measured and predicted map of each loss and embedding; the latter has a cross where it differs."""
    axes, rows = maps
    both = (map_figure(rows, axes, name, "", "", across=across, up=SCALE) for name in ("phase", "predicted_phase"))
    measured, predicted = ([panel for panel in one.panels if isinstance(panel, Map)] for one in both)
    return [
        (
            replace(left, title=f"{optimiser}, {left.title}"),
            replace(right, title=f"law, {right.title}", marks=crosses(left, right)),
        )
        for left, right in zip(measured, predicted, strict=True)
    ]


def crosses(measured: Map, predicted: Map) -> list[tuple[int, int]]:
    """Cells that have a prediction and another phase. Phases have the same places in both lists of names."""
    return [
        (column, row)
        for row, (left, right) in enumerate(zip(measured.z, predicted.z, strict=True))
        for column, (here, there) in enumerate(zip(left, right, strict=True))
        if there != len(PHASES) and here != there
    ]
