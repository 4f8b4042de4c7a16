"""One protocol for every folder: what may be opened, resumed, replaced; what is refused; what is left behind."""

import dataclasses
import hashlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.refusals import refused
from topicscope import InputError, RunConfig, read, train
from topicscope.ground import Kind, check_folder, folders, open_folder, read_about
from topicscope.ground.folders import LOCK_SECONDS

TINY: dict[str, Any] = {
    "steps": 20, "batch_size": 4, "topic_model": {"topics": 3, "words_per_topic": 2},
    "data": {"documents": 20, "dev_documents": 10}, "device": "cpu",
}  # fmt: skip
NOTE = Kind("note", 1, ("note.txt",), resumes="asked")


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_run_reads_back_as_the_object_that_train_returned(tmp_path: Path) -> None:
    run = train(RunConfig.of(TINY, snapshots=[0, 20]), tmp_path / "run")
    assert names(tmp_path / "run") == {
        ".lock", "about.json", "config.yaml", "environment.json", "metrics.jsonl", "results.json",
        "shown.safetensors", "snapshots", "weights.safetensors",
    }  # fmt: skip
    stored = read(tmp_path / "run")
    assert type(stored) is type(run)
    assert (stored.config, stored.status, stored.folder) == (run.config, run.status, run.folder)
    assert stored.results == json.loads(json.dumps(run.results))
    assert np.array_equal(stored.weights["value"], run.weights["value"])
    assert stored.metrics["loss"] == pytest.approx(run.metrics["loss"], rel=1e-8, nan_ok=True)
    assert list(stored.snapshots) == list(run.snapshots) == [0, 20]
    assert stored.course == run.course
    assert stored.summary() == run.summary()
    about = read_about(tmp_path / "run")
    assert about is not None
    assert (about.kind, about.status, about.runs) == ("train", "done", None)


def test_damaged_unfinished_and_foreign_folders_are_refused_in_one_line(tmp_path: Path) -> None:
    refused(r"not a folder that topicscope wrote \(no about.json\)", read, tmp_path)
    refused("no such folder", read, tmp_path / "nowhere")
    train(RunConfig.of(TINY), tmp_path / "run")
    weights = tmp_path / "run" / "weights.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-40])
    refused(r"weights\.safetensors is damaged: it is not what topicscope wrote", read, tmp_path / "run")
    weights.write_bytes(whole)
    (tmp_path / "run" / "results.json").write_text("[]")
    refused(r"results\.json is damaged: it is not what topicscope wrote; make", read, tmp_path / "run")
    about = json.loads((tmp_path / "run" / "about.json").read_text())
    (tmp_path / "run" / "about.json").write_text(json.dumps(about | {"status": "running"}))
    refused("is not finished; to continue: ", read, tmp_path / "run")
    (tmp_path / "run" / "about.json").write_text(json.dumps(about | {"kind": "dream"}))
    refused("kind 'dream', which this topicscope cannot read", read, tmp_path / "run")


def test_new_folders_are_made_and_finished(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er"
    with open_folder(path, NOTE, {"a": 1}) as folder:
        assert (folder.fresh, folder.finished, folder.about.status) == (True, False, "running")
        (path / "note.txt").write_text("mine")
        folder.finish({"words": 1}, seconds=2)
        assert folder.finished
    assert json.loads((path / "results.json").read_text()) == {"words": 1}
    assert json.loads((path / "environment.json").read_text())["seconds"] == 2
    with pytest.raises(InputError, match=r"holds a note folder; replace it \(--force\), or choose"):
        check_folder(path, dataclasses.replace(NOTE, resumes="never"))
    refused(r"a note folder; resume it \(--resume\), replace it \(--force\), or choose", check_folder, path, NOTE)
    refused("holds a note folder, not a poem folder", check_folder, path, Kind("poem", 1), force=True)
    refused("of format 1, this topicscope writes 2", check_folder, path, Kind("note", 2), resume=True)
    refused("both given", check_folder, path, NOTE, resume=True, force=True)
    refused("is a file", check_folder, path / "note.txt", NOTE)
    with pytest.raises(InputError, match="another config"), open_folder(path, NOTE, {"a": 2}, resume=True):
        pass
    with open_folder(path, NOTE, {"a": 1}, resume=True) as folder:
        assert folder.finished
        assert not folder.fresh


def test_a_folder_is_opened_again_only_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with open_folder(path, NOTE, {"a": 1}):
        pass
    refused(r"replace it \(--force\)", folders.join_folder, path, NOTE, {"a": 1})
    with open_folder(path, NOTE, resume=True) as folder:  # whatever its config is
        assert (folder.fresh, folder.finished, folder.about.runs) == (False, False, None)
    (path / "config.yaml").write_text("a: [")
    with pytest.raises(InputError, match="another config"), open_folder(path, NOTE, {"a": 1}, resume=True):
        pass
    newer = Kind("note", 2, resumes="asked")
    assert check_folder(path, newer, force=True) == read_about(path)
    with open_folder(path, newer, {"a": 2}, force=True, runs=3) as folder:
        assert (folder.fresh, folder.about.format, folder.about.runs) == (True, 2, 3)
    refused("cannot be made or written to: Not a directory", check_folder, "/dev/null/x", NOTE)


def test_an_error_leaves_what_was_there_before(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with open_folder(path, NOTE, {"a": 1}):
        pass
    with pytest.raises(InputError, match="late"), open_folder(path, NOTE, resume=True):
        raise InputError("late")
    assert names(path) == {".lock", "about.json", "config.yaml"}


def test_a_folder_says_what_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/bin/topicscope", "train", "--out", "a b"])
    with open_folder(tmp_path / "x", NOTE) as folder:
        folder.finish({}, "stopped", seconds=2)
    about = json.loads((tmp_path / "x" / "about.json").read_text())
    assert about == {
        "kind": "note", "format": 1, "version": folders.version_of("topicscope"),
        "command": "topicscope train --out 'a b'", "status": "stopped", "runs": None,
        "digests": {name: digest_of(tmp_path / "x" / name) for name in ("results.json",)},
    }  # fmt: skip
    environment = json.loads((tmp_path / "x" / "environment.json").read_text())
    assert environment["command"] == ["topicscope", "train", "--out", "a b"]
    assert environment["packages"]["numpy"] == np.__version__
    assert folders.version_of("no-such-package") is None


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["/src/topicscope/__main__.py", "list"], "topicscope list"),
        (["script.py", "x"], "script.py x"),
        ([""], "python"),
        ([], "python"),
    ],
)
def test_the_command_as_a_user_types_it(monkeypatch: pytest.MonkeyPatch, argv: list[str], command: str) -> None:
    monkeypatch.setattr(sys, "argv", argv)
    assert folders.command() == command


def test_only_a_whole_about_json_says_what_a_folder_is(tmp_path: Path) -> None:
    about = {"kind": "note", "format": 1, "version": "1", "command": "x", "status": "done"}
    for wrong in (about | {"more": 1}, about | {"format": "1"}, {"kind": "note"}, [1], "{"):
        (tmp_path / "about.json").write_text(wrong if isinstance(wrong, str) else json.dumps(wrong))
        refused(r"about\.json is damaged .*; choose another folder, or remove this one", read_about, tmp_path)
    (tmp_path / "about.json").write_text(json.dumps(about))
    whole = read_about(tmp_path)
    assert whole == folders.About("note", 1, "1", "x", "done")
    for value in (whole, NOTE):
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.format = 2  # type: ignore[misc]


def test_force_removes_the_runs_of_an_ensemble_and_nothing_foreign(tmp_path: Path) -> None:
    path, kind = tmp_path / "x", Kind("note", 1, ("parts", "note-*.txt"), resumes="asked")
    with open_folder(path, kind, runs=3):
        for member in folders.member_paths(path, 3):
            folders.join_folder(member, kind, {"a": 1})
            (member / "note-1.txt").write_text("old")
            (member / "parts").mkdir()
            (member / "parts" / "one").write_text("old")
    (path / "run-001" / "thesis.tex").write_text("keep")
    foreign = path / "run-007"
    foreign.mkdir()
    (foreign / "config.yaml").write_text("keep")
    with open_folder(path, kind, force=True):
        assert names(path) == {".lock", "about.json", "run-001", "run-007"}
        assert names(path / "run-001") == {"thesis.tex"}
        assert names(foreign) == {"config.yaml"}


def test_force_removes_only_what_topicscope_wrote(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with open_folder(path, NOTE) as folder:
        (path / "note.txt").write_text("old")
        folder.finish({})
    (path / "thesis.tex").write_text("keep")
    with open_folder(path, NOTE, force=True) as folder:
        assert folder.fresh
        assert names(path) == {"thesis.tex", ".lock", "about.json"}
        folder.finish({})
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "results.json").write_text("{}")
    for resume, force in ((False, False), (False, True), (True, False)):
        refused("holds something else", check_folder, foreign, NOTE, resume=resume, force=force)
    assert names(foreign) == {"results.json"}


def test_a_lock_that_is_held_is_not_waited_for_long(tmp_path: Path) -> None:
    """Only as long as a look at the folder may hold it."""
    began = time.monotonic()
    with folders.lock(tmp_path), pytest.raises(InputError, match="another process is writing"), folders.lock(tmp_path):
        pass
    assert LOCK_SECONDS <= time.monotonic() - began < 60
    with folders.lock(tmp_path):  # free again
        pass


DREAM = Kind("note", 1, ("note.txt",))  # which nobody can go on with


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


BEGUN = {".lock", "about.json", "config.yaml"}


@pytest.mark.parametrize(
    ("there", "error", "made", "left"),
    [
        (False, InputError("late"), {}, None),
        (True, KeyboardInterrupt(), {"member": True}, {".lock"}),
        (False, InputError("late"), {"work": "note.txt"}, BEGUN | {"note.txt"}),
        (False, InputError("late"), {"part": "parts"}, BEGUN | {"parts"}),
        # while a member was being opened, and while its first file was being written
        (True, KeyboardInterrupt(), {"part": "run-000"}, {".lock"}),
        (True, KeyboardInterrupt(), {"member": True, "work": "run-000/about.json.tmp"}, {".lock"}),
        (False, InputError("late"), {"member": True, "work": "run-000/note.txt"}, BEGUN | {"run-000"}),
    ],
)
def test_an_error_before_any_work_leaves_nothing(
    there: bool, error: BaseException, made: dict[str, Any], left: set[str] | None, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    if there:
        path.mkdir()
    with pytest.raises(type(error)):
        fail(path, error, **made)
    assert (names(path) if path.exists() else None) == left
    with pytest.raises(InputError, match="late"), open_folder(tmp_path / "y", NOTE):  # which has no config
        raise InputError("late")
    assert not (tmp_path / "y").exists()


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
    refused("late", begin_and_fail, path, InputError("late"))
    assert {name: (path / name).read_bytes() for name in names(path)} == old  # the new one was not whole
    with open_folder(path, DREAM, {"a": 3}, force=True) as folder:
        folder.begin()
        assert {name: (path / name).read_bytes() for name in old} == old


PROCESSES, LOCKED, OPENED = 8, 2500, 60
ON_PURPOSE, BUSY = "on purpose", "another process is writing"


def inside(shared: Any) -> None:
    """Leave a mark, now and then let others run, and see whether it is still there.

    `shared`: who is inside, overlaps, and visits.
    """
    shared[1] += shared[0] != 0
    shared[0] = os.getpid()
    shared[2] += 1
    if shared[2] % 20 == 0:
        os.sched_yield()
    shared[1] += shared[0] != os.getpid()
    shared[0] = 0


def lock(path: Path, shared: Any) -> bool:
    try:
        with folders.lock(path):
            inside(shared)
    except InputError as error:
        if BUSY not in str(error):
            raise
        return False
    return True


def open_and_fail(path: Path, shared: Any) -> bool:
    """A folder that did not exist, or that another process has just made, or removes just now."""
    try:
        with open_folder(path, NOTE, {"a": 1}):
            inside(shared)
            raise InputError(ON_PURPOSE)
    except InputError as error:
        if str(error) != ON_PURPOSE and BUSY not in str(error):
            raise
        return str(error) == ON_PURPOSE


def no_lock(_: Path, shared: Any) -> bool:
    with nullcontext():
        inside(shared)
    return True


def repeat(work: Callable[[Path, Any], bool], path: Path, times: int, shared: Any, start: Any) -> None:
    """So many successes: how long they take depends on the machine, whether they overlap does not."""
    start.wait()
    while times:
        if work(path, shared):
            times -= 1
        else:
            time.sleep(0.002)


def overlaps(work: Callable[[Path, Any], bool], path: Path, times: int) -> int:
    context = multiprocessing.get_context("fork")
    shared, start = context.RawArray("q", 3), context.Barrier(PROCESSES)
    arguments = (work, path, times, shared, start)
    processes = [context.Process(target=repeat, args=arguments) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    return int(shared[1])


@pytest.mark.slow
def test_twenty_thousand_holders_never_overlap(tmp_path: Path) -> None:
    assert overlaps(lock, tmp_path, LOCKED) == 0
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.slow
def test_a_folder_that_failing_processes_make_and_remove_has_one_holder(tmp_path: Path) -> None:
    assert overlaps(open_and_fail, tmp_path / "a" / "b", OPENED) == 0


def test_without_the_lock_holders_do_overlap(tmp_path: Path) -> None:
    assert overlaps(no_lock, tmp_path, LOCKED) > 0
