"""Curves: in a picture, on the page, as CSV."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from topicscope.figures import Lines, Series
from topicscope.report import levels, plotly_parts as plotly
from topicscope.report.layout import BAND_ALPHAS, GREY, Pen, pen_key, placed_bands
from topicscope.report.plotly_parts import Spec
from topicscope.report.style import DASHES, LINE_WIDTH, THIN_WIDTH

WEB_DASHES = ("solid", "dash", "dot", "dashdot")

csv_rows = levels.csv_rows


def draw(axes: Axes, lines: Lines, pens_of: dict[str, Pen]) -> None:
    for series in lines.series:
        pen = pens_of[pen_key(series)]
        axes.plot(series.x, series.y, **look(series, pen))
        if series.low is not None and series.high is not None:
            axes.fill_between(series.x, series.low, series.high, color=pen.colour, alpha=0.2, linewidth=0)
    if lines.log_x:
        axes.set_xscale("log")
    if lines.log_y:
        axes.set_yscale("log")
    for i, (low, high, _) in enumerate(placed_bands(lines)):
        axes.axvspan(low, high, color=GREY, alpha=BAND_ALPHAS[i % 2], linewidth=0)
    levels.draw_levels(axes, lines.levels)


def look(series: Series, pen: Pen) -> dict[str, Any]:
    width = THIN_WIDTH if series.thin else LINE_WIDTH
    marker = {"marker": "o", "markersize": 4} if series.markers else {}
    return {"color": pen.colour, "linestyle": DASHES[pen.dash], "linewidth": width, **marker}


def legend(lines: Lines, pens_of: dict[str, Pen]) -> list[tuple[str, Any]]:
    return levels.legend_entries(lines, lambda key, first: look(first, pens_of[key]))


def spec(lines: Lines, pens_of: dict[str, Pen], *, legend: bool) -> Spec:
    data: list[Spec] = []
    named: set[str] = set()
    where = f"{plotly.text(lines.x_label or 'x')}: %{{x:.6~g}}"
    for series in lines.series:
        key = pen_key(series)
        pen = pens_of[key]
        common: Spec = {"type": "scatter", "x": plotly.numbers(series.x), "legendgroup": key}
        if series.low is not None and series.high is not None:
            line = {"width": 0, "color": pen.colour}
            edge: Spec = common | {"mode": "lines", "line": line, "hoverinfo": "skip", "showlegend": False}
            filled = {"fill": "tonexty", "fillcolor": plotly.see_through(pen.colour)}
            data += [edge | {"y": plotly.rounded(series.low)}, edge | {"y": plotly.rounded(series.high)} | filled]
        curve = {
            "mode": "lines+markers" if series.markers else "lines",
            "y": plotly.rounded(series.y),
            "name": plotly.broken(key, levels.NAME_LETTERS),
            "showlegend": key not in named,
            "line": {"color": pen.colour, "width": 0.8 if series.thin else 1.8, "dash": WEB_DASHES[pen.dash]},
            "marker": {"size": 6, "color": pen.colour},
        }
        data.append(common | curve | levels.hover(series, where))
        named.add(key)
    layout = plotly.layout(plotly.axis(lines.x_label, log=lines.log_x), plotly.axis(lines.y_label, log=lines.log_y))
    return levels.finished_spec(lines, data, layout, legend=legend)
