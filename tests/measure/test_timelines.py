"""What follows from effects at several steps: moments, order, answer; and a timeline read back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from topicscope import InputError
from topicscope.ground import open_folder
from topicscope.measure import TIMELINE, Effect, Timeline, appears, effect, half_way, read_timeline


def rising(difference: float, spread: float = 0.1) -> Effect | None:
    """An effect with this difference, whose resamples lie around it."""
    around = difference + spread * np.linspace(-1, 1, 41)
    return effect(difference, 0.0, (around, np.zeros(41)))


COURSE = {0: 0.0, 10: 0.0, 100: 4.0, 1000: 4.0}


def timeline(later: int = 10) -> Timeline:
    """Attention does the same as the cosines, at `later` times their steps."""
    effects: dict[str, dict[int, Effect | None]] = {
        "cosine": {step: rising(difference) for step, difference in COURSE.items()},
        "dot": dict.fromkeys(COURSE),
        "attention": {later * step: rising(difference) for step, difference in COURSE.items()},
    }
    return Timeline.of(effects, ["a note"])


def test_moments_and_order() -> None:
    found = timeline()
    cosine, attention = found.moments
    assert (cosine.measure, cosine.appears, attention.appears) == ("cosine", 100, 1000)
    assert cosine.half == pytest.approx(55)  # half-way between the steps 10 and 100
    assert attention.half == pytest.approx(550)
    assert (cosine.first, cosine.last) == (0.0, 4.0)
    assert cosine.last_interval == pytest.approx((3.905, 4.095))
    assert found.order is not None
    assert (found.order.first, found.order.second) == ("cosine", "attention")
    assert found.order.ratio == pytest.approx(10)
    assert found.order.interval == pytest.approx((10, 10))
    assert "attention is later (its half-way step is 10 times that of the other, 95% 10 to 10)" in found.answer
    assert found.summary() == ["a note", found.answer]
    assert {row.measure for row in found.rows} == {"cosine", "attention"}  # dot has no effect at any step


def test_the_order_can_be_the_other_or_open() -> None:
    effects: dict[str, dict[int, Effect | None]] = {
        "cosine": {10 * step: rising(difference) for step, difference in COURSE.items()},
        "attention": {step: rising(difference) for step, difference in COURSE.items()},
    }
    assert "attention is earlier" in Timeline.of(effects).answer
    assert "which is first is not decided" in timeline(later=1).answer
    flat: dict[str, dict[int, Effect | None]] = {
        "value": {0: rising(0.0), 10: rising(3.0)},
        "attention": {0: rising(0.0), 10: rising(0.01)},
    }
    found = Timeline.of(flat)
    assert found.order is None
    assert (
        found.answer
        == "value matrix: from step 10 on, half of its rise at step 5 [5, 5]; attention: not seen at the end"
    )


def test_a_timeline_is_read_back_as_it_was(tmp_path: Path) -> None:
    made = timeline()
    with open_folder(tmp_path / "timeline", TIMELINE, {"seed": 0}) as folder:
        made.write(folder)
    read = read_timeline(tmp_path / "timeline")
    assert read == made
    assert read.rows[0].effect.resamples is None  # not stored: what needs them is computed before
    assert made.rows[0].effect.resamples is not None
    assert read.answer == made.answer
    assert json.loads(json.dumps(made.as_dict())) == json.loads(json.dumps(read.as_dict()))
    assert read.table().num_rows == 8
    assert (
        (tmp_path / "timeline" / "timeline.csv").read_text().splitlines()[0].startswith("measure,step,same,different")
    )
    (tmp_path / "timeline" / "results.json").write_text("{}")
    with pytest.raises(InputError, match="is damaged"):
        read_timeline(tmp_path / "timeline")


def test_appears_is_the_start_of_the_last_stretch_above_zero() -> None:
    steps = np.array([0, 1, 3, 10, 30])
    assert appears(steps, np.array([-1.0, 2, 2, 2, 2])) == 1
    assert appears(steps, np.array([1.0, 2, 2, 2, 2])) == 0
    assert appears(steps, np.array([-1.0, 2, np.nan, 2, 2])) == 10  # where nothing is known nothing has appeared
    assert appears(steps, np.array([1.0, 2, 2, 2, 0])) is None


def test_half_way_is_where_the_straight_line_crosses() -> None:
    steps = np.array([0, 10, 100, 200])
    curves = np.array(
        [[0.0, 0.0, 4.0, 4.0], [1.0, 3.0, 3.0, 3.0], [0.0, 9.0, 0.0, 2.0], [3.0, 2.0, 1.0, 0.0], [5.0, 5.0, 5.0, 5.0]]
    )
    found = half_way(steps, curves)
    assert found[:3] == pytest.approx([55.0, 5.0, 10 / 9])  # the third passes half of its end early, and falls back
    assert np.isnan(found[3:]).all()  # it falls, it stays
