"""Panels as plotly draws them on the page: heat maps, maps, curves, points and circles."""

import base64
import html
import math
import textwrap
from typing import Any

import numpy as np
from jaxtyping import Float

from topicscope.pages.panels import (
    BAND_ALPHAS,
    GREY,
    MARK_COLOUR,
    MOST_TICKS,
    NOTHING,
    Circles,
    Heat,
    Lines,
    Map,
    Pen,
    Points,
    Series,
    dodge,
    groups,
    in_order,
    pen_key,
    placed_bands,
    placed_marks,
    positions,
    topic_ticks,
)

Spec = dict[str, Any]  # a piece of what plotly draws, as JSON
MARKERS: Spec = {"type": "scatter", "mode": "markers"}
NAMED_MARKERS: Spec = {"type": "scatter", "mode": "markers+text"}
FEW_CELLS = 400  # of a matrix that is sent as digits


def axis_spec(label: str, *, log: bool = False, **more: Any) -> Spec:
    return (
        {"title": {"text": broken(label, 36), "standoff": 8}, "type": "log" if log else "linear"}
        | {"exponentformat": "power", "automargin": True}
        | ({"nticks": 5, "tickangle": 0} if log else {})
        | more
    )


def layout_spec(x_axis: Spec, y_axis: Spec, *, right: int = 14, **more: Any) -> Spec:
    return (
        {"xaxis": x_axis, "yaxis": y_axis, "margin": {"l": 44, "r": right, "t": 12, "b": 40}, "font": {"size": 13}}
        | {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "hovermode": "closest"}
        | {"hoverlabel": {"font": {"size": 13}, "namelength": -1}}
        | {"legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}}}
        | {"autosize": True}
        | more
    )


def hover_of(panel: Heat | Map, places: str, value: str) -> str:
    row, column = escaped(panel.y_label or "row"), escaped(panel.x_label or "column")
    return f"{row}: %{{y{places}}}<br>{column}: %{{x{places}}}<br>{value}<extra></extra>"


def escaped(words: str) -> str:
    """Text for plotly, which knows some tags, entities and %{...} of its own."""
    return html.escape(words, quote=False).replace("%{", "&#37;{")


def broken(words: str, width: int) -> str:
    return "<br>".join(map(escaped, textwrap.wrap(words, width)))


def see_through(colour: str, alpha: float = 0.2) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:.2f})"


def json_numbers(values: list[float]) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]


def rounded(values: list[float]) -> list[float | None]:
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values]


def cells(matrix: Float[np.ndarray, "m n"]) -> list[list[float | None]] | Spec:
    """Rows of digits; of a large matrix float32 in base64, smaller and faster. What is not finite shows nothing."""
    if matrix.size <= FEW_CELLS:
        return [rounded(row) for row in matrix.tolist()]
    shown = np.where(np.isfinite(matrix), matrix, np.nan)
    return {"float32": base64.b64encode(shown.astype("<f4").tobytes()).decode(), "columns": matrix.shape[1]}


SYMBOLS = {"star": "star", "ring": "circle"} | {side: f"triangle-{side}" for side in ("left", "right", "down", "up")}
LABEL_PLACES = {"left": "middle left", "right": "middle right", "below": "bottom center"}
ALL_LABELS = {"ticklabeloverflow": "allow"}  # margins leave room for them; plotly would measure each, twice per drawing
BAR: Spec = {"thickness": 11, "outlinewidth": 0, "xpad": 4, "ypad": 0, **ALL_LABELS}


def heat_spec(heat: Heat) -> Spec:
    """For words, `words` has the numbers from which the page makes the hover text: per cell it would be megabytes."""
    matrix = np.array(heat.z, dtype=float)
    finite = matrix[np.isfinite(matrix)] if np.isfinite(matrix).any() else np.zeros(1)
    title = {"title": {"text": escaped(heat.z_label), "side": "right"}} if heat.z_label else {}
    trace: Spec = {
        "type": "heatmap",
        "z": cells(matrix),
        "x": json_numbers(positions(heat.x, matrix.shape[1])),
        "y": json_numbers(positions(heat.y, matrix.shape[0])),
        "colorscale": "Cividis",
        "zmin": float(finite.min()) if heat.low is None else heat.low,
        "zmax": float(finite.max()) if heat.high is None else heat.high,
        "zauto": False,
        "colorbar": {**BAR, "exponentformat": "e", **title},
        "hovertemplate": hover_of(heat, ":.4~g", "%{z:.4~g}"),
    }
    ticks_of = {"x": topic_ticks(heat, matrix.shape[1]), "y": topic_ticks(heat, matrix.shape[0])}
    axes = [
        axis_spec(label, log=heat.log, showgrid=False, zeroline=False, **ALL_LABELS)
        for label in (heat.x_label, heat.y_label)
    ]
    for axis, ticks, given in zip(axes, ticks_of.values(), (heat.x, heat.y), strict=True):
        if ticks is not None:
            axis |= {"tickmode": "array", "tickvals": ticks[0], "ticktext": list(map(escaped, ticks[1]))}
        elif given is None:
            axis |= {"tick0": 0, "dtick": max(1, math.ceil(max(matrix.shape) / MOST_TICKS))}
        elif len(given) > 1:  # no room for marks at the edge, which the map would not fill
            axis["range"] = edges(given, log=heat.log)
    if heat.y is None:  # rows of a matrix: the first on top
        axes[1]["autorange"] = "reversed"
    panel: Spec = {"data": [trace, *mark_traces(heat)], "layout": layout_spec(*axes, right=8, showlegend=False)}
    if heat.contours:
        panel["contours"] = heat.contours  # the page draws them from the same numbers
    if heat.labels is not None:
        names = list(map(escaped, heat.labels))
        trace["customdata"] = [[[row, column] for column in names] for row in names]
        trace["hovertemplate"] = "%{customdata[0]} × %{customdata[1]}: %{z:.3~g}<extra></extra>"
    elif words := [name for name, ticks in ticks_of.items() if ticks is not None]:
        trace["hovertemplate"] = "%{text}: %{z:.3~g}<extra></extra>"
        panel["words"] = {"perTopic": heat.words_per_topic, "axes": words}
    return panel


def edges(places: list[float], *, log: bool) -> list[float]:
    """Where the first cell starts and the last one ends; on a log axis in powers of ten, as plotly wants them."""
    at = [math.log10(place) if log else place for place in places]
    return [at[0] - (at[1] - at[0]) / 2, at[-1] + (at[-1] - at[-2]) / 2]


def mark_traces(heat: Heat) -> list[Spec]:
    marks = placed_marks(heat)
    rings = [mark.shape == "ring" for mark in marks]
    trace: Spec = {
        **NAMED_MARKERS,
        "x": [mark.x for mark in marks],
        "y": [mark.y for mark in marks],
        "text": [escaped(mark.label) for mark in marks],
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


def map_spec(chart: Map) -> Spec:
    names = list(chart.names or {})
    known = [value for row in chart.z for value in row if value is not None]
    log = chart.log and min(known, default=0) > 0

    def shown(value: float | None) -> float | None:
        return math.log10(value) if log and value is not None else value

    def cell(value: float | None) -> list[str]:
        return ["-" if value is None else escaped(names[int(value)]) if names else f"{value:.4g}"]

    colours: Spec = {
        "colorscale": "Cividis",
        "zmin": shown(chart.low),
        "zmax": shown(chart.high),
        "zauto": None in (chart.low, chart.high),
        "colorbar": BAR | ({"tickprefix": "10^", "dtick": 1} if log else {"nticks": 5}),
    }
    if chart.names:
        steps = [[edge / len(names), c] for i, c in enumerate(chart.names.values()) for edge in (i, i + 1)]
        colours = {"colorscale": steps, "zmin": -0.5, "zmax": len(names) - 0.5, "showscale": False}
    trace: Spec = {
        "type": "heatmap",
        "x": list(map(escaped, chart.x)),
        "y": list(map(escaped, chart.y)),
        "z": [list(map(shown, row)) for row in chart.z],
        "customdata": [list(map(cell, row)) for row in chart.z],
        "xgap": 1,
        "ygap": 1,
        **colours,
        "hovertemplate": hover_of(chart, "", "%{customdata[0]}"),
        **({} if known else {"showscale": False}),
    }
    crosses: Spec = {
        **MARKERS,
        "x": [escaped(chart.x[column]) for column, _ in chart.marks],
        "y": [escaped(chart.y[row]) for _, row in chart.marks],
        "marker": {"symbol": "x-thin", "size": 8, "line": {"color": "black", "width": 2}},
        "hoverinfo": "skip",
    }
    axes = [axis_spec(label) | {"type": "category", "showgrid": False} for label in (chart.x_label, chart.y_label)]
    note = {"text": NOTHING, "showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
    layout = layout_spec(*axes, showlegend=False) | ({} if known else {"annotations": [note]})
    return {"data": [trace, crosses] if chart.marks else [trace], "layout": layout}


DASHES = ("solid", "dash", "dot", "dashdot")
LEVEL_DASHES = ("dash", "dot", "dashdot", "longdash")
PLOT_HEIGHT, LEGEND_ROW, NAME_LETTERS = 300, 20, 44
CROWDED = 8  # categories with so many letters, from which on their names stand aslant


def lines_spec(lines: Lines, pens_of: dict[str, Pen], *, legend: bool) -> Spec:
    data: list[Spec] = []
    where = f"{escaped(lines.x_label or 'x')}: %{{x:.6~g}}"
    for series in lines.series:
        pen = pens_of[pen_key(series)]
        common: Spec = {"type": "scatter", "x": json_numbers(series.x), "legendgroup": pen_key(series)}
        if series.low is not None and series.high is not None:
            line = {"width": 0, "color": pen.colour}
            edge = common | {"mode": "lines", "line": line, "hoverinfo": "skip", "showlegend": False}
            filled = {"fill": "tonexty", "fillcolor": see_through(pen.colour)}
            data += [edge | {"y": rounded(series.low)}, edge | {"y": rounded(series.high)} | filled]
        curve = {
            "mode": "lines+markers" if series.markers else "lines",
            "line": {"color": pen.colour, "width": 0.8 if series.thin else 1.8, "dash": DASHES[pen.dash]},
            "marker": {"size": 6, "color": pen.colour},
        }
        data.append(common | curve | named(lines, series) | hover(series, where))
    layout = layout_spec(axis_spec(lines.x_label, log=lines.log_x), axis_spec(lines.y_label, log=lines.log_y))
    return finished_spec(lines, data, layout, legend=legend)


def points_spec(points: Points, pens_of: dict[str, Pen], *, legend: bool) -> Spec:
    data: list[Spec] = []
    for i, series in enumerate(points.series):
        trace: Spec = {
            **MARKERS,
            "x": [x + dodge(i, len(points.series)) for x in series.x],
            "legendgroup": pen_key(series),
            "marker": {"size": 9, "color": pens_of[pen_key(series)].colour},
            "text": [escaped(points.categories[round(x)]) for x in series.x],
            **named(points, series),
            **hover(series, "%{text}"),
        }
        if series.low is not None and series.high is not None:
            above = rounded([max(0.0, high - y) for high, y in zip(series.high, series.y, strict=True)])
            below = rounded([max(0.0, y - low) for low, y in zip(series.low, series.y, strict=True)])
            ends = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
            trace["error_y"] = ends | {"thickness": 1.6, "width": 4}
        data.append(trace)
    count, longest = len(points.categories), max(map(len, points.categories), default=0)
    crowded = count > CROWDED and longest > CROWDED  # level names would run into each other
    names = [escaped(category) if crowded else broken(category, 16) for category in points.categories]
    x_axis = (
        axis_spec("")
        | {"tickmode": "array", "tickvals": list(range(count)), "ticktext": names, "range": [-0.5, count - 0.5]}
        | {"showgrid": False, "zeroline": False, "tickangle": -40 if crowded else 0}
    )
    return finished_spec(points, data, layout_spec(x_axis, axis_spec(points.y_label)), legend=legend)


def named(panel: Lines | Points, series: Series) -> Spec:
    """A curve's numbers, and its name: only the first of a group is in the legend."""
    key = pen_key(series)
    return {"y": rounded(series.y), "name": broken(key, NAME_LETTERS), "showlegend": groups(panel)[key] is series}


def hover(series: Series, where: str) -> Spec:
    template = f"<b>{escaped(series.name)}</b><br>{where}<br>%{{y:.4~g}}"
    if series.low is None or series.high is None:
        return {"hovertemplate": template + "<extra></extra>"}
    ends = zip(rounded(series.low), rounded(series.high), strict=True)
    interval = " (%{customdata[0]:.4~g} to %{customdata[1]:.4~g})<extra></extra>"
    return {"customdata": list(map(list, ends)), "hovertemplate": template + interval}


def finished_spec(panel: Lines | Points, data: list[Spec], layout: Spec, *, legend: bool) -> Spec:
    """With levels and bands (named in the legend: a narrow band has no room for its name), and the height it needs."""
    bands: list[Spec] = [
        {"type": "rect", "xref": "x", "yref": "paper", "x0": low, "x1": high, "y0": 0, "y1": 1}
        | {"layer": "below", "line": {"width": 0}, "fillcolor": see_through(GREY, BAND_ALPHAS[i % 2])}
        | {"name": broken(label, NAME_LETTERS), "showlegend": True}
        for i, (low, high, label) in enumerate(placed_bands(panel))
    ]
    levels: list[Spec] = [
        {"type": "line", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": level, "y1": level}
        | {"name": broken(label, NAME_LETTERS), "showlegend": True}
        | {"line": {"color": GREY, "width": 1.6, "dash": LEVEL_DASHES[i % len(LEVEL_DASHES)]}}
        for i, (level, label) in enumerate(panel.levels)
    ]
    entries = len(groups(panel)) + len(bands) + len(levels)
    layout |= {"shapes": bands + levels, "showlegend": legend and entries > 1}
    start = next((x for series in panel.series for x in series.x), None)
    if start is not None and levels:  # plotly leaves a margin around points: the lowest level is not on the edge
        at = {"x": [start] * len(levels), "y": [level for level, _ in panel.levels]}
        unseen = {"marker": {"opacity": 0}, "hoverinfo": "skip", "showlegend": False}
        data.append(MARKERS | at | unseen)
    rows = math.ceil(entries / 2) if legend else 0
    return {"data": data, "layout": layout, "height": PLOT_HEIGHT + LEGEND_ROW * rows}


HEIGHT, LETTERS = 520, 60


def circles_spec(circles: Circles) -> Spec:
    """`details` has what the page shows of a chosen circle: its name, the text, and things with a number each."""
    shown = in_order(circles)
    colours: Spec = {"color": shown.colours}
    if shown.colours is None:
        bar = BAR | {"title": {"text": escaped(circles.value_label), "side": "right"}}
        colours = {"color": rounded(shown.values), "colorscale": "Cividis", "colorbar": bar}
    look = {"size": rounded(shown.sizes), "opacity": 0.75, "line": {"color": "white", "width": 1}}
    trace: Spec = {
        **NAMED_MARKERS,
        "x": rounded(shown.x),
        "y": rounded(shown.y),
        "text": list(map(escaped, shown.names)),
        "textposition": "middle center",
        "textfont": {"size": 11},
        "marker": look | colours,
        "customdata": [["<br>".join(broken(line, LETTERS) for line in lines)] for lines in shown.texts],
        "hovertemplate": "%{customdata[0]}<extra></extra>",
    }
    axes = [axis_spec(label, showticklabels=False, ticks="") for label in (circles.x_label, circles.y_label)]
    if circles.ends is not None:
        axes[0]["range"], axes[1]["range"] = list(circles.ends[:2]), list(circles.ends[2:])
    panel: Spec = {"data": [trace], "layout": layout_spec(*axes, right=8, showlegend=False), "height": HEIGHT}
    if circles.details:
        both = zip(circles.names, circles.texts, circles.details, strict=True)
        panel["details"] = [[name, text[0], things] for name, text, things in both]
    return panel
