"""Panels as plotly draws them on the page: data and layout."""

from __future__ import annotations

import html
import math
import textwrap
from typing import Any

from topicscope.figures import Figure, Heat, Lines, Map, Panel, Points, Series
from topicscope.report.layout import (
    BAND_ALPHAS,
    GREY,
    MOST_TICKS,
    Pen,
    dodge,
    pen_key,
    placed_bands,
    placed_marks,
    positions,
    topic_ticks,
)

DIGITS = 6
PLOT_HEIGHT, LEGEND_ROW = 300, 20
NARROW = 3
"""Columns from which on panels are too narrow for legends of their own."""
DASHES = ("solid", "dash", "dot", "dashdot")
LEVEL_DASHES = ("dash", "dot", "dashdot", "longdash")

Spec = dict[str, Any]


def shared_keys(figure: Figure, pens_of: dict[str, Pen]) -> list[tuple[str, str, str]]:
    """Name, colour and dashes of the curves, where many narrow panels have the same ones: one legend for all of them leaves room for the curves."""
    if names := {
        name: colour
        for panel in figure.panels
        if isinstance(panel, Map)
        for name, colour in (panel.names or {}).items()
    }:
        return [(name, colour, "solid") for name, colour in names.items()]
    if figure.columns < NARROW or not all(
        isinstance(panel, Lines) and not panel.levels and not panel.bands for panel in figure.panels
    ):
        return []
    groups = [
        list(dict.fromkeys(pen_key(series) for series in panel.series))
        for panel in figure.panels
        if isinstance(panel, Lines)
    ]
    if len(groups) < 2 or len(groups[0]) < 2 or any(group != groups[0] for group in groups):
        return []
    return [(key, pens_of[key].colour, ("solid", "dashed", "dotted", "dashed")[pens_of[key].dash]) for key in groups[0]]


def panel_spec(panel: Panel, pens_of: dict[str, Pen], *, legend: bool = True) -> Spec:
    """What plotly draws (data, layout), and for words the numbers from which the page makes the hover text: cell by cell it would be megabytes."""
    if isinstance(panel, Heat):
        return _heat_spec(panel)
    if isinstance(panel, Map):
        return _map_spec(panel)
    spec = _lines_spec(panel, pens_of) if isinstance(panel, Lines) else _points_spec(panel, pens_of)
    entries = sum(bool(part.get("showlegend")) for part in [*spec["data"], *spec["layout"]["shapes"]])
    spec["layout"]["showlegend"] = legend and entries > 1
    spec["data"] += _room(panel)
    spec["height"] = PLOT_HEIGHT + (LEGEND_ROW * math.ceil(entries / 2) if legend else 0)
    return spec


def _heat_spec(heat: Heat) -> Spec:
    rows, columns = len(heat.z), len(heat.z[0])
    trace: Spec = {
        "type": "heatmap",
        "z": [_rounded(row) for row in heat.z],
        "x": _numbers(positions(heat.x, columns)),
        "y": _numbers(positions(heat.y, rows)),
        "colorscale": "Cividis",
        "zmin": _number(heat.low),
        "zmax": _number(heat.high),
        "zauto": heat.low is None and heat.high is None,
        "colorbar": {"thickness": 11, "outlinewidth": 0, "xpad": 4, "ypad": 0, "exponentformat": "e"},
        "hovertemplate": f"{_text(heat.y_label or 'row')}: %{{y:.4~g}}<br>{_text(heat.x_label or 'column')}: %{{x:.4~g}}<br>%{{z:.4~g}}<extra></extra>",
    }
    if heat.low is None or heat.high is None:
        finite = [value for row in heat.z for value in row if math.isfinite(value)] or [0.0]
        trace["zmin"] = _number(min(finite)) if heat.low is None else trace["zmin"]
        trace["zmax"] = _number(max(finite)) if heat.high is None else trace["zmax"]
        trace["zauto"] = False
    x_axis, y_axis = _axis(heat.x_label, log=heat.log), _axis(heat.y_label, log=heat.log)
    ends = (("x", topic_ticks(heat, columns), x_axis), ("y", topic_ticks(heat, rows), y_axis))
    for (_, ticks, axis), given in zip(ends, (heat.x, heat.y), strict=True):
        axis["showgrid"] = axis["zeroline"] = False
        if ticks is not None:
            axis |= {"tickmode": "array", "tickvals": ticks[0], "ticktext": ticks[1]}
        elif given is None and not heat.log:
            axis |= {"tick0": 0, "dtick": max(1, math.ceil(max(rows, columns) / MOST_TICKS))}
    if heat.y is None:  # rows of a matrix: the first on top
        y_axis["autorange"] = "reversed"
    spec: Spec = {"data": [trace, *_mark_traces(heat)], "layout": _layout(x_axis, y_axis) | {"showlegend": False}}
    spec["layout"]["margin"]["r"] = 8
    words = [name for name, ticks, _ in ends if ticks is not None]
    if heat.labels is not None:
        trace |= {
            "customdata": [[[row, column] for column in map(_text, heat.labels)] for row in map(_text, heat.labels)]
        }
        trace["hovertemplate"] = "%{customdata[0]} × %{customdata[1]}: %{z:.3~g}<extra></extra>"
    elif words:
        trace["hovertemplate"] = "%{text}: %{z:.3~g}<extra></extra>"
        spec["words"] = {"perTopic": heat.words_per_topic, "axes": words}
    return spec


def _map_spec(chart: Map) -> Spec:
    names = list(chart.names or {})
    known = [value for row in chart.z for value in row if value is not None]
    log = chart.log and min(known, default=0) > 0
    shown = [[None if value is None else math.log10(value) if log else value for value in row] for row in chart.z]
    ends = [None if end is None else math.log10(end) if log else end for end in (chart.low, chart.high)]
    colour: Spec = {"colorscale": "Cividis", "zmin": ends[0], "zmax": ends[1], "zauto": None in ends}
    colour["colorbar"] = {"thickness": 11, "outlinewidth": 0, "xpad": 4, "ypad": 0} | (
        {"tickprefix": "10^", "dtick": 1} if log else {"nticks": 5}
    )
    if chart.names:
        steps = [[edge / len(names), c] for i, c in enumerate(chart.names.values()) for edge in (i, i + 1)]
        colour = {"colorscale": steps, "zmin": -0.5, "zmax": len(names) - 0.5, "showscale": False}
    said = [[["-" if v is None else _text(names[int(v)]) if names else f"{v:.4g}"] for v in row] for row in chart.z]
    trace: Spec = {
        "type": "heatmap",
        "x": list(map(_text, chart.x)),
        "y": list(map(_text, chart.y)),
        "z": shown,
        "customdata": said,
        "xgap": 1,
        "ygap": 1,
        **colour,
        "hovertemplate": f"{_text(chart.y_label or 'row')}: %{{y}}<br>{_text(chart.x_label or 'column')}: %{{x}}<br>%{{customdata[0]}}<extra></extra>",
    }
    axes = [
        _axis(label, log=False) | {"type": "category", "showgrid": False} for label in (chart.x_label, chart.y_label)
    ]
    layout = _layout(*axes) | {"showlegend": False}
    if not known:
        trace["showscale"] = False
        layout["annotations"] = [
            {"text": "nothing to show", "showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
        ]
    return {"data": [trace], "layout": layout}


def _mark_traces(heat: Heat) -> list[Spec]:
    marks = placed_marks(heat)
    middle = (len(heat.z[0]) - 1) / 2
    xs = positions(heat.x, len(heat.z[0]))
    sides = ["middle left" if sum(x > position for position in xs) > middle else "middle right" for x, _, _ in marks]
    marker = {"symbol": "star", "size": 12, "color": "#D55E00", "line": {"color": "white", "width": 1}}
    trace = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [x for x, _, _ in marks],
        "y": [y for _, y, _ in marks],
        "text": [_text(label) for _, _, label in marks],
        "textposition": sides,
        "marker": marker,
        "cliponaxis": False,
        "hovertemplate": "%{text}: %{x:.4~g}, %{y:.4~g}<extra></extra>",
    }
    return [trace] if marks else []


def _lines_spec(lines: Lines, pens_of: dict[str, Pen]) -> Spec:
    data: list[Spec] = []
    named: set[str] = set()
    for series in lines.series:
        key = pen_key(series)
        pen = pens_of[key]
        common: Spec = {"type": "scatter", "x": _numbers(series.x), "legendgroup": key}
        if series.low is not None and series.high is not None:
            edge: Spec = common | {
                "mode": "lines",
                "line": {"width": 0, "color": pen.colour},
                "hoverinfo": "skip",
                "showlegend": False,
            }
            data += [
                edge | {"y": _rounded(series.low)},
                edge | {"y": _rounded(series.high), "fill": "tonexty", "fillcolor": _see_through(pen.colour)},
            ]
        data.append(
            common
            | {
                "mode": "lines+markers" if series.markers else "lines",
                "y": _rounded(series.y),
                "name": _lines(key, 44),
                "showlegend": key not in named,
                "line": {"color": pen.colour, "width": 1.8, "dash": DASHES[pen.dash]},
                "marker": {"size": 6, "color": pen.colour},
                **_hover(series, f"{_text(lines.x_label or 'x')}: %{{x:.6~g}}"),
            }
        )
        named.add(key)
    layout = _layout(_axis(lines.x_label, log=lines.log_x), _axis(lines.y_label, log=lines.log_y))
    layout["shapes"] = [_band(i, *band) for i, band in enumerate(placed_bands(lines))] + _levels(lines.levels)
    return {"data": data, "layout": layout}


def _points_spec(points: Points, pens_of: dict[str, Pen]) -> Spec:
    data: list[Spec] = []
    named: set[str] = set()
    for i, series in enumerate(points.series):
        key = pen_key(series)
        trace: Spec = {
            "type": "scatter",
            "mode": "markers",
            "x": [x + dodge(i, len(points.series)) for x in series.x],
            "y": _rounded(series.y),
            "name": _lines(key, 44),
            "legendgroup": key,
            "showlegend": key not in named,
            "marker": {"size": 9, "color": pens_of[key].colour},
            "text": [_text(points.categories[round(x)]) for x in series.x],
            **_hover(series, "%{text}"),
        }
        if series.low is not None and series.high is not None:
            above = _rounded([max(0.0, high - y) for high, y in zip(series.high, series.y, strict=True)])
            below = _rounded([max(0.0, y - low) for low, y in zip(series.low, series.y, strict=True)])
            trace["error_y"] = {
                "type": "data",
                "symmetric": False,
                "array": above,
                "arrayminus": below,
                "thickness": 1.6,
                "width": 4,
            }
        data.append(trace)
        named.add(key)
    count = len(points.categories)
    x_axis = _axis("", log=False) | {
        "tickmode": "array",
        "tickvals": list(range(count)),
        "ticktext": [_lines(category, 16) for category in points.categories],
        "range": [-0.5, count - 0.5],
        "showgrid": False,
        "zeroline": False,
        "tickangle": 0,
    }
    layout = _layout(x_axis, _axis(points.y_label, log=False))
    layout["shapes"] = _levels(points.levels)
    return {"data": data, "layout": layout}


def _hover(series: Series, where: str) -> Spec:
    template = f"<b>{_text(series.name)}</b><br>{where}<br>%{{y:.4~g}}"
    if series.low is None or series.high is None:
        return {"hovertemplate": template + "<extra></extra>"}
    interval = [list(ends) for ends in zip(_rounded(series.low), _rounded(series.high), strict=True)]
    return {
        "customdata": interval,
        "hovertemplate": template + " (%{customdata[0]:.4~g} to %{customdata[1]:.4~g})<extra></extra>",
    }


def _band(index: int, low: float, high: float, label: str) -> Spec:
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
        "fillcolor": _see_through(GREY, BAND_ALPHAS[index % 2]),
        "name": _lines(label, 44),
        "showlegend": True,
    }


def _levels(levels: list[tuple[float, str]]) -> list[Spec]:
    return [
        {
            "type": "line",
            "xref": "paper",
            "yref": "y",
            "x0": 0,
            "x1": 1,
            "y0": level,
            "y1": level,
            "name": _lines(label, 44),
            "showlegend": True,
            "line": {"color": GREY, "width": 1.6, "dash": LEVEL_DASHES[i % len(LEVEL_DASHES)]},
        }
        for i, (level, label) in enumerate(levels)
    ]


def _room(panel: Lines | Points) -> list[Spec]:
    """Points that are not seen: plotly leaves a margin around points, so that a level (often the lowest of all) does not lie on the edge."""
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


def _axis(label: str, *, log: bool) -> Spec:
    axis: Spec = {
        "title": {"text": _lines(label, 36), "standoff": 8},
        "type": "log" if log else "linear",
        "exponentformat": "power",
        "automargin": True,
    }
    return axis | ({"nticks": 5, "tickangle": 0} if log else {})


def _layout(x_axis: Spec, y_axis: Spec) -> Spec:
    return {
        "xaxis": x_axis,
        "yaxis": y_axis,
        "margin": {"l": 44, "r": 14, "t": 12, "b": 40},
        "font": {"size": 13},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "closest",
        "hoverlabel": {"font": {"size": 13}, "namelength": -1},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}},
        "autosize": True,
    }


def _text(text: str) -> str:
    """Text for plotly, which knows some tags, entities and %{...} of its own."""
    return html.escape(text, quote=False).replace("%{", "&#37;{")


def _lines(text: str, width: int) -> str:
    return "<br>".join(map(_text, textwrap.wrap(text, width)))


def _see_through(colour: str, alpha: float = 0.2) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:.2f})"


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _numbers(values: list[float]) -> list[float | None]:
    return [_number(value) for value in values]


def _rounded(values: list[float]) -> list[float | None]:
    return [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in values]
