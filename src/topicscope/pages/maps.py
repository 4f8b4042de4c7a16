"""A sweep as maps: a measure over two of its axes, one panel per value of the others; seeds are averaged."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean, mode
from typing import Any

from topicscope.ground import read_about
from topicscope.measure import NOT_COVERED, PHASE_MEANINGS, PHASES
from topicscope.pages.panels import Figure, Map, PointMap, Section, TableData
from topicscope.sweeps import KINDS, Axes as Axes, Row as Row, Sweep

PHASE_COLOURS: dict[str, str] = dict(
    zip(PHASES, ("#0072B2", "#009E73", "#E69F00", "#56B4E9", "#BDBDBD", "#D55E00"), strict=True)
)
PREDICTED_COLOURS = PHASE_COLOURS | {NOT_COVERED: "#EEEEEE"}
WORDS = {"phase": PHASE_COLOURS, "predicted_phase": PREDICTED_COLOURS}
MEANINGS: dict[str, str] = {
    **{str(name): meaning for name, meaning in PHASE_MEANINGS.items()},
    NOT_COVERED: "the laws of learning do not cover these settings, so no phase is predicted",
}  # of the words of maps of phases
NO_AXIS = "-"
MOST_PANELS = 24
MOST_ROWS = 40  # points that a table shows one by one; of more it shows how many are in which phase


def sweep_sections(sweep: Sweep) -> list[Section]:
    axes, measures = sweep.grid.axes, sweep.main_measures
    tables = []
    if len(sweep.rows) <= MOST_ROWS:
        columns = ["point", *axes, "state", *measures]
        cells = [["-" if row.get(name) is None else tick(row[name]) for name in columns] for row in sweep.rows]
        tables = [TableData("Points", columns, cells)]
    elif axes and "phase" in measures:
        tables = [phase_table(sweep.rows, axes)]
    about = read_about(sweep.folder)
    return [
        Section(
            "Points",
            command="" if about is None else about.command,
            figures=[
                map_figure(sweep.rows, axes, name, "map", name.replace("_", " "))
                for name in (measures[:1] if axes else [])
            ],
            tables=tables,
            config={"kind": sweep.grid.kind, "axes": axes},
        )
    ]


def point_map(sweep: Sweep) -> PointMap:
    return PointMap(
        sweep.grid.axes,
        sweep.rows,
        KINDS[sweep.grid.kind].curve_panels,
        next(iter(sweep.main_measures), None),
        WORDS,
        dict.fromkeys(WORDS, MEANINGS),
    )


def map_figure(
    rows: Sequence[Row],
    axes: Axes,
    measure: str,
    name: str,
    title: str,
    *,
    log: bool = False,
    across: str = "",
    up: str = "",
) -> Figure:
    """A measure over two axes of a sweep, one panel per value of the others; seeds are averaged."""
    chosen_x, chosen_y, rest = layout(axes, across, up)
    words = words_of(rows, measure)
    xs, ys = axes[chosen_x], axes.get(chosen_y, [None])
    values: dict[tuple[str, ...], list[Any]] = {}
    for row in rows:
        if row.get(measure) is not None:
            values.setdefault(place_of(row, (*rest, chosen_y, chosen_x)), []).append(row[measure])
    panels = []
    for facet in itertools.islice(facets(rows, axes, rest), MOST_PANELS):
        z = [[middle(values.get((*map(str, facet), str(y), str(x)), []), words) for x in xs] for y in ys]
        title_of_panel = ", ".join(
            f"{tick(value)}" if isinstance(value, str) else f"{last(axis)} {tick(value)}"
            for axis, value in zip(rest, facet, strict=True)
        )
        labels = [tick(x) for x in xs], [tick(y) for y in ys], last(chosen_x), last(chosen_y)
        panels.append(Map(title_of_panel, z, *labels, words, log=log))
    known = [value for panel in panels for line in panel.z for value in line if value is not None]
    if known and words is None:  # one scale for all panels
        panels = [replace(panel, low=min(known), high=max(known)) for panel in panels]
    alt = f"{title}: {last(chosen_x)} to the right, {last(chosen_y) or 'nothing'} upwards."
    return Figure(name, title, alt, panels, columns=min(4, len(panels)))


def facets(rows: Sequence[Row], axes: Axes, rest: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Values of the axes that have one panel each, where there are points: axes that move together do not cross."""
    occurring = {place_of(row, rest) for row in rows}
    every = itertools.product(*(axes[axis] for axis in rest))
    return (facet for facet in every if tuple(map(str, facet)) in occurring)


def place_of(row: Row, axes: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row.get(axis)) for axis in axes)


def words_of(rows: Sequence[Row], measure: str) -> dict[str, str] | None:
    values = [row[measure] for row in rows if row.get(measure) is not None]
    if measure in WORDS or not any(isinstance(value, str | bool) for value in values):
        return WORDS.get(measure)
    return dict(zip(dict.fromkeys(map(str, values)), itertools.cycle(PHASE_COLOURS.values()), strict=False))


def layout(axes: Axes, across: str = "", up: str = "") -> tuple[str, str, list[str]]:
    """The axes to the right and upwards ('-': none), and those with one panel per value; seeds only if alone."""
    by_length = sorted((name for name in axes if name != "seed"), key=lambda name: -len(axes[name])) or list(axes)
    free = [name for name in by_length if name not in (across, up)]
    across = across or free.pop(0)
    up = "" if up in (NO_AXIS, across) else up or (free.pop(0) if free else "")
    return across, up, [name for name in axes if name in free and len(axes[name]) > 1]


def middle(values: list[Any], words: dict[str, str] | None) -> float | None:
    """The mean; for words the number of the most frequent one."""
    if not values:
        return None
    return list(words).index(mode(map(str, values))) if words is not None else fmean(values)


def last(axis: str) -> str:
    return axis.rsplit(".", 1)[-1].replace("_", " ")


def tick(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


def phase_table(rows: Sequence[Row], axes: Axes, *, across: str = "", up: str = "") -> TableData:
    _, _, rest = layout(axes, across, up)
    counts = Counter((place_of(row, rest), row.get("phase")) for row in rows)
    return TableData(
        "Points in each phase",
        [*map(last, rest), *PHASE_COLOURS],
        [
            [*map(tick, facet), *(str(counts[tuple(map(str, facet)), phase]) for phase in PHASE_COLOURS)]
            for facet in facets(rows, axes, rest)
        ],
    )
