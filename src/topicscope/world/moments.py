"""First and second moments of topic proportions, of which the optimum under uniform attention is made.

>>> equal_shares(topics=4, tau=2).second[0].tolist()
[0.125, 0.041666666666666664, 0.041666666666666664, 0.041666666666666664]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.ground import Stream, generator
from topicscope.world.importance import softmax
from topicscope.world.posteriors import symmetric_mean

SETS = 16  # of points of the quasi-Monte Carlo rule


@dataclass(frozen=True)
class Moments:
    """E[theta] and E[theta theta'] of a prior.

    `error` is the largest standard error of an entry where they are numerical, and 0 where they are exact.
    """

    mean: Float[np.ndarray, " T"]
    second: Float[np.ndarray, "T T"]
    error: float = 0.0


def dirichlet(alpha: Float[np.ndarray, " T"]) -> Moments:
    """E[theta_s theta_t] = (a_s a_t + [s = t] a_s) / (a (a + 1)), where a is the sum of the weights."""
    total = alpha.sum()
    return Moments(alpha / total, (np.outer(alpha, alpha) + np.diag(alpha)) / (total * (total + 1)))


def equal_shares(topics: int, tau: int) -> Moments:
    """tau of the topics, every set of them as probable: P(s and t) = tau (tau - 1) / (T (T - 1))."""
    pair = tau * (tau - 1) / (topics * (topics - 1)) if topics > 1 else 0.0
    second = np.full((topics, topics), pair / tau**2)
    np.fill_diagonal(second, 1 / (tau * topics))
    return Moments(np.full(topics, 1 / topics), second)


def of_rows(rows: Float[np.ndarray, "D T"]) -> Moments:
    """Every row as probable."""
    return Moments(rows.mean(0), rows.T @ rows / len(rows))


def weighted_shares(weights: Float[np.ndarray, " T"], tau: int) -> Moments:
    """tau of the topics, a set with a probability in proportion to the product of its weights; exact.

    Given that t is among them, the others are a set of tau - 1 of the other topics by the same law.
    """
    log_w, topics = np.log(weights), len(weights)
    chosen = tau * symmetric_mean(log_w[None], tau)[0][0]
    pairs = np.zeros((topics, topics))
    for t in range(topics) if tau > 1 else ():
        others = np.where(np.arange(topics) == t, -np.inf, log_w)
        pairs[t] = chosen[t] * (tau - 1) * symmetric_mean(others[None], tau - 1)[0][0]
    pairs = (pairs + pairs.T) / 2
    np.fill_diagonal(pairs, chosen)
    return Moments(chosen / tau, pairs / tau**2)


def grouped_shares(topics: int, groups: int, rho: float, tau: int) -> Moments:
    """tau topics, with probability rho all of one group, else of all topics: P(s and t) inside and across groups."""
    size = topics // groups
    across = (1 - rho) * tau * (tau - 1) / (topics * (topics - 1)) if topics > 1 else 0.0
    inside = across + (rho * tau * (tau - 1) / (topics * (size - 1)) if size > 1 else 0.0)
    group = np.arange(topics) // size
    pairs = np.where(group[:, None] == group, inside, across)
    np.fill_diagonal(pairs, tau / topics)
    return Moments(np.full(topics, 1 / topics), pairs / tau**2)


def logistic_normal(centre: Float[np.ndarray, " T"], root: Float[np.ndarray, "T k"]) -> Moments:
    """theta = softmax(centre + root z), z normal, by quasi-Monte Carlo: Sobol points, scrambled SETS times.

    The spread over the scrambled sets is the error.
    """
    from scipy.special import ndtri  # here, since not every command needs it
    from scipy.stats import qmc

    topics, k = root.shape
    points = 14 if k <= 64 else 11  # powers of two
    if k == 0:
        return of_rows(softmax(centre)[None])
    means, seconds = np.empty((SETS, topics)), np.empty((SETS, topics, topics))
    for number in range(SETS):
        uniform = qmc.Sobol(k, rng=generator(0, Stream.MOMENT_POINTS, number)).random_base2(points)
        theta = softmax(centre + ndtri(np.clip(uniform, 1e-15, 1 - 1e-15)) @ root.T)
        means[number], seconds[number] = theta.mean(0), theta.T @ theta / len(theta)
    error = max(float(part.std(0, ddof=1).max()) for part in (means, seconds)) / np.sqrt(SETS)
    return Moments(means.mean(0), seconds.mean(0), float(error))
