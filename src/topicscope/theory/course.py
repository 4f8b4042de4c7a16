"""A flow of weights in time: what `gradient_flow` returns, and when its norms reach a height."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError
from topicscope.theory.population_gradient import Weights

Part = Literal["value", "key", "query"]


@dataclass
class Course:
    """A flow of weights in time. Every list has one entry per step.

    Attributes:
        times: The times.
        losses: The losses.
        speeds: Norm of the gradient.
        squares: Squared Frobenius norms by part: value, key, query.
        slopes: Their slopes in time.
        states: Weights of every step, or only of the last.
        gradients: Number of gradients computed.

    Example:
        See `gradient_flow`.
    """

    times: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    speeds: list[float] = field(default_factory=list)
    squares: dict[Part, list[float]] = field(default_factory=lambda: {"value": [], "key": [], "query": []})
    slopes: dict[Part, list[float]] = field(default_factory=lambda: {"value": [], "key": [], "query": []})
    states: list[Weights] = field(default_factory=list)
    gradients: int = 0

    def add(self, time: float, loss: float, weights: Weights, speed: Weights, keep: bool) -> None:
        self.times.append(time)
        self.losses.append(loss)
        self.speeds.append(math.sqrt(sum(float(np.vdot(part, part)) for part in speed)))
        if not keep:
            self.states.clear()
        self.states.append(weights)
        for part in self.squares:
            matrix, change = getattr(weights, part), getattr(speed, part)
            self.squares[part].append(float(np.vdot(matrix, matrix)))
            self.slopes[part].append(2 * float(np.vdot(matrix, change)))

    def norm(self, part: Part) -> Float[np.ndarray, " S"]:
        """The Frobenius norm at `times`."""
        return np.sqrt(self.squares[part])

    @property
    def end(self) -> Weights:
        return self.states[-1]

    def reaches(self, part: Part, norm: float) -> float:
        """When the norm first rises to a number, between two steps by the cubic of its square; NaN: never."""
        squares, slopes = self.squares[part], self.slopes[part]
        above = np.flatnonzero(np.array(squares) >= norm**2)
        if not len(above) or above[0] == 0:
            return float("nan") if not len(above) else self.times[0]
        i = int(above[0])
        h = self.times[i] - self.times[i - 1]
        return self.times[i - 1] + h * crossing(squares[i - 1], squares[i], h * slopes[i - 1], h * slopes[i], norm**2)

    def half_way(self, part: Part, plateau: float) -> float:
        """t50: when half of the rise from the start to a plateau of this norm is made; NaN: never."""
        return self.reaches(part, (float(self.norm(part)[0]) + plateau) / 2)

    def slowest(self, after: float = 0.0) -> int:
        """The step of least speed from a time on: where the flow comes nearest to a saddle or to its end."""
        late = np.array(self.times) >= after
        if not late.any():
            raise InputError(f"after = {after:g}: the flow ended at {self.times[-1]:g}")
        return int(np.argmin(np.where(late, self.speeds, np.inf)))


def crossing(low: float, high: float, slope_low: float, slope_high: float, level: float) -> float:
    """Where in [0, 1] the cubic with these values and slopes at the ends is at `level`, which lies between them."""
    left, right = 0.0, 1.0
    for _ in range(60):
        x = (left + right) / 2
        rest = 1 - x
        at = (1 + 2 * x) * rest**2 * low + x**2 * (3 - 2 * x) * high + x * rest * (rest * slope_low - x * slope_high)
        left, right = (x, right) if at < level else (left, x)
    return right
