"""A point's folder: result.json and curves.npz, whole or not there."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from topicscope.ground import files
from topicscope.sweeps.grid import Point
from topicscope.sweeps.inputs import inputs
from topicscope.sweeps.kinds import PointResult

RESULT, CURVES, POINTS = "result.json", "curves.npz", "points"
State = Literal["done", "failed", "missing", "damaged", "changed"]
"""'failed': the point's run raised an error. 'changed': the files that the point reads have changed since."""


def home(root: Path, point: Point) -> Path:
    return root / POINTS / point.name


def write(root: Path, point: Point, result: PointResult) -> None:
    """Written under another name, then renamed. Nothing in it depends on time or machine."""
    folder = home(root, point)
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    packed = npz(result.curves)
    content = {
        "kind": point.kind,
        "config": point.config,
        "axes": point.axes,
        "error": result.error,
        "measures": result.measures,
        "inputs": inputs(point),
        "curves": hashlib.sha256(packed).hexdigest(),
    }
    files.write(temporary / CURVES, packed)
    files.write_json(temporary / RESULT, content | {"digest": digest(content)})
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def read(root: Path, point: Point, *, fresh: bool = False) -> tuple[State, PointResult | None]:
    """What is there. Every byte is checked against its digest; with `fresh`, the files that the point read as well."""
    folder = home(root, point)
    if not folder.is_dir():
        return "missing", None
    try:
        content = json.loads((folder / RESULT).read_text(encoding="utf-8"))
        packed = (folder / CURVES).read_bytes()
        signed = {key: value for key, value in content.items() if key != "digest"}
        if (
            content["digest"] != digest(signed)
            or content["curves"] != hashlib.sha256(packed).hexdigest()
            or content["config"] != point.config
        ):
            return "damaged", None
        if fresh and content["inputs"] != inputs(point):
            return "changed", None
        with np.load(io.BytesIO(packed), allow_pickle=False) as opened:
            curves = {name: opened[name] for name in opened.files}
        result = PointResult(content["measures"], curves, content["error"])
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return "damaged", None
    return ("done" if result.error is None else "failed"), result


def digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()


def npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The same bytes for the same arrays: numpy would write the time of day into the archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            inner = io.BytesIO()
            np.lib.format.write_array(inner, np.ascontiguousarray(array), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            archive.writestr(entry, inner.getvalue(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
