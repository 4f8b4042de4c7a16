"""Loss landscapes over (alpha, beta), as in Figures 7 and 8: a grid in both logarithms, all at once.

>>> grid = landscape(Setting.of(100, 300, 20), "diagonal", "paper", cap=True)
>>> round(float(grid.loss.min()), 5)
0.58328
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.theory.attention_loss import Convention, Entries, attention_loss
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import ValueMatrix

LOW, HIGH, PER_DECADE = -4.0, 6.9, 10
"""The paper's axes: 10^-4 to 10^6.9 in steps of 0.1 in the exponent."""


@dataclass(frozen=True)
class Landscape:
    """loss[i, j] at alpha[i], beta[j]."""

    alpha: Float[np.ndarray, " n"]
    beta: Float[np.ndarray, " n"]
    loss: Float[np.ndarray, "n n"]

    @property
    def minimum(self) -> tuple[float, float, float]:
        """alpha, beta and loss of the lowest point of the grid."""
        i, j = np.unravel_index(np.argmin(self.loss), self.loss.shape)
        return float(self.alpha[i]), float(self.beta[j]), float(self.loss[i, j])


def landscape(
    setting: Setting,
    kind: ValueMatrix,
    convention: Convention = "exact",
    *,
    cap: bool = False,
    low: float = LOW,
    high: float = HIGH,
    per_decade: int = PER_DECADE,
) -> Landscape:
    """The loss on the whole grid."""
    points = round((high - low) * per_decade) + 1
    axis = 10 ** (low + np.arange(points) / per_decade)
    loss = attention_loss(setting, Entries.of(kind, setting), axis[:, None], axis, convention, cap=cap)
    return Landscape(axis, axis, loss)
