"""Ridge regression against the normal equations, solved anew for every fold, strength and left-out document."""

from __future__ import annotations

import numpy as np
import pytest

from topicscope.ground import Stream, generator
from topicscope.measure import FOLDS, Scores, direct_scores, ridge_scores
from topicscope.measure.ridge import GRID, components, folds

SEED = 3


def solved(x: np.ndarray, y: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and intercept: the normal equations with an intercept that is not penalised."""
    full = np.concatenate([x, np.ones((len(x), 1))], 1)
    penalty = strength * np.eye(full.shape[1])
    penalty[-1, -1] = 0
    weights = np.linalg.solve(full.T @ full + penalty, full.T @ y)
    return weights[:-1], weights[-1]


def by_loop(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    errors, totals = np.empty(len(x)), np.empty(len(x))
    for fold in range(FOLDS):
        test = folds(len(x), SEED) == fold
        inside, outside = x[~test], y[~test]
        centred = inside - inside.mean(0)
        rank = np.linalg.matrix_rank(centred)
        best = (np.inf, 0.0)
        for strength in GRID * (centred**2).sum() / rank:
            left_out = 0.0
            for i in range(len(inside)):
                rest = np.arange(len(inside)) != i
                slopes, start = solved(inside[rest], outside[rest], strength)
                left_out += ((inside[i] @ slopes + start - outside[i]) ** 2).sum()
            best = min(best, (left_out, strength))
        slopes, start = solved(inside, outside, best[1])
        errors[test] = ((x[test] @ slopes + start - y[test]) ** 2).sum(1)
        totals[test] = ((y[test] - outside.mean(0)) ** 2).sum(1)
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
    assert found.r2 is not None
    assert none.r2 is not None
    assert found.r2 > 0.999
    assert none.r2 < 0.05
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
    assert found.r2 is not None
    assert found.r2 > 0.99
    drawn = folds(100, SEED)
    assert np.bincount(drawn).tolist() == [20] * FOLDS
    assert drawn.tolist() == folds(100, SEED).tolist() != folds(100, SEED + 1).tolist()
