"""Matrices from files: .npy, .csv, .safetensors, or the weights in the folder of a training run."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from topicscope.ground import checked_file, folders, read_tensors, read_text, refuse, refusing

WEIGHTS = "weights.safetensors"  # the file of a run folder that holds the trained weights
LARGEST = 1e100  # entries beyond this are refused: their squares overflow
Matrix = Float[np.ndarray, "rows columns"]


def read_matrix(path: str, name: str, tensor: str = "value") -> Matrix:
    """Read a matrix from a .npy, .csv or .safetensors file, or from the folder of a training run; it runs no code."""
    where, damage = f"{name}: {path}", (OSError, ValueError, EOFError, SyntaxError, MemoryError, TypeError)
    kinds = "; expected a .npy, .csv or .safetensors file of numbers, or the folder of a training run"
    with refusing(damage, f"{name}: cannot read a matrix from {path}: ", kinds):  # numpy parses the header
        stored = _stored(path, name, where, tensor)
        if not isinstance(stored, np.ndarray) or stored.dtype.kind not in "fiub":
            raise ValueError("it holds no array of real numbers")
        matrix: Matrix = stored.astype(float)
    refuse(
        (
            matrix.ndim != 2 or matrix.size == 0,
            f"{where}: has shape {matrix.shape}; expected a matrix with rows and columns",
        ),
        (
            not np.isfinite(matrix).all() or np.abs(matrix).max(initial=0) > LARGEST,
            f"{where}: holds numbers that are not finite, or beyond {LARGEST:g}",
        ),
    )
    return matrix


def matrix_of(given: Sequence[Sequence[float]] | str, name: str) -> Matrix:
    """The matrix of a setting that is either rows of numbers or the path of a file."""
    if isinstance(given, str):
        return read_matrix(given, name)
    lengths = sorted({len(row) for row in given})
    described = f"rows of {lengths} numbers" if given else "no row"
    refuse((len(lengths) != 1, f"{name}: expected rows of equal length, at least one; got {described}"))
    return np.array(given, dtype=float)


def _from_lines(lines: Sequence[str], where: str) -> Matrix:
    rows: list[list[float]] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            row = f"{where}, row {number}"
            with refusing((ValueError,), f"{row}: ", "; expected numbers separated by commas, without a head"):
                rows.append([float(cell) for cell in line.split(",")])
            count, first = len(rows[-1]), len(rows[0])
            refuse((count != first, f"{row}: has {count} numbers; expected {first}, as many as the first row"))
    return matrix_of(rows, where)


def _stored(path: str, name: str, where: str, tensor: str) -> object:
    file, folder = Path(path), Path(path).is_dir()
    if path.endswith(".npy") and not folder:
        return np.load(checked_file(path, name), allow_pickle=False)
    if not path.endswith(".safetensors") and not folder:
        return _from_lines(read_text(file, name, encoding="utf-8-sig").splitlines(), where)
    refuse(
        (
            folder and not (file / WEIGHTS).is_file(),
            f"{where} has no {WEIGHTS}; give the folder of one finished training run, or a matrix file",
        )
    )
    about = folders.read_about(file) if folder else None
    if about is not None:  # the folder of a run; without one it is somebody's own
        folders.check_digest(file, about, WEIGHTS)
    tensors, _ = read_tensors(
        file / WEIGHTS if folder else file, "give a .safetensors file that is whole", own=about is not None
    )
    refuse(
        (
            tensor not in tensors and (folder or len(tensors) != 1),
            f"{where} holds {', '.join(sorted(tensors)) or 'nothing'}; expected a matrix named {tensor!r}",
        )
    )
    return tensors[tensor] if tensor in tensors else next(iter(tensors.values()))
