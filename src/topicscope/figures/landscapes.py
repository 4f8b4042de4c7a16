"""Loss landscapes as in Figures 7 and 8: beta to the right, alpha upwards, both logarithmic, dark is low."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topicscope.figures.panels import Figure, Heat
from topicscope.theory import Landscape

CONTOURS = 12


def landscape_figure(
    name: str, title: str, grids: Mapping[str, Landscape], best: Mapping[str, tuple[float, float]] | None = None
) -> Figure:
    """One panel per landscape, by panel title.

    `best` has (alpha, beta) of the best attention, to be marked in place of the grid's lowest point.
    """
    marked = {panel: grid.minimum[:2] for panel, grid in grids.items()} | dict(best or {})
    alt = "The loss over alpha and beta on logarithmic axes; dark is low. A star marks the lowest point."
    panels = [landscape_panel(panel, grid, *marked[panel]) for panel, grid in grids.items()]
    return Figure(name, title, alt, list(panels))


def landscape_panel(title: str, grid: Landscape, alpha: float, beta: float) -> Heat:
    return Heat(
        title,
        np.round(grid.loss, 6).tolist(),
        "β: attention to the same word",
        "α: attention to the topic's other words",
        x=grid.beta.tolist(),
        y=grid.alpha.tolist(),
        log=True,
        marks=[(beta, alpha, "lowest")],
        references=[(1.0, 1.0, "uniform")],
        contours=CONTOURS,
        z_label="squared loss",
    )
