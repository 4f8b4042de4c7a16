"""Where a model is: a folder here, or a name on the hub. Checked without loading PyTorch or transformers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from topicscope.ground import InputError

HUB_ID = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*(/[\w.-]+)?)(@(?P<revision>[\w.-]+))?")
"""NAME, OWNER/NAME, or either with @REVISION: a branch, a tag or a commit."""

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5")


@dataclass(frozen=True)
class Place:
    """What to load a model from: a folder (`local`), or a name on the hub with a revision."""

    name: str
    local: bool
    revision: str = "main"


def model_place(name: str | Path) -> Place:
    """A folder (of a pretraining run: the model in it), or else the hub if the name can be one of the hub."""
    path = Path(name)
    if path.exists():
        if not path.is_dir():
            raise InputError(
                f"{name} is a file; expected a hub id, or a folder with config.json, model.safetensors, tokenizer.json"
            )
        inside = path / "model"
        nested = not (path / "config.json").exists() and (inside / "config.json").exists()
        return Place(str(inside if nested else path), local=True)
    match = HUB_ID.fullmatch(str(name))
    if match is None:
        raise InputError(
            f"no such model: {name} "
            "(expected a folder with config.json and model.safetensors, or a hub id such as bert-base-uncased)"
        )
    return Place(match["name"], local=False, revision=match["revision"] or "main")


def check_model(name: str | Path) -> Place:
    """The place of a model, once it is known that a folder holds one whose weights run no code when opened."""
    place = model_place(name)
    folder = Path(place.name)
    if not place.local:
        return place
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} is not a model folder: it has no config.json")
    if not list(folder.glob("*.safetensors")):
        pickles = [path.name for pattern in PICKLES for path in folder.glob(pattern)]
        if pickles:
            raise InputError(
                f"{folder} has its weights only as {pickles[0]}, a format that can run code when opened; "
                "convert it to safetensors first"
            )
        raise InputError(f"{folder} has no weights (model.safetensors)")
    return place
