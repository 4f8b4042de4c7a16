"""The phase diagram: maps from rows, findings with the numbers that are there, and a verdict that can fail."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.paper import samples_stages as stages
from tests.paper.samples import judged
from tests.paper.short_training import REFERENCE
from topicscope import sweeps
from topicscope.measure import PHASES
from topicscope.pages import Map
from topicscope.paper import two_stage as module
from topicscope.paper.experiment import Context
from topicscope.paper.two_stage import LR, SCALE


def test_sentences_of_epsilon() -> None:
    separations = {1e-20: 3.0, 1e-8: 6.0, 1e-6: 30.0, 1e-4: None, 1e-2: None}
    rows = [{"optimizer.eps": eps, "separation": separation} for eps, separation in separations.items()]
    assert module.epsilon_sentence("squared", "trained", rows) == (
        "Adam's epsilon, squared, trained embedding: two stages with hardly any epsilon (mean separation 3 at 1e-20, 6 "
        "at the usual 1e-08, largest 30 at 1e-06); from 0.0001 on the second stage does not come within the run."
    )
    two = [{"optimizer.eps": 1e-20, "separation": 1.9}, {"optimizer.eps": 1e-20, "separation": 2.1}]
    assert "embedding: two stages with hardly any" in module.epsilon_sentence("a", "b", two)  # their mean is 2
    less = [{"optimizer.eps": 1e-20, "separation": 1.99}, {"optimizer.eps": 1e-6, "separation": 1.0}]
    assert module.epsilon_sentence("a", "b", less) == (
        "Adam's epsilon, a, b embedding: no two stages with hardly any epsilon (mean separation 1.99 at 1e-20, - at "
        "the usual 1e-08, largest 1.99 at 1e-20)."
    )
    none = [{"optimizer.eps": 1e-20, "separation": None}]
    assert "(mean separation - at 1e-20, - at the usual 1e-08, largest - at 0)" in module.epsilon_sentence(
        "a", "b", none
    )


def test_sentences_of_gradient_flow() -> None:
    rows = [
        {"model.init_scale": scale, "optimizer.lr": lr, "phase": "two-stage", "separation": separation}
        for scale, lr, separation in ((0.1, 0.1, 7.2), (0.1, 0.3, 7.0), (0.01, 0.3, None))
    ]
    assert module.flow_sentence("squared", "trained", rows) == (
        "SGD over the same time at two rates, squared, trained embedding: from initial scale 0.01 two-stage at rate "
        "0.3 (separation -); from initial scale 0.1 two-stage at rate 0.3 (separation 7) and two-stage at rate 0.1 "
        "(separation 7.2)."
    )


def test_sentences_of_a_panel() -> None:
    places = [(1e-3, 1e-2, "two-stage", 4.0), (1e-2, 1e-2, "two-stage", 10.0), (1e-1, 1e-2, "two-stage", 5.0)]
    rows = [
        {"optimizer.lr": lr, "model.init_scale": scale, "phase": phase, "separation": separation}
        for lr, scale, phase, separation in [*places, (1.0, 1.0, "diverged", None)]
    ]
    assert module.panel_sentence("adam", "squared", "trained", rows) == (
        "adam, squared, trained embedding: of 4 points 3 two-stage, 1 diverged; two-stage at lr 0.001 to 0.1 and "
        "init_scale 0.01, median separation 5."
    )
    assert module.panel_sentence("sgd", "a", "b", rows[3:]) == "sgd, a, b embedding: of 1 points 1 diverged."


def test_sentences_of_large_scales_and_staggered_points() -> None:
    cases = [
        (0.1, "never", 0.06),
        (0.1, "never", 0.05),
        (1.0, "never", None),
        (0.09, "never", 1.0),
        (1.0, "at once", 1),
    ]
    rows = [{"model.init_scale": scale, "phase": phase, "contrast": contrast} for scale, phase, contrast in cases]
    said = module.large_start(rows)
    assert "(3 points)" in said
    assert ": at 1 of these points the same-topic" in said
    assert module.staggered([{"phase": "staggered"}, {"phase": "never"}, {"phase": "staggered"}]).startswith("2 points")


def test_tables_of_epsilon_and_flow() -> None:
    def row(loss: str, eps: float, scale: float, separation: float | None) -> dict[str, Any]:
        place = {"objective.loss": loss, "model.embedding": "trained", "optimizer.eps": eps}
        return place | {"model.init_scale": scale, "separation": separation}

    rows = [row("squared", 1e-8, 0.01, 2.0), row("squared", 1e-8, 0.01, 4.0), row("squared", 1e-20, 0.01, None)]
    table = module.epsilon_table([*rows, row("squared", 1e-20, 0.001, 7.0), row("other", 1e-8, 0.001, 1.0)])
    assert table.columns == ["loss", "embedding", "scale", "1e-20", "1e-08"]
    assert table.rows == [
        ["squared", "trained", "0.001", "7", "-"],
        ["squared", "trained", "0.01", "-", "3"],
        ["other", "trained", "0.001", "-", "1"],
        ["other", "trained", "0.01", "-", "-"],
    ]
    place = {"objective.loss": "squared", "model.embedding": "trained", "model.init_scale": 0.1, "optimizer.lr": 0.3}
    flow = module.flow_table([place | stages.point("two-stage", separation=None)])
    assert flow.rows == [
        ["squared", "trained", "0.1", "0.3", "100", "two-stage", "-", "3", "9", "-"]
    ]  # 10 * .3, 30 * .3


def test_a_course_has_to_change_at_one_value() -> None:
    def both(phases: dict[tuple[float, float], str]) -> bool:
        return module.both_occur([{"a": a, "b": b, "phase": phase} for (a, b), phase in phases.items()], at="b")

    assert both({(1, 1): "two-stage", (2, 1): "at once"})
    assert both({(1, 1): "at once", (1, 2): "two-stage", (2, 2): "at once"})
    assert not both({(1, 1): "two-stage", (2, 1): "diverged"})  # divergence is no course
    assert not both({(1, 1): "two-stage", (2, 2): "at once"})  # not at the same b
    assert not both({(1, 1): "never", (2, 1): "at once"})
    assert not both({(1, 1): "two-stage", (2, 1): "two-stage"})


def test_the_outcome_counts_points_and_draws_maps() -> None:
    outcome = judged("two-stage")
    assert outcome.measured == (
        "1 two-stage, 0 staggered, 31 at once, 0 first stage only, 0 never, 0 diverged of 32 points"
    )
    assert [len(figure.panels) for figure in outcome.figures] == [8, 8, 8, 8, 8, 4, 4, 24]
    assert [figure.columns for figure in outcome.figures[:5]] == [4] * 5
    scales = {
        figure.name: {panel.log for panel in figure.panels if isinstance(panel, Map)} for figure in outcome.figures
    }
    logarithmic = {"two-stage-separation", "two-stage-starts", "two-stage-epsilon-separation"}
    assert scales == {name: {name in logarithmic} for name in scales}
    lines = outcome.reason.split("\n")
    assert len(lines) == 1 + 8 + 2 + 4 + 4 + 2  # eight panels, two remarks, epsilon, flow, the laws
    assert lines[0].endswith("along the rates at some scale (yes) and along the scales at some rate (yes).")
    assert lines[1:] == outcome.numbers["findings"]
    assert outcome.numbers["phases"] == {"adam": {"at once": 15, "two-stage": 1}, "sgd": {"at once": 16}}
    assert [len(outcome.numbers[name]) for name in ("adam", "sgd", "epsilon", "flow")] == [16, 16, 8, 8]
    assert [table.title for table in outcome.tables[:2]] == [
        "Points in each phase (adam)",
        "Points in each phase (sgd)",
    ]
    only_rates = judged("two-stage", stages.stage_maps(stages.by_axis(LR, "two-stage", "at once", 5e-3)))
    assert only_rates.reason.split("\n")[0].endswith(
        "along the rates at some scale (yes) and along the scales at some rate (no)."
    )


def test_joined_maps_share_their_scale_by_loss() -> None:
    found = stages.stage_maps(stages.at(1e-3, 1e-2, "diverged"))
    for number, row in enumerate(found.maps["adam"].rows):
        row |= {"loss": number / 10, "contrast": number, "separation": 1.0 + number}
    drawn = {name: module.joined(found.maps, name, name, "title").panels for name in ("phase", "loss", "separation")}
    maps = {name: [panel for panel in panels if isinstance(panel, Map)] for name, panels in drawn.items()}
    assert maps["loss"][0].title == "adam, squared, one-hot"
    assert maps["loss"][4].title == "sgd, squared, one-hot"
    lows = [(panel.low, panel.high) for panel in maps["loss"]]
    assert lows[:2] == lows[4:6] == [(0.0, 0.99)] * 2  # squared
    assert lows[2:4] == lows[6:] == [(0.8, 4.605)] * 2
    assert {(panel.low, panel.high) for panel in maps["separation"]} == {(1.0, 16.0)}
    assert maps["phase"][1].z[0][0] == PHASES.index("diverged")
    assert maps["separation"][1].z[0][0] is None  # diverged: no number
    contrast = [panel for panel in module.joined(found.maps, "contrast", "c", "t").panels if isinstance(panel, Map)]
    assert [(panel.low, panel.high) for panel in contrast[:3]] == [(0.0, 7.0), (0.0, 7.0), (0.1, 15.0)]


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_grids_are_those_of_the_reference_runs(monkeypatch: pytest.MonkeyPatch, scale: Any) -> None:
    asked: list[Any] = []

    def run(grid: Any, _folder: str) -> Any:
        asked.append(json.loads(json.dumps(grid)))
        return SimpleNamespace(rows=[{"model.init_scale": 0.01}])

    def predictions(configs: Any) -> list[dict[str, Any]]:
        assert {config.model.init_scale for config in configs} == {0.01}
        return [{"predicted_phase": config.optimizer.name} for config in configs]

    monkeypatch.setattr(sweeps, "build_grid", lambda grid: grid)
    monkeypatch.setattr(module, "predictions", predictions)
    monkeypatch.setattr(sweeps, "sweep", run)
    found = module.measure(Context(scale, 2))
    assert asked == REFERENCE["two-stage"][scale]
    assert list(found.maps) == ["adam", "sgd"]
    assert found.epsilon.axes == asked[2]["axes"]
    assert [one.rows[0]["predicted_phase"] for one in found.maps.values()] == ["adam", "sgd"]
    assert found.epsilon.rows[0]["predicted_phase"] == "adam"
    assert {row["predicted_phase"] for row in found.flow} == {"sgd"}
    rates = [(row["objective.loss"], row["model.embedding"], round(row["optimizer.lr"], 3)) for row in found.flow]
    assert rates == [
        (loss, embedding, rate)
        for loss, embedding, *both in (
            ("squared", "one-hot", 0.3, 0.1),
            ("squared", "trained", 0.3, 0.1),
            ("cross-entropy", "one-hot", 3.0, 1.0),
            ("cross-entropy", "trained", 1.0, 0.333),
        )
        for rate in both
        if scale == "full" or embedding == "trained"
    ]
    assert found.config["steps"] == (1000 if scale == "quick" else 3000)


def test_the_grid_runs_and_its_phases_are_the_sandbox_s() -> None:
    """A corner of the real thing: with SGD the value matrix rises alone; a rate beyond all measure diverges."""
    axes: dict[str, list[Any]] = {LR: [0.003, 1e4], SCALE: [1e-3]}
    base = {
        "objective": {"loss": "squared"},
        "optimizer": {"name": "sgd"},
        "topic_model": {"topics": 3, "words_per_topic": 3},
    }
    (swept,) = module.predicted([module.run_grid(Context(), axes, steps=60, **base)])
    assert [row["phase"] for row in swept.rows] == ["first stage only", "diverged"]
    assert [row["predicted_phase"] for row in swept.rows] == ["first stage only", "diverged"]
    assert swept.axes == axes
