"""Half-way steps, the two stages, the course of a run, thinner curves; and timelines: moments, order, answer."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tests.measure.samples import there
from topicscope import InputError
from topicscope.ground import open_folder
from topicscope.measure import (
    PHASES,
    TIMELINE,
    Course,
    Effect,
    Moment,
    Order,
    Stages,
    Timeline,
    act,
    appears,
    bands_so_far,
    course,
    effect,
    extremes,
    half_way,
    measure_title,
    phase,
    read_timeline,
    risen,
    stage_bands,
    stages,
    thinned,
)

NEVER = float("nan")


def test_risen_of_known_curves() -> None:
    assert risen(np.concatenate([np.zeros(40), np.ones(60)])) == 40
    assert math.isnan(risen(np.ones(50)))
    line = np.arange(100.0)  # the plateau is the mean of the last tenth: 94.5
    assert [risen(line, share) for share in (0.1, 0.5, 0.9)] == [10, 48, 86]
    assert risen(line) == risen(line, 0.5)
    assert risen(np.array([0.0, 1, 2, 2, 2, 2, 2, 2, 2, 2])) == 1  # half of the rise, to the very number
    assert risen(np.array([0.0, 0.4, 0.2, 1.0])) == 3  # of a short run the last step is the plateau
    assert risen(np.array([0.0, 1.0])) == 1


@pytest.mark.parametrize(("last", "rises"), [(104.0, False), (105.0, False), (106.0, True), (95.0, False)])
def test_a_rise_is_more_than_a_twentieth(last: float, rises: bool) -> None:
    assert math.isfinite(risen(np.array([100.0, 100.0, last]))) == rises


def test_stages_are_steps_of_value_key_and_query() -> None:
    line, late = np.arange(100.0), np.concatenate([np.zeros(50), np.arange(50.0)])
    metrics = {"norm_value": line, "norm_key": late, "norm_query": np.ones(100)}
    halves, starts = stages(metrics), stages(metrics, 0.1)
    assert (halves.value, halves.key, math.isnan(halves.query)) == (48, 73, True)  # plateaus 94.5 and 44.5
    assert (starts.value, starts.key) == (10, 55)
    assert halves.separation == 73 / 48
    assert halves.as_dict() == {"t50_value": 48, "t50_key": 73, "t50_query": None, "separation": 73 / 48}
    assert Stages(0, 3, 5).separation == 3  # a value matrix that has risen at once counts as step 1
    assert Stages(1.5, 6, 3).separation == 2
    assert Stages(NEVER, 6, 3).as_dict() == {"t50_value": None, "t50_key": 6, "t50_query": 3, "separation": None}


@pytest.mark.parametrize("still", ["", "norm_key", "norm_query"])
def test_the_second_stage_begins_when_key_or_query_has_made_a_tenth_of_its_rise(still: str) -> None:
    ramp = np.concatenate([np.zeros(100), np.linspace(0, 1, 101), np.ones(99)])
    early = np.concatenate([np.linspace(0, 1, 21), np.ones(279)])
    late = np.roll(ramp, 30) * (np.arange(300) >= 30)
    metrics = {"norm_key": ramp, "norm_query": ramp if still else late, "norm_value": early}
    if still:  # only one of them rises
        metrics |= {still: np.ones(300)}
    assert stage_bands(metrics) == [(0.0, 110.0, "stage 1: value"), (110.0, 299.0, "stage 2: key and query")]
    assert stage_bands(metrics | {"norm_value": ramp, "norm_key": early, "norm_query": early}) == []
    assert stage_bands(metrics | {"norm_key": np.ones(300), "norm_query": np.ones(300)}) == []


@pytest.mark.parametrize(("later", "bands"), [(0, 0), (1, 2), (9, 2)])
def test_bands_are_there_as_soon_as_value_is_first(later: int, bands: int) -> None:
    value = np.concatenate([np.zeros(20), np.ones(60)])
    attention = np.roll(value, later) * (np.arange(80) >= later)
    assert len(stage_bands({"norm_value": value, "norm_key": attention, "norm_query": attention})) == bands


def test_phases() -> None:
    never, early = NEVER, Stages(10, 11, 12)
    assert phase(Stages(10, 50, 60), early, 1.0, 0.5) == "two-stage"
    assert phase(Stages(10, 20, 60), early, 1.0, 0.5) == "two-stage"
    assert phase(Stages(10, 19, 60), early, 1.0, 0.5) == "at once"
    assert phase(Stages(10, 19, 60), Stages(2, 4, 5), 1.0, 0.5) == "staggered"
    assert phase(Stages(10, 19, 60), Stages(2, 3, 5), 1.0, 0.5) == "at once"
    for halves in (Stages(10, never, 60), Stages(10, 60, never)):  # whichever of the two rises
        assert phase(halves, early, 1.0, 0.5) == "two-stage"
    assert phase(Stages(10, never, never), early, 1.0, 0.5) == "first stage only"
    assert phase(Stages(never, 10, 10), early, 1.0, 0.5) == "never"
    assert phase(Stages(10, 50, 60), early, 1.0, 1.02) == phase(Stages(10, 50, 60), early, 1.0, never) == "diverged"
    assert phase(Stages(10, 50, 60), early, 1.0, 1.005) == "two-stage"
    assert phase(Stages(10, 50, 60), early, 1.0, 1.01) == "two-stage"
    assert phase(Stages(10, 50, 60), early, 2.0, 2.03) == "diverged"


def test_a_course_is_that_of_its_least_two_stage_layer() -> None:
    def layer(value: int, attention: int) -> dict[str, np.ndarray]:
        steps = {"norm_value": value, "norm_key": attention, "norm_query": attention + 1}
        return {name: (np.arange(100) >= step).astype(float) for name, step in steps.items()}

    losses = np.array([2.0, 1.5, 1.0])
    still = dict.fromkeys(("norm_value", "norm_key", "norm_query"), np.ones(100))
    found = course("done", losses, 1.0, [layer(10, 60), still, layer(20, 50), layer(10, 30)])
    assert found == Course("two-stage", Stages(20, 50, 51), Stages(20, 50, 51))
    assert course("done", losses, 2.03, [layer(10, 60)]).phase == "diverged"
    assert course("done", losses, 1.9, [layer(10, 60)]).phase == "two-stage"  # the first loss counts
    assert course("done", losses, 1.0, [layer(10, 15)]).phase == "at once"
    assert course("done", losses[:2], 1.0, [layer(10, 60)]).phase == "two-stage"
    for status, some, last in (("diverged", losses, 1.0), ("done", losses, None), ("done", losses[:1], 1.0)):
        assert course(status, some, last, [layer(10, 60)]) == Course("diverged")


def test_a_course_tells_its_phase_and_steps() -> None:
    starts = Stages(2, 5, 6)
    told = Course("two-stage", Stages(10, 1200, NEVER), starts)
    assert told.sentence == (
        "Phase: two-stage (half of the rise at step: value 10, key 1,200, query not yet, separation 120). "
        "The value matrix has learnt topics before attention forms, as the paper's two stages say."
    )
    steps = {"t50_value": 10, "t50_key": 1200, "t50_query": None}
    assert told.as_dict() == {"phase": "two-stage", **steps, "separation": 120, "start_separation": 2.5}
    alone = Course("first stage only", Stages(10, NEVER, NEVER), Stages(2, NEVER, NEVER))
    assert alone.sentence.startswith(
        "Phase: first stage only (half of the rise at step: value 10, key not yet, query not yet). The value matrix"
    )
    assert alone.as_dict()["start_separation"] is None
    flat = Course("never", Stages(NEVER, 5, 5), Stages(NEVER, 5, 5))
    assert flat.sentence.startswith("Phase: never. The norm of W_V has risen by less than 5%")
    assert Course("diverged").sentence.startswith("Phase: diverged. The loss ends above its start")
    assert Course("diverged").as_dict() == Course("diverged", starts).as_dict() == {"phase": "diverged"}
    for name in PHASES:
        assert Course(name).sentence.startswith(f"Phase: {name}. ")


def test_a_norm_without_a_plateau_is_still_rising() -> None:
    steps = np.arange(100.0)
    line, levelled, flat = 1 + steps, 1 + np.minimum(steps, 60), np.ones(100)
    metrics = {"norm_value": levelled, "norm_key": line, "norm_query": flat}
    found = course("done", np.array([2.0, 1.0]), 1.0, [metrics])
    assert found.rising == ("key",)
    assert found.sentence.endswith("Not final: key still rising at the end; more steps may change the phase.")
    slow = 1 + np.where(steps < 80, steps, 80 + (steps - 80) / 3)  # the last tenth adds 3.33 of 84.83
    assert course("done", np.array([2.0, 1.0]), 1.0, [metrics | {"norm_key": slow}]).rising == ()
    faster = 1 + np.where(steps < 80, steps, 80 + (steps - 80) / 2)  # 5 of 87.25: more than a twentieth
    assert course("done", np.array([2.0, 1.0]), 1.0, [metrics | {"norm_key": faster}]).rising == ("key",)


def two_stages_until(step: int) -> dict[str, np.ndarray]:
    """Value rises by step 20, key and query from step 100 to 200; all rest from step 200 on."""
    ramp = np.concatenate([np.ones(100), np.linspace(1, 2, 101), np.full(99, 2.0)])
    early = np.concatenate([np.linspace(1, 2, 21), np.full(279, 2.0)])
    return {"norm_value": early[:step], "norm_key": ramp[:step], "norm_query": ramp[:step]}


@pytest.mark.parametrize(
    ("steps", "where", "bands"),
    [
        (2, "start", []),
        (15, "stage 1", [(0, 14, "stage 1: value")]),
        (90, "between", [(0, 89, "stage 1: value")]),
        (150, "stage 2", [(0, 105, "stage 1: value"), (105, 149, "stage 2: key and query")]),
        (300, "ended", [(0, 110, "stage 1: value"), (110, 299, "stage 2: key and query")]),
    ],
)
def test_stages_are_told_as_they_come(steps: int, where: str, bands: list[tuple[float, float, str]]) -> None:
    metrics = two_stages_until(steps)
    assert act(metrics) == where
    assert bands_so_far(metrics) == bands


def test_what_rises_at_once_has_no_bands() -> None:
    """Also where key and query rose with value and rest now: attention is not uniform any more."""
    line, early = np.linspace(1, 2, 100), np.concatenate([np.linspace(1, 2, 21), np.full(79, 2.0)])
    for attention in (line, early):
        metrics = {"norm_value": line, "norm_key": attention, "norm_query": attention}
        assert (act(metrics), bands_so_far(metrics)) == ("at once", [])


STEPS = np.arange(1001.0)


def rise(start: float, to: float, at: float, width: float) -> np.ndarray:
    return start + (to - start) / (1 + np.exp(-(STEPS - at) / width))


VALUE_FIRST = {
    "norm_value": rise(0.1, 3, 60, 10),
    "norm_key": rise(0.2, 9, 600, 25),
    "norm_query": rise(0.2, 9, 600, 25),
}
TOGETHER = {name: rise(0.1, 3, 300, 60) for name in VALUE_FIRST}
SLOWLY = VALUE_FIRST | dict.fromkeys(("norm_key", "norm_query"), np.sqrt(1 + 0.09 * np.expm1(STEPS / 1000)))
"""Key and query reach 1.075 times their start at step 1000, and gain less than a fiftieth in the last tenth."""
AGAIN = VALUE_FIRST | {"norm_value": VALUE_FIRST["norm_value"] + np.maximum(0, STEPS - 800) / 50}


@pytest.mark.parametrize(
    ("curves", "steps"),
    [
        (VALUE_FIRST, {1: "start", 5: "start", 60: "stage 1", 300: "between", 600: "stage 2", 1000: "ended"}),
        (SLOWLY, {400: "between", 760: "between", 1000: "between"}),
        (TOGETHER, {300: "at once", 1000: "ended"}),
        (AGAIN, {1000: "third act"}),
    ],
)
def test_the_act_of_a_run(curves: dict[str, np.ndarray], steps: dict[int, str]) -> None:
    assert {step: act({name: norm[: step + 1] for name, norm in curves.items()}) for step in steps} == steps
    if curves is SLOWLY:  # attention that has only begun is no second stage
        assert bands_so_far(curves) == [(0.0, 1000.0, "stage 1: value")]


def test_stages_stay_where_value_rises_again_and_is_half_way_after_attention() -> None:
    late = VALUE_FIRST | {"norm_value": VALUE_FIRST["norm_value"] + rise(0, 10, 850, 10)}
    first, second = stage_bands(late)
    assert first == (0.0, second[0], "stage 1: value")
    assert 500 < second[0] < 600
    assert second[1:] == (1000.0, "stage 2: key and query")
    assert bands_so_far(late) == [first, second]


@pytest.mark.parametrize(
    ("length", "most"), [(1, 10), (10, 10), (11, 10), (500, 500), (501, 500), (99_991, 500), (40, 6)]
)
def test_ends_and_extremes_stay_and_there_are_not_too_many(length: int, most: int) -> None:
    values = np.random.default_rng(length).normal(size=length)
    places = thinned(values, most)
    assert len(places) <= most
    assert (places[0], places[-1]) == (0, length - 1)
    assert length == 1 or (np.diff(places) > 0).all()
    assert values[places].max() == values.max()
    assert values[places].min() == values.min()
    if length <= most:
        assert len(places) == length
    else:
        assert np.diff(places).max() <= 2 * (-(-(length - 2) // ((most - 2) // 2)))  # no gap of more than two groups


def test_each_group_gives_its_lowest_and_highest() -> None:
    values = np.array([3.0, 1.0, 2.0, 0.0, np.nan, 5.0, 5.0, np.nan, 7.0, 7.0, 7.0, 7.0])
    assert extremes(values, 4).tolist() == [0, 3, 5, 6, 8, 9]
    marked = np.zeros(12, dtype=bool)
    marked[[1, 2, 9]] = True
    assert extremes(values, 4, marked).tolist() == [0, 2, 5, 6, 8, 9]
    assert extremes(np.full(4, np.nan), 4).tolist() == [0, 1]


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
    assert "which is first is not decided" in timeline(later=1).answer
    flat: dict[str, dict[int, Effect | None]] = {
        "value": {0: rising(0.0), 10: rising(3.0)},
        "attention": {0: rising(0.0), 10: rising(0.01)},
    }
    found = Timeline.of(flat)
    assert found.order is None
    assert found.answer.endswith("half of its rise at step 5 [5, 5]; attention: not seen at the end")


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
