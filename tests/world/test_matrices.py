"""Matrices from files and from run folders."""

from __future__ import annotations

import os
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
    np.save(tmp_path / "none.npy", MATRIX[:0])
    write_tensors(tmp_path / "other.safetensors", {"key": MATRIX, "query": MATRIX})
    (tmp_path / "lone").mkdir()
    write_tensors(tmp_path / "lone" / "weights.safetensors", {"key": MATRIX})
    return tmp_path


@pytest.mark.parametrize("name", ["m.npy", "m.csv", "one.safetensors", "two.safetensors", "run"])
def test_a_matrix_is_read_from_every_kind_of_file(files: Path, name: str) -> None:
    matrix = read_matrix(str(files / name), "matrix")
    assert matrix.dtype == float
    assert matrix == pytest.approx(MATRIX)
    assert matrix_of(str(files / name), "matrix") == pytest.approx(MATRIX)
    if name in ("two.safetensors", "run"):  # the tensor asked for is taken
        assert read_matrix(str(files / name), "embedding", "embedding") == pytest.approx(2 * MATRIX)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.npy", "matrix .*nowhere.npy cannot be read: No such file"),
        ("nowhere.safetensors", "nowhere.safetensors cannot be read: No such file"),
        ("cut.safetensors", "cut.safetensors is damaged or cut off"),
        ("vector.safetensors", r"has shape \(3,\); expected a matrix with rows and columns"),
        ("nan.safetensors", "not finite"),
        ("none.npy", r"has shape \(0, 3\); expected a matrix with rows and columns"),
        ("other.safetensors", "other.safetensors holds key, query; expected a matrix named 'value'"),
        ("complex.npy", "it holds no array of real numbers"),
        ("archive.npy", "it holds no array of real numbers"),
        ("empty", "empty has no weights.safetensors; give the folder of one finished training run"),
        ("lone", "lone holds key; expected a matrix named 'value'"),
    ],
)
def test_what_holds_no_such_matrix_is_refused(files: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_matrix(str(files / name), "matrix")


@pytest.mark.parametrize("name", ["run.npy", "run.safetensors", "run.csv"])
def test_a_run_folder_is_one_whatever_its_name(files: Path, name: str) -> None:
    (files / "run").rename(files / name)
    assert read_matrix(str(files / name), "matrix") == pytest.approx(MATRIX)


@pytest.mark.parametrize("matrix", [np.array([[3]]), np.array([[True, False]]), np.array([[1e100, -1e100]])])
def test_whole_numbers_truth_values_and_large_numbers_are_read(tmp_path: Path, matrix: np.ndarray) -> None:
    np.save(tmp_path / "m.npy", matrix)
    assert read_matrix(str(tmp_path / "m.npy"), "matrix").tolist() == matrix.astype(float).tolist()


@pytest.mark.parametrize("entry", [1.2e100, -1.2e100, np.inf, np.nan])
def test_one_entry_that_is_too_large_or_not_finite_is_refused(tmp_path: Path, entry: float) -> None:
    np.save(tmp_path / "m.npy", np.array([[1.0, entry]]))
    with pytest.raises(InputError, match=r"m.npy: holds numbers that are not finite, or beyond 1e\+100"):
        read_matrix(str(tmp_path / "m.npy"), "matrix")


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    class Executed:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "made"),)

    np.save(tmp_path / "m.npy", np.array([[Executed()]], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="cannot read a matrix"):
        read_matrix(str(tmp_path / "m.npy"), "matrix")
    assert not (tmp_path / "made").exists()


def test_rows_become_a_matrix() -> None:
    assert matrix_of([[1, 2], [3, 4]], "m").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(InputError, match=r"m: expected rows of equal length, at least one; got rows of \[1, 2\]"):
        matrix_of([[1], [2, 3]], "m")


def test_types_that_numpy_has_not_are_named(tmp_path: Path) -> None:
    header = b'{"w":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]}}'
    (tmp_path / "m.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 4)
    with pytest.raises(InputError, match=r"m\.safetensors .*(BF16|bfloat16).*float32"):
        read_matrix(str(tmp_path / "m.safetensors"), "matrix")
