"""The folder of a point, and what a sweep holds: rows, tables, summaries."""

import hashlib
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.sweeps.samples import Bakery, Cake, baking, small
from topicscope import InputError
from topicscope.ground import read_about
from topicscope.ground.files import sealed
from topicscope.measure import PHASES
from topicscope.sweeps import Grid, Point, PointResult, Sweep, read_sweep, run as runs, stored_points, sweep
from topicscope.sweeps.run import alike, file_digest, input_digest, npz, point_home, read_point, write_point

RESULT = PointResult({"loss": 0.5, "phase": None}, {"step": np.arange(4), "loss": np.ones(4, dtype=np.float32)})

pytestmark = pytest.mark.usefixtures("bakery")


def cake(recipe: str = "", sugar: int = 1) -> Point:
    return Point("bake", {"sugar": sugar, "seed": 0, "recipe": recipe}, {"sugar": sugar})


def signed(folder: Path, **changes: Any) -> None:
    """result.json with some of its content changed, and a digest that fits."""
    content = json.loads((folder / "result.json").read_text()) | changes
    del content["digest"]
    (folder / "result.json").write_text(json.dumps(sealed(content)))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_point(tmp_path, cake()) == ("missing", PointResult())
    (tmp_path / "points" / f".{cake().name}.tmp" / "junk").mkdir(parents=True)  # of a sweep that was killed
    write_point(tmp_path, cake(), RESULT)
    state, found = read_point(tmp_path, cake(), fresh=True)
    assert (state, found.measures, found.error) == ("done", RESULT.measures, None)
    assert {name: array.tolist() for name, array in found.curves.items()} == {"step": [0, 1, 2, 3], "loss": [1.0] * 4}
    assert found.curves["loss"].dtype == np.float32
    assert sorted(path.name for path in point_home(tmp_path, cake()).iterdir()) == ["curves.npz", "result.json"]
    write_point(tmp_path, cake(), PointResult(error="the oven is cold"))
    assert read_point(tmp_path, cake()) == ("failed", PointResult(error="the oven is cold"))
    assert [path.name for path in (tmp_path / "points").iterdir()] == [cake().name]


@pytest.mark.parametrize("text", ["", "null", "[]", "3", "{}", '{"digest": "x"}'])
def test_a_file_that_holds_something_else_is_damaged(tmp_path: Path, text: str) -> None:
    write_point(tmp_path, cake(), RESULT)
    (point_home(tmp_path, cake()) / "result.json").write_text(text)
    assert read_point(tmp_path, cake()) == ("damaged", PointResult())


def test_the_result_of_another_point_is_damaged(tmp_path: Path) -> None:
    write_point(tmp_path, cake(), RESULT)
    shutil.copytree(point_home(tmp_path, cake()), point_home(tmp_path, cake(sugar=2)))
    assert read_point(tmp_path, cake(sugar=2))[0] == "damaged"
    signed(point_home(tmp_path, cake()), measures={"loss": 0.75})
    assert read_point(tmp_path, cake())[1].measures == {"loss": 0.75}  # a digest that fits is believed


def test_curves_are_arrays_of_numbers_and_no_programs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pickle"):
        npz({"step": np.array([object()])})
    write_point(tmp_path, cake(), RESULT)
    np.savez(buffer := io.BytesIO(), step=np.array([object()]))
    (point_home(tmp_path, cake()) / "curves.npz").write_bytes(buffer.getvalue())
    signed(point_home(tmp_path, cake()), curves=hashlib.sha256(buffer.getvalue()).hexdigest())
    assert read_point(tmp_path, cake())[0] == "damaged"


def test_numbers_that_json_does_not_have_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_point(tmp_path, cake(), PointResult({"loss": float("nan")}))
    assert read_point(tmp_path, cake())[0] == "missing"


def test_a_point_whose_files_have_changed_is_to_be_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("recipe.txt").write_text("flour")
    write_point(tmp_path, cake("recipe.txt"), RESULT)
    assert read_point(tmp_path, cake("recipe.txt"), fresh=True)[0] == "done"
    Path("recipe.txt").write_text("flour and eggs")
    assert read_point(tmp_path, cake("recipe.txt"), fresh=True) == ("changed", PointResult())
    assert read_point(tmp_path, cake("recipe.txt"))[0] == "done"  # what was measured can still be looked at


def test_folders_patterns_and_lists_of_files_count_and_words_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bakery: Bakery
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("book/inner").mkdir(parents=True)
    Path("book/inner/one.txt").write_text("flour")
    Path("two.txt").write_text("eggs")
    nothing = input_digest(cake("my grandmother's"))
    assert nothing == input_digest(cake("another word")) == hashlib.sha256().hexdigest()[:16]
    named = [Point("bake", {"recipe": name}, {}) for name in ("book", "*.txt", ["book", "two.txt"], ["two.txt", None])]
    before = [input_digest(point) for point in named]
    assert len({nothing, *before}) == 5
    Path("book/inner/one.txt").write_text("sugar and flour")
    after = [input_digest(point) for point in named]
    assert [one != other for one, other in zip(before, after, strict=True)] == [True, False, True, False]
    Path("three.txt").write_text("")
    assert input_digest(named[1]) != before[1]
    bakery(reads=())
    assert input_digest(named[0]) == nothing


def test_of_a_large_file_both_ends_and_the_size_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "WHOLE", 10)
    path = tmp_path / "recipe"

    def digest(content: bytes) -> str:
        path.write_bytes(content)
        file_digest.cache_clear()
        return input_digest(cake(str(path)))

    def that_count(size: int) -> list[int]:
        """Which bytes of a file of this size change the digest."""
        plain = bytes(size)
        before = digest(plain)
        return [i for i in range(size) if digest(plain[:i] + b"x" + plain[i + 1 :]) != before]

    assert that_count(9) == list(range(9))
    assert that_count(10) == list(range(10))
    assert that_count(16) == [0, 1, 2, 3, 4, 11, 12, 13, 14, 15]
    assert digest(bytes(16)) != digest(bytes(17))


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "recipe"
    path.write_text("flour")
    first, reads = input_digest(cake(str(path))), file_digest.cache_info().misses
    assert input_digest(cake(str(path), sugar=2)) == first
    assert file_digest.cache_info().misses == reads
    os.utime(path, ns=(1, 1))
    assert input_digest(cake(str(path))) == first
    assert file_digest.cache_info().misses == reads + 1


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
    row = [grid.points[1].name, 2, "done", 7.5, None, 0, ""]
    assert list(table.to_pylist()[1].values()) == row
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
    found = {"state": "done", "phase": "never", "contrast": 0.5}
    rows = [{"point": point.name, **point.axes, **found} for point in grid.points]
    lines = Sweep(grid, tmp_path, rows).meanings()
    assert [line.split(":")[0] for line in lines] == ["phase", *(f"phase {name}" for name in PHASES), "contrast"]
    assert "phase never: the norm of W_V rises by less than 5%; the loss may still fall" in lines
    assert Sweep(grid, tmp_path, []).meanings() == []
