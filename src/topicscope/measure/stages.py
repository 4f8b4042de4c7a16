"""The two stages (Section 5.1, Figure 4): does the value matrix settle before key and query begin?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


def half_rise(norm: Float[np.ndarray, " S"]) -> float:
    """t50: the first step at which the norm has made half of its rise from start to plateau (the mean of its last tenth)."""
    plateau = float(norm[-max(1, len(norm) // 10) :].mean())
    start = float(norm[0])
    if not plateau > start * 1.05:  # it has not risen
        return float("nan")
    return float(np.argmax(norm >= start + (plateau - start) / 2))


@dataclass(frozen=True)
class Stages:
    """Halfway points of the norms, and their ratio."""

    value: float
    key: float
    query: float

    @property
    def separation(self) -> float:
        """t50(key and query, the earlier of them) / t50(value): above 1 the value matrix is first."""
        return min(self.key, self.query) / max(self.value, 1.0)


def stages(metrics: dict[str, Float[np.ndarray, " S"]]) -> Stages:
    return Stages(*(half_rise(metrics[f"norm_{part}"]) for part in ("value", "key", "query")))
