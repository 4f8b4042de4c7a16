"""Gradient flow of the population loss: d(W_V, W_K, W_Q)/dt = -gradient, with adaptive steps and half-way points.

The modes of W_V relax a hundred to ten thousand times faster than key and query grow, so that a common explicit
method would take steps of the fast time for the whole of the slow one. The Jacobian of a gradient flow is symmetric:
all its eigenvalues are real, and Runge-Kutta-Chebyshev steps fit (Sommeijer, Shampine, Verwer 1997). With s gradients
such a step of order 2 is stable for h times the largest eigenvalue up to .65 s^2, where s explicit Euler steps reach
2 s; nothing is linearised, frozen or slaved, and cross entropy needs nothing of its own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Progress, one_thread, refuse, refuse_if, silent
from topicscope.theory.population import NamedWeights, Population

TOLERANCE = 1e-4  # Error of a step, as a share of the norm of each block of matrices

# What words predict has one error, since a bias that starts at zero has no size of its own.
BLOCKS = (("embedding", "value", "bias"), ("key",), ("query",))

ESTIMATE_EVERY = 25  # steps between two looks at the largest eigenvalue
SLACK = 1.1  # by which its estimate, which comes from below, is raised
MOST_STAGES = 200


@dataclass
class Trajectory:
    """A flow of weights in time. Every list has one entry per step.

    Attributes:
        times: The times.
        losses: The losses.
        speeds: Norm of the gradient.
        squares: Squared Frobenius norms of each matrix.
        slopes: Their slopes in time.
        states: Weights of every step, or only of the last.
        gradients: Number of gradients computed.

    Example:
        See `gradient_flow`.
    """

    times: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    speeds: list[float] = field(default_factory=list)
    squares: dict[str, list[float]] = field(default_factory=dict)
    slopes: dict[str, list[float]] = field(default_factory=dict)
    states: list[NamedWeights] = field(default_factory=list)
    gradients: int = 0

    def add(self, time: float, loss: float, weights: NamedWeights, speed: NamedWeights, keep: bool) -> None:
        self.times.append(time)
        self.losses.append(loss)
        self.speeds.append(math.sqrt(sum(float(np.vdot(part, part)) for part in speed.values())))
        if not keep:
            self.states.clear()
        self.states.append(weights)
        for part, matrix in weights.items():
            self.squares.setdefault(part, []).append(float(np.vdot(matrix, matrix)))
            self.slopes.setdefault(part, []).append(2 * float(np.vdot(matrix, speed[part])))

    def norm(self, part: str) -> Float[np.ndarray, " S"]:
        return np.sqrt(self.squares[part])

    @property
    def end(self) -> NamedWeights:
        return self.states[-1]

    def reaches(self, part: str, norm: float) -> float:
        """When the norm first rises to a number, between two steps by the cubic of its square; NaN: never."""
        squares, slopes = self.squares[part], self.slopes[part]
        above = np.array(squares) >= norm**2
        i = int(above.argmax())
        if not above.any() or i == 0:
            return self.times[0] if above.any() else math.nan
        h = self.times[i] - self.times[i - 1]
        return self.times[i - 1] + h * crossing(squares[i - 1], squares[i], h * slopes[i - 1], h * slopes[i], norm**2)

    def half_way(self, part: str, plateau: float) -> float:
        """t50: when half of the rise from the start to a plateau of this norm is made; NaN: never."""
        return self.reaches(part, (float(self.norm(part)[0]) + plateau) / 2)

    def slowest(self, after: float = 0.0) -> int:
        """The step of least speed from a time on: where the flow comes nearest to a saddle or to its end."""
        late = np.array(self.times) >= after
        refuse_if(not late.any(), f"after = {after:g}: the flow ended at {self.times[-1]:g}")
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


@functools.cache
def stages(s: int) -> tuple[float, list[tuple[float, float, float, float]]]:
    """Second-order Runge-Kutta-Chebyshev, damping 2/13: the first gradient's factor; mu, nu, mu~, gamma~ of others."""
    w0 = 1 + 2 / (13 * s * s)
    t, dt, ddt = [1.0, w0], [0.0, 1.0], [0.0, 0.0]
    for _ in range(2, s + 1):  # Chebyshev polynomials at w0 and two derivatives
        ddt.append(4 * dt[-1] + 2 * w0 * ddt[-1] - ddt[-2])
        dt.append(2 * t[-1] + 2 * w0 * dt[-1] - dt[-2])
        t.append(2 * w0 * t[-1] - t[-2])
    w1 = dt[s] / ddt[s]
    b = [ddt[max(j, 2)] / dt[max(j, 2)] ** 2 for j in range(s + 1)]
    a = [1 - b[j] * t[j] for j in range(s + 1)]
    steps = [(j, 2 * b[j] * w1 / b[j - 1]) for j in range(2, s + 1)]
    return b[1] * w1, [(2 * b[j] * w0 / b[j - 1], -b[j] / b[j - 2], step, -a[j - 1] * step) for j, step in steps]


def flat(weights: NamedWeights) -> Float[np.ndarray, " n"]:
    return np.concatenate([part.ravel() for part in weights.values()]).astype(float)


@dataclass
class Flow:
    population: Population
    start: NamedWeights
    tolerance: float
    gradients: int = 0
    direction: Float[np.ndarray, " n"] | None = None  # of the largest eigenvalue

    @functools.cached_property
    def cuts(self) -> Int[np.ndarray, " parts"]:
        return np.cumsum([part.size for part in self.start.values()])[:-1]

    def weights(self, vector: Float[np.ndarray, " n"]) -> NamedWeights:
        parts = zip(self.start.items(), np.split(vector, self.cuts), strict=True)
        return {name: part.reshape(like.shape) for (name, like), part in parts}

    def speed(self, vector: Float[np.ndarray, " n"]) -> tuple[float, Float[np.ndarray, " n"]]:
        self.gradients += 1
        loss, gradient = self.population.gradient(self.weights(vector))
        return loss, -flat(gradient)

    def largest_eigenvalue(self, at: Float[np.ndarray, " n"], speed: Float[np.ndarray, " n"]) -> float:
        """Of the Hessian, by the power method on differences of the gradient."""
        first = speed if np.linalg.norm(speed) > 0 else np.ones_like(at)
        direction, eigenvalue = first if self.direction is None else self.direction, 0.0
        size = 1e-6 * max(float(np.linalg.norm(at)), 1e-3)
        for _ in range(50):
            direction = direction / np.linalg.norm(direction)
            change = (self.speed(at + size * direction)[1] - speed) / size
            before, eigenvalue = eigenvalue, float(np.linalg.norm(change))
            if eigenvalue == 0:
                break
            self.direction = direction = change
            if abs(eigenvalue - before) <= 0.02 * eigenvalue:
                break
        return SLACK * eigenvalue

    def step(
        self, at: Float[np.ndarray, " n"], speed: Float[np.ndarray, " n"], h: float, count: int
    ) -> Float[np.ndarray, " n"]:
        first, others = stages(count)
        before, now = at, at + first * h * speed
        for mu, nu, mu_step, gamma_step in others:
            change = h * (mu_step * self.speed(now)[1] + gamma_step * speed)
            before, now = now, (1 - mu - nu) * at + mu * now + nu * before + change
        return now

    def error(self, estimate: Float[np.ndarray, " n"], at: Float[np.ndarray, " n"]) -> float:
        errors, weights = self.weights(estimate), self.weights(at)

        def norm(parts: NamedWeights, block: tuple[str, ...]) -> float:
            return math.sqrt(sum(float(np.vdot(parts[name], parts[name])) for name in block if name in parts))

        return max(norm(errors, block) / (self.tolerance * norm(weights, block) + 1e-300) for block in BLOCKS)


@one_thread()
def curvature(population: Population, weights: NamedWeights) -> float:
    """The largest eigenvalue of the Hessian of the population loss, approached from below.

    SGD is stable at learning rates below 2 over it.

    Args:
        population: The world, with its loss.
        weights: Where.

    Returns:
        The eigenvalue.

    Example:
        >>> from topicscope.theory import gaussian_start
        >>> from topicscope.world import Fixed, Masking, TopicModel
        >>> world = Population.of(TopicModel(2, 1), Fixed(topics_per_document=1, length="infinite"), Masking())
        >>> round(curvature(world, gaussian_start(3, 3, 0.0, seed=0)), 2)
        0.8
    """
    flow, at = Flow(population, weights, TOLERANCE), flat(weights)
    flow.direction = np.ones_like(at)
    return flow.largest_eigenvalue(at, flow.speed(at)[1]) / SLACK


@one_thread()
def gradient_flow(
    population: Population,
    start: NamedWeights,
    until: float,
    *,
    tolerance: float = TOLERANCE,
    longest: float = math.inf,
    stop: Callable[[Trajectory], bool] | None = None,
    keep: bool = False,
    progress: Progress = silent,
) -> Trajectory:
    """Gradient flow of the population loss: d(W_V, W_K, W_Q)/dt = -gradient, with adaptive steps.

    Args:
        population: The world, with its loss.
        start: Weights at time 0.
        until: Time at which the flow ends.
        tolerance: Relative error per step.
        longest: Longest step: the error does not show modes far smaller than their matrix, which grow too slowly then.
        stop: End at the first step after which this is true.
        keep: Keep the weights of every step.
        progress: Called as progress(phase, done, total, note).

    Returns:
        The flow.

    Raises:
        InputError: The start does not fit the world, or a number is out of range.

    Example:
        >>> from topicscope.theory import gaussian_start
        >>> from topicscope.world import Fixed, Masking, TopicModel
        >>> world = Population.of(TopicModel(2, 1), Fixed(topics_per_document=1, length="infinite"), Masking())
        >>> flow = gradient_flow(world, gaussian_start(3, 3, 0.01, seed=0), until=20.0)
        >>> round(flow.losses[-1], 3), round(flow.half_way("value", plateau=1.607), 2)
        (0.0, 0.92)
    """
    size, shapes = len(population.instead), ", ".join(str(part.shape) for part in start.values())
    finite = all(part.ndim == 1 + (name != "bias") and np.isfinite(part).all() for name, part in start.items())
    refuse(
        (
            not (0 < until < math.inf and 0 < tolerance <= 0.1),
            f"until = {until:g}, tolerance = {tolerance:g}: expected a time above 0 and a tolerance in (0, .1]",
        ),
        (not longest > 0, f"longest = {longest:g}: expected a time above 0"),
        (not finite, "the start of a gradient flow: expected three matrices of finite numbers"),
        (
            not population.fits(start),
            f"the start of a gradient flow has shapes {shapes}; expected "
            f"({size}, {size}) for value, and (d_a, {size}) for key and query",
        ),
    )
    flow, course = Flow(population, start, tolerance), Trajectory()
    at, time = flat(start), 0.0
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
            refuse_if(time + h == time, f"the flow cannot go on at time {time:g}: its steps have become too small")
            continue
        at, speed, loss, time, taken = there, new_speed, new_loss, time + h, taken + 1
        course.add(time, loss, flow.weights(at), flow.weights(speed), keep)
        if taken % ESTIMATE_EVERY == 0:
            largest = flow.largest_eigenvalue(at, speed)
            progress("gradient flow", time, until, f"loss {loss:.5f}")
        h *= min(5.0, max(0.1, 0.8 * max(error, 1e-12) ** (-1 / 3)))
    course.gradients = flow.gradients
    return course


def descent(
    population: Population, start: NamedWeights, rate: float, steps: int
) -> Iterator[tuple[float, NamedWeights]]:
    """Gradient descent on the population loss, up to the last step at which the loss is a finite number.

    Above two over the curvature it may blow up, or swing down into a flatter region; only its own steps say which.

    Args:
        population: The documents and the loss.
        start: Weights to begin with.
        rate: Learning rate.
        steps: Number of steps at most.

    Returns:
        An iterator of (loss, weights): the start, and after each step.

    Example:
        >>> from topicscope.theory import gaussian_start
        >>> from topicscope.world import Fixed, Masking, TopicModel
        >>> world = Population.of(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking())
        >>> start = gaussian_start(13, 13, 1e-3, seed=0)
        >>> [round(loss, 3) for loss, _ in descent(world, start, rate=4.0, steps=2)]
        [1.0, 0.903, 0.875]
    """
    weights = start
    for _ in range(steps + 1):
        with np.errstate(all="ignore"):
            loss, gradient = population.gradient(weights)
            following = {name: part - rate * gradient[name] for name, part in weights.items()}
        if not math.isfinite(loss):
            return
        yield loss, weights
        weights = following
