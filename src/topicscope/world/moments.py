"""First and second moments of topic proportions, of which the optimum under uniform attention is made.

>>> equal_shares(topics=4, tau=2).second[0].tolist()
[0.125, 0.041666666666666664, 0.041666666666666664, 0.041666666666666664]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


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
