"""Small pictures for the terminal."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from rich.text import Text

SHADES = " ░▒▓█"


def heat_map(matrix: Float[np.ndarray, "m n"], title: str, size: int = 24) -> Text:
    """A matrix in shades, averaged down to at most `size` rows; two characters per cell, since characters are tall."""
    rows, columns = (np.array_split(np.arange(n), min(n, size)) for n in matrix.shape)
    small = np.array([[matrix[np.ix_(r, c)].mean() for c in columns] for r in rows])
    low, high = small.min(), small.max()
    level = np.zeros_like(small) if high == low else (small - low) / (high - low)
    picture = "\n".join(
        "  " + "".join(SHADES[min(int(x * len(SHADES)), len(SHADES) - 1)] * 2 for x in row) for row in level
    )
    return Text(f"{title}\n{picture}")
