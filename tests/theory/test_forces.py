"""The force on attention against a plain loop, and its closed forms against it."""

import itertools
import math

import numpy as np
import pytest

from tests.theory.settings import loss_by_loop
from topicscope.ground import InputError
from topicscope.theory import (
    Population,
    Setting,
    contrast_force,
    force_formula,
    grouped_subsets,
    inside_force,
    mask_force,
    optimum,
    score_force,
    subset_world,
    theorem2,
    topic_contrasts,
    topic_shares,
)
from topicscope.theory.forces import Loss, every_order, exchangeable_rows, fixed_shares, listed_shares, random_world
from topicscope.world import Dirichlet, Fixed, Groups, LogisticNormal, Masking, TopicModel

MASKING = Masking(p_mask=0.3, p_correct=0.2, p_random=0.1)


@pytest.mark.parametrize("loss", ["squared", "cross-entropy"])
def test_the_force_is_the_slope_of_a_plain_loop(loss: Loss) -> None:
    """Central differences, away from uniform attention, of a world without any symmetry."""
    rng, step = np.random.default_rng(3), 1e-4
    world = random_world(rng, words=4, topics=3, laws=4)
    value, scores = rng.standard_normal((2, 5, 5))
    force, population = score_force(world, MASKING, value, scores, loss), Population.of_world(world, MASKING, loss)
    for key, query in itertools.product(range(5), repeat=2):
        moved = np.zeros((5, 5))
        moved[key, query] = step
        above, below = (loss_by_loop(population, value, scores + sign * moved) for sign in (1, -1))
        assert force[key, query] == pytest.approx(-(above - below) / (2 * step), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("masking", [Masking(), MASKING])
@pytest.mark.parametrize(("topics", "v", "tau"), [(5, 4, 2), (6, 3, 3), (6, 3, 5), (4, 1, 2)])
def test_after_the_first_stage_it_is_sigma_times_topic_contrasts(
    topics: int, v: int, tau: int, masking: Masking
) -> None:
    s = Setting(TopicModel(topics, v), tau, masking)
    world = subset_world(topics, v, grouped_subsets(topics, tau))
    force = score_force(world, masking, theorem2(s).matrix())
    sigma = contrast_force(topic_shares(Fixed(topics_per_document=tau), topics), v, masking)
    assert sigma == pytest.approx(2 * masking.p_correct * s.p1 * (tau - 1) / (masking.k * v * tau * (topics - 1)))
    assert np.abs(force - sigma * topic_contrasts(topics, v)).max() < 1e-13 * sigma
    assert np.abs(force - force_formula(world, masking, theorem2(s).matrix())).max() < 1e-13 * sigma


def test_without_correct_words_or_with_one_topic_there_is_no_force() -> None:
    shares = topic_shares(Fixed(topics_per_document=2), 5)
    assert contrast_force(shares, 4, Masking(p_correct=0.0)) == 0
    assert abs(contrast_force(topic_shares(Fixed(topics_per_document=1), 5), 4, Masking())) < 1e-19


@pytest.mark.parametrize("masking", [Masking(), MASKING])
def test_the_diagonal_of_long_documents_adds_differences_inside_topics(masking: Masking) -> None:
    """At the limit of W* as documents grow; at Theorem 2, which infinite documents reach, nothing is added."""
    prior, topics = Fixed(topics_per_document=2, length=1000), TopicModel(4, 3)
    best, world, shares = optimum(topics, prior, masking), subset_world(4, 3, grouped_subsets(4, 2)), fixed_shares(4, 2)
    sigma, delta = contrast_force(shares, 3, masking), inside_force(shares, 3, masking)
    inside = np.pad(np.kron(np.eye(4), np.eye(3) - 1 / 3), ((1, 0), (1, 0)))
    force = score_force(world, masking, best.limit_matrix())
    assert np.abs(force - sigma * topic_contrasts(4, 3) - delta * inside).max() < 1e-12 * sigma
    diagonal = masking.p_correct / (masking.k + masking.p_mask * masking.p_random)
    assert delta / sigma == pytest.approx(diagonal * masking.k * 2 * 3 / 4)
    plain = score_force(world, masking, best.least_norm_matrix())
    assert np.abs(plain - sigma * topic_contrasts(4, 3)).max() < 1e-12 * sigma


def test_a_dirichlet_law_is_that_of_its_draws() -> None:
    """Quadrature over one share, against all shares of many draws: within four standard errors."""
    draws = np.random.default_rng(1).dirichlet(np.full(6, 0.3), size=100_000)
    exact = topic_shares(Dirichlet(alpha=0.3), 6)
    assert exact.mean(exact.share) == pytest.approx(1 / 6, rel=1e-12)
    assert topic_shares(Dirichlet(alpha=0.1), 10).contrast == pytest.approx(1 / (10 * (10 * 0.1 + 1)), rel=1e-12)
    for power in (1, 2, 5):
        each = (draws**power * ((draws**2).sum(1)[:, None] - draws**2)).mean(1)
        error = each.std() / math.sqrt(len(each))
        assert exact.mean(exact.share**power * exact.others) == pytest.approx(each.mean(), abs=4 * float(error))
    each = np.full(5000, 1 / 5000)
    parts = [contrast_force(listed_shares(part, each), 3, Masking()) for part in np.split(draws, 20)]
    error = np.std(parts) / math.sqrt(20)
    assert contrast_force(exact, 3, Masking()) == pytest.approx(np.mean(parts), abs=4 * float(error))


def test_what_is_not_exchangeable_is_refused() -> None:
    for prior in (
        Dirichlet(alpha=[0.1, 0.1, 0.2, 0.1]),
        Fixed(topics_per_document=2, weights=[1.0, 1.0, 1.0, 2.0]),
        Groups(groups=2, rho=0.5, topics_per_document=2),
        LogisticNormal(covariance=1.0),
    ):
        with pytest.raises(InputError, match="all topics are alike"):
            topic_shares(prior, 4)
    alike = [Groups(groups=2, rho=0.0, topics_per_document=2), Fixed(topics_per_document=2)]
    assert np.ptp([topic_shares(prior, 4).contrast for prior in alike]) == pytest.approx(0, abs=1e-15)
    rows = every_order([[0.7, 0.2, 0.1]])
    assert exchangeable_rows(rows, np.full(6, 1 / 6))
    assert not exchangeable_rows(rows[[0, 3, 4]], np.full(3, 1 / 3))  # turns alone: two topics cannot be swapped


@pytest.mark.parametrize(("topics", "v", "tau", "size"), [(5, 4, 2, 0.0064), (10, 10, 3, 0.00195)])
def test_under_cross_entropy_the_mask_query_is_first(topics: int, v: int, tau: int, size: float) -> None:
    s, w, pi = Setting.of(topics, v, tau), 1e-7, topic_contrasts(topics, v)
    force = score_force(subset_world(topics, v, grouped_subsets(topics, tau)), s.masking, w * pi, loss="cross-entropy")
    found = mask_force(topic_shares(Fixed(topics_per_document=tau), topics), v, s.masking)
    stated = np.array([found.mask, *[found.word] * (topics * v)])
    assert np.abs(force[:, 0] / w - stated).max() < 1e-6 * found.size
    assert found.size == pytest.approx(size, rel=5e-3)
    assert np.linalg.norm(stated) == pytest.approx(found.size)
    assert abs((force * pi).sum()) / (topics - 1) < found.size * w / 10  # topic modes are far weaker
