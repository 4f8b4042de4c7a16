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
from topicscope.sweeps import Point, PointResult, result as results
from topicscope.sweeps.result import file_digest, input_digest, npz, point_home, read_point, write_point

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
    monkeypatch.setattr(results, "WHOLE", 10)
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


def test_points_of_a_grid_have_homes_of_their_own(tmp_path: Path) -> None:
    grid = baking(sugar=[1, 2])
    assert len({point_home(tmp_path, point) for point in grid.points}) == 2
    assert point_home(tmp_path, grid.points[0]) == tmp_path / "points" / grid.points[0].name
