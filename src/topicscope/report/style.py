"""How pictures look: fonts, sizes, dashes, and text that fits."""

from __future__ import annotations

import textwrap
from typing import Any

# Small panels and large letters: a figure of two columns is still read at half its width.
STYLE: Any = {
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "legend.fontsize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "svg.hashsalt": "topicscope",
    "figure.constrained_layout.use": True,
}

SUPTITLE_LETTERS, TITLE_LETTERS, LABEL_LETTERS, LEGEND_LETTERS = 34, 32, 28, 32  # where lines of text end, per panel
DASHES = ("-", "--", ":", "-.")
LEVEL_DASHES = ((5, 2), (1.5, 1.5), (6, 2, 1.5, 2), (9, 3))
LINE_WIDTH, THIN_WIDTH, LEVEL_WIDTH = 1.6, 0.6, 1.4
TURNED: Any = {"ha": "right", "rotation_mode": "anchor"}  # tick labels that are turned end at their tick


def plain(text: str) -> str:
    """Text as it is: a dollar sign does not start a formula."""
    return text.replace("$", r"\$")


def wrapped(text: str, width: float) -> str:
    return textwrap.fill(plain(text), round(width))
