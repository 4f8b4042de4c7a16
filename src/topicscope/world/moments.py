"""First and second moments of topic proportions, of which the optimum under uniform attention is made.

>>> equal_shares(topics=4, tau=2).second[0].tolist()
[0.125, 0.041666666666666664, 0.041666666666666664, 0.041666666666666664]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError
from topicscope.world.posteriors import symmetric_mean

ROUNDING = 1e-6  # to which moments have to be those of proportions
MOST_SLACK = 1e-2  # beyond this no stated error excuses moments that no law has


@dataclass(frozen=True)
class Moments:
    """E[theta] and E[theta theta'] of a prior. All errors are 0 where they are exact.

    Attributes:
        mean: E[theta] (T).
        second: E[theta theta'] (T x T).
        error: Largest standard error of an entry of E[theta theta'].
        mean_error: Largest standard error of an entry of E[theta]; None: as `error`.
        norm_error: Error of E[theta theta'] in spectral norm, which bounds that of its eigenvalues; None: T times
            `error`.
        parts: Independent estimates of which these are the mean; what is made of them shows its error by their spread.

    Example:
        >>> Moments(np.array([0.5, 0.5]), np.eye(2) / 2, error=0.01).errors
        (0.01, 0.01, 0.02)
    """

    mean: Float[np.ndarray, " T"]
    second: Float[np.ndarray, "T T"]
    error: float = 0.0
    mean_error: float | None = None
    norm_error: float | None = None
    parts: tuple[Moments, ...] = ()

    @property
    def errors(self) -> tuple[float, float, float]:
        """Of entries of E[theta theta'] and of E[theta], and of eigenvalues of E[theta theta']."""
        mean = self.error if self.mean_error is None else self.mean_error
        return self.error, mean, len(self.mean) * self.error if self.norm_error is None else self.norm_error


def checked_moments(found: Moments, topics: int, name: str) -> Moments:
    """Check that some law of proportions can have these moments.

    E[theta] and E[theta theta'] are not negative, E[theta theta'] 1 = E[theta], whose sum is 1, and the covariance is
    positive semidefinite; all up to rounding and the stated errors.

    Args:
        found: The moments.
        topics: T, which gives the shapes.
        name: What they are called in error messages.

    Returns:
        The moments as float arrays.

    Raises:
        InputError: No law has them.

    Example:
        >>> checked_moments(Moments([0.5, 0.5], [[0.5, 0], [0, 0.5]]), 2, "moments").second.tolist()
        [[0.5, 0.0], [0.0, 0.5]]
        >>> checked_moments(Moments([0.5, 0.6], [[0.5, 0], [0, 0.6]]), 2, "moments")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        topicscope.ground.errors.InputError: moments: E[theta] sums to 1.1; ...
    """
    try:
        mean, second = np.array(found.mean, dtype=float), np.array(found.second, dtype=float)
        errors = tuple(map(float, found.errors))
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"{name}: expected Moments(mean, second, error) of numbers") from None
    if mean.shape != (topics,) or second.shape != (topics, topics):
        raise InputError(
            f"{name} have the shapes {mean.shape} and {second.shape}; expected ({topics},) and ({topics}, {topics})"
        )
    if not (np.isfinite(mean).all() and np.isfinite(second).all() and all(0 <= error < np.inf for error in errors)):
        raise InputError(f"{name}: every entry must be a finite number, and the errors not negative")
    slack = min(ROUNDING + 10 * topics * max(errors[:2]), MOST_SLACK)
    if np.abs(second - second.T).max() > slack:
        raise InputError(f"{name}: E[theta theta'] must be symmetric")
    if min(mean.min(), second.min()) < -slack:
        raise InputError(f"{name}: E[theta] and E[theta theta'] must not be negative, as proportions are not")
    if abs(mean.sum() - 1) > slack:
        raise InputError(f"{name}: E[theta] sums to {mean.sum():.6g}; proportions sum to 1, so it must be 1")
    off = np.abs(second.sum(1) - mean)
    if off.max() > slack:
        row = int(off.argmax())
        raise InputError(
            f"{name}: row {row} of E[theta theta'] sums to {second[row].sum():.6g}, but E[theta] is {mean[row]:.6g} "
            "there; proportions sum to 1, so the two must be equal"
        )
    try:
        np.linalg.cholesky(second - np.outer(mean, mean) + slack * np.eye(topics))
    except np.linalg.LinAlgError:
        raise InputError(
            f"{name}: no law has them; the covariance E[theta theta'] - E[theta] E[theta]' must be positive"
        ) from None
    parts = tuple(checked_moments(part, topics, f"{name}, a part of them") for part in found.parts)
    return Moments(mean, second, errors[0], errors[1], errors[2], parts)


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
