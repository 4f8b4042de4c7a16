"""A heat map: in a picture, on the page, as CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from topicscope.figures import Heat
from topicscope.report import plotly_parts as plotly
from topicscope.report.layout import MARK_COLOUR, MOST_TICKS, Pen, placed_marks, positions, topic_ticks
from topicscope.report.plotly_parts import Spec
from topicscope.report.style import TURNED, plain

SHAPES = {  # as matplotlib and plotly name them
    "star": ("*", "star"),
    "ring": ("o", "circle"),
    "left": ("<", "triangle-left"),
    "right": (">", "triangle-right"),
    "down": ("v", "triangle-down"),
    "up": ("^", "triangle-up"),
}
LABEL_BOX = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5}


def draw(axes: Axes, heat: Heat, _pens: dict[str, Pen]) -> None:
    z = np.array(heat.z, dtype=float)
    xs, ys = positions(heat.x, z.shape[1]), positions(heat.y, z.shape[0])
    image: Any
    colours: Any = {"cmap": "cividis", "vmin": heat.low, "vmax": heat.high}
    if heat.x is None and heat.y is None and not heat.log:
        aspect: Any = "equal" if z.shape[0] == z.shape[1] else "auto"
        image = axes.imshow(z, interpolation="nearest", aspect=aspect, **colours)
    else:
        image = axes.pcolormesh(xs, ys, z, shading="nearest", rasterized=True, **colours)
        if heat.log:
            axes.set(xscale="log", yscale="log")
            axes.minorticks_off()
        if heat.y is None:  # rows of a matrix: the first on top
            axes.invert_yaxis()
    if heat.contours and np.ptp(z[np.isfinite(z)]) > 0:
        axes.contour(xs, ys, z, levels=heat.contours, colors="white", linewidths=0.4, alpha=0.5)
    for axis, given, length in ((axes.xaxis, heat.x, z.shape[1]), (axes.yaxis, heat.y, z.shape[0])):
        if (ticks := topic_ticks(heat, length)) is not None:
            turned = {"rotation": 45, **TURNED} if heat.labels is not None and axis is axes.xaxis else {}
            axis.set_ticks(*ticks, **turned)
        elif given is None and not heat.log:
            axis.set_major_locator(mpl.ticker.MaxNLocator(MOST_TICKS, integer=True))
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    axes.grid(visible=False)
    draw_marks(axes, heat)
    bar: Any = axes.figure.colorbar(image, ax=axes, label=plain(heat.z_label))
    bar.outline.set_visible(False)


def draw_marks(axes: Axes, heat: Heat) -> None:
    for mark in placed_marks(heat):
        ring = mark.shape == "ring"
        axes.plot(
            mark.x,
            mark.y,
            marker=SHAPES[mark.shape][0],
            markersize=6 if ring else 12,
            color="white" if ring else MARK_COLOUR,
            markeredgecolor="black" if ring else "white",
            linestyle="none",
            clip_on=False,
        )
        axes.annotate(
            plain(mark.label),
            (mark.x, mark.y),
            (-9 if mark.label_left else 9, {"down": 9, "up": -9}.get(mark.shape, 0)),
            textcoords="offset points",
            ha="right" if mark.label_left else "left",
            va="center",
            bbox=LABEL_BOX,
            fontsize=10,
        )


def legend(_heat: Heat, _pens: dict[str, Pen]) -> list[tuple[str, Any]]:
    return []


def spec(heat: Heat, _pens: dict[str, Pen], *, legend: bool) -> Spec:
    """For words, `words` has the numbers from which the page makes the hover text: per cell it would be megabytes."""
    del legend
    rows, columns = len(heat.z), len(heat.z[0])
    finite = [value for row in heat.z for value in row if math.isfinite(value)] or [0.0]
    trace: Spec = {
        "type": "heatmap",
        "z": [plotly.rounded(row) for row in heat.z],
        "x": plotly.numbers(positions(heat.x, columns)),
        "y": plotly.numbers(positions(heat.y, rows)),
        "colorscale": "Cividis",
        "zmin": plotly.number(min(finite) if heat.low is None else heat.low),
        "zmax": plotly.number(max(finite) if heat.high is None else heat.high),
        "zauto": False,
        "colorbar": {"thickness": 11, "outlinewidth": 0, "xpad": 4, "ypad": 0, "exponentformat": "e"},
        "hovertemplate": f"{plotly.text(heat.y_label or 'row')}: %{{y:.4~g}}"
        f"<br>{plotly.text(heat.x_label or 'column')}: %{{x:.4~g}}<br>%{{z:.4~g}}<extra></extra>",
    }
    if heat.z_label:
        trace["colorbar"]["title"] = {"text": plotly.text(heat.z_label), "side": "right"}
    x_axis, y_axis = plotly.axis(heat.x_label, log=heat.log), plotly.axis(heat.y_label, log=heat.log)
    ends = (("x", topic_ticks(heat, columns), x_axis), ("y", topic_ticks(heat, rows), y_axis))
    for (_, ticks, axis), given in zip(ends, (heat.x, heat.y), strict=True):
        axis["showgrid"] = axis["zeroline"] = False
        if ticks is not None:
            axis |= {"tickmode": "array", "tickvals": ticks[0], "ticktext": ticks[1]}
        elif given is None and not heat.log:
            axis |= {"tick0": 0, "dtick": max(1, math.ceil(max(rows, columns) / MOST_TICKS))}
        elif given is not None and len(given) > 1:  # no room for marks at the edge, which the map would not fill
            axis["range"] = edges(given, log=heat.log)
    if heat.y is None:  # rows of a matrix: the first on top
        y_axis["autorange"] = "reversed"
    layout = plotly.layout(x_axis, y_axis) | {"showlegend": False}
    layout["margin"]["r"] = 8
    panel: Spec = {"data": [trace, *mark_traces(heat)], "layout": layout}
    if heat.contours:
        panel["contours"] = heat.contours  # the page draws them from the same numbers
    words = [name for name, ticks, _ in ends if ticks is not None]
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


def mark_traces(heat: Heat) -> list[Spec]:
    marks = placed_marks(heat)
    rings = [mark.shape == "ring" for mark in marks]
    marker: Spec = {
        "symbol": [SHAPES[mark.shape][1] for mark in marks],
        "size": [8 if ring else 12 for ring in rings],
        "color": ["white" if ring else MARK_COLOUR for ring in rings],
        "line": {"color": ["black" if ring else "white" for ring in rings], "width": 1},
    }
    trace = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [mark.x for mark in marks],
        "y": [mark.y for mark in marks],
        "text": [plotly.text(mark.label) for mark in marks],
        "textposition": ["middle left" if mark.label_left else "middle right" for mark in marks],
        "marker": marker,
        "cliponaxis": False,
        "hovertemplate": "%{text}: %{x:.4~g}, %{y:.4~g}<extra></extra>",
    }
    return [trace] if marks else []


def csv_rows(heat: Heat) -> Iterator[list[Any]]:
    yield ["x", "y", "value"]
    for y, row in zip(heat.y or range(len(heat.z)), heat.z, strict=True):
        for x, value in zip(heat.x or range(len(row)), row, strict=True):
            yield [x, y, value]
