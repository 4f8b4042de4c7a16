"""Experiments beyond the theorems: their numbers, against plain loops and against values worked out apart from them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.paper import samples_worlds as worlds
from tests.paper.samples import judged
from topicscope.pages import Lines, Points
from topicscope.paper import assumptions, finite_length, topic_order
from topicscope.paper.experiment import all_of, reached
from topicscope.paper.topic_order import best_value, contrasts, world_of
from topicscope.theory import force_formula, score_force
from topicscope.world import Masking, TopicModel


def test_half_way_lies_between_two_times() -> None:
    times = np.array([0.0, 10.0, 20.0])
    assert reached(times, [0.0, 0.4, 0.9], 0.5) == pytest.approx(12.0)
    assert reached(times, [0.6, 0.7, 0.9], 0.5) == 0.0
    assert math.isnan(reached(times, [0.0, 0.1, 0.49], 0.5))


def test_one_failure_outweighs_what_is_not_decided() -> None:
    assert all_of([True, None, False]) == "not reproduced"
    assert all_of([True, None]) == "undecided"
    assert all_of([True, True]) == "reproduced"


def test_forces_between_and_inside_groups() -> None:
    """The numbers of R6 (ii); with rho = 1 there is none between groups, with rho = 0 no groups."""
    value = best_value()

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
    panel = outcome.figures[0].panels[0]
    assert isinstance(panel, Lines)
    assert panel.series[0].y == pytest.approx(panel.series[2].y[::10], abs=1e-5)  # trained as predicted
    assert "longer runs would decide" in judged("coarse-to-fine", worlds.groups(0.001)).reason


def test_relations_leave_out_common_words() -> None:
    """Two topics of two words and one common word, entry by entry."""
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
    assert finite_length.means_of(matrix) == pytest.approx((0.2, 0.07))
    assert [finite_length.theory_at(n)[0] for n in (30, 1000)] == pytest.approx([EXCESS_30, worlds.B], rel=1e-9)
    assert finite_length.theory_at("infinite") == pytest.approx((0.0, 0.054191), abs=1e-6)


def test_joint_intervals_are_wider() -> None:
    """Student's t with seven degrees of freedom at 1 - .025 / 3: 3.1276."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    found = finite_length.joint(values)
    half = 3.1276 * np.std(values, ddof=1) / math.sqrt(8)
    assert (found.low, found.high) == pytest.approx((4.5 - half, 4.5 + half), rel=1e-3)


def test_what_is_said_about_figure_6() -> None:
    """Block .1, diagonal .5: an excess of .4 is larger than .1136."""
    outcome = judged("finite-length")
    assert "Figure 6 (squared), trained attention: 0.4 [0.4, 0.4] (larger)" in outcome.reason
    assert outcome.ours == pytest.approx(worlds.B)
    panel = outcome.figures[0].panels[0]
    assert isinstance(panel, Points)
    assert panel.series[1].y == pytest.approx([EXCESS_30, worlds.B, worlds.B], rel=1e-7)


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
