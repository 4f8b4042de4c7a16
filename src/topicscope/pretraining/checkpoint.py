"""A state to resume from, and models that are kept: safetensors, each whole or not there."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from topicscope.ground import InputError, files
from topicscope.language import quiet
from topicscope.pretraining.config import PretrainConfig
from topicscope.pretraining.data import Rows
from topicscope.pretraining.track import Tracker

STATE, MODEL, TOKENIZER, CHECKPOINTS = "state.safetensors", "model", "tokenizer", "checkpoints"
ADVICE = "start the run anew with --force"


def save(
    path: Path,
    step: int,
    config: PretrainConfig,
    model: Any,
    optimizer: torch.optim.Optimizer,
    tracker: Tracker,
    rows: Rows,
) -> None:
    tensors = {f"model.{name}": tensor.detach().cpu().numpy() for name, tensor in model.named_parameters()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {
            f"optimizer.{number}.{name}": torch.as_tensor(value).cpu().numpy()
            for name, value in state.items()
            if value is not None
        }
    tensors |= {"history": tracker.history.cpu().numpy(), "past_norms": tracker.past_norms}
    tensors |= {f"rows.{name}": array for name, array in rows.state().items()}
    files.write_tensors(
        path, tensors, {"step": str(step), "fingerprint": fingerprint(config), "text": rows.fingerprint}
    )


def load(
    path: Path, config: PretrainConfig, model: Any, optimizer: torch.optim.Optimizer, tracker: Tracker, rows: Rows
) -> int:
    """Puts everything back, and returns the step."""
    tensors = files.read_tensors(path, ADVICE)
    with safe_open(path, framework="numpy") as opened:
        note = opened.metadata() or {}
    if note.get("fingerprint") != fingerprint(config):
        raise InputError(f"{path} belongs to a run with another config; resume with that config, or {ADVICE}")
    if note.get("text") != rows.fingerprint:
        raise InputError(
            f"the text has changed since {path.parent} was stopped; bring back the text that it began with, or {ADVICE}"
        )
    try:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(torch.from_numpy(tensors[f"model.{name}"]))
        state: dict[int, dict[str, Tensor]] = {}
        for name, array in tensors.items():
            if name.startswith("optimizer."):
                _, number, what = name.split(".")
                state.setdefault(int(number), {})[what] = torch.from_numpy(np.array(array))
        optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
        tracker.history.copy_(torch.from_numpy(tensors["history"]))
        tracker.past_norms = tensors["past_norms"]
        rows.load({name: tensors[f"rows.{name}"] for name in ("place", "rest", "store")})
        return int(note["step"])
    except (KeyError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{path} is damaged or of another version ({' '.join(str(error).split())}); {ADVICE}"
        ) from None


def fingerprint(config: PretrainConfig) -> str:
    return hashlib.sha256(json.dumps(config.as_dict(), sort_keys=True).encode()).hexdigest()


def keep_model(folder: Path, model: Any, tokenizer: Any) -> None:
    """A folder that AutoModel.from_pretrained reads: written under another name, then renamed."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    with quiet():
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def kept(folder: Path) -> list[tuple[int, Path]]:
    """The models of a run by step."""
    return sorted(
        (int(path.name.removeprefix("step-")), path)
        for path in (folder / CHECKPOINTS).glob("step-[0-9]*")
        if path.is_dir()
    )
