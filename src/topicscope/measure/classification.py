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
from topicscope.measure.effects import Interval, interval
from topicscope.measure.ridge import FOLDS, components, drawn_documents, predictions

Classes = Int[np.ndarray, " D"]


@dataclass(frozen=True)
class ClassScores:
    """Of every document its class and the one that was guessed; -1 where the features are no numbers."""

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
    """`inner`: of every fold, the share of hits among the other folds, each document guessed without itself."""

    scores: ClassScores
    inner: Float[np.ndarray, " F"]


def stratified_folds(truth: Classes, seed: int) -> Classes:
    """A fold for every document: of each class, and in all, as many in one fold as in another, up to one document."""
    order = generator(seed, Stream.LABEL_FOLDS).permutation(len(truth))
    by_class = order[np.argsort(truth[order], kind="stable")]
    fold = np.empty(len(truth), dtype=np.int64)
    fold[by_class] = np.arange(len(truth)) % FOLDS
    return fold


def classified(features: Float[np.ndarray, "D d"], truth: Classes, folds: Classes) -> Guess:
    """Every fold is guessed from the others."""
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
    """Guesses of several features (layers), of which every fold takes those that do best on the other folds.

    So no document helps to choose what it is guessed from, as it does where the best of all accuracies is taken. Also
    the number of the features that each fold takes; the first of equals.
    """
    taken = np.stack([guess.inner for guess in guesses]).argmax(0)
    guessed = np.stack([guess.scores.guessed for guess in guesses])
    return ClassScores(guesses[0].scores.truth, guessed[taken[folds], np.arange(len(folds))]), taken
