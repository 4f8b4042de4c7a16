"""Guesses of classes, against plain ridge regressions solved one by one; F1 by hand; folds; the chosen features."""

from __future__ import annotations

import numpy as np
import pytest

from topicscope.measure import ClassScores, chosen_inside, classified, stratified_folds
from topicscope.measure.ridge import FOLDS, GRID


def plain_fit(x: np.ndarray, y: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and intercept of the ridge with a free intercept, from its normal equations."""
    mean, target = x.mean(0), y.mean(0)
    slopes = np.linalg.solve((x - mean).T @ (x - mean) + strength * np.eye(x.shape[1]), (x - mean).T @ (y - target))
    return slopes, target - mean @ slopes


def plain_guesses(x: np.ndarray, truth: np.ndarray, folds: np.ndarray) -> tuple[list[int], list[float]]:
    """Every fold from the others; the strength and the inner hits by leaving every single document out."""
    y, guessed, inner = np.eye(truth.max() + 1)[truth], [-1] * len(x), []
    for f in range(FOLDS):
        train = np.flatnonzero(folds != f)
        spread = x[train] - x[train].mean(0)
        unit = (spread**2).sum() / min(len(train) - 1, x.shape[1])
        best: tuple[float, float, np.ndarray] | None = None
        for strength in GRID * unit:
            left_out = []
            for i in train:
                slopes, start = plain_fit(x[train[train != i]], y[train[train != i]], strength)
                left_out.append(x[i] @ slopes + start)
            error = float(((np.array(left_out) - y[train]) ** 2).sum())
            if best is None or error < best[0]:
                best = error, float(strength), np.array(left_out)
        assert best is not None
        slopes, start = plain_fit(x[train], y[train], best[1])
        inner.append(float((best[2].argmax(1) == truth[train]).mean()))
        for i in np.flatnonzero(folds == f):
            guessed[i] = int((x[i] @ slopes + start).argmax())
    return guessed, inner


@pytest.mark.parametrize("size", [3, 40])
def test_guesses_are_those_of_plain_regressions(size: int) -> None:
    rng = np.random.default_rng(size)
    truth = rng.permutation(np.repeat(np.arange(3), [12, 9, 9]))
    x = rng.standard_normal((30, size)) + 0.8 * rng.standard_normal((3, size))[truth]
    folds = stratified_folds(truth, 1)
    guess = classified(x, truth, folds)
    guessed, inner = plain_guesses(x, truth, folds)
    assert guess.scores.guessed.tolist() == guessed
    np.testing.assert_allclose(guess.inner, inner, atol=1e-10)


def test_accuracy_and_f1_by_hand() -> None:
    scores = ClassScores(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 2, 0]))
    assert scores.accuracy == pytest.approx(3 / 6)
    assert scores.macro_f1 == pytest.approx((2 * 2 / (3 + 3) + 2 * 1 / (2 + 2) + 0) / 3, abs=1e-12)


def test_intervals_are_those_of_documents_drawn_one_by_one() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 50)
    scores = ClassScores(truth, np.where(rng.random(50) < 0.6, truth, rng.integers(0, 4, 50)))
    times = rng.multinomial(50, np.full(50, 1 / 50), 20).astype(float)
    for one, f1 in zip(times, scores._f1(times), strict=True):
        rows = np.repeat(np.arange(50), one.astype(int))
        mine, total, number = scores.truth[rows], 0.0, 0
        for k in range(4):
            hits = sum(1 for t, g in zip(mine, scores.guessed[rows], strict=True) if t == g == k)
            either = sum(1 for t in mine if t == k) + sum(1 for g in scores.guessed[rows] if g == k)
            total, number = total + (2 * hits / either if either else 0), number + (either > 0)
        assert f1 == pytest.approx(total / number, abs=1e-10)
    accuracy, macro = scores.intervals(500, 3)
    assert accuracy is not None
    assert macro is not None
    assert accuracy[0] < scores.accuracy < accuracy[1]
    assert macro[0] < scores.macro_f1 < macro[1]


def test_folds_hold_equal_shares_of_every_class() -> None:
    truth = np.repeat(np.arange(4), [5, 8, 23, 14])
    folds = stratified_folds(truth, 7)
    for k in range(4):
        counts = np.bincount(folds[truth == k], minlength=FOLDS)
        assert counts.max() - counts.min() <= 1
    assert np.bincount(folds).tolist() == [10] * FOLDS
    assert folds.tolist() == stratified_folds(truth, 7).tolist()
    assert folds.tolist() != stratified_folds(truth, 8).tolist()


def test_features_are_chosen_without_the_documents_that_they_guess() -> None:
    """Of a hundred features without signal the best looks good; what is chosen inside the folds does not."""
    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(2), 30)
    folds = stratified_folds(truth, 0)
    guesses = [classified(rng.standard_normal((60, 1)), truth, folds) for _ in range(100)]
    best = max(guess.scores.accuracy for guess in guesses)
    chosen, taken = chosen_inside(guesses, folds)
    assert best > 0.65
    assert chosen.accuracy < best - 0.05
    for f in range(FOLDS):
        assert taken[f] == max(range(100), key=lambda i: guesses[i].inner[f])
        mine = folds == f
        assert chosen.guessed[mine].tolist() == guesses[taken[f]].scores.guessed[mine].tolist()


def test_features_that_are_no_numbers_guess_nothing() -> None:
    truth = np.repeat(np.arange(2), 5)
    guess = classified(np.full((10, 2), np.nan), truth, stratified_folds(truth, 0))
    assert guess.scores.accuracy == 0
    assert guess.scores.macro_f1 == 0
    constant = classified(np.ones((10, 2)), np.repeat(np.arange(2), [7, 3]), stratified_folds(truth, 0))
    assert constant.scores.accuracy == pytest.approx(0.7)
