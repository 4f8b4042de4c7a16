"""The snapshots of a training run: models that were kept on the way, found by the steps in their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from topicscope.ground import InputError
from topicscope.language.places import HUB_ID

STEP = re.compile(r"(?:step|checkpoint|global_step|iter)[-_]?(\d+)", re.IGNORECASE)
"""How snapshots are named by their step."""

FOLDERS = ("snapshots", "checkpoints")
"""Where the models of a run are kept; the second is what others call it."""


def find_snapshots(names: Sequence[str]) -> list[tuple[int, str]]:
    """Steps and models, in order of the steps.

    A name is a folder with snapshots in it, a model folder, or a hub id with a revision (OWNER/NAME@step1000).
    """
    snapshots = [(_step(model), model) for name in names for model in _models(name)]
    steps = [step for step, _ in snapshots]
    for step in steps:
        if steps.count(step) > 1:
            raise InputError(f"step {step} is there more than once; name the snapshots of one run")
    if len(snapshots) < 2:
        raise InputError(f"a timeline needs at least two snapshots; there is {len(snapshots)}")
    return sorted(snapshots)


def _models(name: str) -> list[str]:
    """The models inside a folder; or the name itself where it is a model."""
    path = Path(name)
    if not path.exists():
        if not HUB_ID.fullmatch(name):
            raise InputError(
                f"no such folder: {name} (expected snapshots of 'topicscope pretrain', model folders, "
                "or hub ids such as OWNER/NAME@step1000)"
            )
        return [name]
    for place in (path, *(path / folder for folder in FOLDERS)):
        inside = sorted(place.iterdir()) if place.is_dir() else []
        models = [str(p) for p in inside if STEP.search(p.name) and (p / "config.json").is_file()]
        if models:
            return models
    if path.is_dir() and not (path / "config.json").is_file():
        if (path / "run-000").is_dir():
            raise InputError(f"{name} holds several runs; name one of them, for example {path / 'run-000'}")
        raise InputError(
            f"{name} holds no snapshots "
            "(folders such as step-000100 or checkpoint-500, each with config.json and model.safetensors)"
        )
    return [name]


def _step(model: str) -> int:
    matches = STEP.findall(model.rsplit("/", 1)[-1])
    if not matches:
        known = "" if Path(model).exists() else "no such folder, and "
        raise InputError(
            f"{model}: {known}no step in its name; expected one such as step-100, checkpoint-500 or NAME@step1000"
        )
    return int(matches[-1])
