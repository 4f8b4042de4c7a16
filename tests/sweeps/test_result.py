"""Sweeps as rows, sentences and tables, whatever of them is done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.sweeps.samples import Cake, baking, small
from topicscope import InputError
from topicscope.ground import read_about
from topicscope.measure import PHASES
from topicscope.sweeps import Grid, PointResult, Sweep, read_sweep, stored_points, sweep
from topicscope.sweeps.result import alike, point_home, write_point

pytestmark = pytest.mark.usefixtures("bakery")


def half_done(folder: Path, grid: Grid, failed: int) -> Sweep:
    """A folder where the first points have failed, the next one is done, one is damaged, and others are missing."""
    for point in grid.points[:failed]:
        write_point(folder, point, PointResult(error="the oven is cold"))
    for point in grid.points[failed : failed + 2]:
        write_point(folder, point, PointResult({"sweetness": 0.5}))
    (point_home(folder, grid.points[failed + 1]) / "result.json").write_text("")
    return Sweep.of(grid, folder)


def test_rows_have_state_measures_and_error(tmp_path: Path) -> None:
    grid = baking(sugar=[1, 2], seed={"seeds": 2})
    found = half_done(tmp_path, grid, 1)
    names = [point.name for point in grid.points]
    assert found.rows == [
        {"point": names[0], "sugar": 1, "seed": 0, "state": "failed", "error": "the oven is cold"},
        {"point": names[1], "sugar": 1, "seed": 1, "state": "done", "sweetness": 0.5},
        {"point": names[2], "sugar": 2, "seed": 0, "state": "missing"},
        {"point": names[3], "sugar": 2, "seed": 1, "state": "missing"},
    ]
    assert found.counts == {"done": 1, "failed": 1, "missing": 2}
    assert found.measures == found.main_measures == ["sweetness"]
    assert repr(found) == "Sweep(4 points of bake: 1 done, 1 failed, 2 missing)"
    assert stored_points(grid, tmp_path) == 3  # without reading them
    assert [list(curves) for curves in found.curves()] == [[]] * 4


def test_the_main_measures_are_the_ones_that_the_sweep_has(tmp_path: Path) -> None:
    grid = baking(sugar=[1])
    assert Sweep.of(grid, tmp_path).main_measures == []
    write_point(tmp_path, grid.points[0], PointResult({"colour": "brown", "sweetness": 1}))
    assert Sweep.of(grid, tmp_path).main_measures == ["sweetness"]
    assert Sweep.of(grid, tmp_path).measures == ["colour", "sweetness"]


def test_the_summary_names_five_failures_and_counts_points_of_other_grids(tmp_path: Path) -> None:
    assert Sweep.of(baking(sugar=[1, 2]), tmp_path).summary() == ["Points: 0 done, 0 failed, 2 missing."]
    grid = baking(sugar=[1, 2, 3, 4], seed={"seeds": 2})
    whole = half_done(tmp_path, grid, 6)
    first, *others = whole.summary()
    assert first == "Points: 1 done, 6 failed, 1 missing; --retry-failed tries them again."
    assert others == [
        f"failed: {point.name} (sugar={point.axes['sugar']}, seed={point.axes['seed']}): the oven is cold"
        for point in grid.points[:5]
    ]
    (tmp_path / "points" / ".half-written.tmp").mkdir()
    part = Sweep.of(Grid("bake", grid.axes, grid.points[6:]), tmp_path)
    assert part.summary() == [
        "Points: 1 done, 0 failed, 1 missing.",
        f"6 points of other grids are also in {tmp_path}, and stay there; table, picture and page show this grid only.",
    ]


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([1, None, 2], [1, None, 2]),
        ([1, 0.5, None], [1.0, 0.5, None]),
        ([None, None], [None, None]),
        (["a", None], ["a", None]),
        ([True, None], [True, None]),
        ([1, "usual", None], ["1", "usual", None]),
        ([True, 1], ["True", "1"]),
        ([[1, 2], None], ["[1, 2]", None]),
        ([{"a": 1}, "b"], ['{"a": 1}', "b"]),
    ],
)
def test_a_column_has_values_of_one_type(values: list[Any], column: list[Any]) -> None:
    found = alike(values)
    assert found == column
    assert [type(value) for value in found] == [type(value) for value in column]


def test_a_table_has_every_setting_and_those_named_like_a_measure_apart(tmp_path: Path) -> None:
    grid = baking(sugar=[1, 2])
    write_point(tmp_path, grid.points[1], PointResult({"seed": 7.5}))
    found = Sweep.of(grid, tmp_path)
    table = found.table()
    assert table.column_names == ["point", "sugar", "state", "seed", "error", "config.seed", "recipe"]
    assert table.to_pylist()[1] == {
        "point": grid.points[1].name,
        "sugar": 2,
        "state": "done",
        "seed": 7.5,
        "error": None,
        "config.seed": 0,
        "recipe": "",
    }
    found.write_table()
    assert pq.read_table(tmp_path / "points.parquet").to_pylist() == table.to_pylist()
    lines = (tmp_path / "points.csv").read_text().splitlines()
    assert lines[0] == "point,sugar,state,seed,error,config.seed,recipe"
    assert lines[2] == f"{grid.points[1].name},2,done,7.5,,0,"


def test_a_sweep_stores_its_first_config_and_how_the_others_differ(tmp_path: Path) -> None:
    grid = baking(sugar=[1, 2], seed=[0, 5])
    sweep(grid, tmp_path / "sweep")
    stored = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert stored["first"] == Cake(1, 0).as_dict()
    assert [own for _, own in stored["points"]] == [{}, {"seed": 5}, {"sugar": 2}, {"sugar": 2, "seed": 5}]
    assert read_sweep(tmp_path / "sweep").grid == grid
    about = read_about(tmp_path / "sweep")
    assert about is not None
    assert (about.kind, about.format, about.status) == ("sweep", 3, "done")
    for text in ("{}", "[]", '{"kind": "bake", "first": 3, "axes": {}, "points": [[{}, {}]]}'):
        (tmp_path / "sweep" / "sweep.json").write_text(text)
        with pytest.raises(InputError, match="is damaged; run the sweep again with its grid file"):
            read_sweep(tmp_path / "sweep")


def test_every_measure_and_every_phase_of_a_sweep_is_defined(tmp_path: Path) -> None:
    grid = small(seed=[0, 1])
    rows = [
        {"point": point.name, **point.axes, "state": "done", "phase": "never", "contrast": 0.5} for point in grid.points
    ]
    lines = Sweep(grid, tmp_path, rows).meanings()
    assert [line.split(":")[0] for line in lines] == ["phase", *(f"phase {name}" for name in PHASES), "contrast"]
    assert "phase never: the norm of W_V rises by less than 5%; the loss may still fall" in lines
    assert Sweep(grid, tmp_path, []).meanings() == []
