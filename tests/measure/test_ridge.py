"""Ridge regressions against plain ones, guesses of classes, and the likeliest mixtures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.measure.samples import there
from topicscope.ground import Stream, generator
from topicscope.measure import (
    ClassScores,
    Scores,
    chosen_inside,
    classified,
    direct_scores,
    folded_in,
    ridge_scores,
    stratified_folds,
)
from topicscope.measure.topics import FOLDS, GRID, components, folds

SEED = 3


def solved(x: np.ndarray, y: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and intercept: the normal equations with an intercept that is not penalised."""
    full = np.concatenate([x, np.ones((len(x), 1))], 1)
    penalty = strength * np.eye(full.shape[1])
    penalty[-1, -1] = 0
    weights = np.linalg.solve(full.T @ full + penalty, full.T @ y)
    return weights[:-1], weights[-1]


def chosen_by_loop(x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """The strength with the least error when every row is left out once, and what is then predicted for these rows."""
    centred, best = x - x.mean(0), (np.inf, 0.0, y)
    for strength in GRID * (centred**2).sum() / np.linalg.matrix_rank(centred):
        left_out = np.empty_like(y)
        for i in range(len(x)):
            rest = np.arange(len(x)) != i
            slopes, start = solved(x[rest], y[rest], strength)
            left_out[i] = x[i] @ slopes + start
        best = min(best, (float(((left_out - y) ** 2).sum()), strength, left_out), key=lambda one: one[0])
    return best[1:]


def by_loop(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    errors, totals = np.empty(len(x)), np.empty(len(x))
    for fold in range(FOLDS):
        test = folds(len(x), SEED) == fold
        slopes, start = solved(x[~test], y[~test], chosen_by_loop(x[~test], y[~test])[0])
        errors[test] = ((x[test] @ slopes + start - y[test]) ** 2).sum(1)
        totals[test] = ((y[test] - y[~test].mean(0)) ** 2).sum(1)
    return errors, totals


@pytest.mark.parametrize(("documents", "features", "noise"), [(23, 4, 0.3), (17, 30, 0.3), (25, 6, 5.0), (12, 12, 1.0)])
def test_errors_are_those_of_the_normal_equations(documents: int, features: int, noise: float) -> None:
    """More documents than features, and fewer; the strength is chosen by leaving out one document after another."""
    rng = np.random.default_rng(documents)
    x = rng.normal(size=(documents, features)) * np.linspace(0.2, 3, features)
    y = x[:, :3] @ rng.normal(size=(3, 4)) + noise * rng.normal(size=(documents, 4)) + 2
    order = rng.permutation(documents)
    for found, target in zip(ridge_scores(x, y, [order], seed=SEED), (y, y[order]), strict=True):
        errors, totals = by_loop(x, target)
        np.testing.assert_allclose(found.errors, errors, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.totals, totals, rtol=1e-12)
        assert found.r2 == pytest.approx(1 - errors.sum() / totals.sum(), abs=1e-10)


def test_what_is_linear_is_found_and_what_is_not_there_is_not() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 10))
    linear, noise = x @ rng.normal(size=(10, 3)), rng.normal(size=(200, 3))
    (found,), (none,) = ridge_scores(x, linear, seed=SEED), ridge_scores(x, noise, seed=SEED)
    assert there(found.r2) > 0.999
    assert there(none.r2) < 0.05
    (turned,) = ridge_scores(7 * x @ np.linalg.qr(rng.normal(size=(10, 10)))[0] + 3, linear, seed=SEED)
    np.testing.assert_allclose(turned.errors, found.errors, rtol=1e-5, atol=1e-12)  # turned, scaled and moved


def test_features_that_do_not_vary_predict_the_mean() -> None:
    y = np.random.default_rng(1).normal(size=(20, 2))
    (found,) = ridge_scores(np.ones((20, 3)), y, seed=SEED)
    assert found.r2 == 0.0
    assert components(np.ones((4, 3)), np.ones((2, 3)))[2].size == 0
    assert direct_scores(y, y, seed=SEED).r2 == 1.0


def test_numbers_that_are_none_give_no_score() -> None:
    y = np.random.default_rng(1).normal(size=(20, 2))
    (found,) = ridge_scores(np.full((20, 3), np.nan), y, seed=SEED)
    assert (found.r2, found.interval(10, 0)) == (None, None)
    (flat,) = ridge_scores(y, np.ones((20, 2)), seed=SEED)
    assert (flat.r2, flat.interval(10, 0)) == (None, None)


def test_the_interval_resamples_documents() -> None:
    rng = np.random.default_rng(2)
    scores = Scores(rng.random(15), rng.random(15) + 0.5)
    drawn = generator(5, Stream.BOOTSTRAP_MIXTURES)
    each = []
    for _ in range(40):
        times = drawn.multinomial(15, np.full(15, 1 / 15))
        each.append(1 - sum(times * scores.errors) / sum(times * scores.totals))
    assert scores.interval(40, 5) == pytest.approx(tuple(np.quantile(each, [0.025, 0.975])), abs=1e-12)


def test_a_corpus_in_turn_is_predicted_as_one_in_any_order() -> None:
    """Five labels in turn: with fold i mod 5 each fold would hold a label that no other fold has, and R2 be below 0."""
    y = np.eye(5)[np.arange(100) % 5]
    x = y @ np.random.default_rng(0).normal(size=(5, 8))
    (found,) = ridge_scores(x, y, seed=SEED)
    assert there(found.r2) > 0.99
    drawn = folds(100, SEED)
    assert np.bincount(drawn).tolist() == [20] * FOLDS
    assert drawn.tolist() == folds(100, SEED).tolist() != folds(100, SEED + 1).tolist()


def plain_guesses(x: np.ndarray, truth: np.ndarray, folds: np.ndarray) -> tuple[list[int], list[float]]:
    """Every fold from the others; the strength and the inner hits by leaving every single document out."""
    y, guessed, inner = np.eye(truth.max() + 1)[truth], np.full(len(x), -1), []
    for f in range(FOLDS):
        train = folds != f
        strength, left_out = chosen_by_loop(x[train], y[train])
        slopes, start = solved(x[train], y[train], strength)
        inner.append(float((left_out.argmax(1) == truth[train]).mean()))
        guessed[~train] = (x[~train] @ slopes + start).argmax(1)
    return guessed.tolist(), inner


@pytest.mark.parametrize("size", [3, 40])
def test_guesses_are_those_of_plain_regressions(size: int) -> None:
    rng = np.random.default_rng(size)
    truth = rng.permutation(np.repeat(np.arange(3), [12, 9, 9]))
    x = rng.standard_normal((30, size)) + 0.8 * rng.standard_normal((3, size))[truth]
    folds = stratified_folds(truth, 1)
    guess = classified(x, truth, folds)
    guessed, inner = plain_guesses(x, truth, folds)
    assert guess.guessed.tolist() == guessed
    np.testing.assert_allclose(guess.inner, inner, atol=1e-10)


def test_accuracy_and_f1_by_hand() -> None:
    scores = ClassScores(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 2, 0]), np.empty(0))
    assert scores.accuracy == pytest.approx(3 / 6)
    assert scores.macro_f1 == pytest.approx((2 * 2 / (3 + 3) + 2 * 1 / (2 + 2) + 0) / 3, abs=1e-12)


def test_intervals_are_those_of_documents_drawn_one_by_one() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 50)
    scores = ClassScores(truth, np.where(rng.random(50) < 0.6, truth, rng.integers(0, 4, 50)), np.empty(0))
    times = rng.multinomial(50, np.full(50, 1 / 50), 20).astype(float)
    for one, f1 in zip(times, scores._f1(times), strict=True):
        rows = np.repeat(np.arange(50), one.astype(int))
        mine, total, number = scores.truth[rows], 0.0, 0
        for k in range(4):
            hits = sum(1 for t, g in zip(mine, scores.guessed[rows], strict=True) if t == g == k)
            either = sum(1 for t in mine if t == k) + sum(1 for g in scores.guessed[rows] if g == k)
            total, number = total + (2 * hits / either if either else 0), number + (either > 0)
        assert f1 == pytest.approx(total / number, abs=1e-10)
    accuracy, macro = map(there, scores.intervals(500, 3))
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
    best = max(guess.accuracy for guess in guesses)
    chosen, taken = chosen_inside(guesses, folds)
    assert best > 0.65
    assert chosen.accuracy < best - 0.05
    for f in range(FOLDS):
        assert taken[f] == max(range(100), key=lambda i: guesses[i].inner[f])
        mine = folds == f
        assert chosen.guessed[mine].tolist() == guesses[taken[f]].guessed[mine].tolist()


def test_features_that_are_no_numbers_guess_nothing() -> None:
    truth = np.repeat(np.arange(2), 5)
    guess = classified(np.full((10, 2), np.nan), truth, stratified_folds(truth, 0))
    assert guess.accuracy == 0
    assert guess.macro_f1 == 0
    constant = classified(np.ones((10, 2)), np.repeat(np.arange(2), [7, 3]), stratified_folds(truth, 0))
    assert constant.accuracy == pytest.approx(0.7)


def objective(theta: np.ndarray, probability: np.ndarray, counts: np.ndarray, prior: float) -> float:
    return float(counts @ np.log(theta @ probability) + prior * np.log(theta).sum())


@pytest.mark.parametrize("prior", [0.1, 1.0])
@pytest.mark.parametrize("counts", [[1, 0, 0, 0], [3, 2, 0, 1], [0, 0, 9, 9], [40, 1, 1, 1]])
def test_no_mixture_of_the_grid_is_likelier(counts: list[int], prior: float) -> None:
    probability = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.05, 0.05, 0.4, 0.5]])
    number, steps = np.array(counts, dtype=float), 200
    theta = folded_in(probability, number, prior=prior)
    assert theta.sum() == pytest.approx(1, abs=1e-12)
    best = max(
        (objective(np.array([i, j, steps - i - j]) / steps, probability, number, prior), i, j)
        for i, j in itertools.product(range(1, steps), repeat=2)
        if i + j < steps
    )
    assert objective(theta, probability, number, prior) >= best[0] - 1e-9
    nearest = np.array([best[1], best[2], steps - best[1] - best[2]]) / steps
    assert np.abs(theta - nearest).max() < 2 / steps


def test_the_maximum_is_a_fixed_point_and_unknown_words_do_not_count() -> None:
    rng = np.random.default_rng(0)
    probability = rng.dirichlet(np.full(30, 0.2), 6)
    probability[:, 7] = 0
    counts = rng.poisson(1.0, 30).astype(float)
    theta = folded_in(probability, counts, tolerance=1e-13)
    used = (counts > 0) & (np.arange(30) != 7)
    share = np.array(
        [
            0.1
            + sum(counts[w] * theta[k] * probability[k, w] / (theta @ probability[:, w]) for w in np.flatnonzero(used))
            for k in range(6)
        ]
    )
    np.testing.assert_allclose(theta, share / share.sum(), atol=1e-10)
    more = counts.copy()
    more[7] += 100
    assert folded_in(probability, more, tolerance=1e-13).tolist() == theta.tolist()


def test_without_words_all_topics_are_alike_and_order_does_not_matter() -> None:
    probability = np.random.default_rng(1).dirichlet(np.ones(5), 4)
    assert folded_in(probability, np.zeros(5)).tolist() == [0.25] * 4
    counts, order = np.array([2.0, 0, 1, 5, 0]), [2, 0, 3, 1]
    np.testing.assert_allclose(folded_in(probability[order], counts), folded_in(probability, counts)[order], atol=1e-12)
