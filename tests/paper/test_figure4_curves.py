"""Figure 4 in numbers: what is read off a run, how far it is from the figure, and what is said of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.paper.samples_stages import stage_settings
from topicscope import training
from topicscope.paper import figure4
from topicscope.paper.figure4 import ENVELOPE, NINE, RANGES, distance, envelope, factor, readings


def ramp(leaves: float, levels: float, end: float, steps: int = 1000) -> np.ndarray:
    """Zero until one step, straight up to `end` at another, then level."""
    return end * np.clip((np.arange(steps) - leaves) / (levels - leaves), 0, 1)


def run(**other: np.ndarray) -> figure4.Norms:
    """All ten numbers inside the figure's ranges, but for the norms that are given."""
    norms = {"value": ramp(50, 250, 1.7), "key": ramp(430, 999, 5.5), "query": ramp(430, 999, 7.0)} | other
    return {f"norm_{part}": norm for part, norm in norms.items()}


def test_readings_of_straight_lines() -> None:
    numbers = readings(run(value=ramp(50, 250, 2.0)))
    assert list(numbers) == list(RANGES)
    assert (numbers["value tenth"], numbers["value half"]) == (70, 150)
    assert (numbers["value end"], numbers["value at 500"]) == (2.0, 2.0)
    assert (numbers["key tenth"], numbers["key half"], numbers["key end"]) == (487, 715, 5.5)
    assert (numbers["query tenth"], numbers["query half"], numbers["query end"]) == (487, 715, 7.0)


def test_only_the_steps_of_the_figure_count() -> None:
    longer = {name: np.concatenate([norm, [norm[-1]], np.full(500, 30.0)]) for name, norm in run().items()}
    assert readings(longer) == readings(run())
    every = np.arange(0, 1000, 5)
    thinned = {name: norm[every] for name, norm in run().items()} | {"step": every.astype(float)}
    for name, number in readings(thinned).items():  # as the curves of a sweep are
        assert readings(run())[name] == pytest.approx(number, abs=5 if name.split()[1] in ("tenth", "half") else 0.05)


def test_factors_are_outside_the_range_only() -> None:
    assert factor("key end", 5.0) == factor("key end", 4.65) == factor("key end", 6.4) == 1
    assert factor("key end", 12.8) == pytest.approx(2)
    assert factor("key tenth", 200) == pytest.approx(0.5)
    assert factor("key half", math.nan) == 10
    assert factor("key half", 0.0) == pytest.approx(0.1)
    assert factor("value end", 1e9) == 10


def test_the_distance_is_zero_inside_and_counts_times_and_sizes_alike() -> None:
    assert distance([run()]) == 0
    twice = math.log(2) / math.sqrt(10)
    assert distance([run(query=ramp(430, 999, 2 * 8.8))]) == pytest.approx(twice)
    assert distance([run(), run(query=ramp(430, 999, 2 * 8.8))]) == pytest.approx(twice / math.sqrt(2))
    never = distance([run(key=np.full(1000, 5.0))])  # no tenth, no half
    assert never == pytest.approx(math.sqrt(2) * math.log(10) / math.sqrt(10))


@pytest.mark.parametrize(
    ("part", "norm", "outside"),
    [
        ("value", ramp(10, 170, 1.7), {"value tenth", "value half"}),
        ("value", ramp(50, 999, 1.7), {"value half", "value at 500", "value tenth"}),
        ("value", ramp(50, 250, 3.5), {"value end", "value at 500"}),
        ("key", ramp(200, 900, 5.5), {"key tenth"}),
        ("key", ramp(750, 1200, 14.0), {"key tenth", "key half", "key end"}),
        ("query", ramp(430, 999, 5.5), {"query end"}),
        ("query", ramp(100, 900, 7.0), {"query tenth", "query half"}),
    ],
)
def test_numbers_outside_are_named(part: str, norm: np.ndarray, outside: set[str]) -> None:
    here: Any = run(**{part: norm})
    rows = {row[0]: row for row in figure4.beside([run(), here])}
    assert {name for name, row in rows.items() if row[3] != "inside"} == outside
    assert distance([here]) > 0


def test_the_sentence_says_what_is_outside() -> None:
    said = figure4.sizes([run(), run(key=ramp(430, 999, 7.0))])
    off = math.log(7 / 6.4) / math.sqrt(20)
    assert said == (
        f"times and sizes (not judged): distance to the figure {off:.3f}, 9 of 10 numbers in its ranges; outside: key "
        "end 5.5 to 7 (figure 4.65 to 6.4); at step 1,000 query is 1 to 1.27 times key (figure 1.2 to 1.45)"
    )
    assert "10 of 10 numbers in its ranges; at step 1,000" in figure4.sizes([run()])


def test_sizes_do_not_decide_the_verdict() -> None:
    near, far = (figure4.judge(stage_settings(*[norms] * 3)) for norms in (run(), run(key=ramp(430, 999, 500.0))))
    assert near.verdict == far.verdict == "reproduced"
    first = next(iter(figure4.SETTINGS))
    assert near.numbers[first]["distance"] == 0 < far.numbers[first]["distance"]
    assert [row[3] for row in near.tables[1].rows] == ["inside"] * 10
    assert far.tables[1].rows[6] == ["key end", "4.65 to 6.4", "500", "10.00"]


@pytest.mark.parametrize("part", ["value", "key", "query"])
def test_the_band_has_the_range_of_the_nine_curves(part: str) -> None:
    low, high = envelope(part)
    assert {low.group, high.group} == {NINE}
    assert (low.low, low.high) == (low.y, high.y)
    assert all(a <= b for a, b in zip(low.y, high.y, strict=True))
    assert [step for step, _, _ in ENVELOPE[part]] == sorted({step for step, _, _ in ENVELOPE[part]})
    assert (low.x[-1], low.y[-1], high.y[-1]) == (1000, *RANGES[f"{part} end"])
    # its edges are half-way where the first and the last of the nine curves are
    lower, upper = (np.interp(np.arange(1001), line.x, line.y) for line in (low, high))
    halves = [float(np.argmax(edge >= 0.5 * edge[-1])) for edge in (upper, lower)]
    assert halves == pytest.approx(RANGES[f"{part} half"], abs=30)


def test_the_nearest_setting_comes_near() -> None:
    """One seed, the figure's steps: within a tenth of all ranges but for the first rise of value."""
    loss, lr, model = next(iter(figure4.SETTINGS.values()))
    config = training.RunConfig.of(
        {"device": "cpu", "evaluate_every": None, "steps": 1000, "objective": {"loss": loss}, "model": model}
        | {"optimizer": {"lr": lr}, "data": {"dev_documents": 100}}
    )
    metrics = training.train(config, with_floors=False).metrics
    assert distance([metrics]) < 0.08
    off = {name: factor(name, number) for name, number in readings(metrics).items()}
    assert all(0.9 < off[name] < 1.1 for name in off if name != "value tenth")


NEAREST_CONFIG = {
    "objective": {"loss": "squared-mean"},
    "optimizer": {"lr": 0.001},
    "model": figure4.NEAREST,
}


def test_the_law_does_not_cover_the_nearest_setting_and_says_what_it_covers_nearby() -> None:
    said = figure4.predicted(training.RunConfig.of(NEAREST_CONFIG))
    for reason in ("a trained embedding with adam", "an untied head", "biases of attention", "finite documents"):
        assert reason in said
    assert "no law covers this setting" in said
    assert "value half-way at step 58, key and query half-way at step 1,169" in said  # 374 + 737 for epsilon + 58
    summed = figure4.predicted(training.RunConfig.of(NEAREST_CONFIG | {"objective": {"loss": "squared"}}))
    assert "value half-way at step 58, key and query half-way at step 381" in summed  # a loss 101 times as large


def test_the_law_covers_one_hot_words_on_infinite_documents() -> None:
    config = training.RunConfig.of(
        {
            "objective": {"loss": "squared"},
            "optimizer": {"name": "sgd", "lr": 4.0},
            "model": {"init_scale": 0.001, "prediction_bias": "none"},
            "topic_model": {"topics": 5, "words_per_topic": 4},
            "documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
        }
    )
    assert figure4.predicted(config) == "value half-way at step 6, key and query half-way at step 9,997"
    assert "setting (momentum)" in figure4.predicted(config.changed({"optimizer.momentum": 0.5}))
    assert "setting (cross entropy)" in figure4.predicted(config.changed({"objective.loss": "cross-entropy"}))
