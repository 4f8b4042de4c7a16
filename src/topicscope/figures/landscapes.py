"""Loss landscapes as in Figures 7 and 8: beta to the right, alpha upwards, both logarithmic, dark is low."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topicscope.figures.panels import Figure, Heat, Section, TableData
from topicscope.theory import AttentionLandscape, Landscape

CONTOURS = 12


def landscape_sections(result: AttentionLandscape) -> list[Section]:
    """The landscape with its minimum, and what uniform attention and the best one cost."""
    stage, best = result.stage, result.stage.optimum
    title = f"{stage.value_matrix} W_V: {stage.setting.letters} ({stage.convention})"
    figure = landscape_figure("landscape", title, {"": result.grid}, {"": (best.alpha, best.beta)})
    alpha, beta, loss = result.grid.minimum
    places = {
        "uniform attention": (1.0, 1.0, 1.0, stage.uniform_loss),
        "best attention": (best.alpha, best.beta, best.gamma, best.loss),
        "lowest point of the grid": (alpha, beta, stage.setting.gamma(alpha, beta), loss),
    }
    rows = [[name, *(f"{value:.6g}" for value in values)] for name, values in places.items()]
    columns = ["", "α (same topic)", "β (same word)", "γ (average)", "loss"]
    config = {"value_matrix": stage.value_matrix, "convention": stage.convention, "cap": stage.cap}
    flags = {"value_matrix": stage.value_matrix, "convention": stage.convention, **stage.setting.as_dict()}
    command = "topicscope theory landscape " + " ".join(f"--{k.replace('_', '-')} {v}" for k, v in flags.items())
    return [
        Section(
            "The best attention for a frozen W_V",
            "α and β are attention weights; a word of another topic has 1. γ is the average weight inside a topic.",
            command + (" --cap" if stage.cap else " --no-cap"),
            [figure],
            [TableData("Attention and loss", columns, rows)],
            config=config | stage.setting.as_dict(),
        )
    ]


def landscape_figure(
    name: str, title: str, grids: Mapping[str, Landscape], best: Mapping[str, tuple[float, float]] | None = None
) -> Figure:
    """One panel per landscape, by panel title.

    `best` has (alpha, beta) of the best attention, to be marked in place of the grid's lowest point.
    """
    marked = {panel: grid.minimum[:2] for panel, grid in grids.items()} | dict(best or {})
    alt = (
        "The loss over alpha and beta on logarithmic axes; dark is low. "
        "The coloured mark is the lowest point, the ring uniform attention."
    )
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
