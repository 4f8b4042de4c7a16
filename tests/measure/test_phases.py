"""Half-way steps of known curves, bands of the two stages, and the course of a run."""

from __future__ import annotations

import math

import numpy as np
import pytest

from topicscope.measure import Stages, phase, risen, stage_bands, stages


def test_risen_of_known_curves() -> None:
    assert risen(np.concatenate([np.zeros(40), np.ones(60)])) == 40
    assert risen(np.linspace(1, 3, 101)) == pytest.approx(47.5, abs=1)  # the plateau is the mean of the last tenth
    assert math.isnan(risen(np.ones(50)))
    late = np.concatenate([np.zeros(60), np.ones(40)])
    early = np.concatenate([np.zeros(20), np.ones(80)])
    assert stages({"norm_value": early, "norm_key": late, "norm_query": late}).separation == 3


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
