"""When a curve has appeared, and when it is half-way."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int


def appears(steps: Int[np.ndarray, " S"], low: Float[np.ndarray, " S"]) -> int | None:
    """The first step from which on the lower end of an interval stays above zero.

    Args:
        steps: The steps (S).
        low: Lower ends (S).

    Returns:
        The step; None where the last one is not above zero.

    Example:
        >>> appears(np.array([0, 1, 10, 100]), np.array([-1.0, 1.0, -1.0, 1.0]))
        100
    """
    below = np.flatnonzero(~(low > 0))
    first = 0 if not len(below) else int(below[-1]) + 1
    return int(steps[first]) if first < len(steps) else None


def half_way(steps: Int[np.ndarray, " S"], curves: Float[np.ndarray, "*R S"]) -> Float[np.ndarray, "*R"]:
    """Where a curve has first made half of the way from its first to its last value; linear between steps.

    Args:
        steps: The steps (S).
        curves: Values at the steps (S), or several curves (R x S).

    Returns:
        The step of each curve; NaN where it does not rise.

    Example:
        >>> half_way(np.array([0, 10, 20]), np.array([0.0, 4.0, 16.0])).item()
        13.333333333333334
    """
    first, last = curves[..., :1], curves[..., -1:]
    reached = curves - (first + last) / 2
    place = np.clip((reached >= 0).argmax(-1), 1, None)[..., None]
    after, before = np.take_along_axis(reached, place, -1), np.take_along_axis(reached, place - 1, -1)
    x1, x0 = steps[place], steps[place - 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(last > first, x0 + (x1 - x0) * -before / (after - before), np.nan)[..., 0]
