"""How well features (a document's mean state, its words) tell which class a document is of, cross-validated.

guess = classified(features, truth, folds); guess.scores.accuracy, guess.scores.macro_f1

A ridge regression to one column per class (1 for the class of the document, else 0); the largest is the guess. Its
strength is chosen as in `ridge.py`, from the training folds alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Stream, generator
from topicscope.measure.intervals import Interval, interval
from topicscope.measure.ridge import FOLDS, components, drawn_documents, predictions

Classes = Int[np.ndarray, " D"]


@dataclass(frozen=True)
class ClassScores:
    """Of every document its class and the one that was guessed.

    Attributes:
        truth: Class of each document (D).
        guessed: Guessed class (D); -1 where the features are no numbers.

    Example:
        >>> scores = ClassScores(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]))
        >>> scores.accuracy, round(scores.macro_f1, 4)
        (0.75, 0.7333)
    """

    truth: Classes
    guessed: Classes

    @property
    def accuracy(self) -> float:
        return float((self.truth == self.guessed).mean())

    @property
    def macro_f1(self) -> float:
        """The mean over classes of 2 hits / (documents of the class + guesses of it)."""
        return float(self._f1(np.ones((1, len(self.truth))))[0])

    def intervals(self, resamples: int, seed: int) -> tuple[Interval | None, Interval | None]:
        """Of accuracy and macro F1, 95%: bootstrap over documents."""
        times = drawn_documents(len(self.truth), resamples, seed)
        return interval(times @ (self.truth == self.guessed) / len(self.truth)), interval(self._f1(times))

    def _f1(self, times: Float[np.ndarray, "R D"]) -> Float[np.ndarray, " R"]:
        """Of resamples; over the classes that some document of the resample has or was guessed to have."""
        classes = np.arange(self.truth.max() + 1)
        true, guessed = self.truth[:, None] == classes, self.guessed[:, None] == classes
        hits, either = times @ (true & guessed), times @ (true.astype(float) + guessed)
        return (2 * hits / np.maximum(either, 1)).sum(1) / (either > 0).sum(1)


@dataclass(frozen=True)
class Guess:
    """Guesses of all documents, each from folds that it is not in.

    Attributes:
        scores: Classes and guesses.
        inner: Of every fold, the share of hits among the other folds, each document guessed without itself.

    Example:
        See `classified`.
    """

    scores: ClassScores
    inner: Float[np.ndarray, " F"]


def stratified_folds(truth: Classes, seed: int) -> Classes:
    """A fold for every document: of each class, and in all, equally many per fold, up to one document.

    Args:
        truth: Class of each document (D).
        seed: Seed of the order.

    Returns:
        Fold of each document (D).

    Example:
        >>> folds = stratified_folds(np.array([0, 1] * 10), seed=0)
        >>> np.bincount(folds).tolist()
        [4, 4, 4, 4, 4]
    """
    order = generator(seed, Stream.LABEL_FOLDS).permutation(len(truth))
    by_class = order[np.argsort(truth[order], kind="stable")]
    fold = np.empty(len(truth), dtype=np.int64)
    fold[by_class] = np.arange(len(truth)) % FOLDS
    return fold


def classified(features: Float[np.ndarray, "D d"], truth: Classes, folds: Classes) -> Guess:
    """Guess the class of every document from its features, by ridge regression; every fold is guessed from the others.

    Args:
        features: (D x d).
        truth: Class of each document (D).
        folds: Fold of each document (D), from `stratified_folds`.

    Returns:
        The guesses.

    Example:
        >>> truth = np.array([0, 1] * 10)
        >>> classified(np.eye(2)[truth], truth, stratified_folds(truth, seed=0)).scores.accuracy
        1.0
    """
    x, y = np.asarray(features, dtype=np.float64), np.eye(int(truth.max()) + 1)[truth]
    guessed, inner = np.full(len(x), -1), np.zeros(FOLDS)
    if np.isfinite(x).all():
        for f in range(FOLDS):
            train, test = folds != f, folds == f
            outside, inside = predictions(*components(x[train], x[test]), y[train])
            guessed[test] = outside.argmax(1)
            inner[f] = (inside.argmax(1) == truth[train]).mean()
    return Guess(ClassScores(truth, guessed), inner)


def chosen_inside(guesses: Sequence[Guess], folds: Classes) -> tuple[ClassScores, Classes]:
    """Guesses where every fold takes the features (layer) that do best on the other folds.

    So no document helps to choose what it is guessed from, as it does where the best of all accuracies is taken.

    Args:
        guesses: One per kind of features.
        folds: Fold of each document (D).

    Returns:
        The guesses, and the number of the features that each fold takes; the first of equals.

    Example:
        >>> truth = np.array([0, 1] * 10)
        >>> folds = stratified_folds(truth, seed=0)
        >>> useless, useful = (classified(x, truth, folds) for x in (np.zeros((20, 1)), np.eye(2)[truth]))
        >>> scores, taken = chosen_inside([useless, useful], folds)
        >>> scores.accuracy, set(taken.tolist())
        (1.0, {1})
    """
    taken = np.stack([guess.inner for guess in guesses]).argmax(0)
    guessed = np.stack([guess.scores.guessed for guess in guesses])
    return ClassScores(guesses[0].scores.truth, guessed[taken[folds], np.arange(len(folds))]), taken
