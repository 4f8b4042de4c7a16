"""What curves and points share: levels, legends, hover text and CSV."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes

from topicscope.figures import Lines, Points, Series
from topicscope.report import plotly_parts as plotly
from topicscope.report.layout import BAND_ALPHAS, GREY, groups, legend_names, placed_bands
from topicscope.report.plotly_parts import Spec
from topicscope.report.style import LEGEND_LETTERS, LEVEL_DASHES, LEVEL_WIDTH, wrapped

WEB_DASHES = ("dash", "dot", "dashdot", "longdash")
PLOT_HEIGHT, LEGEND_ROW, NAME_LETTERS = 300, 20, 44


def draw_levels(axes: Axes, levels: list[tuple[float, str]]) -> None:
    for i, (level, _) in enumerate(levels):
        axes.axhline(level, **level_line(i))


def level_line(number: int) -> dict[str, Any]:
    dashes = LEVEL_DASHES[number % len(LEVEL_DASHES)]
    return {"color": GREY, "linestyle": (0, dashes), "linewidth": LEVEL_WIDTH}


def legend_entries(panel: Lines | Points, look: Callable[[str, Series], dict[str, Any]]) -> list[tuple[str, Any]]:
    """Name and handle of each group, level and band; `look` says how the curves of a group are drawn."""
    handles: list[Any] = [mpl.lines.Line2D([], [], **look(key, first)) for key, first in groups(panel).items()]
    handles += [mpl.lines.Line2D([], [], **level_line(i)) for i in range(len(panel.levels))]
    bands = range(len(placed_bands(panel)))
    handles += [mpl.patches.Patch(color=GREY, alpha=BAND_ALPHAS[i % 2], linewidth=0) for i in bands]
    return [(wrapped(name, LEGEND_LETTERS), handle) for name, handle in zip(legend_names(panel), handles, strict=False)]


def finished_spec(panel: Lines | Points, data: list[Spec], layout: Spec, *, legend: bool) -> Spec:
    """With levels, bands, legend, and the height that the legend needs."""
    layout["shapes"] = [band_shape(i, *band) for i, band in enumerate(placed_bands(panel))]
    layout["shapes"] += [level_shape(i, *level) for i, level in enumerate(panel.levels)]
    entries = len(groups(panel)) + len(layout["shapes"])
    layout["showlegend"] = legend and entries > 1
    height = PLOT_HEIGHT + (LEGEND_ROW * math.ceil(entries / 2) if legend else 0)
    return {"data": data + room_for_levels(panel), "layout": layout, "height": height}


def band_shape(number: int, low: float, high: float, label: str) -> Spec:
    """Named in the legend: a narrow band has no room for its name."""
    return {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "x0": low,
        "x1": high,
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "line": {"width": 0},
        "fillcolor": plotly.see_through(GREY, BAND_ALPHAS[number % 2]),
        "name": plotly.broken(label, NAME_LETTERS),
        "showlegend": True,
    }


def level_shape(number: int, level: float, label: str) -> Spec:
    return {
        "type": "line",
        "xref": "paper",
        "yref": "y",
        "x0": 0,
        "x1": 1,
        "y0": level,
        "y1": level,
        "name": plotly.broken(label, NAME_LETTERS),
        "showlegend": True,
        "line": {"color": GREY, "width": 1.6, "dash": WEB_DASHES[number % len(WEB_DASHES)]},
    }


def room_for_levels(panel: Lines | Points) -> list[Spec]:
    """Invisible points: plotly leaves a margin around points, so that the lowest level does not lie on the edge."""
    start = next((x for series in panel.series for x in series.x), None)
    if start is None or not panel.levels:
        return []
    levels = [level for level, _ in panel.levels]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [start] * len(levels),
            "y": levels,
            "marker": {"opacity": 0},
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]


def hover(series: Series, where: str) -> Spec:
    template = f"<b>{plotly.text(series.name)}</b><br>{where}<br>%{{y:.4~g}}"
    if series.low is None or series.high is None:
        return {"hovertemplate": template + "<extra></extra>"}
    ends = zip(plotly.rounded(series.low), plotly.rounded(series.high), strict=True)
    interval = " (%{customdata[0]:.4~g} to %{customdata[1]:.4~g})<extra></extra>"
    return {"customdata": list(map(list, ends)), "hovertemplate": template + interval}


def csv_rows(panel: Lines | Points) -> Iterator[list[Any]]:
    yield ["series", "x", "y", "low", "high"]
    for series in panel.series:
        blank = [""] * len(series.x)
        xs: list[Any] = [panel.categories[round(x)] for x in series.x] if isinstance(panel, Points) else series.x
        for row in zip(xs, series.y, series.low or blank, series.high or blank, strict=True):
            yield [series.name, *row]
