"""Files, each whole or not there: written under another name, then renamed.

metrics.jsonl is one JSON object per step: written block by block, cut back to a checkpoint, read back as columns.
"""

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from topicscope.ground.errors import InputError

METRICS = "metrics.jsonl"


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


def read_json(path: Path) -> Any:
    """A JSON file; InputError in one line where it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} is missing; run the command that wrote {path.parent} again") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is damaged ({' '.join(str(error).split())}); run the command that wrote {path.parent} again"
        ) from None


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


def metric_lines(
    names: tuple[str, ...], table: Float[np.ndarray, "S M"], start: int, dev: dict[int, float], digits: int
) -> Iterator[str]:
    """One JSON object per step; figures that a step does not have are left out."""
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


def truncate_metrics(path: Path, step: int, end: int | None = None) -> None:
    """Drop the lines of `step` and later, and a line that was cut off. `end`: lines of a model that ended before."""
    if not path.exists():
        raise InputError(f"{path} is missing, though a checkpoint is there; start the run anew (force)")
    written = path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines = list(takewhile(lambda line: line.endswith("\n") and json.loads(line)["step"] < step, written))
    if len(lines) != min(step, end if end is not None else step):
        raise InputError(
            f"{path} has {len(lines)} whole lines of the {step} steps that the checkpoint stands at; "
            "start the run anew (force)"
        )
    write(path, "".join(lines).encode())


def read_metrics(folder: Path) -> dict[str, Float[np.ndarray, " S"]]:
    """Column by column; NaN where a step has no such figure."""
    path = folder / METRICS
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        names = dict.fromkeys(name for line in lines for name in line)
        return {name: np.array([line.get(name, np.nan) for line in lines], dtype=float) for name in names}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({' '.join(str(error).split())}); run the command again (force)") from None
