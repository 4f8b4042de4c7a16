"""The folder of a point: what is written is read, and whatever was changed since is not taken for it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sweeps.samples import Bakery, baking
from topicscope.ground.files import sealed
from topicscope.sweeps import Point, PointResult, points

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
    assert points.read(tmp_path, cake()) == ("missing", PointResult())
    (tmp_path / "points" / f".{cake().name}.tmp" / "junk").mkdir(parents=True)  # of a sweep that was killed
    points.write(tmp_path, cake(), RESULT)
    state, found = points.read(tmp_path, cake(), fresh=True)
    assert (state, found.measures, found.error) == ("done", RESULT.measures, None)
    assert {name: array.tolist() for name, array in found.curves.items()} == {"step": [0, 1, 2, 3], "loss": [1.0] * 4}
    assert found.curves["loss"].dtype == np.float32
    assert sorted(path.name for path in points.home(tmp_path, cake()).iterdir()) == ["curves.npz", "result.json"]
    points.write(tmp_path, cake(), PointResult(error="the oven is cold"))
    assert points.read(tmp_path, cake()) == ("failed", PointResult(error="the oven is cold"))
    assert [path.name for path in (tmp_path / "points").iterdir()] == [cake().name]


@pytest.mark.parametrize("text", ["", "null", "[]", "3", "{}", '{"digest": "x"}'])
def test_a_file_that_holds_something_else_is_damaged(tmp_path: Path, text: str) -> None:
    points.write(tmp_path, cake(), RESULT)
    (points.home(tmp_path, cake()) / "result.json").write_text(text)
    assert points.read(tmp_path, cake()) == ("damaged", PointResult())


def test_the_result_of_another_point_is_damaged(tmp_path: Path) -> None:
    points.write(tmp_path, cake(), RESULT)
    shutil.copytree(points.home(tmp_path, cake()), points.home(tmp_path, cake(sugar=2)))
    assert points.read(tmp_path, cake(sugar=2))[0] == "damaged"
    signed(points.home(tmp_path, cake()), measures={"loss": 0.75})
    assert points.read(tmp_path, cake())[1].measures == {"loss": 0.75}  # a digest that fits is believed


def test_curves_are_arrays_of_numbers_and_no_programs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pickle"):
        points.npz({"step": np.array([object()])})
    points.write(tmp_path, cake(), RESULT)
    np.savez(buffer := io.BytesIO(), step=np.array([object()]))
    (points.home(tmp_path, cake()) / "curves.npz").write_bytes(buffer.getvalue())
    signed(points.home(tmp_path, cake()), curves=hashlib.sha256(buffer.getvalue()).hexdigest())
    assert points.read(tmp_path, cake())[0] == "damaged"


def test_numbers_that_json_does_not_have_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        points.write(tmp_path, cake(), PointResult({"loss": float("nan")}))
    assert points.read(tmp_path, cake())[0] == "missing"


def test_a_point_whose_files_have_changed_is_to_be_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("recipe.txt").write_text("flour")
    points.write(tmp_path, cake("recipe.txt"), RESULT)
    assert points.read(tmp_path, cake("recipe.txt"), fresh=True)[0] == "done"
    Path("recipe.txt").write_text("flour and eggs")
    assert points.read(tmp_path, cake("recipe.txt"), fresh=True) == ("changed", PointResult())
    assert points.read(tmp_path, cake("recipe.txt"))[0] == "done"  # what was measured can still be looked at


def test_folders_patterns_and_lists_of_files_count_and_words_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bakery: Bakery
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("book/inner").mkdir(parents=True)
    Path("book/inner/one.txt").write_text("flour")
    Path("two.txt").write_text("eggs")
    nothing = points.inputs(cake("my grandmother's"))
    assert nothing == points.inputs(cake("another word")) == hashlib.sha256().hexdigest()[:16]
    named = [Point("bake", {"recipe": name}, {}) for name in ("book", "*.txt", ["book", "two.txt"], ["two.txt", None])]
    before = [points.inputs(point) for point in named]
    assert len({nothing, *before}) == 5
    Path("book/inner/one.txt").write_text("sugar and flour")
    after = [points.inputs(point) for point in named]
    assert [one != other for one, other in zip(before, after, strict=True)] == [True, False, True, False]
    Path("three.txt").write_text("")
    assert points.inputs(named[1]) != before[1]
    bakery(reads=())
    assert points.inputs(named[0]) == nothing


def test_of_a_large_file_both_ends_and_the_size_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "WHOLE", 10)
    path = tmp_path / "recipe"

    def digest(content: bytes) -> str:
        path.write_bytes(content)
        points._content.cache_clear()
        return points.inputs(cake(str(path)))

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
    first, reads = points.inputs(cake(str(path))), points._content.cache_info().misses
    assert points.inputs(cake(str(path), sugar=2)) == first
    assert points._content.cache_info().misses == reads
    os.utime(path, ns=(1, 1))
    assert points.inputs(cake(str(path))) == first
    assert points._content.cache_info().misses == reads + 1


def test_points_of_a_grid_have_homes_of_their_own(tmp_path: Path) -> None:
    grid = baking(sugar=[1, 2])
    assert len({points.home(tmp_path, point) for point in grid.points}) == 2
    assert points.home(tmp_path, grid.points[0]) == tmp_path / "points" / grid.points[0].name
