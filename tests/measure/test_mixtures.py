"""The likeliest mixture against all mixtures of a fine grid, and against what its maximum must fulfil."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from topicscope.measure import folded_in


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
