"""Files and folders, each whole or not there: written under another name, then renamed.

A disk that is full leaves no half of a file, and the error says which file it was.
"""

import csv
import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from safetensors.numpy import save

from topicscope.ground.checked import DIGEST, one_line, parse_json, read_bytes, tensor_digest
from topicscope.ground.errors import InputError


def write(path: Path, content: bytes) -> None:
    """Write to a temporary name, then rename: readers see the old file or the new one, never a half."""
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


def append(path: Path, content: bytes) -> None:
    """Not whole or nothing: whoever reads on from a checkpoint cuts back to it."""
    try:
        with path.open("ab") as stream:
            stream.write(content)
    except OSError as error:
        raise named(error, path) from None


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes its name when it is whole, in place of one that has the name."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def write_json(path: Path, content: Any) -> None:
    write(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def write_yaml(path: Path, content: Any) -> None:
    write(path, yaml.safe_dump(content, sort_keys=False, width=120).encode())


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], note: Mapping[str, str] | None = None) -> None:
    """With a digest of everything in the header, which `read_tensors` checks."""
    arrays, header = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}, dict(note or {})
    write(path, save(arrays, metadata=header | {DIGEST: tensor_digest(arrays, header)}))


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write(path, buffer.getvalue())


def write_csv(path: Path, records: list[dict[str, Any]]) -> None:
    """A line a record; the columns are all the keys, in the order in which they turn up."""
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
        return parse_json(read_bytes(path), str(path))
    except InputError as error:
        raise InputError(f"{one_line(error)}; {again}") from None
