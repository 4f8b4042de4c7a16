"""Files, each whole or not there; what is damaged is refused in one line."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from topicscope.ground import (
    InputError,
    MetricsFile,
    metric_lines,
    read_metrics,
    read_tensors,
    whole_folder,
    write,
    write_csv,
    write_json,
    write_npz,
    write_tensors,
    write_yaml,
)
from topicscope.ground.files import sealed, unsealed


def test_writers_write_what_readers_read(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"x": 1.5})
    assert (tmp_path / "a.json").read_text() == '{\n  "x": 1.5\n}\n'
    with pytest.raises(ValueError, match="Out of range float"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert json.loads((tmp_path / "a.json").read_text()) == {"x": 1.5}  # the old file stays
    write_yaml(tmp_path / "a.yaml", {"b": 1, "a": [1, 2]})
    assert (tmp_path / "a.yaml").read_text() == "b: 1\na:\n- 1\n- 2\n"
    tensors = {"w": np.arange(6.0).reshape(2, 3).T}  # not contiguous
    write_tensors(tmp_path / "a.safetensors", tensors, {"step": "5"})
    stored, note = read_tensors(tmp_path / "a.safetensors", "")
    assert np.array_equal(stored["w"], tensors["w"])
    assert note["step"] == "5"
    assert set(note) == {"step", "digest"}
    write_npz(tmp_path / "a.npz", tensors)
    with np.load(tmp_path / "a.npz") as opened:
        assert np.array_equal(opened["w"], tensors["w"])
    with pytest.raises(ValueError, match="pickle"):
        write_npz(tmp_path / "a.npz", {"w": np.array([object()])})
    write_csv(tmp_path / "a.csv", [{"a": 1, "b": 2}, {"c": 3, "a": 4}])
    assert (tmp_path / "a.csv").read_text() == "a,b,c\n1,2,\n4,,3\n"
    assert not list(tmp_path.glob("*.tmp"))


def test_a_write_that_fails_half_way_leaves_the_old_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    write(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(path, b"new and longer")
    assert path.read_bytes() == b"old"


def test_damaged_tensors_and_metrics_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a cannot be read: No such file or directory; train again"):
        read_tensors(tmp_path / "a", "train again")
    (tmp_path / "a").write_bytes(b"\0" * 5)
    with pytest.raises(InputError, match=r"a is damaged or cut off .*; train again"):
        read_tensors(tmp_path / "a", "train again")
    (tmp_path / "metrics.jsonl").write_text('{"step": 0}\n[1]\n')
    with pytest.raises(InputError, match=r"metrics\.jsonl is damaged") as error:
        read_metrics(tmp_path)
    assert "\n" not in str(error.value)


def test_metrics_leave_out_what_a_step_does_not_have(tmp_path: Path) -> None:
    table = np.array([[1.0, np.nan], [2.0, 0.1], [np.inf, 1 / 3]])
    file = MetricsFile(tmp_path)
    file.append(metric_lines(("loss", "norm"), table, 0, {1: 0.25}, 9))
    file.append(metric_lines(("loss", "norm"), table[1:2], 3, {}, 3))
    assert (tmp_path / "metrics.jsonl").read_text().splitlines() == [
        '{"step": 0, "loss": 1}',
        '{"step": 1, "loss": 2, "norm": 0.1, "dev_loss": 0.25}',
        '{"step": 2, "norm": 0.333333333}',
        '{"step": 3, "loss": 2, "norm": 0.1}',
    ]
    columns = read_metrics(tmp_path)
    assert list(columns) == ["step", "loss", "norm", "dev_loss"]
    np.testing.assert_array_equal(columns["loss"], [1, 2, np.nan, 2])
    np.testing.assert_array_equal(columns["dev_loss"], [np.nan, 0.25, np.nan, np.nan])


def test_lines_after_the_checkpoint_and_half_lines_go(tmp_path: Path) -> None:
    written = MetricsFile(tmp_path)
    written.append(['{"step": 0}\n', '{"step": 1}\n'])
    digest = written.digest
    written.append(['{"step": 2}\n', '{"st'])
    resumed = MetricsFile(tmp_path)
    resumed.cut(2, digest)
    assert written.path.read_text() == '{"step": 0}\n{"step": 1}\n'
    assert resumed.digest == digest
    resumed.append(['{"step": 2}\n'])  # as an undisturbed run would have it
    whole = MetricsFile(tmp_path / "other")
    whole.path.parent.mkdir()
    whole.append(['{"step": 0}\n', '{"step": 1}\n', '{"step": 2}\n'])
    assert resumed.digest == whole.digest
    for lines in (1, 3):  # other lines than those of the checkpoint
        with pytest.raises(InputError, match=f"not as it was at the checkpoint .{lines} whole lines"):
            MetricsFile(tmp_path).cut(lines, digest)
    written.path.write_text('{"step": 0}\n{"step": 7}\n')
    with pytest.raises(InputError, match="not as it was at the checkpoint"):
        MetricsFile(tmp_path).cut(2, digest)
    with pytest.raises(InputError, match=r"metrics\.jsonl cannot be read: No such file"):
        MetricsFile(tmp_path / "none").cut(2, digest)


def test_sealed_content_is_known_by_its_digest() -> None:
    stored = sealed({"b": [2, None, 0.1], "a": {"x": "ä"}})
    assert list(stored) == ["b", "a", "digest"]
    # as the points of finished sweeps have it: with another digest all of them would run again
    assert stored["digest"] == "90569c4fe6648bb88fd1804d97962ff8e74ce4567a7270b8345520b19ea771f8"
    assert unsealed(stored) == {"b": [2, None, 0.1], "a": {"x": "ä"}}
    assert sealed({"a": {"x": "ä"}, "b": [2, None, 0.1]})["digest"] == stored["digest"]  # whatever its order
    others: list[Any] = [stored | {"b": [2, None, 0.2]}, stored | {"c": 1}, {"a": 1}, {}, [], None, "x"]
    for changed in others:
        with pytest.raises(ValueError, match="digest"):
            unsealed(changed)


def test_sealed_content_is_what_a_file_holds() -> None:
    """A file changes keys that are numbers, and tuples; the digest still matches."""
    stored = sealed({"counts": {9: 1, 10: (2, 3)}, "x": float("nan")})
    assert stored["counts"] == {"9": 1, "10": [2, 3]}
    assert unsealed(json.loads(json.dumps(stored)))["counts"] == {"9": 1, "10": [2, 3]}


def test_a_single_number_keeps_its_shape(tmp_path: Path) -> None:
    write_tensors(tmp_path / "a", {"steps": np.array(3.0, np.float32), "t": np.arange(6.0).reshape(2, 3).T})
    tensors, _ = read_tensors(tmp_path / "a", "train again")
    assert (tensors["steps"].shape, float(tensors["steps"])) == ((), 3.0)
    np.testing.assert_array_equal(tensors["t"], np.arange(6.0).reshape(2, 3).T)


def fail_in(folder: Path, error: Exception) -> None:
    with whole_folder(folder) as temporary:
        (temporary / "half").write_text("x")
        raise error


def test_a_folder_that_cannot_be_filled_is_named_and_leaves_the_old_one(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with whole_folder(folder) as temporary:
        (temporary / "old").write_text("x")
    rust = RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")
    for error in (OSError(errno.ENOSPC, "No space left on device", "elsewhere"), rust):
        with pytest.raises(OSError, match="No space left on device") as full:
            fail_in(folder, error)
        assert (full.value.errno, full.value.filename) == (errno.ENOSPC, str(folder))
    with pytest.raises(RuntimeError, match="something else"):
        fail_in(folder, RuntimeError("something else"))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert [path.name for path in folder.iterdir()] == ["old"]


def test_the_same_tensors_are_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    """The library keeps the keys of a header in an order that differs from process to process."""
    program = (
        "import sys; from pathlib import Path; import numpy as np; from topicscope.ground import write_tensors; "
        "write_tensors(Path(sys.argv[1]), {n: np.ones(2) for n in 'abcdef'}, {n: 'x' for n in 'stuvw'})"
    )
    for number in range(4):
        subprocess.run([sys.executable, "-c", program, str(tmp_path / str(number))], check=True)
    assert len({(tmp_path / str(number)).read_bytes() for number in range(4)}) == 1
