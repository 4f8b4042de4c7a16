from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from topicscope.measure import Stages, attention_means, estimate, phase, risen, stage_bands, stages


@given(seed=st.integers(0, 999), topics=st.integers(2, 4), v=st.integers(1, 3), length=st.integers(2, 12))
def test_attention_means_equal_a_loop_over_positions(seed: int, topics: int, v: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    topic = -(-np.arange(topics * v + 1) // v)
    scores = 2 * rng.standard_normal((len(topic), len(topic)))
    documents = rng.integers(1, len(topic), size=(5, length))
    groups: dict[str, list[float]] = {"word": [], "topic": [], "other": []}
    for document in documents:
        for j in document:  # query
            weights = np.exp(scores[j, document])
            weights /= weights.sum()
            for i, weight in zip(document, weights, strict=True):
                groups["word" if i == j else "topic" if topic[i] == topic[j] else "other"].append(weight)
    if not all(groups.values()):
        return
    counts = np.array([np.bincount(document, minlength=len(topic)) for document in documents], dtype=float)
    found = attention_means(scores, topic, counts)
    assert tuple(found) == pytest.approx([np.mean(group) for group in groups.values()], rel=1e-9)
    assert found.alpha == pytest.approx(np.mean(groups["topic"]) / np.mean(groups["other"]))


def test_risen_of_known_curves() -> None:
    assert risen(np.concatenate([np.zeros(40), np.ones(60)])) == 40
    assert risen(np.linspace(1, 3, 101)) == pytest.approx(47.5, abs=1)  # the plateau is the mean of the last tenth
    assert math.isnan(risen(np.ones(50)))
    late = np.concatenate([np.zeros(60), np.ones(40)])
    early = np.concatenate([np.zeros(20), np.ones(80)])
    assert stages({"norm_value": early, "norm_key": late, "norm_query": late}).separation == 3


def test_intervals_are_students() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert (found.mean, found.low) == pytest.approx((2.0, 2 - 4.3026527 / math.sqrt(3)))
    assert estimate([1.0]).low == -math.inf
    many = np.random.default_rng(0).standard_normal((4000, 12)) + 1
    covered = np.mean([estimate(row.tolist()).low < 1 < estimate(row.tolist()).high for row in many])
    assert covered == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize(
    ("runs", "quantile"),
    [(2, 12.706205), (6, 2.570582), (11, 2.228139), (12, 2.200985), (21, 2.085963), (61, 2.000298), (121, 1.979930)],
)
def test_quantiles_are_those_of_the_tables(runs: int, quantile: float) -> None:
    values = np.arange(runs, dtype=float)
    found = estimate(values.tolist())
    half = quantile * values.std(ddof=1) / math.sqrt(runs)
    assert found.high - found.mean == pytest.approx(half, rel=1e-6)
    assert found.mean - found.low == pytest.approx(half, rel=1e-6)


def test_the_second_stage_begins_when_key_or_query_has_made_a_tenth_of_its_rise() -> None:
    ramp = np.concatenate([np.zeros(100), np.linspace(0, 1, 101), np.ones(99)])
    early = np.concatenate([np.linspace(0, 1, 21), np.ones(279)])
    metrics = {"norm_key": ramp, "norm_query": np.roll(ramp, 30) * (np.arange(300) >= 30), "norm_value": early}
    assert stage_bands(metrics) == [(0.0, 110.0, "stage 1: value"), (110.0, 299.0, "stage 2: key and query")]
    assert stage_bands(metrics | {"norm_value": ramp, "norm_key": early}) == []  # the other way round
    assert (
        stage_bands(metrics | {"norm_key": np.ones(300), "norm_query": np.ones(300)}) == []
    )  # key and query stay where they are


def test_phases() -> None:
    never, early = float("nan"), Stages(10, 11, 12)
    assert phase(Stages(10, 50, 60), early, 1.0, 0.5) == "two-stage"
    assert phase(Stages(10, 20, 60), early, 1.0, 0.5) == "two-stage"
    assert phase(Stages(10, 19, 60), early, 1.0, 0.5) == "at once"
    assert phase(Stages(10, 19, 60), Stages(2, 4, 5), 1.0, 0.5) == "staggered"
    assert phase(Stages(10, 19, 60), Stages(2, 3, 5), 1.0, 0.5) == "at once"
    assert (
        phase(Stages(10, never, 60), early, 1.0, 0.5) == phase(Stages(10, 60, never), early, 1.0, 0.5) == "two-stage"
    )  # whichever of the two rises
    assert phase(Stages(10, never, never), early, 1.0, 0.5) == "first stage only"
    assert phase(Stages(never, 10, 10), early, 1.0, 0.5) == "never"
    assert phase(Stages(10, 50, 60), early, 1.0, 1.02) == phase(Stages(10, 50, 60), early, 1.0, never) == "diverged"
    assert phase(Stages(10, 50, 60), early, 1.0, 1.005) == "two-stage"
