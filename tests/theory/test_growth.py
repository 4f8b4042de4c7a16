"""How key and query grow (R3) and the second plateau is left (the third act), against enumeration and flows."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import quad, solve_ivp

from tests.theory.settings import instead_of
from topicscope.ground import InputError
from topicscope.theory import (
    Growth,
    Population,
    SmallWorld,
    Trajectory,
    entry_steps,
    escape_rate,
    gaussian_start,
    gradient_flow,
    grouped_subsets,
    score_force,
    subset_world,
    topic_contrasts,
    word_tables,
)
from topicscope.theory.forces import every_order
from topicscope.theory.growth import (
    ESCAPE,
    SHOWS,
    AdamClock,
    EmbeddingClock,
    adam_clock,
    coupling,
    embedding_clock,
    gain_by_half_time,
    third_act_time,
)
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
    hidden = fixed(4, 3, 2, Masking(p_correct=0.0))
    for growth, word in ((fixed(4, 3, 4), "same topics"), (fixed(4, 3, 1), "one topic"), (hidden, "p_correct = 0")):
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


def test_it_is_the_lowest_eigenvalue_of_the_whole_hessian() -> None:
    """All of W_V, W_K and W_Q, by automatic differentiation twice, at the plateau."""
    growth, width, pi = fixed(4, 3, 2), 5, topic_contrasts(4, 3)
    world, masking, size = subset_world(4, 3, grouped_subsets(4, 2)), growth.masking, 13
    value, _ = best_value(world, masking, growth.l_star * pi)
    values, vectors = np.linalg.eigh(pi)
    key = np.zeros((width, size))
    key[:3] = math.sqrt(math.sqrt(width) * growth.l_star) * vectors[:, values > 0.5].T  # W_K = W_Q, L = l* Pi
    population = Population.of_world(world, masking)

    def loss(numbers: torch.Tensor) -> torch.Tensor:
        v, k, q = numbers[: size**2], numbers[size**2 : size**2 + width * size], numbers[-width * size :]
        parts = {"value": v.reshape(size, size), "key": k.reshape(width, size), "query": q.reshape(width, size)}
        return population.loss_of_tables(*word_tables(parts))

    point = torch.from_numpy(np.concatenate([value.ravel(), key.ravel(), key.ravel()]))
    hessian = torch.autograd.functional.hessian(loss, point).numpy()  # type: ignore[no-untyped-call]
    assert -np.linalg.eigvalsh(hessian)[0] == pytest.approx(escape_rate(growth, width), rel=1e-7)


@pytest.mark.parametrize("ell", [0.8, 3.0])
def test_any_exchangeable_law_and_any_attention(ell: float) -> None:
    """The block of the Hessian by differences of the force: a difference between two words, in W_V and in W_K."""
    masking, pi, topics, v, dim = Masking(p_mask=0.3, p_correct=0.2, p_random=0.1), topic_contrasts(4, 3), 4, 3, 7
    growth = Growth.of(TopicModel(topics, v), Given(proportions=ROWS.tolist()), masking)
    world = SmallWorld(TopicModel(topics, v).word_topics, ROWS, np.full(len(ROWS), 1 / len(ROWS)))
    value, _ = best_value(world, masking, ell * pi)
    kappa = np.array([0, 1, -1, *[0] * 10]) / math.sqrt(2)  # two words of the first topic
    q = pi[:, 1] / np.linalg.norm(pi[:, 1])
    step = 1e-4

    def slope(in_value: np.ndarray, in_scores: np.ndarray) -> float:
        above, below = (
            score_force(world, masking, value + sign * step * in_value, ell * pi + sign * step * in_scores)
            for sign in (1, -1)
        )
        return float(kappa @ (above - below) @ q / (2 * step))

    outputs, zero = np.eye(13), np.zeros((13, 13))
    b = np.array([slope(np.outer(c, kappa), zero) for c in outputs])
    d, w2 = slope(zero, np.outer(kappa, q)), ell / math.sqrt(dim)
    hessian = np.zeros((14, 14))
    hessian[:13, 13] = hessian[13, :13] = math.sqrt(w2) * b
    hessian[13, 13] = w2 * d
    assert np.linalg.eigvalsh(hessian)[-1] == pytest.approx(escape_rate(growth, dim, ell), rel=1e-6)


def test_the_gain_is_the_rate_over_time() -> None:
    growth, dim, start = fixed(5, 4, 2), 21, 1e-9
    half = growth.half_time(dim, start)

    def rate(time: float) -> float:
        return escape_rate(growth, dim, float(growth.course(np.array([time]), dim, start)[0]))

    by_time, _ = quad(rate, 0, half, epsrel=1e-3)
    assert gain_by_half_time(growth, dim) == pytest.approx(by_time, rel=5e-3)


def test_the_pull_turns_round_before_the_plateau() -> None:
    """So that what has grown by then dies out first."""
    for sizes in ((4, 3, 2), (5, 4, 2), (6, 3, 3), (10, 10, 3)):
        growth, dim = fixed(*sizes), sizes[0] * sizes[1] + 1
        pulls = [coupling(growth, dim, share * growth.l_star).pull for share in (0.25, 0.9, 1.0)]
        assert pulls[0] > pulls[1] > 0 > pulls[2]


@pytest.mark.parametrize(("scale", "time"), [(1e-6, 144_700), (1e-4, 84_990), (1e-3, 55_140)])
def test_the_time_of_the_third_act(scale: float, time: float) -> None:
    found = third_act_time(fixed(4, 3, 2), 13, scale)
    assert float(f"{found:.4g}") == time


@pytest.mark.parametrize("scale", [1e-5, 1e-3])
def test_flows_have_their_third_act_then(scale: float) -> None:
    """.96 to .99 of it were measured; an amplitude that were three times as large would come a tenth earlier."""
    growth, start = fixed(4, 3, 2), gaussian_start(13, 13, scale, seed=0)
    within, said = np.kron(np.eye(4), np.eye(3) - 1 / 3), third_act_time(growth, 13, scale)
    assert said is not None

    def shows(course: Trajectory) -> bool:
        return float(np.linalg.norm(course.end["value"][:, 1:] @ within)) >= SHOWS

    population = Population.of(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking())
    course = gradient_flow(population, start, 2 * said, longest=0.1 / escape_rate(growth, 13), stop=shows)
    assert 0.95 < course.times[-1] / said < 1.01


def test_a_tenth_of_the_start_waits_for_key_and_then_grows_tenfold() -> None:
    growth = fixed(5, 4, 2)
    per_decade = [third_act_time(growth, 21, scale) or 0 for scale in (1e-7, 1e-6)]
    later = growth.e_fold(21) * math.log(10) + math.log(10) / escape_rate(growth, 21)
    assert per_decade[0] - per_decade[1] == pytest.approx(later, rel=1e-3)  # key comes later, and then starts smaller
    assert third_act_time(growth, 21, 1e-4) is not None
    assert third_act_time(growth, 21, 1e-3) is None  # .42 already before the plateau
    assert third_act_time(growth, 21, 0.0) is None
    assert third_act_time(growth, 21, 0.03) is None  # 15 differences of .03 have a norm above .1
    assert third_act_time(fixed(4, 1, 2), 5, 1e-3) is None  # with one word per topic nothing is left to learn
    assert escape_rate(fixed(4, 1, 2), 5) == 0


def eigenvalue(growth: Growth) -> float:
    return growth.shares.contrast * growth.masking.k**2 / growth.v


def adam(growth: Growth, eps: float, noise: float = 1.0, *, bias: bool = False, scale: float = 1e-3) -> AdamClock:
    settings: dict[str, Any] = {"attention_dim": growth.topics * growth.v + 1, "init_scale": scale, "lr": 1e-3}
    return adam_clock(growth, eigenvalue(growth), eps=eps, batch_noise=noise, output_bias=bias, **settings)


@pytest.mark.parametrize(
    ("sizes", "value", "attention"), [((5, 4, 2), 195, 256), ((6, 3, 3), 248, 284), ((10, 10, 3), 68, 215)]
)
def test_adams_two_clocks(sizes: tuple[int, int, int], value: int, attention: int) -> None:
    clock = adam(fixed(*sizes), 1e-20)
    assert (round(clock.value), round(clock.attention or 0)) == (value, attention)
    for growth in (fixed(4, 3, 1), fixed(4, 3, 2, Masking(p_correct=0.0))):  # without a second stage
        assert adam(growth, 1e-8).attention is None


def test_epsilon_delays_attention_long_before_value() -> None:
    dirichlet = Growth.of(TopicModel(), Dirichlet())
    clock = adam(dirichlet, 1e-4, 0.44, bias=True)
    assert round(clock.value) == 67
    assert clock.epsilon == pytest.approx(240_000, rel=0.01)  # 'no second stage'
    assert clock.attention == pytest.approx(clock.value + (clock.sign or 0) + (clock.epsilon or 0))
    delays, rules = clock.delays_attention_from or 0, clock.rules_attention_from or 0
    assert delays < rules < clock.delays_value_from
    half, start = dirichlet.plateau_norm(101) / (2 * 101), 1e-3 * math.sqrt(9 / 202)
    assert rules / delays == pytest.approx(half / start)
    per_fold = (adam(dirichlet, 1e-6, scale=1e-3 / math.e).epsilon or 0) - (adam(dirichlet, 1e-6).epsilon or 0)
    assert per_fold == pytest.approx(347.6, rel=1e-3)  # steps per e-fold


def test_averaged_outputs_are_a_larger_epsilon() -> None:
    growth = fixed(5, 4, 2)
    settings: dict[str, Any] = {"attention_dim": 21, "init_scale": 1e-3, "lr": 1e-3}
    averaged = adam_clock(growth, eigenvalue(growth), eps=1e-6, loss_scale=1 / 21, **settings)
    assert averaged == pytest.approx(adam(growth, 21e-6))


@pytest.mark.parametrize(
    ("sizes", "lr", "eps", "steps", "runs"),
    [  # runs: half-way steps of full-batch Adam from .001, one to three seeds
        ((5, 4, 2), 1e-3, 1e-10, 179, (174, 184)),
        ((6, 3, 3), 1e-3, 1e-10, 194, (189, 198)),
        ((5, 4, 2), 1e-3, 1e-6, 314, (327, 339)),
        ((6, 3, 3), 1e-3, 1e-5, 681, (768, 773)),
        ((5, 4, 2), 1e-3, 1e-4, 4415, (4491, 4518)),
        ((10, 10, 3), 1e-3, 1e-20, 141, (157, 157)),
        ((5, 4, 2), 1e-2, 1e-8, 33, (35, 35)),  # the formula says 26: momentum
    ],
)
def test_an_entry_followed_with_adam_s_own_averages(
    sizes: tuple[int, int, int], lr: float, eps: float, steps: int, runs: tuple[int, int]
) -> None:
    growth = fixed(*sizes)
    settings: dict[str, Any] = {"attention_dim": sizes[0] * sizes[1] + 1, "init_scale": 1e-3, "lr": lr, "eps": eps}
    value = adam_clock(growth, eigenvalue(growth), **settings).value
    found = entry_steps(growth, value=value, **settings)
    assert found == pytest.approx(steps, abs=max(1, steps / 200))
    assert 0.9 < runs[0] / steps < runs[1] / steps + 1e-9 < 1.15


def test_gradients_that_grow_as_a_power_lengthen_adam_s_steps() -> None:
    """sqrt(2 p + 1) times the rate: with a value matrix that is there from the start the entry grows evenly, p = 1."""
    growth = fixed(10, 10, 3)
    half = math.sqrt(growth.l_star / 4 * 9 / (100 * math.sqrt(101)))
    found = entry_steps(growth, value=1e-9, attention_dim=101, init_scale=1e-6, lr=1e-4, eps=0.0, output_bias=True)
    assert half / 1e-4 / (found or 0) == pytest.approx(math.sqrt(3), rel=0.15)  # the force falls as attention grows


def test_an_entry_that_nothing_starts_is_not_followed() -> None:
    for tau, scale, eps in ((1, 1e-3, 1e-8), (2, 0.0, 1e-8), (2, 10.0, 1e-8), (2, 1e-3, 1.0)):
        growth = fixed(4, 3, tau)
        assert entry_steps(growth, value=200.0, attention_dim=13, lr=1e-3, init_scale=scale, eps=eps) is None


def test_a_trained_embedding_waits_in_proportion_to_1_over_s() -> None:
    growth = fixed(4, 3, 2)

    def clock(scale: float, *, squared: bool = True) -> EmbeddingClock:
        return embedding_clock(
            growth, eigenvalue(growth), squared=squared, width=13, attention_dim=13, init_scale=scale
        )

    clocks = [clock(scale) for scale in (0.1, 0.01, 0.001)]
    assert [round(clock.attention or 0) for clock in clocks][1:] == [6888, 14433]
    assert clocks[2].escape / clocks[1].escape == pytest.approx(10)
    assert clocks[0].square == pytest.approx(1.3878, abs=5e-5)
    ratios = [(clock.attention or 0) / clock.escape for clock in clocks]
    assert ratios[0] > ratios[1] > ratios[2]  # the smaller the start, the nearer the stages: opposite to one-hot words
    entropy = [clock(scale, squared=False) for scale in (0.1, 0.03, 0.01)]
    assert [round(clock.escape) for clock in entropy] == [96, 322, 965]
    assert all(clock.attention is None for clock in entropy)


def blow_up(dim: int, seed: int) -> float:
    """When e' = (B + B')e, B' = ee' from |e| = 1, entries of B of variance 1 / d, is 1e4 long: midpoint steps."""
    rng = np.random.default_rng(seed)
    e, b, time = rng.standard_normal(dim), rng.standard_normal((dim, dim)) / math.sqrt(dim), 0.0
    e /= np.linalg.norm(e)
    while (size := float(np.linalg.norm(e))) < 1e4:
        step = 0.01 / (1 + size)
        middle, half = e + step / 2 * (b + b.T) @ e, b + step / 2 * np.outer(e, e)
        e, b = e + step * (half + half.T) @ middle, b + step * np.outer(middle, middle)
        time += step
    return time


def test_the_constant_of_the_escape() -> None:
    times = [blow_up(150, seed) for seed in range(4)]
    error = np.std(times, ddof=1) / 2
    assert error < 0.03
    assert np.mean(times) == pytest.approx(ESCAPE, abs=0.06)  # neither 1.11, without B's start, nor another law
