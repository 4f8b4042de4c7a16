"""Moments of priors, against enumeration or against many draws."""

from __future__ import annotations

import numpy as np
import pytest

from topicscope.world import Dirichlet, DocumentPrior, Fixed, Given, Moments, TopicModel, every_document

DRAWS = 1_000_000


def assert_moments_of_draws(prior: DocumentPrior, topics: int, moments: Moments | None = None) -> None:
    """Means over draws lie within five standard errors; the error that the moments state comes on top."""
    moments = moments or prior.moments(topics)
    theta = prior.sample_proportions(topics, DRAWS, np.random.default_rng(1))
    assert theta.min() >= 0
    assert theta.sum(1) == pytest.approx(1, abs=1e-12)
    assert moments.mean.sum() == pytest.approx(1, abs=1e-12)
    assert moments.second.sum(1) == pytest.approx(moments.mean, abs=1e-12)  # E[theta_s sum_t theta_t]
    mean, second, fourth = theta.mean(0), theta.T @ theta / DRAWS, (theta**2).T @ theta**2 / DRAWS
    spread = np.sqrt(np.maximum(np.diag(second) - mean**2, 0) / DRAWS)
    assert (np.abs(mean - moments.mean) <= 5 * (spread + moments.error) + 1e-12).all()
    spread = np.sqrt(np.maximum(fourth - second**2, 0) / DRAWS)
    assert (np.abs(second - moments.second) <= 5 * (spread + moments.error) + 1e-12).all()


@pytest.mark.parametrize(("prior", "topics"), [(Dirichlet(alpha=0.3), 4), (Fixed(topics_per_document=2), 5)])
def test_moments_are_those_of_many_draws(prior: DocumentPrior, topics: int) -> None:
    assert_moments_of_draws(prior, topics)


def test_wrong_moments_are_noticed() -> None:
    with pytest.raises(AssertionError):
        assert_moments_of_draws(Dirichlet(alpha=0.3), 4, Dirichlet(alpha=0.31).moments(4))


@pytest.mark.parametrize(("topics", "tau"), [(1, 1), (4, 1), (4, 3), (6, 6), (7, 2)])
def test_moments_of_fixed_tau_are_those_of_all_documents(topics: int, tau: int) -> None:
    theta, moments = (
        every_document(TopicModel(topics, 1), tau).proportions,
        Fixed(topics_per_document=tau).moments(topics),
    )
    assert moments.mean == pytest.approx(theta.mean(0), abs=1e-15)
    assert moments.second == pytest.approx(theta.T @ theta / len(theta), abs=1e-15)
    assert moments.error == 0


def test_moments_of_given_rows() -> None:
    moments = Given(proportions=[[0.25, 0.75], [1.0, 0.0]]).moments(2)
    assert moments.mean.tolist() == [0.625, 0.375]
    assert moments.second.tolist() == [[0.53125, 0.09375], [0.09375, 0.28125]]
