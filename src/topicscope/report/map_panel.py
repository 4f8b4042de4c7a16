"""A map (a measure over two axes with named steps): in a picture, on the page, as CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from topicscope.figures import Map
from topicscope.report import plotly_parts as plotly
from topicscope.report.layout import GREY, Pen
from topicscope.report.plotly_parts import Spec
from topicscope.report.style import TURNED

MOST_TICKS = 8
NOTHING = "nothing to show"


def draw(axes: Axes, chart: Map, _pens: dict[str, Pen]) -> None:
    numbers = [[math.nan if value is None else value for value in row] for row in chart.z]
    z = np.ma.masked_invalid(np.array(numbers, dtype=float))
    how: dict[str, Any] = {"cmap": "cividis", "vmin": chart.low, "vmax": chart.high}
    if chart.names is not None:
        colours: Any = list(chart.names.values())
        how = {"cmap": mpl.colors.ListedColormap(colours), "vmin": -0.5, "vmax": len(chart.names) - 0.5}
    elif chart.log and z.count() and z.min() > 0:
        how = {"cmap": "cividis", "norm": mpl.colors.LogNorm(chart.low, chart.high)}
    edges = [np.arange(len(names) + 1) - 0.5 for names in (chart.x, chart.y)]
    image = axes.pcolormesh(*edges, z, edgecolors="white", linewidth=0.5, **how)
    for axis, names in ((axes.xaxis, chart.x), (axes.yaxis, chart.y)):
        pick = range(0, len(names), math.ceil(len(names) / MOST_TICKS))
        crowded = axis is axes.xaxis and sum(len(names[i]) for i in pick) > 16
        axis.set_ticks(list(pick), [names[i] for i in pick], **({"rotation": 45, **TURNED} if crowded else {}))
    axes.grid(visible=False)
    if not z.count():
        axes.text(0.5, 0.5, NOTHING, transform=axes.transAxes, ha="center", va="center", color=GREY)
    elif chart.names is None:
        bar: Any = axes.figure.colorbar(image, ax=axes)
        bar.outline.set_visible(False)


def legend(chart: Map, _pens: dict[str, Pen]) -> list[tuple[str, Any]]:
    return [(name, mpl.patches.Patch(color=colour)) for name, colour in (chart.names or {}).items()]


def spec(chart: Map, _pens: dict[str, Pen], *, legend: bool) -> Spec:
    del legend
    names = list(chart.names or {})
    known = [value for row in chart.z for value in row if value is not None]
    log = chart.log and min(known, default=0) > 0
    shown = [[None if value is None else math.log10(value) if log else value for value in row] for row in chart.z]
    ends = [None if end is None else math.log10(end) if log else end for end in (chart.low, chart.high)]
    bar = {"thickness": 11, "outlinewidth": 0, "xpad": 4, "ypad": 0}
    colour: Spec = {
        "colorscale": "Cividis",
        "zmin": ends[0],
        "zmax": ends[1],
        "zauto": None in ends,
        "colorbar": bar | ({"tickprefix": "10^", "dtick": 1} if log else {"nticks": 5}),
    }
    if chart.names:
        steps = [[edge / len(names), c] for i, c in enumerate(chart.names.values()) for edge in (i, i + 1)]
        colour = {"colorscale": steps, "zmin": -0.5, "zmax": len(names) - 0.5, "showscale": False}

    def cell(value: float | None) -> list[str]:
        return ["-" if value is None else plotly.text(names[int(value)]) if names else f"{value:.4g}"]

    trace: Spec = {
        "type": "heatmap",
        "x": list(map(plotly.text, chart.x)),
        "y": list(map(plotly.text, chart.y)),
        "z": shown,
        "customdata": [[cell(value) for value in row] for row in chart.z],
        "xgap": 1,
        "ygap": 1,
        **colour,
        "hovertemplate": f"{plotly.text(chart.y_label or 'row')}: %{{y}}"
        f"<br>{plotly.text(chart.x_label or 'column')}: %{{x}}<br>%{{customdata[0]}}<extra></extra>",
    }
    axes = [plotly.axis(label) | {"type": "category", "showgrid": False} for label in (chart.x_label, chart.y_label)]
    layout = plotly.layout(*axes) | {"showlegend": False}
    if not known:
        trace["showscale"] = False
        note = {"text": NOTHING, "showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
        layout["annotations"] = [note]
    return {"data": [trace], "layout": layout}


def csv_rows(chart: Map) -> Iterator[list[Any]]:
    names = None if chart.names is None else list(chart.names)
    yield ["x", "y", "value"]
    for y, row in zip(chart.y, chart.z, strict=True):
        for x, value in zip(chart.x, row, strict=True):
            yield [x, y, "" if value is None else value if names is None else names[int(value)]]
