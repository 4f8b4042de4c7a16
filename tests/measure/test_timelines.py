"""What follows from effects at several steps: moments, order, answer; and a timeline read back."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tests.measure.samples import there
from topicscope import InputError
from topicscope.ground import open_folder
from topicscope.measure import (
    TIMELINE,
    Effect,
    Moment,
    Order,
    Timeline,
    appears,
    effect,
    half_way,
    measure_title,
    read_timeline,
)


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
    assert (there(found.order).first, there(found.order).second) == ("cosine", "attention")
    assert there(found.order).ratio == pytest.approx(10)
    assert there(found.order).interval == pytest.approx((10, 10))
    assert "attention is later (its half-way step is 10 times that of the other, 95% 10 to 10)" in found.answer
    assert found.summary() == ["a note", found.answer]
    assert {row.measure for row in found.rows} == {"cosine", "attention"}  # dot has no effect at any step


def test_titles_of_measures() -> None:
    assert measure_title("cosine_matched") == "embeddings: cosine, equal frequencies"
    assert [measure_title(f"attention.{layer}") for layer in (0, 3)] == ["attention, layer 0", "attention, layer 3"]
    assert [measure_title(name) for name in ("value", "another")] == ["value matrix", "another"]


@pytest.mark.parametrize(
    ("ratio", "ends", "told"),
    [
        (1.5, (1.25, 1.75), "attention is later (its half-way step is 1.5 times that of the other, 95% 1.2 to 1.8)"),
        (104.4, (9.96, 210.0), "attention is later (its half-way step is 104 times that of the other, 95% 10 to 210)"),
        (
            0.5,
            (0.25, 0.95),
            "attention is earlier (its half-way step is 0.5 times that of the other, 95% 0.25 to 0.95)",
        ),
        (1.2, (0.9, 1.5), "which is first is not decided (its half-way step is 1.2 times"),
        (1.2, (1.0, 1.5), "which is first is not decided"),
        (0.8, (0.5, 1.0), "which is first is not decided"),
    ],
)
def test_an_order_is_told_with_its_interval(ratio: float, ends: tuple[float, float], told: str) -> None:
    assert str(Order("cosine", "attention", ratio, ends)).startswith(told)


def moment_of(measure: str, steps: dict[int, Effect | None]) -> Moment:
    (found,) = Timeline.of({measure: steps}).moments
    return found


def test_a_measure_that_falls_or_has_no_interval() -> None:
    falling = moment_of("cosine", {0: rising(4.0), 10: rising(3.0), 20: rising(2.0)})
    assert (falling.appears, falling.half, falling.half_interval) == (0, None, None)
    assert (falling.first, falling.last) == (4.0, 2.0)
    assert falling.last_interval == pytest.approx((1.905, 2.095))
    unknown = effect(4.0, 0.0, (np.empty(0), np.empty(0)))
    bare = moment_of("value", {0: unknown, 10: unknown})
    assert (bare.appears, bare.half, bare.last_interval) == (None, None, None)
    lost = moment_of("value", {0: rising(1.0), 10: rising(2.0), 20: unknown})
    assert lost.appears is None


def test_half_way_has_an_interval_over_resamples() -> None:
    """The resampled curves differ at the middle step: they have made half of their rise before it, or after."""
    around = np.zeros(41)
    middle = np.linspace(1, 3, 41)  # of 4, at step 10
    effects: list[Effect | None] = [
        effect(d, 0.0, (b, np.zeros(41))) for d, b in ((0.0, around), (2.0, middle), (4.0, around + 4))
    ]
    found = moment_of("cosine", dict(zip((0, 10, 20), effects, strict=True)))
    assert found.half == 10
    low, high = half_way(np.array([0, 10, 20]), np.array([[0.0, middle[-2], 4.0], [0.0, middle[1], 4.0]]))
    assert found.half_interval == pytest.approx((low, high))
    assert low < 10 < high


def test_one_step_is_no_course_and_steps_are_sorted() -> None:
    effects: dict[str, dict[int, Effect | None]] = {
        "cosine": {5: rising(1.0)},
        "embedding": {20: rising(4.0), 0: rising(0.0), 10: None},
        "attention": {0: rising(0.0), 20: rising(0.5)},
    }
    found = Timeline.of(effects)
    assert [row.measure for row in found.rows] == ["cosine", *["embedding"] * 2, *["attention"] * 2]
    assert [row.step for row in found.rows] == [5, 0, 20, 0, 20]
    assert [one.measure for one in found.moments] == ["embedding", "attention"]
    assert there(found.order).first == "embedding"
    assert there(found.order).ratio == pytest.approx(1)
    assert repr(found) == "Timeline(3 steps, 2 measures)"


def test_the_answer_tells_of_the_measures_there_are() -> None:
    course = {0: rising(0.0), 10: rising(4.0)}
    alone = Timeline.of({"attention": course})
    assert (alone.order, alone.answer) == (None, "attention: from step 10 on, half of its rise at step 5 [5, 5]")
    words = Timeline.of({"dot": course, "value": course})
    assert (words.order, words.answer) == (None, "value matrix: from step 10 on, half of its rise at step 5 [5, 5]")
    assert Timeline.of({"dot": course}).answer == ""
    early = Moment("value", 0, None, None, 4.0, 2.0, None)
    spread = Moment("attention", 10, 4.6, None, 0.0, 4.0, None)
    open_order = Order("value", "attention", 2.0, None)
    found = Timeline([], [early, spread], open_order)
    assert found.answer == "value matrix: from step 0 on; attention: from step 10 on, half of its rise at step 5 "
    assert Timeline.from_dict(json.loads(json.dumps(found.as_dict()))) == found
    assert Timeline.from_dict(json.loads(json.dumps(alone.as_dict()))).order is None
    assert not Timeline([], [early], None).as_dict()["order"]


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
    assert json.loads((tmp_path / "timeline" / "about.json").read_text())["format"] == 2
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
    assert appears(steps, np.array([-1.0, -1, -1, 0, 0.1])) == 30


def test_half_way_is_where_the_straight_line_crosses() -> None:
    steps = np.array([0, 10, 100, 200])
    curves = np.array(
        [[0.0, 0.0, 4.0, 4.0], [1.0, 3.0, 3.0, 3.0], [0.0, 9.0, 0.0, 2.0], [3.0, 2.0, 1.0, 0.0], [5.0, 5.0, 5.0, 5.0]]
    )
    found = half_way(steps, curves)
    assert found[:3] == pytest.approx([55.0, 5.0, 10 / 9])  # the third passes half of its end early, and falls back
    assert np.isnan(found[3:]).all()  # it falls, it stays
    assert half_way(steps, np.array([0.0, 2.0, 2.0, 4.0])) == 10  # half at a step, and no further for a while
    assert math.isnan(half_way(steps, np.array([1.0, 5.0, 5.0, 1.0])))  # it comes back to where it was
    assert half_way(steps, np.array([-4.0, -4.0, -4.0, 4.0])) == 150
