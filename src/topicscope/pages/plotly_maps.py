"""Heat maps and maps, as plotly draws them on the page."""

import math

import numpy as np

from topicscope.pages import plotly_parts as plotly
from topicscope.pages.layout import MARK_COLOUR, MOST_TICKS, NOTHING, placed_marks, positions, topic_ticks
from topicscope.pages.panels import Heat, Map

SYMBOLS = {
    "star": "star",
    "ring": "circle",
    "left": "triangle-left",
    "right": "triangle-right",
    "down": "triangle-down",
    "up": "triangle-up",
}
LABEL_PLACES = {"left": "middle left", "right": "middle right", "below": "bottom center"}
ALL_LABELS = {"ticklabeloverflow": "allow"}  # margins leave room for them; plotly would measure each, twice per drawing
BAR: plotly.Spec = {"thickness": 11, "outlinewidth": 0, "xpad": 4, "ypad": 0, **ALL_LABELS}


def heat_spec(heat: Heat) -> plotly.Spec:
    """For words, `words` has the numbers from which the page makes the hover text: per cell it would be megabytes."""
    matrix = np.array(heat.z, dtype=float)
    rows, columns = matrix.shape
    finite = matrix[np.isfinite(matrix)] if np.isfinite(matrix).any() else np.zeros(1)
    title = {"title": {"text": plotly.text(heat.z_label), "side": "right"}} if heat.z_label else {}
    trace: plotly.Spec = {
        "type": "heatmap",
        "z": plotly.cells(matrix),
        "x": plotly.numbers(positions(heat.x, columns)),
        "y": plotly.numbers(positions(heat.y, rows)),
        "colorscale": "Cividis",
        "zmin": float(finite.min()) if heat.low is None else heat.low,
        "zmax": float(finite.max()) if heat.high is None else heat.high,
        "zauto": False,
        "colorbar": {**BAR, "exponentformat": "e", **title},
        "hovertemplate": f"{plotly.text(heat.y_label or 'row')}: %{{y:.4~g}}"
        f"<br>{plotly.text(heat.x_label or 'column')}: %{{x:.4~g}}<br>%{{z:.4~g}}<extra></extra>",
    }
    x_axis, y_axis = plotly.axis(heat.x_label, log=heat.log), plotly.axis(heat.y_label, log=heat.log)
    ticks_of = {"x": topic_ticks(heat, columns), "y": topic_ticks(heat, rows)}
    for axis, ticks, given in zip((x_axis, y_axis), ticks_of.values(), (heat.x, heat.y), strict=True):
        axis |= {"showgrid": False, "zeroline": False, **ALL_LABELS}
        if ticks is not None:
            axis |= {"tickmode": "array", "tickvals": ticks[0], "ticktext": list(map(plotly.text, ticks[1]))}
        elif given is None:
            axis |= {"tick0": 0, "dtick": max(1, math.ceil(max(rows, columns) / MOST_TICKS))}
        elif len(given) > 1:  # no room for marks at the edge, which the map would not fill
            axis["range"] = edges(given, log=heat.log)
    if heat.y is None:  # rows of a matrix: the first on top
        y_axis["autorange"] = "reversed"
    layout = plotly.layout(x_axis, y_axis) | {"showlegend": False}
    layout["margin"]["r"] = 8
    panel: plotly.Spec = {"data": [trace, *mark_traces(heat)], "layout": layout}
    if heat.contours:
        panel["contours"] = heat.contours  # the page draws them from the same numbers
    words = [name for name, ticks in ticks_of.items() if ticks is not None]
    if heat.labels is not None:
        names = list(map(plotly.text, heat.labels))
        trace["customdata"] = [[[row, column] for column in names] for row in names]
        trace["hovertemplate"] = "%{customdata[0]} × %{customdata[1]}: %{z:.3~g}<extra></extra>"
    elif words:
        trace["hovertemplate"] = "%{text}: %{z:.3~g}<extra></extra>"
        panel["words"] = {"perTopic": heat.words_per_topic, "axes": words}
    return panel


def edges(places: list[float], *, log: bool) -> list[float]:
    """Where the first cell starts and the last one ends; on a log axis in powers of ten, as plotly wants them."""
    at = [math.log10(place) if log else place for place in places]
    return [at[0] - (at[1] - at[0]) / 2, at[-1] + (at[-1] - at[-2]) / 2]


def mark_traces(heat: Heat) -> list[plotly.Spec]:
    marks = placed_marks(heat)
    rings = [mark.shape == "ring" for mark in marks]
    trace: plotly.Spec = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [mark.x for mark in marks],
        "y": [mark.y for mark in marks],
        "text": [plotly.text(mark.label) for mark in marks],
        "textposition": [LABEL_PLACES[mark.label_at] for mark in marks],
        "marker": {
            "symbol": [SYMBOLS[mark.shape] for mark in marks],
            "size": [8 if ring else 12 for ring in rings],
            "color": ["white" if ring else MARK_COLOUR for ring in rings],
            "line": {"color": ["black" if ring else "white" for ring in rings], "width": 1},
        },
        "cliponaxis": False,
        "hovertemplate": "%{text}: %{x:.4~g}, %{y:.4~g}<extra></extra>",
    }
    return [trace] if marks else []


def map_spec(chart: Map) -> plotly.Spec:
    names = list(chart.names or {})
    known = [value for row in chart.z for value in row if value is not None]
    log = chart.log and min(known, default=0) > 0

    def shown(value: float | None) -> float | None:
        return None if value is None else math.log10(value) if log else value

    def cell(value: float | None) -> list[str]:
        return ["-" if value is None else plotly.text(names[int(value)]) if names else f"{value:.4g}"]

    colour: plotly.Spec = {
        "colorscale": "Cividis",
        "zmin": shown(chart.low),
        "zmax": shown(chart.high),
        "zauto": None in (chart.low, chart.high),
        "colorbar": BAR | ({"tickprefix": "10^", "dtick": 1} if log else {"nticks": 5}),
    }
    if chart.names:
        steps = [[edge / len(names), c] for i, c in enumerate(chart.names.values()) for edge in (i, i + 1)]
        colour = {"colorscale": steps, "zmin": -0.5, "zmax": len(names) - 0.5, "showscale": False}
    trace: plotly.Spec = {
        "type": "heatmap",
        "x": list(map(plotly.text, chart.x)),
        "y": list(map(plotly.text, chart.y)),
        "z": [list(map(shown, row)) for row in chart.z],
        "customdata": [list(map(cell, row)) for row in chart.z],
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
    crosses: plotly.Spec = {
        "type": "scatter",
        "mode": "markers",
        "x": [plotly.text(chart.x[column]) for column, _ in chart.marks],
        "y": [plotly.text(chart.y[row]) for _, row in chart.marks],
        "marker": {"symbol": "x-thin", "size": 8, "line": {"color": "black", "width": 2}},
        "hoverinfo": "skip",
    }
    return {"data": [trace, *([crosses] if chart.marks else [])], "layout": layout}
