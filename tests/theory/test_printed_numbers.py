"""Every number that was printed of the laws (R1 to R4, R7, R8), recomputed to the printed digits.

They were worked out by one hand, apart from this code. Where a number comes out differently, the test has ours and a
comment says why.
"""

import math

import numpy as np
import pytest

from tests.theory.test_growth import adam, eigenvalue, fixed
from topicscope.paper import escapes
from topicscope.theory import (
    Growth,
    Setting,
    dynamics,
    escape_rate,
    first_stage_rates,
    grouped_subsets,
    mask_force,
    optimum,
    score_force,
    subset_world,
    theorem2,
    topic_contrasts,
)
from topicscope.theory.growth import mask_first
from topicscope.world import Dirichlet, Fixed, Masking, TopicModel

TEN = Setting.of(10, 10, 3)
DIRICHLET = Growth.of(TopicModel(), Dirichlet())


def test_r1_rates_and_half_time() -> None:
    rates, found = first_stage_rates(TEN), dynamics(TEN).value
    assert f"{rates.topics:.5e}" == "1.93984e-03"
    assert f"{rates.mean:.4e}" == "2.2144e-02"
    assert f"{found.half_time:.1f}" == "178.7"
    modes = {mode.name: (mode.count, mode.eigenvalue) for mode in found.modes}
    assert modes["topic contrasts"][0] == 9
    assert modes["topic contrasts"][1] == pytest.approx(rates.topics, rel=1e-12)
    assert sorted(count for count, value in modes.values() if value == 0) == [1, 90]  # two kinds are free
    assert sum(count for count, _ in modes.values()) == 101


def test_r1_where_the_flow_from_zero_ends() -> None:
    """1/k on topic contrasts, u / sqrt(mu) on the mean: Theorem 2."""
    s, k = Setting.of(4, 3, 2), Masking().k
    mask = s.p0
    mu, u = mask**2 + (1 - mask) ** 2 / 12, np.concatenate([[0.0], np.full(12, 1 / 12)])
    n = (mask * np.eye(13)[0] + (1 - mask) * u) / math.sqrt(mu)
    end = topic_contrasts(4, 3) / k + np.outer(u, n) / math.sqrt(mu)
    assert np.abs(end - theorem2(s).matrix()).max() < 1e-15
    best = optimum(s.topic_model, Fixed(topics_per_document=2, length="infinite"))
    assert np.abs(end - best.matrix()).max() < 1e-15


def test_r2_forces_and_e_folds() -> None:
    assert f"{fixed(10, 10, 3).sigma:.5e}" == "4.96396e-05"
    assert f"{fixed(10, 10, 3).e_fold(101):.2e}" == "2.02e+05"
    assert f"{DIRICHLET.sigma:.2e}" == "2.89e-05"
    assert f"{DIRICHLET.e_fold(101):.1e}" == "3.5e+05"
    # 2.893e-5 is printed once, beside a sample of 20,000 documents; the exact expectation is 2.891e-5
    assert f"{DIRICHLET.sigma:.3e}" == "2.891e-05"


def test_r2_why_sgd_shows_no_second_stage() -> None:
    """24,000 steps are under one e-fold up to rate 10; t50 is of order 2.4e6 / rate."""
    assert DIRICHLET.e_fold(101) > 24_000 * 10
    found = dynamics(TopicModel(), Dirichlet(length="infinite"), init_scale=1e-3).attention
    assert f"{(found.e_fold or 0) * math.log(1 / 1e-3):.1e}" == "2.4e+06"  # printed with c = 1
    assert f"{found.half_time:.2e}" == "2.46e+06"  # c is 1.18


@pytest.mark.parametrize(
    ("sizes", "l_star", "alpha", "loss", "chi", "constant", "half_time"),
    [
        ((4, 3, 2), "4.3436", "4.254", "0.82230", "0.285", "0.895", "13,120"),
        ((5, 4, 2), "6.2918", "4.821", "0.86615", "0.289", "0.958", "39,990"),
        ((6, 3, 3), "5.3266", "5.903", "0.87413", "0.058", "0.805", "29,270"),
        ((10, 10, 2), "19.388", "6.951", "0.94589", "0.306", "1.145", "1,270,000"),
        ((10, 10, 3), "20.902", "8.087", "0.96157", "0.043", "1.042", "1,407,000"),
    ],
)
def test_r3_the_table(
    sizes: tuple[int, int, int], l_star: str, alpha: str, loss: str, chi: str, constant: str, half_time: str
) -> None:
    """By `dynamics` as a user calls it."""
    found, growth = dynamics(Setting.of(*sizes)), fixed(*sizes)
    stage, c = found.attention, found.attention.constant or math.nan
    assert (f"{stage.l_star:.5g}", f"{stage.alpha_star:.3f}", f"{stage.loss:.5f}") == (l_star, alpha, loss)
    assert (f"{growth.chi:.3f}", f"{c:.3f}") == (chi, constant)
    assert f"{float(f'{stage.half_time:.4g}'):,.0f}" == half_time
    assert abs(math.log(1e3) / math.log(c * 1e3) - 1) < 0.04  # c = 1 is off by less than 4%


@pytest.mark.parametrize(
    ("sizes", "rate", "share"), [((4, 3, 2), "9.055e-05", "0.175"), ((5, 4, 2), "5.800e-05", "0.34")]
)
def test_r3_the_third_act(sizes: tuple[int, int, int], rate: str, share: str) -> None:
    growth, width = fixed(*sizes), sizes[0] * sizes[1] + 1
    leaving = escape_rate(growth, width)
    assert f"{leaving:.3e}" == rate
    assert f"{leaving * growth.e_fold(width):.{len(share) - 2}f}" == share


def test_r4_adams_numbers_at_ten_topics() -> None:
    tau3 = fixed(10, 10, 3)
    assert f"{adam(tau3, 1e-20, bias=True).value:.1f}" == "57.8"
    assert round(adam(DIRICHLET, 1e-4, bias=True).value) == 67
    assert [round(adam(tau3, eps, 0.96, bias=True).attention or 0) for eps in (1e-20, 1e-8)] == [224, 238]
    # rho = .14 while queries are random and .69 later; 311 to 1,540 are printed: the way of tau = 3, not Dirichlet's
    of_tau3, of_dirichlet = ([adam(g, 1e-20, rho).sign or 0 for rho in (0.69, 0.14)] for g in (tau3, DIRICHLET))
    assert [f"{way:.0f}" for way in of_tau3] == ["312", "1538"]  # 311 from a way rounded to 215
    assert f"{math.sqrt(math.prod(of_tau3)):.2g}" == "6.9e+02"
    assert [f"{way:.0f}" for way in of_dirichlet] == ["318", "1568"]
    delays = [adam(DIRICHLET, eps).epsilon or 0 for eps in (1e-6, 1e-5, 1e-4)]
    assert [f"{delay:.1e}" for delay in delays] == ["2.4e+03", "2.4e+04", "2.4e+05"]
    growth, k = DIRICHLET, Masking().k
    way = 2 * k * 10 * growth.plateau_norm(101) / (2 * 101)
    assert f"{way:.1f}" == "3.8"  # printed as 3.7, which is tau = 3: how much further key has to go than value
    assert f"{2 * k * 10 * tau3.plateau_norm(101) / (2 * 101):.1f}" == "3.7"


def test_r7_forces_and_time() -> None:
    small, large = fixed(5, 4, 2), fixed(10, 10, 3)
    sizes = [mask_force(growth.shares, growth.v, Masking()).size for growth in (small, large)]
    assert [f"{size:.2g}" for size in sizes] == ["0.0064", "0.0019"]
    assert f"{sizes[1]:.5f}" == "0.00195"
    world = subset_world(5, 4, grouped_subsets(5, 2))
    force = score_force(world, Masking(), 1e-7 * topic_contrasts(5, 4), loss="cross-entropy") / 1e-7
    assert f"{np.linalg.svd(force, compute_uv=False)[1]:.5f}" == "0.00036"
    # 512 is printed; it is 512.6
    assert f"{mask_first(small, eigenvalue(small), 21).time:.1f}" == "512.6"
    # W_V = w Pi grows at the speed lambda / k, without the factor 2 of the squared loss
    assert mask_first(small, eigenvalue(small), 21).speed == pytest.approx(eigenvalue(small) / Masking().k)


def test_r8_a_smaller_start_brings_key_nearer_to_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """49, 12 and 2.9 are printed for s = .1, .01, .001, of one start. Ours of seed 7; over seeds 0 to 15: 29 to 54, 7.4
    to 13.7 and 1.8 to 3.1, since the time of the escape differs by start where the embedding is as wide as V = 13."""
    monkeypatch.setattr(escapes, "WIDTH", 13)
    flows = [escapes.escape(scale, 7) for scale in (0.1, 0.01, 0.001)]
    assert [f"{flow.key / flow.value:.2g}" for flow in flows] == ["51", "12", "2.8"]
