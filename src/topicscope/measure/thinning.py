"""Long curves with fewer points: the ends stay, and what sticks out."""

import numpy as np
from jaxtyping import Bool, Float, Int


def extremes(
    values: Float[np.ndarray, " S"], size: int, marked: Bool[np.ndarray, " S"] | None = None
) -> Int[np.ndarray, " P"]:
    """The places of the lowest and of the highest value in every `size` values, in order; S is a multiple of `size`.

    Where some are `marked`, the last of those stands for the lowest. NaN is neither. Always two places per group.

    Args:
        values: A curve (S).
        size: Size of a group.
        marked: Values that stay before others.

    Returns:
        Places in the curve.

    Example:
        >>> extremes(np.array([3.0, 1, 2, 5, 5, 9, 7, 6]), 4).tolist()
        [1, 3, 4, 5]
    """
    table = values.reshape(-1, size)
    unknown = np.isnan(table)
    low, high = np.where(unknown, np.inf, table).argmin(1), np.where(unknown, -np.inf, table).argmax(1)
    if marked is not None:
        chosen = marked.reshape(-1, size)
        low = np.where(chosen.any(1), size - 1 - chosen[:, ::-1].argmax(1), low)
    high = np.where(high == low, (high + 1) % size, high)
    pairs = np.sort(np.stack([low, high], 1), 1) + size * np.arange(len(table))[:, None]
    return np.asarray(pairs.ravel())


def thinned(values: Float[np.ndarray, " S"], most: int) -> Int[np.ndarray, " P"]:
    """At most so many places of a curve: its first and last point, its extremes, and extremes all along it.

    Args:
        values: A curve (S).
        most: Places.

    Returns:
        Places in the curve, in order.

    Example:
        >>> thinned(np.array([0.0, 1, 9, 1, -5, 1, 0]), 4).tolist()
        [0, 2, 4, 6]
    """
    count = len(values)
    if count <= most:
        return np.arange(count)
    groups = (most - 2) // 2
    size = -(-(count - 2) // groups)
    inner = np.full(groups * size, np.nan)
    inner[: count - 2] = values[1:-1]
    places = extremes(inner, size)
    return np.concatenate([[0], 1 + places[places < count - 2], [count - 1]])
