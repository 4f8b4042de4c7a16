"""Flows through both stages: the law beside closed forms, and what becomes of the verdict where it is wrong."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.paper import samples_law as samples
from tests.paper.samples import judged
from topicscope.pages import Lines
from topicscope.paper import Context, second_stage, stage_law
from topicscope.paper.experiment import first_step
from topicscope.paper.stage_law import WORLDS, FirstStage, FlowWorld, Halves, StageFlow, key_law, stage_flow
from topicscope.theory import Setting, first_stage_rates


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
    norm = float(np.linalg.norm(start.key))
    rest = norm**2 - math.sqrt(21) * 4 * growth.realised_start(start.key, start.query)
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
    assert judged("stage-law", stage_law.LawFlows([replace(flow, scale=0.01), samples.flow()])).verdict == "reproduced"
    said = flow.predicted.key
    said = said / 1.1 if wrong == "sigma" else said + WORLDS[0].growth().e_fold(13) * math.log(2)
    other = replace(flow, predicted=Halves(flow.predicted.value, said, said))
    assert judged("stage-law", stage_law.LawFlows([other, samples.flow()])).verdict == "not reproduced"


def test_flows_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[FlowWorld, float, int]] = []

    def made(world: FlowWorld, scale: float, seed: int) -> StageFlow:
        asked.append((world, scale, seed))
        return samples.flow(world, scale, seed)

    monkeypatch.setattr(stage_law, "stage_flow", made)
    stage_law._flows.cache_clear()
    context = Context("quick", 2)
    assert stage_law.stage_flows(context) is stage_law.stage_flows(context)
    assert len(asked) == 18
    assert {seed for _, _, seed in asked} == {2000, 2001}
    assert {scale for _, scale, _ in asked} == {1e-4, 1e-3, 1e-2}
    stage_law._flows.cache_clear()
    assert len(stage_law.stage_flows(Context("full"))) == 75
    stage_law._flows.cache_clear()


def test_without_correct_words_the_flow_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """One flow of the real thing, over a tenth of the time."""
    flows = [samples.flow(), samples.flow(scale=1e-2)]
    monkeypatch.setattr(second_stage, "stage_flows", lambda _: flows)
    monkeypatch.setattr(second_stage, "LONGER", 0.3)
    (pair,) = second_stage.measure_pairs(Context())
    assert pair.times[-1] == pytest.approx(3000)
    assert pair.bayes == pytest.approx(5 / 6)
    assert pair.losses[-1] == pytest.approx(5 / 6, abs=1e-9)
    assert 1 < pair.growth < 1.01
    assert pair.growth_with_words == pytest.approx(samples.flow().key[-1] / samples.flow().key[0])


def test_times_of_one_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real thing at two scales: each half as large as the one before, and at most six times as long."""
    monkeypatch.setitem(second_stage.ESCAPE_SCALES, "quick", (0.15, 0.075))
    monkeypatch.setattr(Context, "seeds", lambda *_: [0])
    found = second_stage.measure_escapes(Context())
    assert (found.scales, list(found.times)) == ([0.15, 0.075], [0])
    assert 0.15 * found.times[0][0] == pytest.approx(153.3, abs=1)
    assert second_stage.ratios(found, 0) == pytest.approx([2.663], abs=0.02)
    assert found.force == 0
    table = judged("one-topic").tables[0]
    assert table.rows[2] == ["0.025", "240.0", "240.0", "2.000", "2.000"]


def test_the_step_of_sgd() -> None:
    assert first_step([1.0, 2.0, 3.0, 4.0], 3.0) == 2
    assert math.isnan(first_step([1.0, 2.0, 2.9], 3.0))
    outcome = judged("sgd-second-stage", samples.sgd(3300))
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
    """And not by its plateau."""
    asked: list[tuple[FlowWorld, float, int, float]] = []

    def made(world: FlowWorld, scale: float, seed: int, after: float) -> StageFlow:
        asked.append((world, scale, seed, after))
        return samples.flow(world, scale, seed, plateau=1.0)

    monkeypatch.setattr(stage_law, "stage_flow", made)
    monkeypatch.setattr(stage_law, "stage_flows", lambda _: samples.flows())
    assert stage_law.measure_flows(Context("quick")).large == []
    found = stage_law.measure_flows(Context("full", 3))
    assert asked == [(FlowWorld(10, 10, 3), 1e-3, 3000, 1.0)]
    assert judged("stage-law", found).verdict == "reproduced"
    assert len(judged("stage-law", found).figures[0].panels) == 8
    late = [replace(found.large[0], measured=Halves(11.0, 10_310.0, 10_000.0))]
    assert judged("stage-law", replace(found, large=late)).verdict == "not reproduced"


def test_pictures_have_the_law_over_the_flow() -> None:
    outcome = judged("stage-law")
    assert len(outcome.figures[0].panels) == 6
    panel = outcome.figures[0].panels[1]
    assert isinstance(panel, Lines)
    assert [line.name for line in panel.series] == [
        *("s = 0.001, flow", "s = 0.01, flow", "s = 0.001, law", "s = 0.01, law")
    ]
    assert panel.series[0].x[0] > 0
    assert panel.series[0].y == panel.series[2].y[::2]  # every second step, as predicted
    times, errors = outcome.figures[1].panels
    assert isinstance(times, Lines)
    assert isinstance(errors, Lines)
    assert [len(series.x) for series in times.series[1:]] == [4] * 6
    assert [series.y for series in errors.series] == [pytest.approx([0.5] * 2)] * 6  # a line per world and seed
    falls = judged("one-topic").figures[0].panels[1]
    assert isinstance(falls, Lines)
    assert falls.series[0].y == [0.667, 0.66]
