"""A map as part of a picture: a measure over two axes with named steps."""

from __future__ import annotations

import math
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from topicscope.figures import Figure, Map

MOST_TICKS = 8


def draw_map(axes: Axes, chart: Map) -> None:
    z = np.ma.masked_invalid(
        np.array([[math.nan if value is None else value for value in row] for row in chart.z], dtype=float)
    )
    how: dict[str, Any] = {"cmap": "cividis", "vmin": chart.low, "vmax": chart.high}
    if chart.names is not None:
        colours: Any = list(chart.names.values())
        how = {"cmap": mpl.colors.ListedColormap(colours), "vmin": -0.5, "vmax": len(chart.names) - 0.5}
    elif chart.log and z.count() and z.min() > 0:
        how = {"cmap": "cividis", "norm": mpl.colors.LogNorm(chart.low, chart.high)}
    image = axes.pcolormesh(
        np.arange(len(chart.x) + 1) - 0.5,
        np.arange(len(chart.y) + 1) - 0.5,
        z,
        edgecolors="white",
        linewidth=0.5,
        **how,
    )
    for axis, names in ((axes.xaxis, chart.x), (axes.yaxis, chart.y)):
        pick = range(0, len(names), math.ceil(len(names) / MOST_TICKS))
        crowded = axis is axes.xaxis and sum(len(names[i]) for i in pick) > 16
        turned: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        axis.set_ticks(list(pick), [names[i] for i in pick], **turned)
    axes.grid(visible=False)
    if not z.count():
        axes.text(0.5, 0.5, "nothing to show", transform=axes.transAxes, ha="center", va="center", color="#808080")
    elif chart.names is None:
        bar: Any = axes.figure.colorbar(image, ax=axes)
        bar.outline.set_visible(False)


def map_handles(figure: Figure) -> list[Any]:
    """For one legend under the figure: the words of its maps, and their colours."""
    names = {
        name: colour
        for panel in figure.panels
        if isinstance(panel, Map)
        for name, colour in (panel.names or {}).items()
    }
    return [mpl.patches.Patch(color=colour, label=name) for name, colour in names.items()]
