"""A point's folder: result.json and curves.npz, whole or not there. Done, failed (with the error), missing, or damaged."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from topicscope.ground import files
from topicscope.sweeps.grid import Point
from topicscope.sweeps.inputs import inputs

RESULT, CURVES, POINTS = "result.json", "curves.npz", "points"
State = Literal["done", "failed", "missing", "damaged", "changed"]  # changed: what it reads is no longer what it read


@dataclass(frozen=True)
class Result:
    """What a point came to: figures of the run, and curves to look at; or the error that ended it."""

    measures: dict[str, Any] = field(default_factory=dict)
    curves: dict[str, np.ndarray] = field(default_factory=dict)
    error: str | None = None


def home(root: Path, point: Point) -> Path:
    return root / POINTS / point.name


def write(root: Path, point: Point, result: Result) -> None:
    """A folder under another name, then renamed. Numbers are those of the config alone: no times, no machine."""
    folder = home(root, point)
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    packed = npz(result.curves)
    about = {
        "kind": point.kind,
        "config": point.config,
        "axes": point.axes,
        "error": result.error,
        "measures": result.measures,
    }
    about["inputs"] = inputs(point)
    checked = about | {"curves": hashlib.sha256(packed).hexdigest()}
    files.write(temporary / CURVES, packed)
    files.write_json(temporary / RESULT, checked | {"digest": digest(checked)})
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def read(root: Path, point: Point, *, fresh: bool = False) -> tuple[State, Result | None]:
    """What is there. Every byte is checked against the digest that was written with it; with `fresh`, what it was made from too."""
    folder = home(root, point)
    if not folder.is_dir():
        return "missing", None
    try:
        found = json.loads((folder / RESULT).read_text(encoding="utf-8"))
        packed = (folder / CURVES).read_bytes()
        sealed = {key: value for key, value in found.items() if key != "digest"}
        if (
            found["digest"] != digest(sealed)
            or found["curves"] != hashlib.sha256(packed).hexdigest()
            or found["config"] != point.config
        ):
            return "damaged", None
        if fresh and found["inputs"] != inputs(point):
            return "changed", None
        with np.load(io.BytesIO(packed), allow_pickle=False) as opened:
            curves = {name: opened[name] for name in opened.files}
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return "damaged", None
    return ("failed" if found["error"] is not None else "done"), Result(found["measures"], curves, found["error"])


def digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()


def npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The same arrays, the same bytes: the library would write the time of day into the archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            inner = io.BytesIO()
            np.lib.format.write_array(inner, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(
                zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), inner.getvalue(), zipfile.ZIP_DEFLATED
            )
    return buffer.getvalue()
