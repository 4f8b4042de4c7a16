"""Gradient flow of the population loss: d(W_V, W_K, W_Q)/dt = -gradient, with adaptive steps and half-way points.

The modes of W_V relax a hundred to ten thousand times faster than key and query grow, so that a common explicit
method would take steps of the fast time for the whole of the slow one. The Jacobian of a gradient flow is symmetric:
all its eigenvalues are real, and Runge-Kutta-Chebyshev steps fit (Sommeijer, Shampine, Verwer 1997). With s gradients
such a step of order 2 is stable for h times the largest eigenvalue up to .65 s^2, where s explicit Euler steps reach
2 s; nothing is linearised, frozen or slaved, and cross entropy needs nothing of its own.

>>> from topicscope.theory.population_gradient import Population
>>> from topicscope.world import Fixed, Masking, TopicModel
>>> world = Population.of(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking())
>>> course = gradient_flow(world, Weights.gaussian(13, 13, 1e-3, seed=0), 100.0)
>>> round(course.reaches("value", 1.0), 1)
9.0
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, Progress, refuse, silent
from topicscope.theory.population_gradient import Population, Weights

Part = Literal["value", "key", "query"]

TOLERANCE = 1e-4
"""Error of a step, as a share of the norm of each matrix."""

ESTIMATE_EVERY = 25  # steps between two looks at the largest eigenvalue
SLACK = 1.1  # by which its estimate, which comes from below, is raised
MOST_STAGES = 200


@dataclass
class Course:
    """A flow. At every step: time, loss, speed (norm of the gradient), squared norms of the parts and their slopes."""

    times: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    speeds: list[float] = field(default_factory=list)
    squares: dict[Part, list[float]] = field(default_factory=lambda: {"value": [], "key": [], "query": []})
    slopes: dict[Part, list[float]] = field(default_factory=lambda: {"value": [], "key": [], "query": []})
    states: list[Weights] = field(default_factory=list)  # at every step, or only at the last
    gradients: int = 0  # that were computed

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


class Stages(NamedTuple):
    """Coefficients of a Chebyshev step of s gradients, from the second on."""

    first: float
    mu: list[float]
    nu: list[float]
    mu_step: list[float]
    gamma_step: list[float]


@functools.cache
def stages(s: int) -> Stages:
    """Second-order Runge-Kutta-Chebyshev with damping 2/13."""
    w0 = 1 + 2 / (13 * s * s)
    t, dt, ddt = [1.0, w0], [0.0, 1.0], [0.0, 0.0]
    for _ in range(2, s + 1):  # Chebyshev polynomials at w0 and two derivatives
        ddt.append(4 * dt[-1] + 2 * w0 * ddt[-1] - ddt[-2])
        dt.append(2 * t[-1] + 2 * w0 * dt[-1] - dt[-2])
        t.append(2 * w0 * t[-1] - t[-2])
    w1 = dt[s] / ddt[s]
    b = [ddt[max(j, 2)] / dt[max(j, 2)] ** 2 for j in range(s + 1)]
    a = [1 - b[j] * t[j] for j in range(s + 1)]
    steps = range(2, s + 1)
    mu_step = [2 * b[j] * w1 / b[j - 1] for j in steps]
    return Stages(
        b[1] * w1,
        [2 * b[j] * w0 / b[j - 1] for j in steps],
        [-b[j] / b[j - 2] for j in steps],
        mu_step,
        [-a[j - 1] * m for j, m in zip(steps, mu_step, strict=True)],
    )


class Flow:
    """The weights as one vector, its velocity, and one step."""

    def __init__(self, population: Population, start: Weights, tolerance: float) -> None:
        self.population, self.tolerance = population, tolerance
        self.shapes = [part.shape for part in start]
        self.cuts = np.cumsum([part.size for part in start])
        self.gradients = 0
        self.direction: Float[np.ndarray, " n"] | None = None  # of the largest eigenvalue

    def weights(self, vector: Float[np.ndarray, " n"]) -> Weights:
        parts = np.split(vector, self.cuts[:-1])
        return Weights(*(part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)))

    def speed(self, vector: Float[np.ndarray, " n"]) -> tuple[float, Float[np.ndarray, " n"]]:
        """Loss and minus its gradient."""
        self.gradients += 1
        loss, gradient = self.population.gradient(self.weights(vector))
        return loss, -np.concatenate([part.ravel() for part in gradient])

    def largest_eigenvalue(self, at: Float[np.ndarray, " n"], speed: Float[np.ndarray, " n"]) -> float:
        """Of the Hessian, by the power method on differences of the gradient."""
        direction, found = self.direction, 0.0
        if direction is None:
            direction = speed if np.linalg.norm(speed) > 0 else np.ones_like(at)
        size = 1e-6 * max(float(np.linalg.norm(at)), 1e-3)
        for _ in range(50):
            direction = direction / np.linalg.norm(direction)
            change = (self.speed(at + size * direction)[1] - speed) / size
            before, found = found, float(np.linalg.norm(change))
            if found == 0:
                break
            self.direction = direction = change
            if abs(found - before) <= 0.02 * found:
                break
        return SLACK * found

    def step(
        self, at: Float[np.ndarray, " n"], speed: Float[np.ndarray, " n"], h: float, count: int
    ) -> Float[np.ndarray, " n"]:
        """A step of length h from `count` gradients."""
        c = stages(count)
        before, now = at, at + c.first * h * speed
        for mu, nu, mu_step, gamma_step in zip(c.mu, c.nu, c.mu_step, c.gamma_step, strict=True):
            velocity = self.speed(now)[1]
            following = (1 - mu - nu) * at + mu * now + nu * before + h * (mu_step * velocity + gamma_step * speed)
            before, now = now, following
        return now

    def error(self, estimate: Float[np.ndarray, " n"], at: Float[np.ndarray, " n"]) -> float:
        """The largest error of a matrix over the one allowed."""
        parts = zip(self.weights(estimate), self.weights(at), strict=True)
        return max(float(np.linalg.norm(e) / (self.tolerance * np.linalg.norm(w) + 1e-300)) for e, w in parts)


def curvature(population: Population, weights: Weights) -> float:
    """The largest eigenvalue of the Hessian, approached from below: SGD is stable at rates below two over it."""
    flow, at = Flow(population, weights, TOLERANCE), np.concatenate([part.ravel() for part in weights])
    flow.direction = np.ones_like(at)
    return flow.largest_eigenvalue(at, flow.speed(at)[1]) / SLACK


def gradient_flow(
    population: Population,
    start: Weights,
    until: float,
    *,
    tolerance: float = TOLERANCE,
    longest: float = math.inf,
    stop: Callable[[Course], bool] | None = None,
    keep: bool = False,
    progress: Progress = silent,
) -> Course:
    """The flow from `start` to the time `until`, or to the first step after which `stop` is true.

    `keep` keeps the weights of every step. `longest` bounds a step: what is far smaller than its matrix, as a mode that
    leaves a plateau, does not show in the error, and steps longer than its e-fold make it grow too slowly.
    """
    size = population.true.shape[1]
    finite = all(part.ndim == 2 and bool(np.isfinite(part).all()) for part in start)
    refuse(
        (
            not (0 < until < math.inf and 0 < tolerance <= 0.1),
            f"until = {until:g}, tolerance = {tolerance:g}: expected a time above 0 and a tolerance in (0, .1]",
        ),
        (not longest > 0, f"longest = {longest:g}: expected a time above 0"),
        (not finite, "the start of a gradient flow: expected three matrices of finite numbers"),
        (
            not population.fits(start),
            f"the start of a gradient flow has shapes {', '.join(str(part.shape) for part in start)}; expected "
            f"({size}, {size}) for value, and (d_a, {size}) for key and query",
        ),
    )
    flow, course = Flow(population, start, tolerance), Course()
    at, time = np.concatenate([part.ravel() for part in start]).astype(float), 0.0
    loss, speed = flow.speed(at)
    course.add(time, loss, flow.weights(at), flow.weights(speed), keep)
    largest, taken = flow.largest_eigenvalue(at, speed), 0
    h = 0.1 / max(largest, 1 / until)
    while time < until and not (stop is not None and stop(course)):
        h = min(h, until - time, longest, (MOST_STAGES**2 - 1) / (1.54 * max(largest, 1e-300)))
        count = max(2, 1 + math.ceil(math.sqrt(1 + 1.54 * h * largest)))
        there = flow.step(at, speed, h, count)
        new_loss, new_speed = flow.speed(there)
        estimate = 0.8 * (at - there) + 0.4 * h * (speed + new_speed)
        error = flow.error(estimate, there)
        if not error <= 1:  # NaN too
            largest = flow.largest_eigenvalue(at, speed)
            h *= max(0.1, 0.8 * error ** (-1 / 3)) if math.isfinite(error) else 0.1
            refuse((time + h == time, f"the flow cannot go on at time {time:g}: its steps have become too small"))
            continue
        at, speed, loss, time, taken = there, new_speed, new_loss, time + h, taken + 1
        course.add(time, loss, flow.weights(at), flow.weights(speed), keep)
        if taken % ESTIMATE_EVERY == 0:
            largest = flow.largest_eigenvalue(at, speed)
            progress("gradient flow", time, until, f"loss {loss:.5f}")
        h *= min(5.0, max(0.1, 0.8 * max(error, 1e-12) ** (-1 / 3)))
    course.gradients = flow.gradients
    return course
