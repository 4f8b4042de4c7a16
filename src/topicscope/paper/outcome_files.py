"""The files of a reproduction: one outcome per experiment, sealed, and the seconds that they took."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from topicscope.ground import InputError, Kind, files, folders, load_settings, parse_json, read_bytes
from topicscope.paper.experiment import Context, Outcome, Scale
from topicscope.paper.registry import EXPERIMENTS

FORMAT = 4
"""Of the outcome files; one of another format is computed again."""

REPRODUCE = Kind("reproduce", 3, ("outcomes",), resumes="always")


def record_of(experiment: str, context: Context, outcome: Outcome) -> dict[str, Any]:
    """What the outcome's file holds."""
    return {"format": FORMAT, "context": EXPERIMENTS[experiment].key(context), "outcome": asdict(outcome)}


def write_outcome(folder: Path, experiment: str, record: dict[str, Any]) -> None:
    path = outcome_path(folder, experiment)
    path.parent.mkdir(exist_ok=True)
    files.write(path, json.dumps(files.sealed(record)).encode())


def check_context(folder: Path, context: Context) -> None:
    """Refuse a folder that holds a reproduction of another scale or seed."""
    about = folders.read_about(folder)
    if about is None or about.kind != REPRODUCE.name or about.status == "starting":
        return  # killed before it had a config, a folder counts as empty
    stored = stored_context(folder)
    if stored.config() != context.config():
        raise InputError(
            f"{folder} holds a reproduction of scale {stored.scale}, seed {stored.seed}, not of scale {context.scale}, "
            f"seed {context.seed}; choose another folder"
        )


def stored_context(folder: Path) -> Context:
    """Scale and seed of the folder."""
    config = load_settings(folder / folders.CONFIG, own=True)
    if config.get("scale") not in get_args(Scale) or not isinstance(config.get("seed"), int):
        raise InputError(f"{folder / folders.CONFIG} is damaged: expected scale and seed; choose another folder")
    return Context(config["scale"], config["seed"])


def outcome_path(folder: Path, experiment: str) -> Path:
    return folder / "outcomes" / f"{experiment}.json"


def read_outcome(folder: Path, experiment: str, context: Context, *, inputs: bool = True) -> Outcome | None:
    """A stored outcome; None where it is damaged, was changed, or is of another context.

    Without `inputs` the models and texts that it was made from do not matter.
    """
    try:
        content = read_bytes(outcome_path(folder, experiment))
        stored = files.unsealed(parse_json(content, experiment, finite=False))  # figures may have gaps
        wanted = EXPERIMENTS[experiment].key(context) if inputs else context.config()
        if stored["format"] != FORMAT or any(stored["context"][key] != value for key, value in wanted.items()):
            return None
        return Outcome.from_dict(stored["outcome"])
    except (ValueError, KeyError, TypeError, AttributeError):  # InputError is a ValueError
        return None


def read_seconds(folder: Path) -> dict[str, float]:
    """By experiment, as far as environment.json says: it is no part of the result, and may be missing or damaged."""
    try:
        stored = folders.read_json(folder / folders.ENVIRONMENT)["seconds"]
        known = {name: float(stored[name]) for name in EXPERIMENTS if name in stored}
    except (ValueError, KeyError, TypeError):
        return {}
    return {name: value for name, value in known.items() if math.isfinite(value)}
