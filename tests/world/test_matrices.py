"""Matrices from files and from run folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from topicscope import InputError
from topicscope.ground import write_tensors
from topicscope.world import matrix_of, read_matrix

MATRIX = np.array([[1.5, -2.0, 0.25], [0.0, 4.0, 1e-3]])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    np.save(tmp_path / "m.npy", MATRIX)
    np.savetxt(tmp_path / "m.csv", MATRIX, delimiter=",")
    write_tensors(tmp_path / "one.safetensors", {"whatever": MATRIX})
    write_tensors(tmp_path / "two.safetensors", {"embedding": 2 * MATRIX, "value": MATRIX.astype(np.float32)})
    (tmp_path / "run").mkdir()
    write_tensors(tmp_path / "run" / "weights.safetensors", {"embedding": 2 * MATRIX, "value": MATRIX})
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "two.safetensors").read_bytes()[:40])
    write_tensors(tmp_path / "vector.safetensors", {"value": MATRIX[0]})
    write_tensors(tmp_path / "nan.safetensors", {"value": MATRIX * np.nan})
    np.save(tmp_path / "complex.npy", MATRIX * 1j)
    np.savez(tmp_path / "archive.npz", MATRIX)
    (tmp_path / "archive.npz").rename(tmp_path / "archive.npy")
    (tmp_path / "lone").mkdir()
    write_tensors(tmp_path / "lone" / "weights.safetensors", {"key": MATRIX})
    return tmp_path


@pytest.mark.parametrize("name", ["m.npy", "m.csv", "one.safetensors", "two.safetensors", "run"])
def test_a_matrix_is_read_from_every_kind_of_file(files: Path, name: str) -> None:
    matrix = read_matrix(str(files / name), "matrix")
    assert matrix.dtype == float
    assert matrix == pytest.approx(MATRIX)
    assert matrix_of(str(files / name), "matrix") == pytest.approx(MATRIX)


@pytest.mark.parametrize("name", ["two.safetensors", "run"])
def test_the_tensor_asked_for_is_taken(files: Path, name: str) -> None:
    assert read_matrix(str(files / name), "embedding", "embedding") == pytest.approx(2 * MATRIX)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.npy", "matrix: cannot read a matrix from .*nowhere.npy"),
        ("nowhere.safetensors", "nowhere.safetensors is not there"),
        ("cut.safetensors", "cut.safetensors is damaged or cut off"),
        ("vector.safetensors", r"has shape \(3,\); expected a matrix with rows and columns"),
        ("nan.safetensors", "not finite"),
        ("complex.npy", "it holds no array of real numbers"),
        ("archive.npy", "it holds no array of real numbers"),
        ("empty", "empty has no weights.safetensors; give the folder of one finished training run"),
        ("lone", "lone holds key; expected a matrix named 'value'"),
    ],
)
def test_what_holds_no_such_matrix_is_refused(files: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_matrix(str(files / name), "matrix")


def test_rows_become_a_matrix() -> None:
    assert matrix_of([[1, 2], [3, 4]], "m").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(InputError, match=r"m: expected rows of equal length, at least one; got rows of \[1, 2\]"):
        matrix_of([[1], [2, 3]], "m")
