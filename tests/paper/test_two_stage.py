"""The phase diagram: maps from rows, findings with the numbers that are there, and a verdict that can fail."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from topicscope.figures.maps import map_figure, phase_table
from topicscope.figures.panels import Map
from topicscope.figures.stage_findings import changes, epsilon_sentence, flow_sentence
from topicscope.measure import PHASES
from topicscope.paper import two_stage as module
from topicscope.paper.experiment import Context
from topicscope.report.panel_kinds import panel_spec
from topicscope.report.pictures import draw_figure, write_csv

AXES: dict[str, list[Any]] = {
    "optimizer.lr": [0.1, 1.0],
    "model.init_scale": [0.01, "usual"],
    "objective.loss": ["squared", "cross-entropy"],
    "seed": [0, 1, 2],
}


def rows() -> list[dict[str, Any]]:
    found = [dict(zip(AXES, values, strict=True)) for values in itertools.product(*AXES.values())]
    for number, row in enumerate(found):
        row |= {
            "phase": "two-stage" if row["seed"] < 2 else "never",
            "separation": float(number) if row["seed"] < 2 else None,
        }
    return found


def test_a_cell_is_the_mean_over_seeds_or_the_commonest_word(tmp_path: Path) -> None:
    numbers = map_figure(rows(), AXES, "separation", "map", "separation", across="optimizer.lr", up="model.init_scale")
    assert [panel.title for panel in numbers.panels] == ["squared", "cross-entropy"]
    first = numbers.panels[0]
    assert isinstance(first, Map)
    assert (first.x, first.y) == (["0.1", "1"], ["0.01", "usual"])
    assert first.z == [[0.5, 12.5], [6.5, 18.5]]  # rows 0, 1 of the first cell; the third seed has no separation
    assert (first.low, first.high) == (0.5, 21.5)  # one scale for all panels
    words = map_figure(rows(), AXES, "phase", "map", "phase", across="optimizer.lr", up="model.init_scale")
    assert words.panels[0].z == [[0, 0], [0, 0]]  # type: ignore[union-attr]
    assert phase_table(rows(), AXES).rows == [
        ["squared", "8", "0", "0", "0", "4", "0"],
        ["cross-entropy", "8", "0", "0", "0", "4", "0"],
    ]
    assert draw_figure(words, tmp_path)[0].stat().st_size > 5000
    assert write_csv(words, tmp_path)[0].read_text().splitlines()[1] == "0.1,0.01,two-stage"


def test_a_map_on_the_page_has_a_colour_for_each_word() -> None:
    words = map_figure(rows(), AXES, "phase", "map", "phase", across="optimizer.lr", up="model.init_scale")
    (trace,) = panel_spec(words.panels[0], {})["data"]
    assert (trace["zmin"], trace["zmax"]) == (-0.5, len(PHASES) - 0.5)
    assert trace["customdata"][0][0] == ["two-stage"]
    empty = Map("empty", [[None]], ["a"], ["b"], log=True)
    assert panel_spec(empty, {})["layout"]["annotations"][0]["text"] == "nothing to show"
    log = panel_spec(Map("log", [[0.1, 100.0]], ["a", "b"], ["c"], log=True, low=0.1, high=100.0), {})["data"][0]
    assert log["z"] == [[-1.0, 2.0]]
    assert (log["zmin"], log["zmax"]) == (-1.0, 2.0)


def test_sentences_say_what_the_numbers_say() -> None:
    there = [
        {"optimizer.eps": eps, "separation": s} for eps, s in ((1e-20, 3.0), (1e-8, 6.0), (1e-6, 30.0), (1e-2, None))
    ]
    said = epsilon_sentence("squared", "trained", there)
    assert (
        "two stages with hardly any epsilon (separation 3 at 1e-20, 6 at the usual 1e-08, largest 30 at 1e-06); from 0.01 on"
        in said
    )
    made = [{"optimizer.eps": 1e-20, "separation": 0.5}, {"optimizer.eps": 1e-8, "separation": 2.5}]
    assert "no two stages with hardly any epsilon (separation 0.5 at 1e-20, 2.5 at the usual" in epsilon_sentence(
        "cross-entropy", "trained", made
    )
    flow = [
        {"model.init_scale": 0.1, "optimizer.lr": lr, "phase": "two-stage", "separation": s}
        for lr, s in ((0.1, 7.2), (0.3, 7.0))
    ]
    assert "from scale 0.1 two-stage (7) at rate 0.3 and two-stage (7.2) at rate 0.1" in flow_sentence(
        "squared", "trained", flow
    )


def test_a_course_has_to_change_along_the_axis() -> None:
    def panel(phases: dict[tuple[float, float], str]) -> list[dict[str, Any]]:
        return [{"a": a, "b": b, "phase": phase} for (a, b), phase in phases.items()]

    assert changes(panel({(1, 1): "two-stage", (2, 1): "at once"}), "a", "b")
    assert not changes(panel({(1, 1): "two-stage", (2, 1): "diverged"}), "a", "b")  # divergence is no course
    assert not changes(panel({(1, 1): "two-stage", (2, 2): "at once"}), "a", "b")  # not at the same b
    assert not changes(panel({(1, 1): "never", (2, 1): "at once"}), "a", "b")


def at_one_rate(row: dict[str, Any]) -> str:
    return "two-stage" if row.get(module.LR) == 1e-3 else "at once"


def at_one_rate_from_small_scales(row: dict[str, Any]) -> str:
    return at_one_rate(row) if row[module.SCALE] < 0.1 else "at once"


def nowhere(_row: dict[str, Any]) -> str:
    return "at once"


@pytest.mark.parametrize(
    ("phase_at", "verdict"),
    [(at_one_rate, "not reproduced"), (at_one_rate_from_small_scales, "reproduced"), (nowhere, "not reproduced")],
)
def test_the_verdict_asks_for_both_axes(monkeypatch: pytest.MonkeyPatch, phase_at: Any, verdict: str) -> None:
    """Rows are made up."""

    def made_up(_context: Context, axes: dict[str, list[Any]], **base: Any) -> list[dict[str, Any]]:
        found = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
        return [
            row
            | {
                "phase": phase_at(row),
                "separation": 3.0,
                "start_separation": 3.0,
                "loss": 0.9,
                "contrast": 0.1,
                "steps_done": base["steps"],
            }
            for row in found
        ]

    monkeypatch.setattr(module, "run_grid", made_up)
    outcome = module.two_stage(Context())
    assert outcome.verdict == verdict
    assert [len(figure.panels) for figure in outcome.figures] == [8, 8, 8, 8, 8, 4, 4]
    assert len(outcome.reason.split("\n")) == 1 + 8 + 2 + 4 + 4  # eight panels, two remarks, epsilon, flow


def test_the_grid_runs_and_its_phases_are_the_sandbox_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corner of the real thing: near zero with Adam the value matrix is first; a rate beyond all measure diverges."""
    axes: dict[str, list[Any]] = {module.LR: [0.003, 1e4], module.SCALE: [1e-3]}
    base = {
        "objective": {"loss": "squared"},
        "optimizer": {"name": "sgd"},
        "topic_model": {"topics": 3, "words_per_topic": 3},
    }
    found = module.run_grid(Context(), axes, steps=60, **base)
    assert [row["phase"] for row in found] == ["first stage only", "diverged"]
