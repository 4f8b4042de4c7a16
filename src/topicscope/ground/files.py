"""Files and folders, each whole or not there: written under another name, then renamed.

A disk that is full leaves no half of a file, and the error says which file it was.
"""

import csv
import errno
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from safetensors.numpy import save

from topicscope.ground.checked import MOST_OWN, one_line, read_bytes
from topicscope.ground.errors import InputError
from topicscope.ground.tensors import DIGEST, HEADER, tensor_digest
from topicscope.ground.values import parse_json

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no room: on the disk, for this user, in one file


def write(path: Path, content: bytes) -> None:
    """Write a file whole: to a temporary name, then renamed. Readers see the old file or the new one, never a half.

    Args:
        path: The file.
        content: Its bytes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write(Path(folder, "a"), b"abc")
        ...     [path.name for path in Path(folder).iterdir()]
        ['a']
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise named(error, path) from None


def named(error: OSError, path: Path) -> OSError:
    """The error with the file that it is about: a write alone does not say."""
    return OSError(error.errno, error.strerror or str(error), str(path))


def system_error(error: Exception) -> OSError | None:
    """The error of the system behind an error of a library written in Rust, which only its text tells."""
    if isinstance(error, OSError):
        return error
    number = re.search(r"\(os error (\d+)\)", str(error))
    return None if number is None else OSError(int(number[1]), os.strerror(int(number[1])))


def append(path: Path, content: bytes) -> None:
    """Not whole or nothing: whoever reads on from a checkpoint cuts back to it."""
    try:
        with path.open("ab") as stream:
            stream.write(content)
    except OSError as error:
        raise named(error, path) from None


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes its name when it is whole, in place of one that has the name.

    Args:
        folder: Its name.

    Returns:
        A context manager that gives the folder to fill.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as home:
        ...     with whole_folder(Path(home, "model")) as folder:
        ...         _ = (folder / "a").write_text("abc")
        ...     [path.name for path in Path(home, "model").iterdir()]
        ['a']
    """
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        shutil.rmtree(folder, ignore_errors=True)
        temporary.rename(folder)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        cause = system_error(error) if isinstance(error, Exception) else None
        if cause is None:
            raise
        raise named(cause, folder) from None


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file whole.

    Args:
        path: The file.
        content: Plain values without NaN.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_json(Path(folder, "a.json"), [1])
        ...     Path(folder, "a.json").read_text().split()
        ['[', '1', ']']
    """
    write(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content as a JSON file holds it, with a digest by which `unsealed` knows that nothing has changed since."""
    stored = json.loads(json.dumps(content))  # keys that are numbers become text, and are sorted as text
    return stored | {"digest": _digest(stored)}


def unsealed(stored: Any) -> dict[str, Any]:
    """What was sealed, without its digest; ValueError where it is something else."""
    if not isinstance(stored, dict):
        raise ValueError("expected an object with a digest")
    content = {key: value for key, value in stored.items() if key != "digest"}
    if stored.get("digest") != _digest(content):
        raise ValueError("the content does not match its digest")
    return content


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_yaml(path: Path, content: Any) -> None:
    r"""Write a YAML file whole.

    Args:
        path: The file.
        content: Plain values.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_yaml(Path(folder, "a.yaml"), {"steps": 5})
        ...     Path(folder, "a.yaml").read_text()
        'steps: 5\n'
    """
    write(path, yaml.safe_dump(content, sort_keys=False, width=120).encode())


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], note: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file whole, with a digest of everything in its header, which `read_tensors` checks.

    Args:
        path: The file.
        tensors: Arrays by name.
        note: Texts by name.

    Example:
        >>> import tempfile
        >>> from topicscope.ground import read_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_tensors(Path(folder, "a"), {"key": np.ones(2)})
        ...     read_tensors(Path(folder, "a"), "train again")[0]["key"].tolist()
        [1.0, 1.0]
    """
    # not ascontiguousarray, which makes a vector of a single number
    arrays, header = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}, dict(note or {})
    sealed_header = json.dumps(header | {DIGEST: tensor_digest(arrays, header)}, sort_keys=True)
    write(path, save(arrays, metadata={HEADER: sealed_header}))


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an .npz file whole.

    Args:
        path: The file.
        arrays: Arrays by name.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_npz(Path(folder, "a.npz"), {"x": np.ones(2)})
        ...     with np.load(Path(folder, "a.npz")) as stored:
        ...         stored["x"].tolist()
        [1.0, 1.0]
    """
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write(path, buffer.getvalue())


def write_csv(path: Path, records: list[dict[str, Any]]) -> None:
    """Write a CSV file whole, with one line per record.

    Args:
        path: The file.
        records: Values by column; the columns are all keys, in the order in which they turn up.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(Path(folder, "a.csv"), [{"a": 1}, {"a": 2, "b": 3}])
        ...     Path(folder, "a.csv").read_text().split()
        ['a,b', '1,', '2,3']
    """
    stream = io.StringIO()
    writer = csv.DictWriter(
        stream, list(dict.fromkeys(key for record in records for key in record)), lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(records)
    write(path, stream.getvalue().encode())


def read_json(path: Path) -> Any:
    """A JSON file of the project; InputError in one line where it cannot be read."""
    again = f"run the command that wrote {path.parent} again"
    if not path.exists():
        raise InputError(f"{path} is missing; {again}")
    try:
        return parse_json(read_bytes(path, most=MOST_OWN), str(path), most=MOST_OWN)
    except InputError as error:
        raise InputError(f"{one_line(error)}; {again}") from None
