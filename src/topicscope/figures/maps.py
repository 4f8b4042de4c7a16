"""Maps of a sweep: a measure over two of its axes, a panel for each value of the others; seeds are averaged."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from topicscope.figures.panels import Figure, Map, TableData
from topicscope.measure import PHASES

Row = dict[str, Any]
Axes = dict[str, list[Any]]

PHASE_COLOURS: dict[str, str] = dict(
    zip(PHASES, ("#0072B2", "#009E73", "#E69F00", "#56B4E9", "#BDBDBD", "#D55E00"), strict=True)
)
MOST_PANELS = 24


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
    """`across` and `up` are the axes of the panels; where they are not named, the two longest."""
    chosen_x, chosen_y, rest = layout(axes, across, up)
    words = PHASE_COLOURS if measure == "phase" else None
    xs, ys = axes[chosen_x], axes.get(chosen_y, [None])
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        if row.get(measure) is not None:
            key = (*(str(row[axis]) for axis in rest), str(row.get(chosen_y)), str(row[chosen_x]))
            found.setdefault(key, []).append(row[measure])
    panels: list[Any] = []
    there = {tuple(str(row[axis]) for axis in rest) for row in rows}  # axes that move together do not cross
    facets = (facet for facet in itertools.product(*(axes[axis] for axis in rest)) if tuple(map(str, facet)) in there)
    for facet in itertools.islice(facets, MOST_PANELS):
        cells = [[found.get((*map(str, facet), str(y), str(x)), []) for x in xs] for y in ys]
        z = [[middle(values, words) for values in line] for line in cells]
        shown = ", ".join(
            f"{tick(value)}" if isinstance(value, str) else f"{last(axis)} {tick(value)}"
            for axis, value in zip(rest, facet, strict=True)
        )
        panels.append(
            Map(shown, z, [tick(x) for x in xs], [tick(y) for y in ys], last(chosen_x), last(chosen_y), words, log=log)
        )
    known = [value for panel in panels for line in panel.z for value in line if value is not None]
    for panel in panels:  # one scale for all panels
        panel.low, panel.high = (min(known), max(known)) if known and words is None else (None, None)
    alt = f"{title}: {last(chosen_x)} to the right, {last(chosen_y) or 'nothing'} upwards."
    return Figure(name, title, alt, panels, columns=min(4, len(panels)))


def layout(axes: Axes, across: str = "", up: str = "") -> tuple[str, str, list[str]]:
    """The axes to the right and upwards, and those that part the panels; seeds do none of it where there are others."""
    by_length = sorted((name for name in axes if name != "seed"), key=lambda name: -len(axes[name])) or list(axes)
    free = [name for name in by_length if name not in (across, up)]
    across = across or free.pop(0)
    up = up or (free.pop(0) if free else "")
    return across, up, [name for name in axes if name in free and len(axes[name]) > 1]


def middle(values: list[Any], words: dict[str, str] | None) -> float | None:
    """The mean; of words the place of the commonest one."""
    if not values:
        return None
    return list(words).index(Counter(values).most_common(1)[0][0]) if words is not None else float(fmean(values))


def last(axis: str) -> str:
    """'optimizer.lr' as it is said: 'lr'."""
    return axis.rsplit(".", 1)[-1].replace("_", " ")


def tick(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


def phase_table(rows: Sequence[Row], axes: Axes, *, across: str = "", up: str = "") -> TableData:
    """How many points of each panel are in which phase."""
    _, _, rest = layout(axes, across, up)
    lines = []
    for facet in itertools.product(*(axes[axis] for axis in rest)):
        here = Counter(
            row.get("phase") for row in rows if all(row[axis] == value for axis, value in zip(rest, facet, strict=True))
        )
        if here:
            lines.append([*map(tick, facet), *(str(here[name]) for name in PHASE_COLOURS)])
    return TableData("Points in each phase", [*map(last, rest), *PHASE_COLOURS], lines)
