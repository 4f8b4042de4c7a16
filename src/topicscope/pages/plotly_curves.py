"""Curves and points, as plotly draws them on the page: with levels, bands and legends."""

import math

from topicscope.pages import plotly_parts as plotly
from topicscope.pages.layout import BAND_ALPHAS, GREY, Pen, dodge, groups, pen_key, placed_bands
from topicscope.pages.panels import Lines, Points, Series

DASHES = ("solid", "dash", "dot", "dashdot")
LEVEL_DASHES = ("dash", "dot", "dashdot", "longdash")
PLOT_HEIGHT, LEGEND_ROW, NAME_LETTERS = 300, 20, 44
CROWDED = 8  # categories with so many letters, from which on their names stand aslant


def lines_spec(lines: Lines, pens_of: dict[str, Pen], *, legend: bool) -> plotly.Spec:
    data: list[plotly.Spec] = []
    where = f"{plotly.text(lines.x_label or 'x')}: %{{x:.6~g}}"
    for series in lines.series:
        pen = pens_of[pen_key(series)]
        common: plotly.Spec = {"type": "scatter", "x": plotly.numbers(series.x), "legendgroup": pen_key(series)}
        if series.low is not None and series.high is not None:
            line = {"width": 0, "color": pen.colour}
            edge: plotly.Spec = common | {"mode": "lines", "line": line, "hoverinfo": "skip", "showlegend": False}
            filled = {"fill": "tonexty", "fillcolor": plotly.see_through(pen.colour)}
            data += [edge | {"y": plotly.rounded(series.low)}, edge | {"y": plotly.rounded(series.high)} | filled]
        curve = {
            "mode": "lines+markers" if series.markers else "lines",
            "line": {"color": pen.colour, "width": 0.8 if series.thin else 1.8, "dash": DASHES[pen.dash]},
            "marker": {"size": 6, "color": pen.colour},
        }
        data.append(common | curve | named(lines, series) | hover(series, where))
    layout = plotly.layout(plotly.axis(lines.x_label, log=lines.log_x), plotly.axis(lines.y_label, log=lines.log_y))
    return finished_spec(lines, data, layout, legend=legend)


def points_spec(points: Points, pens_of: dict[str, Pen], *, legend: bool) -> plotly.Spec:
    data: list[plotly.Spec] = []
    for i, series in enumerate(points.series):
        trace: plotly.Spec = {
            "type": "scatter",
            "mode": "markers",
            "x": [x + dodge(i, len(points.series)) for x in series.x],
            "legendgroup": pen_key(series),
            "marker": {"size": 9, "color": pens_of[pen_key(series)].colour},
            "text": [plotly.text(points.categories[round(x)]) for x in series.x],
            **named(points, series),
            **hover(series, "%{text}"),
        }
        if series.low is not None and series.high is not None:
            trace["error_y"] = {
                "type": "data",
                "symmetric": False,
                "array": plotly.rounded([max(0.0, high - y) for high, y in zip(series.high, series.y, strict=True)]),
                "arrayminus": plotly.rounded([max(0.0, y - low) for low, y in zip(series.low, series.y, strict=True)]),
                "thickness": 1.6,
                "width": 4,
            }
        data.append(trace)
    count, longest = len(points.categories), max(map(len, points.categories), default=0)
    crowded = count > CROWDED and longest > CROWDED  # level names would run into each other
    x_axis = plotly.axis("") | {
        "tickmode": "array",
        "tickvals": list(range(count)),
        "ticktext": [
            plotly.text(category) if crowded else plotly.broken(category, 16) for category in points.categories
        ],
        "range": [-0.5, count - 0.5],
        "showgrid": False,
        "zeroline": False,
        "tickangle": -40 if crowded else 0,
    }
    return finished_spec(points, data, plotly.layout(x_axis, plotly.axis(points.y_label)), legend=legend)


def named(panel: Lines | Points, series: Series) -> plotly.Spec:
    """A curve's numbers, and its name: only the first of a group is in the legend."""
    key = pen_key(series)
    return {
        "y": plotly.rounded(series.y),
        "name": plotly.broken(key, NAME_LETTERS),
        "showlegend": groups(panel)[key] is series,
    }


def hover(series: Series, where: str) -> plotly.Spec:
    template = f"<b>{plotly.text(series.name)}</b><br>{where}<br>%{{y:.4~g}}"
    if series.low is None or series.high is None:
        return {"hovertemplate": template + "<extra></extra>"}
    ends = zip(plotly.rounded(series.low), plotly.rounded(series.high), strict=True)
    interval = " (%{customdata[0]:.4~g} to %{customdata[1]:.4~g})<extra></extra>"
    return {"customdata": list(map(list, ends)), "hovertemplate": template + interval}


def finished_spec(panel: Lines | Points, data: list[plotly.Spec], layout: plotly.Spec, *, legend: bool) -> plotly.Spec:
    """With levels and bands (named in the legend: a narrow band has no room for its name), and the height it needs."""
    bands: list[plotly.Spec] = [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": low,
            "x1": high,
            "y0": 0,
            "y1": 1,
            "layer": "below",
            "line": {"width": 0},
            "fillcolor": plotly.see_through(GREY, BAND_ALPHAS[i % 2]),
            "name": plotly.broken(label, NAME_LETTERS),
            "showlegend": True,
        }
        for i, (low, high, label) in enumerate(placed_bands(panel))
    ]
    levels: list[plotly.Spec] = [
        {
            "type": "line",
            "xref": "paper",
            "yref": "y",
            "x0": 0,
            "x1": 1,
            "y0": level,
            "y1": level,
            "name": plotly.broken(label, NAME_LETTERS),
            "showlegend": True,
            "line": {"color": GREY, "width": 1.6, "dash": LEVEL_DASHES[i % len(LEVEL_DASHES)]},
        }
        for i, (level, label) in enumerate(panel.levels)
    ]
    entries = len(groups(panel)) + len(bands) + len(levels)
    layout |= {"shapes": bands + levels, "showlegend": legend and entries > 1}
    start = next((x for series in panel.series for x in series.x), None)
    if start is not None and levels:  # plotly leaves a margin around points: the lowest level is not on the edge
        at = {"x": [start] * len(levels), "y": [level for level, _ in panel.levels]}
        unseen = {"marker": {"opacity": 0}, "hoverinfo": "skip", "showlegend": False}
        data.append({"type": "scatter", "mode": "markers", **at, **unseen})
    height = PLOT_HEIGHT + (LEGEND_ROW * math.ceil(entries / 2) if legend else 0)
    return {"data": data, "layout": layout, "height": height}
