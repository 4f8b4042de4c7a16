"""The run folder: config.yaml, environment.json, metrics.jsonl, results.json, weights.safetensors; each file whole or not there.

run = read_run("runs/demo"); run.results["dev_loss"], run.weights["value"], run.metrics["norm_value"]
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from topicscope.ground.errors import InputError
from topicscope.ground.files import read_tensors, write, write_yaml

CONFIG, ENVIRONMENT, METRICS, RESULTS, WEIGHTS, CHECKPOINT = (
    "config.yaml",
    "environment.json",
    "metrics.jsonl",
    "results.json",
    "weights.safetensors",
    "checkpoint.safetensors",
)
ENSEMBLE, SNAPSHOTS = "ensemble.json", "snapshots"
FILES = (CONFIG, ENVIRONMENT, METRICS, RESULTS, WEIGHTS, CHECKPOINT, ENSEMBLE, "figure.png", "figure.svg")
MEMBERS = "run-[0-9][0-9][0-9]"
"""Folders of an ensemble's runs."""


def check(folder: Path, *, resume: bool, force: bool) -> None:
    """Whether a run may be written there. A folder with anything in it is refused, unless resumed or its runs given up (`force`)."""
    if resume and force:
        raise InputError("--resume and --force are both given: go on with the run that is there, or replace it?")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder} is a file; give a folder that is new or empty")
    if folder.is_dir() and any(folder.iterdir()) and not resume and not force:
        raise InputError(
            f"--out {folder} is not empty; add --resume to go on with that run, --force to replace it, or choose another folder"
        )


def prepare(folder: Path, *, force: bool = False) -> None:
    """Make the folder; with `force`, remove what runs wrote there (theirs alone), members of an ensemble included."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder} cannot be made: {error.strerror}; choose another folder") from None
    if force:
        for member in [folder, *folder.glob(MEMBERS)]:
            for name in FILES:
                (member / name).unlink(missing_ok=True)
            shutil.rmtree(member / SNAPSHOTS, ignore_errors=True)
            if member != folder and not any(member.iterdir()):
                member.rmdir()


def claim(folder: Path, config: dict[str, Any]) -> None:
    """Make a run's folder and write its config there; one that holds a run of another config is left alone."""
    prepare(folder)
    stored = folder / CONFIG
    if not stored.exists():
        write_yaml(stored, config)
        return
    try:
        same = yaml.safe_load(stored.read_text(encoding="utf-8")) == config
    except (OSError, ValueError, yaml.YAMLError):
        same = False
    if not same:
        raise InputError(f"{folder} holds a run with another config; choose another folder, or replace it with --force")


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """One process at a time writes to a run folder."""
    path = folder / ".lock"
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another process is writing to {folder}; wait for it or choose another folder") from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def environment(**more: Any) -> dict[str, Any]:
    """What the run ran on: everything that may differ between machines and is no part of the result."""
    packages = (
        "topicscope",
        "torch",
        "numpy",
        "pydantic",
        "safetensors",
        "transformers",
        "tokenizers",
        "accelerate",
        "tomotopy",
    )
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor_count": os.cpu_count(),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "packages": {name: _version(name) for name in packages},
        **more,
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def metric_lines(
    names: tuple[str, ...], table: np.ndarray, start: int, dev: dict[int, float], digits: int
) -> Iterator[str]:
    """One JSON object a step; figures that a step does not have are left out."""
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
    """Drop the lines of `step` and later, and a last line that was cut off. `end`: lines of a model that ended before."""
    if not path.exists():
        raise InputError(f"{path} is not there, though a checkpoint is; start the run anew with --force")
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n") or json.loads(line)["step"] >= step:
            break
        kept.append(line)
    if len(kept) != min(step, end if end is not None else step):
        raise InputError(
            f"{path} has {len(kept)} whole lines of the {step} steps that the checkpoint stands at; start the run anew with --force"
        )
    write(path, "".join(kept).encode())


@dataclass(frozen=True)
class StoredRun:
    """A run folder, read back."""

    folder: Path
    config: dict[str, Any]
    results: dict[str, Any]
    metrics: dict[str, np.ndarray]  # column by column; NaN where a step has no such figure
    weights: dict[str, np.ndarray]


def read_run(folder: str | os.PathLike[str]) -> StoredRun:
    """Read a finished run; InputError says in one line what is missing or damaged."""
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        raise InputError(
            f"{folder} is not a run folder (no {CONFIG}); give a folder that 'topicscope train --out' wrote"
        )
    if not (folder / RESULTS).is_file():
        raise InputError(
            f"the run in {folder} is not finished (no {RESULTS}); go on with 'topicscope train --out {folder} --resume'"
        )
    advice = "train again with --force"
    try:
        config = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
        results = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
        metrics = read_metrics(folder)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"{folder} is damaged ({' '.join(str(error).split())}); {advice}") from None
    if not isinstance(config, dict) or "topic_model" not in config:
        raise InputError(
            f"{folder} is no run of 'topicscope train'; 'topicscope report {folder}' shows runs of 'pretrain'"
        )
    return StoredRun(folder, config, results, metrics, read_tensors(folder / WEIGHTS, advice))


def read_metrics(folder: Path) -> dict[str, np.ndarray]:
    return columns([json.loads(line) for line in (folder / METRICS).read_text(encoding="utf-8").splitlines()])


def columns(lines: list[dict[str, float]]) -> dict[str, np.ndarray]:
    names = dict.fromkeys(name for line in lines for name in line)
    return {name: np.array([line.get(name, np.nan) for line in lines], dtype=float) for name in names}
