"""Moments of the logistic normal, theta = softmax(eta): exact where topics are independent, else numerical.

With g = exp(eta) of independent topics and 1 / (sum of g)^2 = int s exp(-s sum of g) ds (s = exp(x)), expectations of
theta are integrals over x of products of one factor per topic:

    E[theta_s theta_t] = int G_s G_t (product of F over the other topics) dx,  F = E[exp(-y)], G = E[y exp(-y)],
    E[theta_t^2] = int H_t (product of F over the other topics) dx,  H = E[y^2 exp(-y)],  y = exp(x + eta_t).

The trapezoidal rule converges to machine precision, since all of them are analytic.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from jaxtyping import Float
from numpy.lib.stride_tricks import sliding_window_view

from topicscope.ground import Stream, generator
from topicscope.world.importance import softmax
from topicscope.world.moments import Moments, of_rows

STEP = 0.2  # of the trapezoidal rule: its error is about exp(-9 / STEP)
EXPONENT = 38.0  # steps over x may be larger where their error is at most exp(-38)
WIDTH = 9.0  # standard deviations of a normal variable that are looked at
AT_ONCE = 2**22  # numbers of a slice
SETS, PARTS = 16, 4  # of points of the quasi-Monte Carlo rule, and how many independent estimates are kept of them
POINTS, FEW_POINTS, MANY = 14, 11, 64  # of a set, as powers of two; few in more than 64 dimensions


def independent_normal(centre: Float[np.ndarray, " T"], variance: Float[np.ndarray, " T"]) -> Moments:
    """eta_t normal and independent; exact to rounding."""
    spread = np.sqrt(variance)
    if not spread.any():
        return of_rows(softmax(centre)[None])
    low, high = (float((centre + side * WIDTH * spread).max()) for side in (-1, 1))  # the largest eta lies between
    x = np.arange(-high - np.log(len(centre)) - 20, 5 - low, STEP * _coarser(spread))
    kinds, which = np.unique(np.stack([spread, centre]), axis=1, return_inverse=True)
    alike = np.split(kinds[1], np.flatnonzero(np.diff(kinds[0])) + 1)  # centres of each spread
    found = [_factors(x, centres, one) for one, centres in zip(np.unique(kinds[0]), alike, strict=True)]
    factors = np.concatenate(found)[which.ravel()]  # topics, F G H, x
    none, one, two = np.maximum(factors[:, 0], 1e-300), factors[:, 1], factors[:, 2]
    product = np.log(none).sum(0)
    first = one / none * np.exp(product / 2)
    second = first @ first.T
    np.fill_diagonal(second, (two * np.exp(product - np.log(none))).sum(1))
    second /= second.sum()
    return Moments(second.sum(1), second)


def _coarser(spread: Float[np.ndarray, " T"]) -> int:
    """How many steps at a time the integral over x may take.

    Wide normals make it smooth: a factor at x + iy is at most exp(y^2 / (2 spread^2)) times that at x. So the error of
    a step h is at most exp(-(2 pi / h)^2 / (2 q)) of the integral, q = sum of 1 / spread^2.
    """
    if not spread.all():
        return 1
    return max(1, int(2 * np.pi / np.sqrt(2 * EXPONENT * (1 / spread**2).sum()) / STEP))


def _factors(x: Float[np.ndarray, " n"], centres: Float[np.ndarray, " c"], spread: float) -> Float[np.ndarray, "c 3 n"]:
    """E[exp(-y)], E[y exp(-y)] and E[y^2 exp(-y)], y = exp(x + eta), for topics of one spread.

    The nodes of a wide normal lie on a grid that x is part of: x + eta takes few values, and each is looked at once.
    """
    step, found = min(STEP, spread / 3), np.empty((len(centres), 3, len(x)))
    reach = math.ceil(WIDTH * spread / step) if spread else 0
    z = step * np.arange(-reach, reach + 1)
    weight = np.exp(-((z / spread) ** 2) / 2) if spread else np.ones(1)
    weight /= weight.sum()
    stride = round((x[1] - x[0]) / step) if step == STEP else 0
    for start in range(0, len(x), rows := max(1, AT_ONCE // len(z))):
        part = x[start : start + rows]
        if not stride:
            for centre, into in zip(centres, found, strict=True):
                into[:, start : start + rows] = _powers(part[:, None] + centre + z) @ weight
            continue
        grid = part[0] + z[0] + step * np.arange((len(part) - 1) * stride + len(z))
        band, row = np.zeros((len(part), len(grid))), np.arange(len(part))
        sliding_window_view(band, len(z), axis=1, writeable=True)[row, stride * row] = weight  # from x_i on
        for first in range(0, len(centres), some := max(1, AT_ONCE // len(grid))):
            values = _powers(grid + centres[first : first + some, None])
            found[first : first + some, :, start : start + rows] = (values @ band.T).transpose(1, 0, 2)
    return found


def _powers(log_y: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "3 m n"]:
    """exp(-y), y exp(-y) and y^2 exp(-y)."""
    y = np.exp(np.clip(log_y, -700, 7))  # exp(-exp(7)) is 0
    left = np.exp(-y)
    return np.stack([left, y * left, y * y * left])


def correlated_normal(centre: Float[np.ndarray, " T"], root: Float[np.ndarray, "T k"]) -> Moments:
    """eta = centre + root z, z normal, by quasi-Monte Carlo: Sobol points, scrambled SETS times.

    The spread over the sets is the error of entries. Half the difference of the means of odd and even sets has the law
    of the error itself: its spectral norm is the error of eigenvalues (and at least what the errors of entries leave).
    The means of a quarter of the sets each are `parts`.
    """
    topics, k = root.shape
    if k == 0:
        return of_rows(softmax(centre)[None])
    return _from_points(centre.tobytes(), root.tobytes(), topics)


@functools.lru_cache(maxsize=2)  # a run asks several times
def _from_points(centre_bytes: bytes, root_bytes: bytes, topics: int) -> Moments:
    from scipy.special import ndtri  # here, since not every command needs it
    from scipy.stats import qmc

    centre, root = np.frombuffer(centre_bytes), np.frombuffer(root_bytes).reshape(topics, -1)
    k = root.shape[1]
    mean, spread, turned = (np.zeros((topics + 1, topics)) for _ in range(3))  # E[theta] above E[theta theta']
    points, quarters = POINTS if k <= MANY else FEW_POINTS, np.zeros((PARTS, topics + 1, topics))
    for number in range(SETS):
        uniform = qmc.Sobol(k, rng=generator(0, Stream.MOMENT_POINTS, number)).random_base2(points)
        theta = softmax(centre + ndtri(np.clip(uniform, 1e-15, 1 - 1e-15)) @ root.T)
        part = np.vstack([theta.mean(0), theta.T @ theta / len(theta)])
        turned += (-1) ** number * part / SETS
        quarters[number % PARTS] += part * PARTS / SETS
        off = part - mean
        mean += off / (number + 1)
        spread += off * (part - mean)
    errors = np.sqrt(spread / (SETS * (SETS - 1)))
    norm = max(float(np.linalg.norm(turned[1:], 2)), float(np.linalg.norm(errors[1:])) / np.sqrt(topics))
    parts = tuple(Moments(quarter[0], quarter[1:]) for quarter in quarters)
    return Moments(mean[0], mean[1:], float(errors[1:].max()), float(errors[0].max()), float(norm), parts)
