"""One protocol for every folder: what may be opened, resumed, replaced; what is refused; what is left behind."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from topicscope import InputError, RunConfig, read, train
from topicscope.ground import Kind, check_folder, folders, open_folder, read_about
from topicscope.ground.files import write
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


def test_several_runs_read_back_too(tmp_path: Path) -> None:
    runs = train(RunConfig.of(TINY).with_seeds(3), tmp_path / "many")
    stored = read(tmp_path / "many")
    assert type(stored) is type(runs)
    assert [run.config for run in stored] == [run.config for run in runs]
    assert stored.table().column("seed").to_pylist() == [0, 1, 2]
    assert read(tmp_path / "many" / "run-001").results == runs[1].results


def test_damaged_unfinished_and_foreign_folders_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a folder that topicscope wrote \(no about.json\)"):
        read(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        read(tmp_path / "nowhere")
    train(RunConfig.of(TINY), tmp_path / "run")
    weights = tmp_path / "run" / "weights.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-40])
    with pytest.raises(InputError, match=r"weights\.safetensors is damaged: it is not what topicscope wrote"):
        read(tmp_path / "run")
    weights.write_bytes(whole)
    (tmp_path / "run" / "results.json").write_text("[]")
    with pytest.raises(InputError, match=r"results\.json is damaged: it is not what topicscope wrote; make"):
        read(tmp_path / "run")
    about = json.loads((tmp_path / "run" / "about.json").read_text())
    (tmp_path / "run" / "about.json").write_text(json.dumps(about | {"status": "running"}))
    with pytest.raises(InputError, match="is not finished; to continue: "):
        read(tmp_path / "run")
    (tmp_path / "run" / "about.json").write_text(json.dumps(about | {"kind": "dream"}))
    with pytest.raises(InputError, match="kind 'dream', which this topicscope cannot read"):
        read(tmp_path / "run")


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
    with pytest.raises(InputError, match=r"a note folder; resume it \(--resume\), replace it \(--force\), or choose"):
        check_folder(path, NOTE)
    with pytest.raises(InputError, match="holds a note folder, not a poem folder"):
        check_folder(path, Kind("poem", 1), force=True)
    with pytest.raises(InputError, match="of format 1, this topicscope writes 2"):
        check_folder(path, Kind("note", 2), resume=True)
    with pytest.raises(InputError, match="both given"):
        check_folder(path, NOTE, resume=True, force=True)
    with pytest.raises(InputError, match="is a file"):
        check_folder(path / "note.txt", NOTE)
    with pytest.raises(InputError, match="another config"), open_folder(path, NOTE, {"a": 2}, resume=True):
        pass
    with open_folder(path, NOTE, {"a": 1}, resume=True) as folder:
        assert folder.finished
        assert not folder.fresh


def test_a_folder_is_opened_again_only_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with open_folder(path, NOTE, {"a": 1}):
        pass
    with pytest.raises(InputError, match=r"replace it \(--force\)"), open_folder(path, NOTE, {"a": 1}):
        pass
    with pytest.raises(InputError, match=r"replace it \(--force\)"):
        folders.join_folder(path, NOTE, {"a": 1})
    with open_folder(path, NOTE, resume=True) as folder:  # whatever its config is
        assert (folder.fresh, folder.finished, folder.about.runs) == (False, False, None)
    (path / "config.yaml").write_text("a: [")
    with pytest.raises(InputError, match="another config"), open_folder(path, NOTE, {"a": 1}, resume=True):
        pass
    newer = Kind("note", 2, resumes="asked")
    assert check_folder(path, newer, force=True) == read_about(path)
    with open_folder(path, newer, {"a": 2}, force=True, runs=3) as folder:
        assert (folder.fresh, folder.about.format, folder.about.runs) == (True, 2, 3)
    with (
        pytest.raises(InputError, match="cannot be made or written to: Not a directory"),
        open_folder("/dev/null/x", NOTE),
    ):
        pass


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
        with pytest.raises(InputError, match=r"about\.json is damaged .*; choose another folder, or remove this one"):
            read_about(tmp_path)
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
        with pytest.raises(InputError, match="holds something else"):
            check_folder(foreign, NOTE, resume=resume, force=force)
    assert names(foreign) == {"results.json"}


def test_a_lock_that_is_held_is_not_waited_for_long(tmp_path: Path) -> None:
    """Only as long as a look at the folder may hold it."""
    began = time.monotonic()
    with folders.lock(tmp_path), pytest.raises(InputError, match="another process is writing"), folders.lock(tmp_path):
        pass
    assert LOCK_SECONDS <= time.monotonic() - began < 60
    with folders.lock(tmp_path):  # free again
        pass


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write(path, b"old")
    with pytest.raises(TypeError):
        write(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
