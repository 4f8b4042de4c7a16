"""How much of a document's topics, or of its class, is linear in some features: ridge regression, cross-validated.

Folds are drawn: a corpus may be in an order, such as its labels in turn. The strength is chosen from GRID by the exact
leave-one-out error of the training folds alone. R2 is pooled over topics: 1 - sum of squared errors / sum of squares
about the mean of the training folds. A classifier has one column per class; the largest is the guess.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from topicscope.ground import Stream, generator
from topicscope.measure.effects import Interval, draws, interval

FOLDS = 5
FEWEST = 2 * FOLDS  # documents of a cross-validation
GRID = 10.0 ** np.arange(-4, 4)  # strengths, in units of the mean square of the features' principal components
NEGLIGIBLE = 1e-12  # of the largest component: what is below it is rounding


Classes = Int[np.ndarray, " D"]
Chosen = Bool[np.ndarray, " D"]
Predict = Callable[[Float[np.ndarray, "n K"]], tuple[Float[np.ndarray, "m K"], Float[np.ndarray, "n K"]]]
Fit = tuple[Chosen, Chosen, Predict]


@dataclass(frozen=True)
class Scores:
    errors: Float[np.ndarray, " D"]  # squared error of each prediction
    totals: Float[np.ndarray, " D"]  # squared distance of each document from the mean of the training folds

    @property
    def r2(self) -> float | None:
        total = float(self.totals.sum())
        return 1 - float(self.errors.sum()) / total if total > 0 and np.isfinite(self.errors).all() else None

    @np.errstate(invalid="ignore", divide="ignore")
    def interval(self, resamples: int, seed: int) -> Interval | None:
        if self.r2 is None:
            return None
        times = drawn_documents(len(self.errors), resamples, seed)
        return interval(1 - (times @ self.errors) / (times @ self.totals))


@functools.lru_cache(maxsize=1)  # every layer is resampled alike
def drawn_documents(documents: int, resamples: int, seed: int) -> Float[np.ndarray, "R D"]:
    return draws(generator(seed, Stream.BOOTSTRAP_MIXTURES), documents, resamples)


def folds(documents: int, seed: int) -> Int[np.ndarray, " D"]:
    """A fold for every document, as many in one as in another, up to one."""
    return generator(seed, Stream.MIXTURE_FOLDS).permutation(documents) % FOLDS


def about_training_mean(shares: Float[np.ndarray, "D K"], fold: Int[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
    means = np.stack([shares[fold != f].mean(0) for f in range(FOLDS)])
    return ((shares - means[fold]) ** 2).sum(1)


def direct_scores(predictions: Float[np.ndarray, "D K"], shares: Float[np.ndarray, "D K"], *, seed: int) -> Scores:
    return Scores(((predictions - shares) ** 2).sum(1), about_training_mean(shares, folds(len(shares), seed)))


def ridge_scores(
    features: Float[np.ndarray, "D d"],
    shares: Float[np.ndarray, "D K"],
    orders: Sequence[Int[np.ndarray, " D"]] = (),
    *,
    seed: int,
) -> list[Scores]:
    y, every, fold = np.asarray(shares, dtype=np.float64), [np.arange(len(shares)), *orders], folds(len(shares), seed)
    errors = np.full((len(every), len(y)), np.nan)
    for train, test, predict in fits(features, fold):
        for mine, order in zip(errors, every, strict=True):
            mine[test] = ((predict(y[order[train]])[0] - y[order[test]]) ** 2).sum(1)
    return [Scores(mine, about_training_mean(y[order], fold)) for mine, order in zip(errors, every, strict=True)]


def fits(features: Float[np.ndarray, "D d"], fold: Int[np.ndarray, " D"]) -> Iterator[Fit]:
    """For every fold which documents train and test, and `predictions` of any targets. None if a feature is NaN."""
    x = np.asarray(features, dtype=np.float64)
    for f in range(FOLDS) if np.isfinite(x).all() else ():
        train, test = fold != f, fold == f
        yield train, test, functools.partial(predictions, *components(x[train], x[test]))


def components(
    train: Float[np.ndarray, "n d"], test: Float[np.ndarray, "m d"]
) -> tuple[Float[np.ndarray, "n r"], Float[np.ndarray, "m r"], Float[np.ndarray, " r"]]:
    """Principal components of the centred training rows, the test rows in them, and their sums of squares.

    From the smaller of the two matrices of products: rows by rows or features by features.
    """
    mean = train.mean(0)
    x, z = train - mean, test - mean
    few = len(x) <= x.shape[1]
    squares, axes = np.linalg.eigh(x @ x.T if few else x.T @ x)
    real = squares > NEGLIGIBLE * max(squares[-1], 0.0)
    squares, axes = squares[real], axes[:, real]
    if not few:
        return x @ axes, z @ axes, squares
    roots = np.sqrt(squares)
    return axes * roots, (z @ x.T) @ axes / roots, squares


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


@dataclass(frozen=True)
class ClassScores:
    truth: Classes
    guessed: Classes  # guessed class, from folds that the document is not in; -1 where the features are no numbers
    inner: Float[np.ndarray, " F"]  # accuracy among the training documents of each fold, each left out of its fit

    @property
    def accuracy(self) -> float:
        return float((self.truth == self.guessed).mean())

    @property
    def macro_f1(self) -> float:
        """The mean over classes of 2 hits / (documents of the class + guesses of it)."""
        return float(self._f1(np.ones((1, len(self.truth))))[0])

    def intervals(self, resamples: int, seed: int) -> tuple[Interval | None, Interval | None]:
        times = drawn_documents(len(self.truth), resamples, seed)
        return interval(times @ (self.truth == self.guessed) / len(self.truth)), interval(self._f1(times))

    def _f1(self, times: Float[np.ndarray, "R D"]) -> Float[np.ndarray, " R"]:
        """Of resamples; over the classes that some document of the resample has or was guessed to have."""
        classes = np.arange(self.truth.max() + 1)
        true, guessed = self.truth[:, None] == classes, self.guessed[:, None] == classes
        hits, either = times @ (true & guessed), times @ (true.astype(float) + guessed)
        return (2 * hits / np.maximum(either, 1)).sum(1) / (either > 0).sum(1)


def stratified_folds(truth: Classes, seed: int) -> Classes:
    """A fold for every document: of each class, and in all, equally many per fold, up to one document."""
    order = generator(seed, Stream.LABEL_FOLDS).permutation(len(truth))
    by_class = order[np.argsort(truth[order], kind="stable")]
    fold = np.empty(len(truth), dtype=np.int64)
    fold[by_class] = np.arange(len(truth)) % FOLDS
    return fold


def classified(features: Float[np.ndarray, "D d"], truth: Classes, folds: Classes) -> ClassScores:
    """Guess the class of every document by ridge regression of its features; the other folds are fitted."""
    y, guessed, inner = np.eye(int(truth.max()) + 1)[truth], np.full(len(truth), -1), np.zeros(FOLDS)
    for f, (train, test, predict) in enumerate(fits(features, folds)):
        outside, inside = predict(y[train])
        guessed[test] = outside.argmax(1)
        inner[f] = (inside.argmax(1) == truth[train]).mean()
    return ClassScores(truth, guessed, inner)


def chosen_inside(guesses: Sequence[ClassScores], folds: Classes) -> tuple[ClassScores, Classes]:
    """Guesses where every fold takes the features (layer) that do best on the other folds.

    So no document helps to choose what it is guessed from, as it does where the best of all accuracies is taken.
    """
    inner, guessed = np.stack([one.inner for one in guesses]), np.stack([one.guessed for one in guesses])
    taken = inner.argmax(0)
    return ClassScores(guesses[0].truth, guessed[taken[folds], np.arange(len(folds))], inner.max(0)), taken
