"""Adam's clocks, cross entropy and trained embeddings: what is measured, against plain sums and known numbers."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.paper import samples_clocks as samples
from tests.paper.samples import judged
from topicscope.pages import Lines
from topicscope.paper import adam_clocks, mask_first, small_start
from topicscope.paper.experiment import reached
from topicscope.paper.stage_law import FlowWorld
from topicscope.theory import tied_start, topic_contrasts, word_tables
from topicscope.world import Masking


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
    assert adam_clocks.half_way_steps(run, world) == (5.0, 8.0)  # 4 x .26 x rise >= .5; rise^2 >= .5
    run.metrics["norm_key"] = 0.4 * plateau * rise
    assert math.isnan(adam_clocks.half_way_steps(run, world)[1])


def test_predictions_of_adam_are_those_of_the_law() -> None:
    """(5, 4, 2) and (6, 3, 3) at rate and start .001: numbers computed apart from this code."""
    first, second = (adam_clocks.predicted(world, 1e-5) for world in adam_clocks.WORLDS)
    assert (first.value, first.attention) == pytest.approx((195, 842), abs=0.6)
    assert (second.value, second.attention) == pytest.approx((248.5, 824), abs=0.6)
    said = adam_clocks.predicted(adam_clocks.WORLDS[0], 1e-4).attention
    assert said == pytest.approx(4367, rel=2e-3)


def test_where_epsilon_rules() -> None:
    regimes = [clock.regime for clock in samples.clocks().clocks]
    assert regimes == ["sign", "between", "epsilon", "epsilon"] * 2
    outcome = judged("adam-clocks")
    assert "key would be off by 85% at least" in outcome.reason  # 1 - 650 / 4250 and 1 - 1450 / 12250
    assert outcome.ours == 1.0


def test_force_on_the_mask_query() -> None:
    """.0064 w against .00036 w in topic contrasts in (5, 4, 2); first comes at 512."""
    found = mask_first.force_of(FlowWorld(5, 4, 2))
    assert found.error < 1e-7
    assert (found.first, found.second) == pytest.approx((0.0064, 0.00036), rel=0.01)
    assert mask_first.law_of(FlowWorld(5, 4, 2)).time == pytest.approx(512.6, abs=0.1)


def test_predicted_norm_is_threefold_at_its_time() -> None:
    """The law's time takes the growing part alone, e^X = 3 sqrt(2 V); with the rest the norm is a little above."""
    world = FlowWorld(5, 4, 2)
    law = mask_first.law_of(world)
    norms = mask_first.key_law(law, world, np.array([0.0, law.time]))
    assert norms == pytest.approx([1.0, math.sqrt(9 + 1 - 1 / 21)], rel=1e-3)


def test_a_flow_under_cross_entropy_leaves_along_mask() -> None:
    found = mask_first.flow(FlowWorld(4, 3, 2), 1e-2, 0)
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
    weights, world = tied_start(13, 60, 13, 0.3, 0), small_start.WORLD
    pi, tables = topic_contrasts(world.T, world.v) / (world.T - 1), word_tables(weights, 13)
    expected = Masking().k * np.vdot(tables.value, pi), np.vdot(tables.scores, pi)
    assert small_start.contrasts(weights) == pytest.approx(expected, rel=1e-10)


def test_when_a_course_reaches_a_level() -> None:
    assert reached([0.0, 10.0, 20.0], [0.0, 0.4, 0.9], 0.5) == pytest.approx(12.0)
    assert reached([1.0, 2.0], [0.6, 0.7], 0.5) == 1.0
    assert math.isnan(reached([0.0, 1.0], [0.0, 0.4], 0.5))


def test_a_small_start_with_a_trained_embedding() -> None:
    """s = .03: value at 64.5, key at 3,317; the law says 74.9 for value."""
    found = small_start.escape(0.03, 0)
    assert (found.value, found.key) == pytest.approx((64.5, 3317), rel=5e-3)
    assert small_start.law_at(0.03).value == pytest.approx(74.9, abs=0.1)
    assert math.isnan(small_start.law_at(0.09).value)  # s sqrt(d) = .7
    assert len(found.times) == len(found.contrast)


def test_how_far_a_law_in_the_logarithm_is() -> None:
    """1, 3, 9 against the straight line 1, 3, 5."""
    flows = samples.starts().flows[0]
    assert small_start.last_ratio(flows) == pytest.approx(3)
    assert small_start.by_logarithm(flows) == pytest.approx(9 / 5)
    panel = judged("small-start").figures[0].panels[1]
    assert isinstance(panel, Lines)
    assert panel.series[0].y == pytest.approx([50, 25, 11, 5])
    assert len(panel.series[2].x) == 3  # no law at the largest start
