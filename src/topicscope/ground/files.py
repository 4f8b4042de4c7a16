"""Files, each whole or not there: written under another name, then renamed."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from topicscope.ground.errors import InputError


def write(path: Path, content: bytes) -> None:
    """Write to a temporary name, then rename: readers see the old file or the new one, never a half."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def write_json(path: Path, content: Any) -> None:
    write(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def write_yaml(path: Path, content: Any) -> None:
    write(path, yaml.safe_dump(content, sort_keys=False, width=120).encode())


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], note: Mapping[str, str] | None = None) -> None:
    write(
        path,
        save(
            {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()},
            metadata=dict(note) if note else None,
        ),
    )


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


def read_tensors(path: Path, advice: str) -> dict[str, np.ndarray]:
    try:
        return load_file(path)
    except FileNotFoundError:
        raise InputError(f"{path} is not there; {advice}") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path} is damaged or cut off ({error}); {advice}") from None


def append_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.writelines(lines)
