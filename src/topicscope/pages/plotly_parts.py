"""What all panels of the page share: axes, layout, and text and numbers as plotly takes them."""

import base64
import html
import math
import textwrap
from typing import Any

import numpy as np
from jaxtyping import Float

Spec = dict[str, Any]
"""A piece of what plotly draws, as JSON."""

FEW_CELLS = 400  # of a matrix that is sent as digits


def axis(label: str, *, log: bool = False) -> Spec:
    common: Spec = {
        "title": {"text": broken(label, 36), "standoff": 8},
        "type": "log" if log else "linear",
        "exponentformat": "power",
        "automargin": True,
    }
    return common | ({"nticks": 5, "tickangle": 0} if log else {})


def layout(x_axis: Spec, y_axis: Spec) -> Spec:
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


def text(words: str) -> str:
    """Text for plotly, which knows some tags, entities and %{...} of its own."""
    return html.escape(words, quote=False).replace("%{", "&#37;{")


def broken(words: str, width: int) -> str:
    return "<br>".join(map(text, textwrap.wrap(words, width)))


def see_through(colour: str, alpha: float = 0.2) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:.2f})"


def numbers(values: list[float]) -> list[float | None]:
    """None where JSON has no such number."""
    return [float(value) if math.isfinite(value) else None for value in values]


def rounded(values: list[float]) -> list[float | None]:
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values]


def cells(matrix: Float[np.ndarray, "m n"]) -> list[list[float | None]] | Spec:
    """A matrix as rows of digits; a large one as float32 in base64, which is smaller and much faster to write and read.

    Numbers that are not finite show nothing.
    """
    if matrix.size <= FEW_CELLS:
        return [rounded(row) for row in matrix.tolist()]
    shown = np.where(np.isfinite(matrix), matrix, np.nan)
    return {"float32": base64.b64encode(shown.astype("<f4").tobytes()).decode(), "columns": matrix.shape[1]}
