"""Means with intervals over runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit


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
    """Mean and interval. The interval of a single run is the whole line."""
    array = np.asarray(values, dtype=float)
    mean, count = float(array.mean()), len(array)
    if count == 1:
        return Estimate(mean, -math.inf, math.inf, 1)
    half = t_quantile(count - 1) * float(array.std(ddof=1)) / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half, count)


def t_quantile(degrees: int) -> float:
    """The 97.5% quantile of Student's t.

    >>> round(t_quantile(4), 3)
    2.776
    """
    return float(stdtrit(degrees, 0.975))
