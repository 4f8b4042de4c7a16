"""The two stages (Section 5.1, Figure 4): does the value matrix settle before key and query begin?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float


def risen(norm: Float[np.ndarray, " S"], share: float = 0.5) -> float:
    """The first step at which the norm has made a share of its rise from start to plateau (the mean of its last tenth).

    With half of the rise this step is called t50.
    """
    plateau = float(norm[-max(1, len(norm) // 10) :].mean())
    start = float(norm[0])
    if not plateau > start * 1.05:  # it has not risen
        return float("nan")
    return float(np.argmax(norm >= start + share * (plateau - start)))


@dataclass(frozen=True)
class Stages:
    """Halfway points of the norms, and their ratio."""

    value: float
    key: float
    query: float

    @property
    def separation(self) -> float:
        """t50(key and query, the earlier of them) / t50(value): above 1 the value matrix is first."""
        return float(np.fmin(self.key, self.query)) / max(self.value, 1.0)

    def as_dict(self) -> dict[str, float | None]:
        """None where a norm has not risen."""
        steps = {"t50_value": self.value, "t50_key": self.key, "t50_query": self.query, "separation": self.separation}
        return {name: value if np.isfinite(value) else None for name, value in steps.items()}


def stages(metrics: dict[str, Float[np.ndarray, " S"]], share: float = 0.5) -> Stages:
    """Halfway points; or the steps at which another share of the rise is made."""
    return Stages(*(risen(metrics[f"norm_{part}"], share) for part in ("value", "key", "query")))


def stage_bands(metrics: dict[str, Float[np.ndarray, " S"]]) -> list[tuple[float, float, str]]:
    """From, to and name of the two stages, where there are two.

    The second starts when key or query has made a tenth of its rise.
    """
    if not stages(metrics).separation > 1:
        return []
    begins = min(risen(metrics[f"norm_{part}"], 0.1) for part in ("key", "query"))
    return [(0.0, begins, "stage 1: value"), (begins, float(len(metrics["norm_key"]) - 1), "stage 2: key and query")]


Phase = Literal["two-stage", "staggered", "at once", "first stage only", "never", "diverged"]
PHASES: tuple[Phase, ...] = get_args(Phase)

TWO_STAGE = 2.0
"""From this stage separation on a run counts as two-stage."""

WORSE = 1.01
"""A run whose loss ends above this multiple of its start has diverged, even where its numbers are still finite."""


def phase(halves: Stages, starts: Stages, first_loss: float, last_loss: float) -> Phase:
    """Which kind of course a run took, from the steps at which half and a tenth of each rise were made.

    'diverged': the loss ends above its start, or is not finite. 'never': the value matrix does not rise.
    'first stage only': the value matrix rises, key and query do not. 'two-stage': key and query are at least
    TWO_STAGE times as late as value. 'staggered': they start so much later, but are not half-way so much later,
    since the value matrix levels off first and rises again once attention has formed. 'at once': all others.
    """
    if not last_loss <= WORSE * first_loss:  # NaN too
        return "diverged"
    if not np.isfinite(halves.value):
        return "never"
    if not np.isfinite(halves.separation):
        return "first stage only"
    if halves.separation >= TWO_STAGE:
        return "two-stage"
    return "staggered" if starts.separation >= TWO_STAGE else "at once"
