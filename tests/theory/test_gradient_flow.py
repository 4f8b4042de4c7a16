"""Gradient flow: its steps, against tiny explicit ones, W(t) in closed form and small-step SGD of `train`."""

import math

import numpy as np
import pytest

from tests.theory.settings import full_batches
from tests.theory.test_growth import best_value, fixed
from topicscope import InputError
from topicscope.theory import (
    Growth,
    Loss,
    Population,
    Trajectory,
    curvature,
    descent,
    escape_rate,
    gaussian_start,
    gradient_flow,
    grouped_subsets,
    optimum,
    subset_world,
    topic_contrasts,
)
from topicscope.theory.gradient_flow import crossing, stages
from topicscope.training import train
from topicscope.world import Fixed, Masking, TopicModel


def population(topics: int = 3, words: int = 2, tau: int = 2, loss: Loss = "squared") -> Population:
    return Population.of(TopicModel(topics, words), Fixed(topics_per_document=tau, length="infinite"), Masking(), loss)


Parts = dict[str, np.ndarray]


def distance(one: Parts, other: Parts) -> float:
    """The largest relative distance of a matrix."""
    return max(float(np.linalg.norm(one[name] - part) / np.linalg.norm(part)) for name, part in other.items())


@pytest.mark.parametrize("count", [2, 5, 17, 60])
def test_a_step_has_order_two_and_is_stable(count: int) -> None:
    """On u' = -z u the step is a polynomial in z: 1 - z + z^2/2 near 0, and below 1 up to .65 (s^2 - 1)."""
    first, others = stages(count)

    def grown(z: float) -> float:
        before, now = 1.0, 1 - first * z
        for mu, nu, mu_step, gamma_step in others:
            before, now = now, (1 - mu - nu) + mu * now + nu * before - z * (mu_step * now + gamma_step)
        return now

    assert grown(1e-3) == pytest.approx(1 - 1e-3 + 0.5e-6, abs=1e-9)
    assert (grown(1e-2) - 1 + 1e-2) / 0.5e-4 == pytest.approx(1, abs=1e-2)
    assert max(abs(grown(z)) for z in np.linspace(0.01, 0.65 * (count**2 - 1), 2000)) <= 1
    assert abs(grown(0.75 * (count**2 - 1))) > 1


@pytest.mark.parametrize("loss", ["squared", "cross-entropy"])
def test_flow_is_that_of_tiny_explicit_steps(loss: Loss) -> None:
    world, start, h = population(loss=loss), gaussian_start(7, 4, 0.3, seed=0), 0.25

    def speed(weights: Parts) -> Parts:
        return {name: -part for name, part in world.gradient(weights)[1].items()}

    def moved(weights: Parts, by: Parts, step: float) -> Parts:
        return {name: part + step * by[name] for name, part in weights.items()}

    at = start
    for _ in range(800):  # Runge-Kutta of order 4 to t = 200
        one = speed(at)
        two = speed(moved(at, one, h / 2))
        three = speed(moved(at, two, h / 2))
        four = speed(moved(at, three, h))
        mean = {name: (one[name] + 2 * two[name] + 2 * three[name] + four[name]) / 6 for name in at}
        at = moved(at, mean, h)
    errors = []
    for tolerance in (1e-4, 1e-6):
        course = gradient_flow(world, start, 200.0, tolerance=tolerance)
        errors.append(distance(course.end, at))
        assert course.times[-1] == 200
    assert errors[0] < 2e-3
    assert errors[1] < min(5e-5, errors[0] / 10)  # order 2: 100^(2/3) = 22 times smaller
    assert course.losses[-1] == pytest.approx(world.gradient(at)[0], rel=1e-6)
    assert np.diff(course.losses).max() < 0


def test_small_steps_of_train_follow_the_flow() -> None:
    """Full-batch SGD is explicit Euler: its distance to the flow is in proportion to the rate."""
    time = 24.0
    course = gradient_flow(population(), gaussian_start(7, 4, 0.3, seed=0), time, tolerance=1e-7)
    distances = []
    for rate in (0.4, 0.1):
        (run,) = train([full_batches("squared", rate, round(time / rate), seed=0)], with_floors=False)
        distances.append(distance({name: run.weights[name] for name in course.end}, course.end))
        times = rate * np.arange(len(run.metrics["norm_key"]))
        norm = np.interp(times, course.times, course.norm("key"))
        assert run.metrics["norm_key"] == pytest.approx(norm, rel=rate / 20)
    assert distances[1] < 0.01
    assert distances[0] / distances[1] == pytest.approx(4, rel=0.15)


def test_second_plateau_of_a_small_world() -> None:
    """(4, 3, 2): loss and norm where key and query stand, and when they are half-way, against the law (R3)."""
    growth, start = Growth.of(TopicModel(4, 3), Fixed(topics_per_document=2)), gaussian_start(13, 13, 1e-3, 0)
    norm, found = growth.plateau_norm(13), []
    for tolerance in (1e-4, 1e-5):
        course = gradient_flow(population(4, 3, 2), start, 30_000.0, tolerance=tolerance, keep=True)
        place = course.slowest(after=course.reaches("key", norm / 2))
        assert course.losses[place] == pytest.approx(growth.loss(growth.l_star), abs=1e-6)
        assert np.linalg.norm(course.states[place]["key"]) == pytest.approx(norm, rel=2e-3)
        found.append([course.half_way("value", 2.2475), course.half_way("key", norm), course.half_way("query", norm)])
        assert course.gradients < (1600, 3000)[len(found) - 1]
    assert found[0] == pytest.approx(found[1], rel=1e-3)
    half = growth.half_time(13, growth.realised_start(start["key"], start["query"]))
    assert found[1][1] == pytest.approx(half, rel=0.01)
    assert found[1][0] < 12


def test_a_number_is_reached_between_two_steps() -> None:
    """The square of the norm is t^3: a cubic is exact."""
    course = Trajectory([0.0, 1.0, 3.0], [1.0] * 3)
    course.squares["key"], course.slopes["key"] = [0.0, 1.0, 27.0], [0.0, 3.0, 27.0]
    assert course.reaches("key", math.sqrt(8.0)) == pytest.approx(2.0, rel=1e-12)
    assert course.half_way("key", 2 * math.sqrt(8.0)) == pytest.approx(2.0, rel=1e-12)
    assert course.reaches("key", 0.0) == 0.0
    assert math.isnan(course.reaches("key", 6.0))
    assert crossing(0.0, 1.0, 1.0, 1.0, 0.25) == pytest.approx(0.25)


def test_the_slowest_step_after_a_time() -> None:
    course = Trajectory([0.0, 1.0, 2.0, 3.0, 4.0], [1.0] * 5, [5.0, 1.0, 4.0, 2.0, 3.0])
    assert [course.slowest(), course.slowest(1.5), course.slowest(3.5)] == [1, 3, 4]
    with pytest.raises(InputError, match="the flow ended at 4"):
        course.slowest(5.0)


@pytest.mark.parametrize(
    ("part", "matrix", "words"),
    [
        ("value", np.zeros((7, 6)), r"has shapes \(7, 6\), \(4, 7\), \(4, 7\); expected \(7, 7\) for value"),
        ("query", np.zeros((5, 7)), r"and \(d_a, 7\) for key and query"),
        ("key", np.full((4, 7), np.nan), "three matrices of finite numbers"),
        ("key", np.zeros(7), "three matrices of finite numbers"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(part: str, matrix: np.ndarray, words: str) -> None:
    start = gaussian_start(7, 4, 0.1, 0) | {part: matrix}
    with pytest.raises(InputError, match=words):
        gradient_flow(population(), start, 10.0)


def test_only_starts_and_times_that_fit_flow() -> None:
    embedded = gaussian_start(7, 4, 0.1, seed=0, width=5) | {"bias": np.zeros(7)}
    assert gradient_flow(population(), embedded, 1.0).times[-1] == 1.0
    with pytest.raises(InputError, match="shapes"):
        gradient_flow(population(), embedded | {"bias": np.zeros(6)}, 1.0)
    for until, tolerance in ((0.0, 1e-4), (math.inf, 1e-4), (10.0, 0.0), (10.0, 1.0)):
        with pytest.raises(InputError, match="expected a time above 0 and a tolerance in"):
            gradient_flow(population(), embedded, until, tolerance=tolerance)


def test_a_bound_on_steps_keeps_a_small_mode_that_leaves_a_plateau() -> None:
    """1e-9 inside topics grows by e^3 in three e-folds of the third act; free steps are longer than an e-fold."""
    growth, pi, within = fixed(4, 3, 2), topic_contrasts(4, 3), np.kron(np.eye(4), np.eye(3) - 1 / 3)
    value, _ = best_value(subset_world(4, 3, grouped_subsets(4, 2)), Masking(), growth.l_star * pi)
    values, vectors = np.linalg.eigh(pi)
    key = math.sqrt(math.sqrt(3) * growth.l_star) * vectors[:, values > 0.5].T  # W_K = W_Q, L = l* Pi
    rng, rate = np.random.default_rng(0), escape_rate(growth, 3)
    parts = {"value": value, "key": key, "query": key}
    start = {name: part + 1e-9 * rng.standard_normal(part.shape) for name, part in parts.items()}

    def grown(longest: float) -> float:
        course = gradient_flow(population(4, 3), start, 8 / rate, longest=longest, keep=True)
        inside = [math.log(np.linalg.norm(state["value"][:, 1:] @ within)) for state in course.states]
        late, early = np.interp([8 / rate, 5 / rate], course.times, inside)
        return float(late - early)

    assert grown(0.1 / rate) == pytest.approx(3, rel=0.01)
    assert grown(math.inf) < 2.7
    with pytest.raises(InputError, match="longest"):
        gradient_flow(population(4, 3), start, 1.0, longest=0.0)


@pytest.mark.parametrize(("rate", "blows_up"), [(12.0, False), (16.0, True)])
def test_descent_blows_up_from_two_over_the_curvature_on(rate: float, blows_up: bool) -> None:
    """At zero the squared loss has the curvature 2 g, g the largest mode: 1 / g = 14.6 is the limit."""
    world, start = population(4, 3), gaussian_start(13, 13, 1e-3, seed=0)
    modes = optimum(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking()).modes
    assert 12.0 < 1 / max(mode.eigenvalue for mode in modes) < 16.0
    steps = [*descent(world, start, rate, 200)]
    assert (len(steps) < 201) is blows_up
    (first, before), (_, after) = steps[:2]
    assert first == world.gradient(start)[0]
    assert after["value"] == pytest.approx(before["value"] - rate * world.gradient(before)[1]["value"], abs=1e-15)


def test_the_curvature_at_zero_is_that_of_bias_and_value_matrix() -> None:
    """At zero the Hessian is 2 E[(x, 1)(x, 1)'] for the squared loss: 2 (1 + g) with g the mode of the mean."""
    parts = TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking()
    world, zero = Population.of_topics(*parts), gaussian_start(5, 6, 0.0, seed=0)
    g = next(mode.eigenvalue for mode in optimum(*parts).modes if mode.name == "mean")
    assert curvature(world, zero | {"bias": np.zeros(5)}) == pytest.approx(2 * (1 + g), rel=0.02)
    assert curvature(world, zero) == pytest.approx(2 * g, rel=0.02)


def test_without_attention_the_value_matrix_is_that_of_the_closed_form() -> None:
    start = gaussian_start(13, 5, 0.1, seed=1) | {"key": np.zeros((5, 13)), "query": np.zeros((5, 13))}
    best = optimum(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking())
    course = gradient_flow(population(4, 3, 2), start, 40.0, tolerance=1e-6)
    wanted = best.value_at(40.0, start["value"])
    assert np.linalg.norm(course.end["value"] - wanted) < 1e-5 * np.linalg.norm(wanted)
    assert not course.end["key"].any()
