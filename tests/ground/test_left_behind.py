"""What is left of a folder after an error, or after a process was killed while it opened one."""

from __future__ import annotations

from pathlib import Path

import pytest

from topicscope import InputError
from topicscope.ground import Kind, check_folder, folders, open_folder

NOTE = Kind("note", 1, ("note.txt",), resumes="asked")
DREAM = Kind("note", 1, ("note.txt",))  # which nobody can go on with


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def fail(path: Path, error: BaseException, *, member: bool = False, work: str = "", part: str = "") -> None:
    """An error, after a member was opened, a file `work` was written or a folder `part` was made."""
    with open_folder(path, NOTE, {"a": 1}):
        if member:
            folders.join_folder(path / "run-000", NOTE, {"a": 1})
        if work:
            (path / work).write_text("work")
        if part:
            (path / part).mkdir()
        raise error


def test_an_error_before_any_work_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no corpus"):
        fail(tmp_path / "a", InputError("no corpus"))
    assert not (tmp_path / "a").exists()
    (tmp_path / "b").mkdir()
    with pytest.raises(KeyboardInterrupt):
        fail(tmp_path / "b", KeyboardInterrupt(), member=True)
    assert names(tmp_path / "b") == {".lock"}
    with pytest.raises(InputError, match="late"):
        fail(tmp_path / "c", InputError("late"), work="note.txt")
    assert names(tmp_path / "c") == {".lock", "about.json", "config.yaml", "note.txt"}
    with pytest.raises(InputError, match="no corpus"), open_folder(tmp_path / "d", NOTE):  # which has no config
        raise InputError("no corpus")
    assert not (tmp_path / "d").exists()
    with pytest.raises(InputError, match="late"):
        fail(tmp_path / "e", InputError("late"), part="parts")
    assert names(tmp_path / "e") == {".lock", "about.json", "config.yaml", "parts"}
    (tmp_path / "g").mkdir()
    with pytest.raises(KeyboardInterrupt):  # while a member was being opened
        fail(tmp_path / "g", KeyboardInterrupt(), part="run-000")
    assert names(tmp_path / "g") == {".lock"}
    with pytest.raises(KeyboardInterrupt):  # while its first file was being written
        fail(tmp_path / "g", KeyboardInterrupt(), member=True, work="run-000/about.json.tmp")
    assert names(tmp_path / "g") == {".lock"}
    with pytest.raises(InputError, match="late"):
        fail(tmp_path / "f", InputError("late"), member=True, work="run-000/note.txt")
    assert names(tmp_path / "f") == {".lock", "about.json", "config.yaml", "run-000"}


def test_a_folder_that_was_killed_while_it_was_opened_can_be_started_again(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.mkdir()
    (path / "about.json.tmp").write_text("{")  # killed in the first write
    with open_folder(path, NOTE, {"a": 1}) as folder:
        folder.mark("starting")  # killed before config.yaml was there
        (path / "config.yaml").unlink()
        (path / "note.txt").write_text("x")  # (so that the block does not clean up)
        assert check_folder(path, NOTE) is None
    with open_folder(path, NOTE, {"a": 2}) as folder:
        assert folder.fresh


def begin_and_fail(path: Path, error: Exception) -> None:
    with open_folder(path, DREAM, {"a": 2}, force=True) as folder:
        folder.begin()
        folder.file("note.txt").write_text("half")
        raise error


def test_what_cannot_be_resumed_is_replaced_when_its_results_are_there(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with open_folder(path, DREAM, {"a": 1}) as folder:
        assert names(path) == {".lock"}
        folder.begin()
        folder.file("note.txt").write_text("old")
        folder.finish({"a": 1})
    assert names(path) == {".lock", "about.json", "config.yaml", "environment.json", "note.txt", "results.json"}
    old = {name: (path / name).read_bytes() for name in names(path)}
    with pytest.raises(InputError, match="late"), open_folder(path, DREAM, {"a": 2}, force=True):
        raise InputError("late")
    assert {name: (path / name).read_bytes() for name in names(path)} == old
    with pytest.raises(InputError, match="late"):
        begin_and_fail(path, InputError("late"))
    assert {name: (path / name).read_bytes() for name in names(path)} == old  # the new one was not whole
    with open_folder(path, DREAM, {"a": 3}, force=True) as folder:
        folder.begin()
        assert {name: (path / name).read_bytes() for name in old} == old
