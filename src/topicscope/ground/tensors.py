"""Files of tensors, checked: the numbers that were written, and the names, shapes and types that are expected."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from topicscope.ground.checked import MOST_OWN, AnyPath, checked_file, one_line, shown
from topicscope.ground.errors import InputError

HEADER, DIGEST = "topicscope", "digest"  # of a file of tensors: one key, since the library keeps them in no order


def tensor_digest(tensors: Mapping[str, np.ndarray], note: Mapping[str, str]) -> str:
    """Of names, types, shapes, numbers, and the note that a file of tensors carries."""
    digest = hashlib.sha256(json.dumps(sorted((k, v) for k, v in note.items() if k != DIGEST)).encode())
    for name in sorted(tensors):
        array = np.asarray(tensors[name], order="C")
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def read_tensors(path: AnyPath, advice: str, *, own: bool = True) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read the tensors of a safetensors file and its note.

    Args:
        path: The file.
        advice: What to do if it is damaged, for error messages.
        own: It is the project's own: it carries a digest, which is checked.

    Returns:
        Arrays by name, and the note.

    Raises:
        InputError: It is damaged, or of a type that numpy lacks.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from topicscope.ground import write_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_tensors(Path(folder, "a"), {"key": np.ones(2)}, {"step": "5"})
        ...     tensors, note = read_tensors(Path(folder, "a"), "train again")
        >>> tensors["key"].tolist(), note["step"]
        ([1.0, 1.0], '5')
    """
    try:
        with safe_open(checked_file(path, "the file", MOST_OWN), "np") as opened:
            written = (opened.metadata() or {}).get(HEADER)
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  (it is no mapping)
    except InputError as error:
        raise InputError(f"{error}; {advice}") from None
    except (KeyError, TypeError) as error:  # a type that numpy has not
        raise InputError(f"{shown(path)} holds numbers of the type {one_line(error)}; store them as float32") from None
    except (SafetensorError, OSError, ValueError, OverflowError) as error:
        raise InputError(f"{shown(path)} is damaged or cut off ({one_line(error)}); {advice}") from None
    note = _note(written)
    if (own or written is not None) and note.get(DIGEST) != tensor_digest(tensors, note):
        raise InputError(f"{shown(path)} is damaged: its numbers are not those that were written; {advice}")
    return tensors, note


def _note(written: str | None) -> dict[str, str]:
    """What the project's header says; nothing where it is damaged."""
    try:
        note = {} if written is None else json.loads(written)
    except (ValueError, RecursionError):
        note = {}
    return note if isinstance(note, dict) else {}


def check_tensors(
    tensors: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], path: AnyPath, advice: str
) -> None:
    """Check that names, shapes and types of tensors are the expected ones: nothing is broadcast or cast.

    Args:
        tensors: Arrays by name.
        expected: Arrays of the expected shapes and types.
        path: The file, for error messages.
        advice: What to do, for error messages.

    Raises:
        InputError: One is missing, or differs.

    Example:
        >>> check_tensors({"key": np.ones(2)}, {"key": np.zeros(2)}, "a", "train again") is None
        True
    """
    for name in sorted({*tensors, *expected}):
        there, wanted = (
            None if array is None else f"{array.dtype} {array.shape}"
            for array in (tensors.get(name), expected.get(name))
        )
        if there != wanted:
            raise InputError(
                f"{shown(path)} is damaged or of another run: {name} is {there or 'missing'}, "
                f"expected {wanted or 'no such tensor'}; {advice}"
            )


def fingerprint(settings: Any) -> str:
    """A digest of settings: a checkpoint carries that of the run that it belongs to.

    Args:
        settings: Plain values, such as `config.as_dict()`.

    Returns:
        The digest.

    Example:
        >>> fingerprint({"steps": 5, "seed": 0}) == fingerprint({"seed": 0, "steps": 5})
        True
    """
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


@contextmanager
def read_checkpoint(path: AnyPath, own: str, advice: str) -> Iterator[tuple[dict[str, np.ndarray], dict[str, str]]]:
    """Open a checkpoint of this run. What goes wrong while it is put back is an InputError, too.

    Args:
        path: The file.
        own: Fingerprint of the run, which the note of the file must have.
        advice: What to do if it is damaged, for error messages.

    Returns:
        A context manager that gives arrays by name, and the note.

    Raises:
        InputError: It is damaged, or belongs to a run with another config.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from topicscope.ground import write_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_tensors(Path(folder, "a"), {"key": np.ones(2)}, {"fingerprint": "mine"})
        ...     with read_checkpoint(Path(folder, "a"), "mine", "train again") as (tensors, note):
        ...         print(tensors["key"])
        [1. 1.]
    """
    tensors, note = read_tensors(path, advice)
    if note.get("fingerprint") != own:
        raise InputError(f"{path} belongs to a run with another config; resume with that config, or {advice}")
    try:
        yield tensors, note
    except InputError:
        raise
    except (KeyError, ValueError, RuntimeError, TypeError, IndexError) as error:
        raise InputError(f"{path} is damaged or of another version ({one_line(error)}); {advice}") from None
