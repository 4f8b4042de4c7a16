"""Experiments beyond the paper: their numbers, against plain loops and against values worked out apart from them."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.paper import samples_flows as flow_samples, samples_sandbox as sandbox
from tests.paper.samples import judged, panel_of
from topicscope.pages import Lines, Points
from topicscope.paper import Context, assumptions, escapes, figure4, stage_law, topic_order
from topicscope.paper.experiment import first_step, reached, verdict
from topicscope.paper.stage_law import WORLDS, FirstStage, FlowWorld, Halves, StageFlow, key_law, stage_flow
from topicscope.paper.topic_order import contrasts, world_of
from topicscope.theory import (
    Setting,
    closed_form,
    first_stage_rates,
    force_formula,
    gaussian_start,
    score_force,
    topic_contrasts,
    word_tables,
)
from topicscope.world import Masking, TopicModel


def test_half_way_lies_between_two_times() -> None:
    times = np.array([0.0, 10.0, 20.0])
    assert reached(times, [0.0, 0.4, 0.9], 0.5) == pytest.approx(12.0)
    assert reached(times, [0.6, 0.7, 0.9], 0.5) == 0.0
    assert math.isnan(reached(times, [0.0, 0.1, 0.49], 0.5))


def test_one_failure_outweighs_what_is_not_decided() -> None:
    assert verdict(True, None, False) == "not reproduced"
    assert verdict(True, None) == "undecided"
    assert verdict(True, True) == "reproduced"


def test_forces_between_and_inside_groups() -> None:
    """The numbers of R6 (ii); with rho = 1 there is none between groups, with rho = 0 no groups."""
    value = closed_form(TopicModel(9, 4).word_topics, Masking())

    def forces(rho: float, scale: float = 1.0) -> tuple[float, float]:
        return contrasts(score_force(world_of(rho), Masking(), scale * value))

    for rho in (0.0, 0.5, 1.0):
        world = world_of(rho)
        formula, gradient = force_formula(world, Masking(), value), score_force(world, Masking(), value)
        assert np.abs(formula - gradient).max() < 1e-15
    between, within = forces(0.5)
    assert (between, within) == pytest.approx((1.96e-4, 4.58e-4), rel=2e-3)
    assert abs(forces(1.0)[0]) < 1e-16
    assert np.ptp(forces(0.0)) < 1e-16
    other = forces(0.5, 1.01)
    assert abs(other[0] / between - 1) > 1e-3  # the formula is that of W* alone


def test_contrasts_of_groups_and_topics() -> None:
    topics = np.arange(36) // 4
    matrix = np.zeros((37, 37))
    matrix[1:, 1:] = 5.0 * (topics[:, None] // 3 == topics // 3) + 2.0 * (topics[:, None] == topics) + 0.3
    assert contrasts(matrix) == pytest.approx((12 * 5 + 4 * 2, 4 * 2))


def test_half_times_of_groups() -> None:
    outcome = judged("coarse-to-fine")
    assert outcome.tables[0].rows[0][:2] == ["between groups", "23.2"]
    assert outcome.tables[0].rows[1][:2] == ["topics in a group", "48.51"]
    assert outcome.ours == pytest.approx(2.0909, abs=1e-3)
    panel = panel_of(Lines, outcome, 0, 0)
    assert panel.series[0].y == pytest.approx(panel.series[2].y[::10], abs=1e-5)  # trained as predicted
    assert "longer runs would decide" in judged("coarse-to-fine", sandbox.groups(0.001)).reason


def test_relations_leave_out_common_words() -> None:
    same = TopicModel(2, 2, common_words=1, common_share=0.2).same_topic
    matrix = np.arange(36.0).reshape(6, 6)
    inside = [matrix[i, j] for i, j in ((1, 2), (2, 1), (3, 4), (4, 3))]
    outside = [matrix[i, j] for i in (1, 2) for j in (3, 4)] + [matrix[i, j] for i in (3, 4) for j in (1, 2)]
    diagonal = [matrix[i, i] for i in range(1, 5)]
    found = assumptions.relation_means(matrix, same)
    means = [float(np.mean(part)) for part in (inside, outside, diagonal)]
    assert found[:3] == pytest.approx(means)
    column = [matrix[i, 0] for i in range(1, 5)]
    parts = (inside, outside, diagonal, column)
    left = sum(((np.array(part) - np.mean(part)) ** 2).sum() for part in parts)
    assert found[3] == pytest.approx(math.sqrt(left / sum((np.array(part) ** 2).sum() for part in parts)))
    flat = np.zeros((6, 6))
    flat[1:5, 1:5] = 2.0 * same[1:5, 1:5] + 1
    assert assumptions.relation_means(flat, same) == pytest.approx((3.0, 1.0, 3.0, 0.0))


EXCESS_30 = 0.1 / (1 - 0.8 * (0.15 + 0.85**30 / 30))
"""p_c / (1 - (E[m]/N) (1 - p_c - p_r)); a document of 30 words without a mask gets one."""


def test_excess_and_mask_column() -> None:
    matrix = np.zeros((101, 101))
    topic = np.arange(100) // 10
    matrix[1:, 1:] = 0.3 * (topic[:, None] == topic) + 0.2 * np.eye(100)
    matrix[1:, 0] = 0.07
    assert assumptions.means_of(matrix) == pytest.approx((0.2, 0.07))
    assert [assumptions.theory_at(n)[0] for n in (30, 1000)] == pytest.approx([EXCESS_30, sandbox.B], rel=1e-9)
    assert assumptions.theory_at("infinite") == pytest.approx((0.0, 0.054191), abs=1e-6)


def test_joint_intervals_are_wider() -> None:
    """Student's t with seven degrees of freedom at 1 - .025 / 3: 3.1276."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    found = assumptions.joint(values)
    half = 3.1276 * np.std(values, ddof=1) / math.sqrt(8)
    assert (found.low, found.high) == pytest.approx((4.5 - half, 4.5 + half), rel=1e-3)


def test_the_excess_of_the_optimum() -> None:
    outcome = judged("finite-length")
    assert outcome.ours == pytest.approx(sandbox.B)
    panel = panel_of(Points, outcome, 0, 0)
    assert panel.series[1].y == pytest.approx([EXCESS_30, sandbox.B, sandbox.B], rel=1e-7)


def test_rank_correlation_is_spearmans() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    one, other = rng.random(9).tolist(), rng.random(9).tolist()
    assert topic_order.rank_correlation(one, other) == pytest.approx(spearmanr(one, other).statistic)
    assert topic_order.rank_correlation(one, [-x for x in one]) == pytest.approx(-1)


def test_blocks_of_topics() -> None:
    matrix = np.zeros((41, 41))
    for t in range(8):
        matrix[1 + 5 * t : 6 + 5 * t, 1 + 5 * t : 6 + 5 * t] = t
    assert topic_order.block_means(matrix).tolist() == list(range(8))


def test_half_way_steps_of_a_run() -> None:
    """Topic contrasts v (block mean - other mean) of 1/(2k), and half of the plateau's norm, by hand."""
    world, k = FlowWorld(5, 4, 2), Masking().k
    plateau = world.growth().plateau_norm(world.width)
    rise = np.linspace(0, 1, 11)
    run: Any = SimpleNamespace(
        config=SimpleNamespace(masking=Masking()),
        metrics={
            "value_same": 0.3 * rise / k,
            "value_diagonal": 0.7 * rise / k,  # block mean .4 rise / k
            "value_different": 0.14 * rise / k,
            "norm_key": plateau * rise**2,
        },
    )
    assert figure4.half_way_steps(run, world) == (5.0, 8.0)  # 4 x .26 x rise >= .5; rise^2 >= .5
    run.metrics["norm_key"] = 0.4 * plateau * rise
    assert math.isnan(figure4.half_way_steps(run, world)[1])


def test_predictions_of_adam_are_those_of_the_law() -> None:
    """(5, 4, 2) and (6, 3, 3) at rate and start .001: numbers computed apart from this code."""
    first, second = (figure4.predicted_clock(world, 1e-5) for world in figure4.WORLDS)
    assert (first.value, first.attention) == pytest.approx((195, 842), abs=0.6)
    assert (second.value, second.attention) == pytest.approx((248.5, 824), abs=0.6)
    said = figure4.predicted_clock(figure4.WORLDS[0], 1e-4).attention
    assert said == pytest.approx(4367, rel=2e-3)


def test_where_epsilon_rules() -> None:
    regimes = [clock.regime for clock in flow_samples.clocks().clocks]
    assert regimes == ["sign", "between", "epsilon", "epsilon"] * 2
    outcome = judged("adam-clocks")
    assert "key would be off by 85% at least" in outcome.reason  # 1 - 650 / 4250 and 1 - 1450 / 12250
    assert outcome.ours == 1.0


def test_force_on_the_mask_query() -> None:
    """.0064 w against .00036 w in topic contrasts in (5, 4, 2); first comes at 512."""
    found = escapes.force_of(FlowWorld(5, 4, 2))
    assert found.error < 1e-7
    assert (found.first, found.second) == pytest.approx((0.0064, 0.00036), rel=0.01)
    assert escapes.law_of(FlowWorld(5, 4, 2)).time == pytest.approx(512.6, abs=0.1)


def test_predicted_norm_is_threefold_at_its_time() -> None:
    """The law's time takes the growing part alone, e^X = 3 sqrt(2 V); with the rest the norm is a little above."""
    world = FlowWorld(5, 4, 2)
    law = escapes.law_of(world)
    norms = escapes.key_law(law, world, np.array([0.0, law.time]))
    assert norms == pytest.approx([1.0, math.sqrt(9 + 1 - 1 / 21)], rel=1e-3)


def test_a_flow_under_cross_entropy_leaves_along_mask() -> None:
    found = escapes.flow(FlowWorld(4, 3, 2), 1e-2, 0)
    assert found.left == pytest.approx(487, abs=2)
    assert found.half == pytest.approx(654, abs=3)
    assert min(found.query, found.along) > 0.99
    assert found.second < 0.03
    assert np.interp(found.horizon, found.times, found.contrast) == pytest.approx(
        2 * np.interp(found.left, found.times, found.contrast), rel=0.01
    )
    scores = np.array(found.scores)
    assert scores[0, 0] < 0  # [MASK] looks away from [MASK]
    assert np.abs(scores[:, 0]).max() > 3 * np.abs(scores[:, 1:]).max()


def test_contrasts_are_those_of_the_projector() -> None:
    weights, world = gaussian_start(13, 13, 0.3, 0, width=60), escapes.WORLD
    pi, tables = topic_contrasts(world.T, world.v) / (world.T - 1), word_tables(weights)
    expected = Masking().k * np.vdot(tables.votes, pi), np.vdot(tables.scores, pi)
    assert escapes.contrasts(weights) == pytest.approx(expected, rel=1e-10)


def test_a_small_start_with_a_trained_embedding() -> None:
    """s = .03: value at 64.5, key at 3,317; the law says 74.9 for value."""
    found = escapes.escape(0.03, 0)
    assert (found.value, found.key) == pytest.approx((64.5, 3317), rel=5e-3)
    assert escapes.law_at(0.03).value == pytest.approx(74.9, abs=0.1)
    assert math.isnan(escapes.law_at(0.09).value)  # s sqrt(d) = .7
    assert len(found.times) == len(found.contrast)


def test_how_far_a_law_in_the_logarithm_is() -> None:
    flows = flow_samples.starts().flows[0]
    assert escapes.last_ratio(flows) == pytest.approx(3)
    assert escapes.by_logarithm(flows) == pytest.approx(9 / 5)
    panel = panel_of(Lines, judged("small-start"), 0, 1)
    assert panel.series[0].y == pytest.approx([50, 25, 11, 5])
    assert len(panel.series[2].x) == 3  # no law at the largest start


@pytest.fixture(scope="module")
def flow() -> StageFlow:
    return stage_flow(WORLDS[0], 1e-2, 0)


def test_first_stage_from_zero() -> None:
    """T - 1 contrasts of size 1/k and the mean, each with its rate (R1)."""
    rates = first_stage_rates(Setting.of(4, 3, 2))
    first = FirstStage(WORLDS[0], np.zeros((13, 13)))
    mean = 1 / (12 * rates.mean)
    assert first.plateau == pytest.approx(math.sqrt(3 / 0.865**2 + mean), rel=1e-9)
    half = first.half_time()
    contrasts, middle = (-math.expm1(-2 * rate * half) for rate in rates)
    assert math.sqrt(3 * contrasts**2 / 0.865**2 + mean * middle**2) == pytest.approx(first.plateau / 2, rel=1e-6)


def test_the_law_starts_and_ends_where_the_norm_does() -> None:
    world = WORLDS[1]
    growth, start = world.growth(), world.start(0.01, 3)
    first, last = key_law(growth, start, np.array([0.0, 1e9]))
    norm = float(np.linalg.norm(start["key"]))
    rest = norm**2 - math.sqrt(21) * 4 * growth.realised_start(start["key"], start["query"])
    assert first == pytest.approx(norm, rel=1e-12)
    assert last == pytest.approx(math.sqrt(growth.plateau_norm(21) ** 2 + rest), rel=1e-6)


def test_a_flow_follows_the_law(flow: StageFlow) -> None:
    assert max(map(abs, flow.errors)) < 0.02
    assert flow.measured.value == pytest.approx(flow.predicted.value, rel=1e-3)
    at = np.searchsorted(flow.times, flow.measured.key)
    assert flow.key[at] == pytest.approx(flow.key_law[at], rel=0.1)
    early = np.searchsorted(flow.times, 200.0)
    assert flow.value[:early] == pytest.approx(flow.value_law[:early], rel=1e-3)
    assert len(flow.singular) == 13


@pytest.mark.parametrize("wrong", ["sigma", "constant"])
def test_a_wrong_law_is_refused(flow: StageFlow, wrong: str) -> None:
    """sigma 1.1 times as large, or c of t50 = e_fold ln(c / s) twice as large."""
    assert judged("stage-law", [replace(flow, scale=0.01), flow_samples.flow()]).verdict == "reproduced"
    said = flow.predicted.key
    said = said / 1.1 if wrong == "sigma" else said + WORLDS[0].growth().e_fold(13) * math.log(2)
    other = replace(flow, predicted=Halves(flow.predicted.value, said, said))
    assert judged("stage-law", [other, flow_samples.flow()]).verdict == "not reproduced"


def test_flows_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[FlowWorld, float, int]] = []

    def made(world: FlowWorld, scale: float, seed: int) -> StageFlow:
        asked.append((world, scale, seed))
        return flow_samples.flow(world, scale, seed)

    monkeypatch.setattr(stage_law, "stage_flow", made)
    stage_law.stage_flows.cache_clear()
    context = Context("quick", 2)
    assert stage_law.stage_flows(context) is stage_law.stage_flows(context)
    assert len(asked) == 18
    assert {seed for _, _, seed in asked} == {2000, 2001}
    assert {scale for _, scale, _ in asked} == {1e-4, 1e-3, 1e-2}
    stage_law.stage_flows.cache_clear()
    assert len(stage_law.stage_flows(Context("full"))) == 75
    stage_law.stage_flows.cache_clear()


def test_without_correct_words_the_flow_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """One flow of the real thing, over a tenth of the time."""
    flows = [flow_samples.flow(), flow_samples.flow(scale=1e-2)]
    monkeypatch.setattr(stage_law, "stage_flows", lambda _: flows)
    monkeypatch.setattr(stage_law, "LONGER", 0.3)
    (pair,) = stage_law.measure_pairs(Context())
    assert pair.times[-1] == pytest.approx(3000)
    assert pair.bayes == pytest.approx(5 / 6)
    assert pair.losses[-1] == pytest.approx(5 / 6, abs=1e-9)
    assert 1 < pair.growth < 1.01
    assert pair.growth_with_words == pytest.approx(flow_samples.flow().key[-1] / flow_samples.flow().key[0])


def test_times_of_one_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(escapes.ESCAPE_SCALES, "quick", (0.15, 0.075))
    monkeypatch.setattr(Context, "seeds", lambda *_: [0])
    found = escapes.measure_escapes(Context())
    assert (found.scales, list(found.times)) == ([0.15, 0.075], [0])
    assert 0.15 * found.times[0][0] == pytest.approx(153.3, abs=1)
    assert escapes.doublings(found, 0) == pytest.approx([2.663], abs=0.02)
    assert found.force == 0
    table = judged("one-topic").tables[0]
    assert table.rows[2] == ["0.025", "240.0", "240.0", "2.000", "2.000"]


def test_the_step_of_sgd() -> None:
    assert first_step([1.0, 2.0, 3.0, 4.0], 3.0) == 2
    assert math.isnan(first_step([1.0, 2.0, 2.9], 3.0))
    outcome = judged("sgd-second-stage", flow_samples.sgd(3300))
    assert outcome.numbers["ratios"] == pytest.approx([1.0, 1.1, 1.0])
    assert outcome.tables[0].rows[1] == ["1", "3,000", "3,300", "1.100"]


def test_settings_of_sgd_are_stable_and_long_enough() -> None:
    """The rate is below half of what the fastest mode of W_V allows; a fifth more than the prediction is run."""
    for setting in stage_law.SGD_SETTINGS.values():
        world, growth = setting.world, setting.world.growth()
        assert setting.rate < 0.5 / first_stage_rates(Setting.of(*world)).mean
        said = growth.half_time(setting.width, growth.expected_start(setting.width, setting.scale)) / setting.rate
        assert 1.25 * said < setting.steps < 1.6 * said


def test_the_large_world_is_judged_by_its_half_times(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[FlowWorld, float, int, float]] = []

    def made(world: FlowWorld, scale: float, seed: int, after: float) -> StageFlow:
        asked.append((world, scale, seed, after))
        return flow_samples.flow(world, scale, seed, plateau=1.0)

    monkeypatch.setattr(stage_law, "stage_flow", made)
    monkeypatch.setattr(stage_law, "stage_flows", lambda _: flow_samples.flows())
    assert stage_law.measure_flows(Context("quick")) == flow_samples.flows()
    found = stage_law.measure_flows(Context("full", 3))
    assert asked == [(FlowWorld(10, 10, 3), 1e-3, 3000, 1.0)]
    assert judged("stage-law", found).verdict == "reproduced"
    assert len(judged("stage-law", found).figures[0].panels) == 8
    late = replace(found[-1], measured=Halves(11.0, 10_310.0, 10_000.0))
    assert judged("stage-law", [*found[:-1], late]).verdict == "not reproduced"


def test_pictures_have_the_law_over_the_flow() -> None:
    outcome = judged("stage-law")
    assert len(outcome.figures[0].panels) == 6
    panel = panel_of(Lines, outcome, 0, 1)
    assert [line.name for line in panel.series] == [
        *("s = 0.001, flow", "s = 0.01, flow", "s = 0.001, law", "s = 0.01, law")
    ]
    assert panel.series[0].x[0] > 0
    assert panel.series[0].y == panel.series[2].y[::2]  # every second step, as predicted
    times, errors = (panel_of(Lines, outcome, 1, number) for number in (0, 1))
    assert [len(series.x) for series in times.series[1:]] == [4] * 6
    assert [series.y for series in errors.series] == [pytest.approx([0.5] * 2)] * 6  # a line per world and seed
    falls = panel_of(Lines, judged("one-topic"), 0, 1)
    assert falls.series[0].y == [0.667, 0.66]
