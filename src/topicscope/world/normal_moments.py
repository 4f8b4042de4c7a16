"""Moments of the logistic normal, theta = softmax(eta): exact where topics are independent, else numerical.

With g = exp(eta) of independent topics and 1 / (sum of g)^2 = int s exp(-s sum of g) ds (s = exp(x)), expectations of
theta are integrals over x of products of one factor per topic:

    E[theta_s theta_t] = int G_s G_t (product of F over the other topics) dx,  F = E[exp(-y)], G = E[y exp(-y)],
    E[theta_t^2] = int H_t (product of F over the other topics) dx,  H = E[y^2 exp(-y)],  y = exp(x + eta_t).

The trapezoidal rule converges to machine precision, since all of them are analytic.
"""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import Float

from topicscope.ground import Stream, generator
from topicscope.world.importance import softmax
from topicscope.world.moments import Moments, of_rows

STEP = 0.2  # of the trapezoidal rule: its error is about exp(-9 / STEP)
WIDTH = 9.0  # standard deviations of a normal variable that are looked at
AT_ONCE = 2**22  # numbers of a slice
SETS = 16  # of points of the quasi-Monte Carlo rule
POINTS, FEW_POINTS, MANY = 14, 11, 64  # of a set, as powers of two; few in more than 64 dimensions


def independent_normal(centre: Float[np.ndarray, " T"], variance: Float[np.ndarray, " T"]) -> Moments:
    """eta_t normal and independent; exact to rounding."""
    spread = np.sqrt(variance)
    if not spread.any():
        return of_rows(softmax(centre)[None])
    low, high = (float((centre + side * WIDTH * spread).max()) for side in (-1, 1))  # the largest eta lies between
    x = np.arange(-high - np.log(len(centre)) - 20, 5 - low, STEP)
    kinds, which = np.unique(np.stack([centre, spread]), axis=1, return_inverse=True)
    factors = np.array([_factors(x, *kind) for kind in kinds.T])[which.ravel()]  # topics, F G H, x
    none, one, two = np.maximum(factors[:, 0], 1e-300), factors[:, 1], factors[:, 2]
    product = np.log(none).sum(0)
    first = one / none * np.exp(product / 2)
    second = first @ first.T
    np.fill_diagonal(second, (two * np.exp(product - np.log(none))).sum(1))
    second /= second.sum()
    return Moments(second.sum(1), second)


def _factors(x: Float[np.ndarray, " n"], centre: float, spread: float) -> Float[np.ndarray, "3 n"]:
    """E[exp(-y)], E[y exp(-y)] and E[y^2 exp(-y)], y = exp(x + eta)."""
    step = min(STEP, spread / 3)
    z = np.arange(-WIDTH * spread, WIDTH * spread + step / 2, step) if spread else np.zeros(1)
    weight = np.exp(-((z / spread) ** 2) / 2) if spread else np.ones(1)
    weight /= weight.sum()
    found = np.empty((3, len(x)))
    for start in range(0, len(x), rows := max(1, AT_ONCE // len(z))):
        part = slice(start, start + rows)
        log_y = np.clip(x[part, None] + centre + z, -700, 7)  # exp(-exp(7)) is 0
        y = np.exp(log_y)
        left = np.exp(-y)
        for power, into in enumerate(found):
            into[part] = (y**power * left) @ weight
    return found


def correlated_normal(centre: Float[np.ndarray, " T"], root: Float[np.ndarray, "T k"]) -> Moments:
    """eta = centre + root z, z normal, by quasi-Monte Carlo: Sobol points, scrambled SETS times.

    The spread over the sets is the error of entries. Half the difference of the means of odd and even sets has the law
    of the error itself: its spectral norm is the error of eigenvalues (and at least what the errors of entries leave).
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
    points = POINTS if k <= MANY else FEW_POINTS
    for number in range(SETS):
        uniform = qmc.Sobol(k, rng=generator(0, Stream.MOMENT_POINTS, number)).random_base2(points)
        theta = softmax(centre + ndtri(np.clip(uniform, 1e-15, 1 - 1e-15)) @ root.T)
        part = np.vstack([theta.mean(0), theta.T @ theta / len(theta)])
        turned += (-1) ** number * part / SETS
        off = part - mean
        mean += off / (number + 1)
        spread += off * (part - mean)
    errors = np.sqrt(spread / (SETS * (SETS - 1)))
    norm = max(float(np.linalg.norm(turned[1:], 2)), float(np.linalg.norm(errors[1:])) / np.sqrt(topics))
    return Moments(mean[0], mean[1:], float(errors[1:].max()), float(errors[0].max()), float(norm))
