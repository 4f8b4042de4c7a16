"""Points with intervals by category: in a picture, on the page, as CSV."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from topicscope.figures import Points
from topicscope.report import levels, plotly_parts as plotly
from topicscope.report.layout import Pen, dodge, pen_key
from topicscope.report.plotly_parts import Spec
from topicscope.report.style import LINE_WIDTH, TURNED, wrapped

csv_rows = levels.csv_rows


def draw(axes: Axes, points: Points, pens_of: dict[str, Pen]) -> None:
    for i, series in enumerate(points.series):
        x, y = np.array(series.x, dtype=float) + dodge(i, len(points.series)), np.array(series.y, dtype=float)
        error = None
        if series.low is not None and series.high is not None:
            error = np.maximum(0, [y - np.array(series.low), np.array(series.high) - y])
        colour = pens_of[pen_key(series)].colour
        axes.errorbar(x, y, yerr=error, fmt="o", markersize=5, capsize=3, linewidth=LINE_WIDTH, color=colour)
    names = points.categories
    crowded = len(names) * max(map(len, names), default=0) > 36
    labels = [wrapped(name, 24 if crowded else 14) for name in names]
    axes.set_xticks(range(len(names)), labels, **({"rotation": 35, **TURNED} if crowded else {}))
    axes.set_xlim(-0.5, len(names) - 0.5)
    levels.draw_levels(axes, points.levels)


def legend(points: Points, pens_of: dict[str, Pen]) -> list[tuple[str, Any]]:
    return levels.legend_entries(
        points, lambda key, _: {"color": pens_of[key].colour, "marker": "o", "linestyle": "none"}
    )


def spec(points: Points, pens_of: dict[str, Pen], *, legend: bool) -> Spec:
    data: list[Spec] = []
    named: set[str] = set()
    for i, series in enumerate(points.series):
        key = pen_key(series)
        trace: Spec = {
            "type": "scatter",
            "mode": "markers",
            "x": [x + dodge(i, len(points.series)) for x in series.x],
            "y": plotly.rounded(series.y),
            "name": plotly.broken(key, levels.NAME_LETTERS),
            "legendgroup": key,
            "showlegend": key not in named,
            "marker": {"size": 9, "color": pens_of[key].colour},
            "text": [plotly.text(points.categories[round(x)]) for x in series.x],
            **levels.hover(series, "%{text}"),
        }
        if series.low is not None and series.high is not None:
            above = [max(0.0, high - y) for high, y in zip(series.high, series.y, strict=True)]
            below = [max(0.0, y - low) for low, y in zip(series.low, series.y, strict=True)]
            ends = {"array": plotly.rounded(above), "arrayminus": plotly.rounded(below)}
            trace["error_y"] = {"type": "data", "symmetric": False, "thickness": 1.6, "width": 4, **ends}
        data.append(trace)
        named.add(key)
    count = len(points.categories)
    x_axis = plotly.axis("") | {
        "tickmode": "array",
        "tickvals": list(range(count)),
        "ticktext": [plotly.broken(category, 16) for category in points.categories],
        "range": [-0.5, count - 0.5],
        "showgrid": False,
        "zeroline": False,
        "tickangle": 0,
    }
    return levels.finished_spec(points, data, plotly.layout(x_axis, plotly.axis(points.y_label)), legend=legend)
