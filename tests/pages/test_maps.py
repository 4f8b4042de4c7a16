"""Maps of a sweep: what stands in which cell, one scale, few panels, and tables of points or of phases."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from topicscope.ground import Kind, open_folder
from topicscope.measure import PHASES
from topicscope.pages import PHASE_COLOURS, Map, map_figure, phase_table, tick
from topicscope.pages.maps import MOST_PANELS, MOST_ROWS, layout, sweep_sections
from topicscope.sweeps import Grid, Sweep

AXES: dict[str, list[Any]] = {
    "optimizer.lr": [0.1, 1.0],
    "model.init_scale": [0.01, "usual"],
    "objective.loss": ["squared", "cross-entropy"],
    "seed": [0, 1, 2],
}


def places(axes: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def rows() -> list[dict[str, Any]]:
    return [
        row
        | {
            "phase": "staggered" if row["seed"] < 2 else "never",
            "separation": float(number) if row["seed"] < 2 else None,
        }
        for number, row in enumerate(places(AXES))
    ]


def maps(axes: dict[str, list[Any]], measured: list[dict[str, Any]], measure: str = "loss", **more: Any) -> list[Map]:
    figure = map_figure(measured, axes, measure, "map", "title", **more)
    return [panel for panel in figure.panels if isinstance(panel, Map)]


def test_a_cell_is_the_mean_over_seeds_or_the_commonest_word() -> None:
    numbers = map_figure(rows(), AXES, "separation", "map", "separation", across="optimizer.lr", up="model.init_scale")
    assert [panel.title for panel in numbers.panels] == ["squared", "cross-entropy"]
    assert (numbers.name, numbers.columns) == ("map", 2)
    first, second = (panel for panel in numbers.panels if isinstance(panel, Map))
    assert (first.x, first.y) == (["0.1", "1"], ["0.01", "usual"])
    assert (first.x_label, first.y_label, first.names, first.log) == ("lr", "init scale", None, False)
    assert first.z == [[0.5, 12.5], [6.5, 18.5]]  # rows 0, 1 of the first cell; the third seed has no separation
    assert (first.low, first.high) == (second.low, second.high) == (0.5, 21.5)  # one scale for all panels
    words = maps(AXES, rows(), "phase", across="optimizer.lr", up="model.init_scale")
    assert words[0].z == [[PHASES.index("staggered")] * 2] * 2
    assert (words[0].names, words[0].low, words[0].high) == (PHASE_COLOURS, None, None)
    assert list(PHASE_COLOURS) == list(PHASES)


def test_the_two_longest_axes_are_those_of_the_panels_and_seeds_only_if_alone() -> None:
    axes: dict[str, list[Any]] = {"a": [1, 2], "b": [1, 2, 3], "c": [1, 2, 3, 4], "d": [1], "seed": list(range(9))}
    assert layout(axes) == ("c", "b", ["a"])
    assert layout(axes, "a") == ("a", "c", ["b"])
    assert layout(axes, "", "a") == ("c", "a", ["b"])
    assert layout(axes, "a", "b") == ("a", "b", ["c"])
    assert layout({"seed": [0, 1]}) == ("seed", "", [])
    assert layout({"a": [1, 2], "seed": [0, 1]}) == ("a", "", [])


def test_one_axis_makes_a_map_of_one_row_with_gaps_where_nothing_was_measured() -> None:
    measured: list[dict[str, Any]] = [
        {"optimizer.lr": 0.1, "loss": 2.0},
        {"optimizer.lr": 0.3, "loss": None},
        {"optimizer.lr": 1.0},
    ]
    figure = map_figure(measured, {"optimizer.lr": [0.1, 0.3, 1.0]}, "loss", "map", "Loss", log=True)
    (panel,) = (panel for panel in figure.panels if isinstance(panel, Map))
    assert (panel.z, panel.y, panel.title, panel.log) == ([[2.0, None, None]], [""], "", True)
    assert (panel.low, panel.high) == (2.0, 2.0)
    assert figure.alt == "Loss: lr to the right, nothing upwards."
    (empty,) = maps({"a": [1]}, [{"a": 1}])
    assert (empty.z, empty.low, empty.high) == ([[None]], None, None)
    two = map_figure([{"a": 1, "b.some_rate": 2, "loss": 1}], {"a": [1], "b.some_rate": [2]}, "loss", "map", "Loss")
    assert two.alt == "Loss: a to the right, some rate upwards."


def test_axes_that_move_together_have_panels_only_where_points_are() -> None:
    axes: dict[str, list[Any]] = {"x": [1, 2, 3], "y": [1, 2, 3], "kind": ["a", "b"], "size": [0.5, 2.0]}
    measured = [row | {"loss": 1.0} for row in places(axes) if (row["kind"], row["size"]) in (("a", 0.5), ("b", 2.0))]
    assert [panel.title for panel in maps(axes, measured)] == ["a, size 0.5", "b, size 2"]
    many: dict[str, list[Any]] = {"x": list(range(40)), "y": list(range(39)), "k": list(range(30))}
    figure = map_figure([{"x": 0, "y": 0, "k": k, "loss": k} for k in range(30)], many, "loss", "map", "")
    assert [panel.title for panel in figure.panels] == [f"k {k}" for k in range(MOST_PANELS)]
    assert MOST_PANELS == 24
    assert figure.columns == 4


@pytest.mark.parametrize(("value", "text"), [(0.12345, "0.123"), (1e-8, "1e-08"), (3, "3"), (None, ""), ("x", "x")])
def test_ticks(value: Any, text: str) -> None:
    assert tick(value) == text


def test_points_are_counted_by_panel_and_phase() -> None:
    table = phase_table(rows(), AXES)
    assert table.columns == ["loss", *PHASES]
    assert table.rows == [["squared", "0", "8", "0", "0", "4", "0"], ["cross-entropy", "0", "8", "0", "0", "4", "0"]]
    two: dict[str, list[Any]] = {"x": [1, 2, 3], "y": [1, 2, 3], "kind": ["a", "b"], "size": [1, 2]}
    measured = [
        {"x": 1, "y": 1, "kind": "a", "size": 1, "phase": "never"},
        {"x": 1, "y": 2, "kind": "a", "size": 2, "phase": "diverged"},
        {"x": 2, "y": 2, "kind": "a", "size": 2, "phase": "diverged"},
    ]
    assert phase_table(measured, two).rows == [
        ["a", "1", "0", "0", "0", "0", "1", "0"],
        ["a", "2", "0", "0", "0", "0", "0", "2"],
    ]
    assert [row[0] for row in phase_table(rows(), AXES, across="objective.loss").rows] == ["0.01", "usual"]


def swept(folder: Path, measured: list[dict[str, Any]], axes: dict[str, list[Any]]) -> Sweep:
    return Sweep(
        Grid("train", axes, []), folder, [{"point": f"p{i}", "state": "done"} | row for i, row in enumerate(measured)]
    )


def test_few_points_are_listed_and_many_are_counted(tmp_path: Path) -> None:
    axes: dict[str, list[Any]] = {"lr": [i / 100 for i in range(1, MOST_ROWS + 2)]}
    measured = [{"lr": lr, "phase": "never", "separation": None if i else 1.23456} for i, lr in enumerate(axes["lr"])]
    (few,) = sweep_sections(swept(tmp_path, measured[:MOST_ROWS], axes))
    (table,) = few.tables
    assert table.columns == ["point", "lr", "state", "phase", "separation"]
    assert len(table.rows) == MOST_ROWS == 40
    assert table.rows[:2] == [["p0", "0.01", "done", "never", "1.23"], ["p1", "0.02", "done", "never", "-"]]
    assert [figure.title for figure in few.figures] == ["phase"]  # the first of the measures
    assert (few.command, few.config) == ("", {"kind": "train", "axes": axes})
    (many,) = sweep_sections(swept(tmp_path, measured, axes))
    assert [table.title for table in many.tables] == ["Points in each phase"]
    for row in measured:
        del row["phase"]
    (without,) = sweep_sections(swept(tmp_path, measured, axes))
    assert without.tables == []
    assert [figure.title for figure in without.figures] == ["separation"]
    (one,) = sweep_sections(swept(tmp_path, [{"phase": "never"}], {}))
    assert one.figures == []
    assert one.tables[0].rows == [["p0", "done", "never"]]
    (many,) = sweep_sections(swept(tmp_path, [{"phase": "never"}] * (MOST_ROWS + 1), {}))
    assert many.tables == []
    with open_folder(tmp_path / "out", Kind("sweep", 1, ()), {}) as folder:
        folder.finish({})
    (section,) = sweep_sections(swept(tmp_path / "out", [{"a": 1, "phase": "never"}], {"a": [1]}))
    assert section.command == json.loads((tmp_path / "out" / "about.json").read_text())["command"] != ""
