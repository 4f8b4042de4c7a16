"""The growth of attention: g(l) against least squares over every document, the table of R3, l(t) against its ODE."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tests.theory.test_forces import instead_of
from topicscope.ground import InputError
from topicscope.theory import Growth, SmallWorld, score_force, topic_contrasts
from topicscope.theory.certify_worlds import every_order
from topicscope.world import Dirichlet, Fixed, Given, Groups, Masking, TopicModel

MASKING = Masking(p_mask=0.3, p_correct=0.2, p_random=0.1)


def fixed(topics: int, v: int, tau: int, masking: Masking | None = None) -> Growth:
    return Growth.of(TopicModel(topics, v), Fixed(topics_per_document=tau), masking)


def best_value(world: SmallWorld, masking: Masking, scores: np.ndarray) -> tuple[np.ndarray, float]:
    """Least squares over every document, word shown and true word, and its loss."""
    shown, true = world.infinite(masking)
    size = shown.shape[1]
    weight = shown[:, :, None] * np.exp(scores)
    attended = weight / weight.sum(1, keepdims=True)
    own = masking.p_correct * np.einsum("dy,yj->dyj", true, np.eye(size))
    masked = true[:, :, None] * instead_of(masking, size) + own
    joint = np.einsum("d,dyj,dij->yi", world.probabilities, masked, attended)
    square = np.einsum("d,dj,dij,dkj->ik", world.probabilities, masked.sum(1), attended, attended)
    value = joint @ np.linalg.pinv(square, rcond=1e-11, hermitian=True)
    return value, 1 - float((value * joint).sum())


ROWS = every_order([[0.6, 0.3, 0.1, 0.0], [0.4, 0.35, 0.2, 0.05]])


@pytest.mark.parametrize("masking", [Masking(), MASKING])
@pytest.mark.parametrize("ell", [0.0, 0.7, 4.0])
@pytest.mark.parametrize("prior", [Fixed(topics_per_document=2), Given(proportions=ROWS.tolist())])
def test_force_and_loss_are_those_of_least_squares(prior: Fixed | Given, ell: float, masking: Masking) -> None:
    topics = TopicModel(4, 3)
    growth, (rows, probability) = Growth.of(topics, prior, masking), prior.support(4) or ((), ())
    world, pi = SmallWorld(topics.word_topics, np.array(rows), np.array(probability)), topic_contrasts(4, 3)
    value, loss = best_value(world, masking, ell * pi)
    force = score_force(world, masking, value, ell * pi)
    assert growth.force(ell) == pytest.approx((force * pi).sum() / 3, rel=1e-9)
    assert growth.loss(ell) == pytest.approx(loss, rel=1e-12)


def test_the_force_starts_at_sigma_and_is_the_slope_of_the_loss() -> None:
    for growth in (fixed(5, 4, 2), fixed(10, 10, 3), Growth.of(TopicModel(), Dirichlet())):
        assert growth.force(0.0) == pytest.approx(growth.sigma, rel=1e-12)
        for ell in (0.5, 3.0):
            slope = (growth.loss(ell + 1e-4) - growth.loss(ell - 1e-4)) / 2e-4
            assert growth.force(ell) == pytest.approx(-slope / (growth.topics - 1), rel=1e-5)


@pytest.mark.parametrize(
    ("sizes", "l_star", "alpha", "loss", "chi", "constant", "half_time"),
    [
        ((4, 3, 2), "4.3436", "4.254", "0.82230", "0.285", "0.895", "1.312e+04"),
        ((5, 4, 2), "6.2918", "4.821", "0.86615", "0.289", "0.958", "3.999e+04"),
        ((6, 3, 3), "5.3266", "5.903", "0.87413", "0.058", "0.805", "2.927e+04"),
        ((10, 10, 2), "19.388", "6.951", "0.94589", "0.306", "1.145", "1.270e+06"),
        ((10, 10, 3), "20.902", "8.087", "0.96157", "0.043", "1.042", "1.407e+06"),
    ],
)
def test_the_table_of_the_second_stage(
    sizes: tuple[int, int, int], l_star: str, alpha: str, loss: str, chi: str, constant: str, half_time: str
) -> None:
    """Worked out apart from this code (R3), to the digits printed there."""
    growth, width = fixed(*sizes), sizes[0] * sizes[1] + 1
    assert f"{growth.l_star:.5g}" == l_star
    assert f"{growth.alpha_star:.3f}" == alpha
    assert f"{growth.loss(growth.l_star):.5f}" == loss
    assert f"{growth.chi:.3f}" == chi
    assert f"{growth.constant(width):.3f}" == constant
    assert f"{growth.half_time(width, growth.expected_start(width, 0.001)):.3e}" == half_time


def test_both_forms_of_the_half_time_agree() -> None:
    growth, width, scale = fixed(5, 4, 2), 12, 3e-4
    closed = growth.e_fold(width) * math.log(growth.constant(width) / scale)
    assert growth.half_time(width, growth.expected_start(width, scale)) == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize("growth", [fixed(5, 4, 2), Growth.of(TopicModel(6, 3), Dirichlet(alpha=0.3))])
def test_the_course_solves_its_equation(growth: Growth) -> None:
    width, start = 9, 1e-6
    half = growth.half_time(width, start)
    times = np.linspace(0, 2 * half, 30)
    solved = solve_ivp(
        lambda _, y: 2 * growth.force(math.exp(y[0])) / math.sqrt(width),
        (0, times[-1]),
        [math.log(start)],
        t_eval=times,
        rtol=1e-10,
        atol=1e-12,
    )
    course = growth.course(times, width, start)
    assert np.abs(course / np.exp(solved.y[0]) - 1).max() < 2e-4
    assert growth.course(np.array([half]), width, start)[0] == pytest.approx(growth.l_star / 4, rel=1e-3)
    assert growth.course(np.array([50 * half]), width, start)[0] == pytest.approx(growth.l_star, rel=1e-6)


def test_the_realised_start_is_that_of_matrices_and_its_mean_is_the_expected_one() -> None:
    growth, rng, width = fixed(5, 4, 2), np.random.default_rng(0), 7
    starts = []
    for _ in range(400):
        key, query = 0.01 * rng.standard_normal((2, width, 21))
        starts.append(growth.realised_start(key, query))
    whole = np.linalg.norm((key + query) @ topic_contrasts(5, 4)) ** 2 / (4 * 4 * math.sqrt(width))
    assert starts[-1] == pytest.approx(whole, rel=1e-12)
    error = np.std(starts) / math.sqrt(len(starts))
    assert growth.expected_start(width, 0.01) == pytest.approx(np.mean(starts), abs=4 * float(error))


def test_where_nothing_is_predicted_the_reason_is_given() -> None:
    for growth, word in (
        (fixed(4, 3, 4), "same topics"),
        (fixed(4, 3, 1), "one topic"),
        (fixed(4, 3, 2, Masking(p_correct=0.0)), "p_correct = 0"),
    ):
        assert word in str(growth.reason)
        with pytest.raises(InputError, match="no second stage"):
            _ = growth.l_star
    assert fixed(4, 3, 2).reason is None
    with pytest.raises(InputError, match="all topics are alike"):
        Growth.of(TopicModel(4, 3), Groups(groups=2, rho=0.5, topics_per_document=2))


def test_many_l_at_once_are_the_same_as_one_by_one() -> None:
    growth = Growth.of(TopicModel(10, 10), Dirichlet(alpha=0.3))
    ls = np.linspace(0.0, 1.2 * growth.l_star, 17)
    assert growth.force(ls) == pytest.approx([growth.force(float(ell)) for ell in ls], rel=1e-13, abs=1e-18)
    each = [growth.moments(float(ell)) for ell in ls]
    for name, together in growth.moments(ls)._asdict().items():
        assert together == pytest.approx([getattr(one, name) for one in each], rel=1e-13)
