"""Files, each whole or not there; what is damaged is refused in one line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from topicscope.ground import (
    InputError,
    append_lines,
    metric_lines,
    read_metrics,
    read_tensors,
    truncate_metrics,
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
    assert np.array_equal(read_tensors(tmp_path / "a.safetensors", "")["w"], tensors["w"])
    with safe_open(tmp_path / "a.safetensors", "np") as opened:
        assert opened.metadata() == {"step": "5"}
    write_tensors(tmp_path / "a.safetensors", tensors)
    with safe_open(tmp_path / "a.safetensors", "np") as opened:
        assert opened.metadata() is None
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
    with pytest.raises(InputError, match="a is not there; train again"):
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
    append_lines(tmp_path / "metrics.jsonl", metric_lines(("loss", "norm"), table, 5, {6: 0.25}, 9))
    append_lines(tmp_path / "metrics.jsonl", metric_lines(("loss", "norm"), table[1:2], 8, {}, 3))
    assert (tmp_path / "metrics.jsonl").read_text().splitlines() == [
        '{"step": 5, "loss": 1}',
        '{"step": 6, "loss": 2, "norm": 0.1, "dev_loss": 0.25}',
        '{"step": 7, "norm": 0.333333333}',
        '{"step": 8, "loss": 2, "norm": 0.1}',
    ]
    columns = read_metrics(tmp_path)
    assert list(columns) == ["step", "loss", "norm", "dev_loss"]
    np.testing.assert_array_equal(columns["loss"], [1, 2, np.nan, 2])
    np.testing.assert_array_equal(columns["dev_loss"], [np.nan, 0.25, np.nan, np.nan])


def test_lines_after_the_checkpoint_and_half_lines_go(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_text('{"step": 0}\n{"step": 1}\n{"step": 2}\n{"st')
    with pytest.raises(InputError, match="has 3 whole lines of the 4 steps that the checkpoint stands at"):
        truncate_metrics(path, 4)
    truncate_metrics(path, 2)
    assert path.read_text() == '{"step": 0}\n{"step": 1}\n'
    with pytest.raises(InputError, match="has 2 whole lines of the 5 steps"):
        truncate_metrics(path, 5)
    with pytest.raises(InputError, match="m is missing, though a checkpoint is there"):
        truncate_metrics(tmp_path / "none" / "m", 2)


def test_a_model_that_ended_before_the_checkpoint_has_the_lines_of_its_own_steps(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_text('{"step": 0}\n{"step": 1}\n')
    truncate_metrics(path, 5, end=2)  # it ended at step 2
    with pytest.raises(InputError, match="has 2 whole lines of the 5 steps"):
        truncate_metrics(path, 5, end=3)
    truncate_metrics(path, 1, end=2)
    assert path.read_text() == '{"step": 0}\n'


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
