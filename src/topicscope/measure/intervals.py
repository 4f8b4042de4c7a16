"""Intervals: the middle 95% of resamples, Student's over runs, and how records hold them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

Interval = tuple[float, float]


def with_intervals(data: Mapping[str, Any]) -> dict[str, Any]:
    """Make pairs of the intervals of a record that JSON holds as lists.

    Args:
        data: The record.

    Returns:
        The record, with its intervals as pairs.

    Example:
        >>> with_intervals({"mean": 1.0, "interval": [0.5, 1.5]})
        {'mean': 1.0, 'interval': (0.5, 1.5)}
    """
    return {
        name: (value[0], value[1]) if name.endswith("interval") and value is not None else value
        for name, value in data.items()
    }


def columns(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested record as flat columns. An interval becomes two, also where it is None.

    Args:
        record: The record.
        prefix: What the names begin with.

    Returns:
        Values by column.

    Example:
        >>> columns({"effect": {"mean": 1.0, "interval": (0.5, 1.5)}})
        {'effect_mean': 1.0, 'effect_interval_low': 0.5, 'effect_interval_high': 1.5}
    """
    flat: dict[str, Any] = {}
    for key, value in record.items():
        name = prefix + key
        if isinstance(value, Mapping):
            flat |= columns(value, f"{name}_")
        elif key.endswith("interval"):
            flat |= dict(zip((f"{name}_low", f"{name}_high"), value or (None, None), strict=True))
        else:
            flat[name] = value
    return flat


def interval(values: Float[np.ndarray, " R"]) -> Interval | None:
    """The middle 95% of resampled values.

    Args:
        values: Resamples (R); those that are no numbers are left out.

    Returns:
        Both ends; None where there is nothing to resample.

    Example:
        >>> interval(np.arange(1001.0)), interval(np.array([1.0]))
        ((25.0, 975.0), None)
    """
    values = values[np.isfinite(values)]
    return (float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))) if len(values) > 1 else None


@dataclass(frozen=True)
class Estimate:
    """A mean over runs with its 95% interval (Student's t).

    Attributes:
        mean: The mean.
        low: Lower end of the interval.
        high: Upper end.
        runs: Number of runs.

    Example:
        See `estimate`.
    """

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
    """Mean over runs and its 95% interval. The interval of a single run is the whole line.

    Args:
        values: One number per run.

    Returns:
        The estimate.

    Example:
        >>> found = estimate([1.0, 2.0, 3.0])
        >>> found.mean, round(found.low, 3), found.above_zero
        (2.0, -0.484, False)
    """
    array = np.asarray(values, dtype=float)
    mean, count = float(array.mean()), len(array)
    if count == 1:
        return Estimate(mean, -np.inf, np.inf, 1)
    half = float(stdtrit(count - 1, 0.975) * array.std(ddof=1) / np.sqrt(count))
    return Estimate(mean, mean - half, mean + half, count)
