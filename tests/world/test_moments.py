"""Moments of priors, against enumeration or against many draws."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from topicscope.ground import InputError
from topicscope.world import (
    Dirichlet,
    DocumentPrior,
    Fixed,
    Given,
    Groups,
    LogisticNormal,
    Moments,
    TopicModel,
    checked_moments,
    every_document,
    logistic_normal,
)
from topicscope.world.logistic_normal import correlated_normal

DRAWS = 300_000
COVARIANCE = [[1.0, 0.8, 0.0, -0.3], [0.8, 1.5, 0.1, 0.0], [0.0, 0.1, 0.5, 0.0], [-0.3, 0.0, 0.0, 2.0]]


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
    assert (np.abs(mean - moments.mean) <= 5 * (spread + moments.errors[1]) + 1e-12).all()
    spread = np.sqrt(np.maximum(fourth - second**2, 0) / DRAWS)
    assert (np.abs(second - moments.second) <= 5 * (spread + moments.error) + 1e-12).all()


@pytest.mark.parametrize(
    ("prior", "topics"),
    [
        (Dirichlet(alpha=0.3), 4), (Dirichlet(alpha=[0.1, 2.0, 0.5]), 3), (Fixed(topics_per_document=2), 5),
        (Fixed(topics_per_document=2, weights=[1, 2, 3, 4, 0.5]), 5),
        (Groups(groups=3, rho=0.7, topics_per_document=2), 9), (Groups(groups=2, rho=0.0, topics_per_document=3), 4),
        (LogisticNormal(covariance=1.0), 3),
        (LogisticNormal(mean=[0.0, 1.0, -1.0], covariance=np.diag([0.0, 1.0, 4.0]).tolist()), 3),
        (LogisticNormal(mean=[0.0, 1.0, -1.0, 0.5], covariance=COVARIANCE), 4),
    ],
)  # fmt: skip
def test_moments_are_those_of_many_draws(prior: DocumentPrior, topics: int) -> None:
    assert_moments_of_draws(prior, topics)


def test_wrong_moments_are_noticed() -> None:
    with pytest.raises(AssertionError):
        assert_moments_of_draws(Dirichlet(alpha=0.3), 4, Dirichlet(alpha=0.33).moments(4))
    weighted = Fixed(topics_per_document=2, weights=[1, 2, 3, 4.0])
    with pytest.raises(AssertionError):
        assert_moments_of_draws(weighted, 4, Fixed(topics_per_document=2, weights=[1, 2, 3, 4.4]).moments(4))


@pytest.mark.parametrize(("topics", "tau"), [(1, 1), (4, 1), (4, 3), (6, 6), (7, 2)])
def test_moments_of_fixed_tau_are_those_of_all_documents(topics: int, tau: int) -> None:
    theta = every_document(TopicModel(topics, 1), tau).proportions
    moments = Fixed(topics_per_document=tau).moments(topics)
    assert moments.mean == pytest.approx(theta.mean(0), abs=1e-15)
    assert moments.second == pytest.approx(theta.T @ theta / len(theta), abs=1e-15)
    assert moments.error == 0


@settings(max_examples=40, deadline=None)
@given(data=st.data(), topics=st.integers(1, 6))
def test_moments_of_weighted_sets_equal_enumeration(data: st.DataObject, topics: int) -> None:
    tau = data.draw(st.integers(1, topics))
    w = np.array(data.draw(st.lists(st.floats(1e-3, 1e3), min_size=topics, max_size=topics)))
    sets = [np.array(one) for one in itertools.combinations(range(topics), tau)]
    rows = np.array([[(t in one) / tau for t in range(topics)] for one in sets])
    p = np.array([w[one].prod() for one in sets])
    p /= p.sum()
    moments = Fixed(topics_per_document=tau, weights=w.tolist()).moments(topics)
    assert moments.mean == pytest.approx(p @ rows, abs=1e-13)
    assert moments.second == pytest.approx(rows.T @ (p[:, None] * rows), abs=1e-13)
    found = Fixed(topics_per_document=tau, weights=w.tolist()).support(topics)
    assert found is not None
    assert found[0] == pytest.approx(rows)
    assert found[1] == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize(
    ("groups", "size", "rho", "tau"), [(3, 3, 0.5, 2), (2, 4, 1.0, 3), (4, 1, 0.3, 1), (2, 2, 0, 3)]
)
def test_moments_of_groups_equal_enumeration_and_the_closed_eigenvalues(
    groups: int, size: int, rho: float, tau: int
) -> None:
    topics, prior = groups * size, Groups(groups=groups, rho=rho, topics_per_document=tau)
    found = prior.support(topics)
    assert found is not None
    rows, p = found
    assert p.sum() == pytest.approx(1, abs=1e-14)
    moments = prior.moments(topics)
    assert moments.mean == pytest.approx(p @ rows, abs=1e-14)
    assert moments.second == pytest.approx(rows.T @ (p[:, None] * rows), abs=1e-14)
    if size > 1 and tau > 1:  # between groups (g - 1 of them), and within them (T - g)
        a, c = tau / topics, (1 - rho) * tau * (tau - 1) / (topics * (topics - 1))
        b = c + rho * tau * (tau - 1) / (topics * (size - 1))
        contrasts = moments.second - np.full((topics, topics), moments.second.mean())
        expected = (
            [0.0] + [(a + (size - 1) * b - size * c) / tau**2] * (groups - 1) + [(a - b) / tau**2] * (topics - groups)
        )
        assert np.linalg.eigvalsh(contrasts) == pytest.approx(np.sort(expected), abs=1e-13)


@pytest.mark.parametrize("scale", [1e-4, 0.05, 1.0, 3.0, 6000.0])
def test_moments_of_independent_normals_are_exact(scale: float) -> None:
    """Two topics: theta_1 is the logistic function of a normal variable. What topics have in common changes nothing."""
    covariance = scale * np.array([[1.0, 0.4], [0.4, 1.5]])
    z = np.linspace(-9, 9, 40_001)
    weights = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    theta = (1 + np.tanh((0.5 + np.sqrt(scale * 1.7) * z) / 2)) / 2  # the logistic function
    moments = LogisticNormal(mean=[0.5, 0.0], covariance=covariance.tolist()).moments(2)
    assert max(moments.errors) == 0
    assert moments.mean == pytest.approx([weights @ theta, weights @ (1 - theta)], abs=1e-13)
    assert moments.second[0] == pytest.approx([weights @ theta**2, weights @ (theta * (1 - theta))], abs=1e-13)


def test_wide_normals_of_many_means_are_quick_and_those_of_draws() -> None:
    """Larger steps over x, and each value of the grid once; beside a narrow one, whose steps stay as they were."""
    wide = LogisticNormal(mean=[0.0, 30.0, -120.0, 7.3], covariance=1e4)
    assert_moments_of_draws(wide, 4)
    many = LogisticNormal(mean=np.linspace(-5, 5, 20).tolist(), covariance=1e4).moments(20)
    assert (np.diff(many.mean) > 0).all()
    narrow = LogisticNormal(mean=[0.0, 30.0, -20.0], covariance=np.diag([1e3, 1e3, 0.01]).tolist())
    assert_moments_of_draws(narrow, 3)


@pytest.mark.parametrize("spread", [[20.0] * 6, [3.0, 9.0, 50.0, 7.0, 4.0, 100.0]])
def test_larger_steps_over_x_change_nothing(monkeypatch: pytest.MonkeyPatch, spread: list[float]) -> None:
    centre, variance = np.linspace(-3, 40, 6), np.square(spread)
    coarse = logistic_normal.independent_normal(centre, variance)
    monkeypatch.setattr(logistic_normal, "_coarser", lambda spread: 1)
    fine = logistic_normal.independent_normal(centre, variance)
    assert coarse.second == pytest.approx(fine.second, rel=1e-12)
    monkeypatch.setattr(logistic_normal, "_coarser", lambda spread: 200)  # far too large ones do
    assert np.abs(logistic_normal.independent_normal(centre, variance).second / fine.second - 1).max() > 1e-6


def test_parts_are_independent_estimates_of_correlated_moments() -> None:
    found = correlated_normal(np.zeros(3), np.linalg.cholesky([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 2.0]]))
    seconds = np.array([part.second for part in found.parts])
    assert len(seconds) == 4
    assert seconds.mean(0) == pytest.approx(found.second, rel=1e-12)
    spread = seconds.std(0).max() / np.sqrt(3)  # the standard error of the mean of four
    assert 0.2 < spread / found.error < 3


def test_a_thousand_alike_topics_have_alike_moments() -> None:
    """E[theta_t^2] within five standard errors of draws; and the same for all topics."""
    moments, draws = LogisticNormal(covariance=1.0).moments(1000), np.random.default_rng(2)
    theta = np.exp(draws.standard_normal((4000, 1000)))
    squares = ((theta / theta.sum(1, keepdims=True)) ** 2).mean(1)
    assert moments.error == 0
    assert moments.second[0, 0] == pytest.approx(squares.mean(), abs=5 * squares.std() / np.sqrt(4000))
    assert np.ptp(np.diagonal(moments.second)) < 1e-12 * moments.second[0, 0]
    assert moments.mean == pytest.approx(1e-3, rel=1e-12)


def test_errors_of_correlated_normals_are_of_entries_means_and_eigenvalues() -> None:
    """Independent normals by points: their exact moments show whether the stated errors are the real ones."""
    topics = 12
    exact = LogisticNormal(covariance=1.0).moments(topics)
    found = correlated_normal(np.zeros(topics), np.eye(topics))
    second, mean, norm = found.errors
    off = found.second - exact.second
    assert 0.2 < np.abs(off).max() / second < 5
    assert 0.2 < np.abs(found.mean - exact.mean).max() / mean < 5
    assert 0.3 < np.abs(np.linalg.eigvalsh(off)).max() / norm < 3
    assert second < mean  # E[theta] is not E[theta theta']
    again = correlated_normal(np.zeros(topics), np.eye(topics))
    assert (again.second == found.second).all()  # the points have a fixed seed


def test_a_covariance_of_zero_leaves_one_mixture() -> None:
    moments = LogisticNormal(mean=[0.0, 1.0], covariance=[[0.0, 0.0], [0.0, 0.0]]).moments(2)
    share = 1 / (1 + np.e)
    assert moments.mean == pytest.approx([share, 1 - share])
    assert moments.error == 0


def test_moments_of_given_rows() -> None:
    moments = Given(proportions=[[0.25, 0.75], [1.0, 0.0]]).moments(2)
    assert moments.mean.tolist() == [0.625, 0.375]
    assert moments.second.tolist() == [[0.53125, 0.09375], [0.09375, 0.28125]]


def test_parts_are_checked_as_moments_are() -> None:
    whole = Dirichlet(alpha=1.0).moments(2)
    outside = Moments(np.array([1.5, -0.5]), whole.second)
    with pytest.raises(InputError, match=r"a part of them: E\[theta\] and .* must not be negative"):
        checked_moments(dataclasses.replace(whole, error=0.01, parts=(whole, outside)), 2, "the law's moments")


def test_one_error_of_a_law_is_that_of_all_its_moments() -> None:
    assert Moments(np.full(4, 0.25), np.eye(4) / 4, 0.01).errors == (0.01, 0.01, 0.04)
