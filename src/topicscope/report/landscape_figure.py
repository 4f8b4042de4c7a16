"""A loss landscape as in Figures 7 and 8: beta to the right, alpha upwards, both logarithmic, dark is low."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from topicscope.report.run_figure import STYLE, save


def draw_landscape(
    alpha: Float[np.ndarray, " n"],
    beta: Float[np.ndarray, " n"],
    loss: Float[np.ndarray, "n n"],
    minimum: tuple[float, float],
    title: str,
    folder: Path,
) -> list[Path]:
    """Write landscape.png and landscape.svg; `minimum` is (alpha, beta) of the best attention, marked if it is inside."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.6, 4.6))
        axes = figure.subplots()
        image = axes.pcolormesh(beta, alpha, loss, cmap="cividis", shading="nearest", rasterized=True)
        axes.contour(beta, alpha, loss, levels=12, colors="white", linewidths=0.4, alpha=0.5)
        axes.set(
            xscale="log",
            yscale="log",
            xlabel=r"$\beta$: attention to the same word",
            ylabel=r"$\alpha$: attention to other words of the topic",
            title=title,
        )
        axes.grid(visible=False)
        inside = np.clip(minimum[0], alpha[0], alpha[-1]), np.clip(minimum[1], beta[0], beta[-1])
        at_edge = inside != minimum
        axes.plot(
            inside[1],
            inside[0],
            marker="v" if at_edge else "*",
            markersize=11,
            color="#D55E00",
            markeredgecolor="white",
            clip_on=False,
            linestyle="none",
        )
        axes.plot(1, 1, marker="o", markersize=6, color="white", markeredgecolor="black", linestyle="none")
        label: dict[str, Any] = {
            "color": "black",
            "bbox": {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.5},
            "textcoords": "offset points",
        }
        axes.annotate(
            "lowest, off the edge" if at_edge else "lowest", (inside[1], inside[0]), (-10, 10), ha="right", **label
        )
        axes.annotate("uniform", (1, 1), (8, 8), **label)
        figure.colorbar(image, ax=axes, label="squared loss")
        return save(figure, folder, "landscape")
