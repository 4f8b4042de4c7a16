"""How much of some shares (a document's topics) is linear in some features: ridge regression, cross-validated.

(scores,) = ridge_scores(states, mixtures, seed=0); scores.r2, scores.interval(resamples=1000, seed=0)

Folds are drawn: a corpus may be in an order, such as its labels in turn. The strength is chosen from GRID by
the exact leave-one-out error of the training folds alone. R2 is pooled over topics: 1 - sum of squared errors / sum of
squares about the mean of the training folds.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Stream, generator
from topicscope.measure.intervals import Interval, interval

FOLDS = 5
FEWEST = 2 * FOLDS  # documents of a cross-validation
GRID = 10.0 ** np.arange(-4, 4)  # strengths, in units of the mean square of the features' principal components
NEGLIGIBLE = 1e-12  # of the largest component: what is below it is rounding


@dataclass(frozen=True)
class Scores:
    """Squared errors of predicted shares, document by document.

    Attributes:
        errors: Squared error of each prediction (D).
        totals: Squared distance of each document from the mean of the training folds (D).

    Example:
        >>> Scores(errors=np.array([0.1, 0.1]), totals=np.array([0.5, 0.5])).r2
        0.8
    """

    errors: Float[np.ndarray, " D"]
    totals: Float[np.ndarray, " D"]

    @property
    def r2(self) -> float | None:
        """None where the shares do not vary, or the features are no numbers."""
        total = float(self.totals.sum())
        return 1 - float(self.errors.sum()) / total if total > 0 and np.isfinite(self.errors).all() else None

    @np.errstate(invalid="ignore", divide="ignore")
    def interval(self, resamples: int, seed: int) -> Interval | None:
        """Of R2, 95%: bootstrap over documents."""
        if self.r2 is None:
            return None
        times = drawn_documents(len(self.errors), resamples, seed)
        return interval(1 - (times @ self.errors) / (times @ self.totals))


@functools.lru_cache(maxsize=1)  # every layer is resampled alike
def drawn_documents(documents: int, resamples: int, seed: int) -> Float[np.ndarray, "R D"]:
    """How often each resample draws each document."""
    drawn = generator(seed, Stream.BOOTSTRAP_MIXTURES).multinomial(
        documents, np.full(documents, 1 / documents), resamples
    )
    return drawn.astype(float)


def folds(documents: int, seed: int) -> Int[np.ndarray, " D"]:
    """A fold for every document, as many in one as in another, up to one."""
    return generator(seed, Stream.MIXTURE_FOLDS).permutation(documents) % FOLDS


def about_training_mean(shares: Float[np.ndarray, "D K"], fold: Int[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
    """Squared distance of every document from the mean of the folds that it is not in."""
    means = np.stack([shares[fold != f].mean(0) for f in range(FOLDS)])
    return ((shares - means[fold]) ** 2).sum(1)


def direct_scores(predictions: Float[np.ndarray, "D K"], shares: Float[np.ndarray, "D K"], *, seed: int) -> Scores:
    """Scores of predictions that nothing is fitted for.

    Args:
        predictions: (D x K).
        shares: The truth (D x K).
        seed: Seed of the folds.

    Returns:
        The scores.

    Example:
        >>> shares = np.eye(2)[np.arange(20) % 2]
        >>> direct_scores(shares, shares, seed=0).r2
        1.0
    """
    return Scores(((predictions - shares) ** 2).sum(1), about_training_mean(shares, folds(len(shares), seed)))


def ridge_scores(
    features: Float[np.ndarray, "D d"],
    shares: Float[np.ndarray, "D K"],
    orders: Sequence[Int[np.ndarray, " D"]] = (),
    *,
    seed: int,
) -> list[Scores]:
    """How much of some shares is linear in some features: ridge regression, cross-validated.

    Args:
        features: (D x d).
        shares: Such as topics of documents (D x K).
        orders: Other orders of the documents, in which the shares are scored too.
        seed: Seed of the folds.

    Returns:
        Scores of the shares, and then of the shares in each other order.

    Example:
        >>> shares = np.eye(2)[np.arange(20) % 2]
        >>> round(ridge_scores(shares, shares, seed=0)[0].r2, 3)
        1.0
    """
    x, y = (np.asarray(array, dtype=np.float64) for array in (features, shares))
    every, fold = [np.arange(len(x)), *orders], folds(len(x), seed)
    errors = np.full((len(every), len(x)), np.nan)
    if np.isfinite(x).all():
        for f in range(FOLDS):
            train, test = fold != f, fold == f
            left, right, squares = components(x[train], x[test])
            for number, order in enumerate(every):
                predicted, _ = predictions(left, right, squares, y[order[train]])
                errors[number, test] = ((predicted - y[order[test]]) ** 2).sum(1)
    return [Scores(mine, about_training_mean(y[order], fold)) for mine, order in zip(errors, every, strict=True)]


def components(
    train: Float[np.ndarray, "n d"], test: Float[np.ndarray, "m d"]
) -> tuple[Float[np.ndarray, "n r"], Float[np.ndarray, "m r"], Float[np.ndarray, " r"]]:
    """Principal components of the centred training rows, the test rows in them, and their sums of squares.

    From the smaller of the two matrices of products: rows by rows or features by features.
    """
    mean = train.mean(0)
    x, z = train - mean, test - mean
    if len(x) <= x.shape[1]:
        squares, axes = np.linalg.eigh(x @ x.T)
        kept = squares > NEGLIGIBLE * max(squares[-1], 0.0)
        roots, axes = np.sqrt(squares[kept]), axes[:, kept]
        return axes * roots, (z @ x.T) @ axes / roots, squares[kept]
    squares, axes = np.linalg.eigh(x.T @ x)
    kept = squares > NEGLIGIBLE * max(squares[-1], 0.0)
    return x @ axes[:, kept], z @ axes[:, kept], squares[kept]


def predictions(
    left: Float[np.ndarray, "n r"],
    right: Float[np.ndarray, "m r"],
    squares: Float[np.ndarray, " r"],
    shares: Float[np.ndarray, "n K"],
) -> tuple[Float[np.ndarray, "m K"], Float[np.ndarray, "n K"]]:
    """Shares of the test rows, at the strength with the least leave-one-out error of the training rows.

    And those of the training rows at this strength, each from a fit without the row.
    """
    mean = shares.mean(0)
    y = shares - mean
    if not len(squares):  # features that do not vary predict the mean
        return np.broadcast_to(mean, (len(right), len(mean))), shares - y / (1 - 1 / len(y))
    inner, least, weights, left_out = left.T @ y, np.inf, np.zeros((len(squares), y.shape[1])), y
    for strength in GRID * squares.sum() / len(squares):
        slopes = inner / (squares + strength)[:, None]
        leverage = (left**2 / (squares + strength)).sum(1) + 1 / len(y)
        # the residual of a row when it is left out: an identity of ridge regression with a free intercept
        residual = (y - left @ slopes) / (1 - leverage)[:, None]
        error = float((residual**2).sum())
        if error < least:
            least, weights, left_out = error, slopes, residual
    return right @ weights + mean, shares - left_out
