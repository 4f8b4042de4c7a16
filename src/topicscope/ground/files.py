"""Files and folders, each whole or not there: written under another name, then renamed. And metrics.jsonl.

A disk that is full leaves no half of a file, and the error says which file it was. metrics.jsonl has one JSON object
per step. It is written block by block; a checkpoint keeps the digest of the lines before it, so that a resumed run
continues with what it had written.
"""

import csv
import errno
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from jaxtyping import Float
from safetensors.numpy import save

from topicscope.ground.checked import (
    DIGEST,
    HEADER,
    MOST_OWN,
    fingerprint,
    parse_json,
    read_bytes,
    read_text,
    shown,
    tensor_digest,
)
from topicscope.ground.errors import InputError, refuse, refusing

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no room: on the disk, for this user, in one file


def write(path: Path, content: bytes) -> None:
    """Write a file whole: to a temporary name, then renamed. Readers see the old file or the new one, never a half."""
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
    """Not whole or nothing: who reads on from a checkpoint cuts back to it."""
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
    try:
        temporary.mkdir(parents=True)
        yield temporary
        shutil.rmtree(folder, ignore_errors=True)
        temporary.rename(folder)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            raise named(error, folder) from None
        # the system's error behind that of a library written in Rust, which only its text tells
        if number := re.search(r"\(os error (\d+)\)", str(error)):
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(folder)) from None
        raise


def write_json(path: Path, content: object) -> None:
    write(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def sealed(content: Mapping[str, object]) -> dict[str, Any]:
    """The content as a JSON file holds it, with a digest by which `unsealed` knows that nothing has changed since."""
    stored = json.loads(json.dumps(content))  # keys that are numbers become text, and are sorted as text
    return stored | {"digest": fingerprint(stored)}


def unsealed(stored: object) -> dict[str, Any]:
    """What was sealed, without its digest; ValueError where it is something else."""
    if not isinstance(stored, dict):
        raise ValueError("expected an object with a digest")
    content = {key: value for key, value in stored.items() if key != "digest"}
    if stored.get("digest") != fingerprint(content):
        raise ValueError("the content does not match its digest")
    return content


def write_yaml(path: Path, content: object) -> None:
    write(path, yaml.safe_dump(content, sort_keys=False, width=120).encode())


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], note: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file whole, with a digest of everything in its header, which `read_tensors` checks."""
    # not ascontiguousarray, which makes a vector of a single number
    arrays, header = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}, dict(note or {})
    sealed_header = json.dumps(header | {DIGEST: tensor_digest(arrays, header)}, sort_keys=True)
    write(path, save(arrays, metadata={HEADER: sealed_header}))


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write(path, buffer.getvalue())


def write_csv(path: Path, records: Sequence[Mapping[str, object]]) -> None:
    stream, columns = io.StringIO(), dict.fromkeys(key for record in records for key in record)
    writer = csv.DictWriter(stream, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    write(path, stream.getvalue().encode())


def read_json(path: Path) -> Any:
    """A JSON file of the project; InputError in one line where it cannot be read."""
    again = f"run the command that wrote {path.parent} again"
    refuse((not path.exists(), f"{path} is missing; {again}"))
    with refusing((InputError,), "", f"; {again}"):
        return parse_json(read_bytes(path, most=MOST_OWN), str(path), most=MOST_OWN)


METRICS = "metrics.jsonl"
ANEW = "start the run again (--force)"


def metric_lines(
    names: tuple[str, ...], table: Float[np.ndarray, "S M"], start: int, dev: dict[int, float], digits: int
) -> Iterator[str]:
    """The lines of metrics.jsonl: one JSON object per step. Measures that a step does not have are left out."""
    templates: dict[bytes, tuple[str, np.ndarray]] = {}
    finite = np.isfinite(table)
    for i, row in enumerate(table):
        key = finite[i].tobytes()
        if key not in templates:
            here = np.flatnonzero(finite[i])
            templates[key] = ('{"step": %d' + "".join(f', "{names[j]}": %.{digits}g' for j in here), here)
        template, here = templates[key]
        line = template % (start + i, *row[here].tolist())
        yield line + (f', "dev_loss": {dev[start + i]:.{digits}g}' if start + i in dev else "") + "}\n"


class MetricsFile:
    """The metrics of a run as they are written; `digest` is that of all lines so far."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / METRICS
        self.hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        return self.hash.hexdigest()

    def start(self) -> None:
        """No lines yet; what a run that was killed before its first checkpoint has left is removed."""
        self.path.unlink(missing_ok=True)

    def cut(self, lines: int, digest: str | None) -> None:
        """Keep the first lines, those of a checkpoint, if they are what it was made with."""
        kept = b"".join(read_bytes(self.path, "the metrics", MOST_OWN).splitlines(keepends=True)[:lines])
        self.hash = hashlib.sha256(kept)
        refuse(
            (
                self.digest != digest or kept.count(b"\n") != lines,
                f"{shown(self.path)} is not as it was at the checkpoint ({lines} whole lines expected); {ANEW}",
            )
        )
        write(self.path, kept)

    def sync(self) -> None:
        """On the disk, before the checkpoint that counts on it."""
        with self.path.open("ab") as stream:
            os.fsync(stream.fileno())

    def append(self, lines: Iterable[str]) -> None:
        block = "".join(lines).encode()
        append(self.path, block)
        self.hash.update(block)


def read_metrics(folder: Path) -> dict[str, Float[np.ndarray, " S"]]:
    path, damage = folder / METRICS, (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError)
    with refusing(damage, f"{shown(path)} is damaged (", f"); {ANEW}"), refusing((InputError,), "", f"; {ANEW}"):
        lines = [json.loads(line) for line in read_text(path, "the metrics", MOST_OWN).splitlines()]
        names = dict.fromkeys(name for line in lines for name in line)
        columns = {name: np.array([line.get(name, np.nan) for line in lines], dtype=float) for name in names}
        if lines and not np.array_equal(columns["step"], np.arange(len(lines))):
            raise ValueError("steps are missing")
    return columns
