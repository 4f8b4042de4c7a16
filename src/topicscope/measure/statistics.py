"""Means with intervals over runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """A mean over runs with its 95% interval (Student's t)."""

    mean: float
    low: float
    high: float
    runs: int

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"

    @property
    def above_zero(self) -> bool:
        """Whether the interval excludes zero, from above."""
        return self.low > 0


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and interval; a single run has an interval without end."""
    array = np.asarray(values, dtype=float)
    mean, count = float(array.mean()), len(array)
    if count == 1:
        return Estimate(mean, -math.inf, math.inf, 1)
    half = t_quantile(count - 1) * float(array.std(ddof=1)) / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half, count)


T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def t_quantile(degrees: int) -> float:
    """97.5% quantile of Student's t; beyond ten degrees by Cornish and Fisher's expansion, good to three digits."""
    if degrees <= len(T_975):
        return T_975[degrees - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
