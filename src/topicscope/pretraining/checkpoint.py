"""A checkpoint, to resume a run from; and models in folders, final ones and snapshots. Each is whole or not there."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from topicscope.ground import InputError, read_tensors, write_tensors
from topicscope.language import quiet
from topicscope.pretraining.config import PretrainConfig

if TYPE_CHECKING:
    from topicscope.pretraining.loop import Loop

ADVICE = "start the run anew (force)"


def save(path: Path, loop: Loop) -> None:
    tensors = {f"model.{name}": tensor.detach().cpu().numpy() for name, tensor in loop.model.named_parameters()}
    for number, state in loop.optimizer.state_dict()["state"].items():
        tensors |= {
            f"optimizer.{number}.{name}": torch.as_tensor(value).cpu().numpy()
            for name, value in state.items()
            if value is not None
        }
    tensors |= {"history": loop.tracker.history.cpu().numpy(), "past_norms": loop.tracker.past_norms}
    tensors |= {f"rows.{name}": array for name, array in loop.rows.state().items()}
    note = {"step": str(loop.step), "fingerprint": fingerprint(loop.config), "text": loop.rows.fingerprint}
    write_tensors(path, tensors, note)


def load(path: Path, loop: Loop) -> int:
    """Put everything back; returns the step."""
    tensors = read_tensors(path, ADVICE)
    with safe_open(path, framework="numpy") as opened:
        note = opened.metadata() or {}
    if note.get("fingerprint") != fingerprint(loop.config):
        raise InputError(f"{path} belongs to a run with another config; resume with that config, or {ADVICE}")
    if note.get("text") != loop.rows.fingerprint:
        raise InputError(
            f"the text has changed since {path.parent} was stopped; bring back the text that it began with, or {ADVICE}"
        )
    try:
        with torch.no_grad():
            for name, parameter in loop.model.named_parameters():
                parameter.copy_(torch.from_numpy(tensors[f"model.{name}"]))
        state: dict[int, dict[str, Tensor]] = {}
        for name, array in tensors.items():
            if name.startswith("optimizer."):
                _, number, key = name.split(".")
                state.setdefault(int(number), {})[key] = torch.from_numpy(np.array(array))
        loop.optimizer.load_state_dict(loop.optimizer.state_dict() | {"state": state})
        loop.tracker.history.copy_(torch.from_numpy(tensors["history"]))
        loop.tracker.past_norms = tensors["past_norms"]
        loop.rows.load({name: tensors[f"rows.{name}"] for name in ("place", "rest", "store")})
        return int(note["step"])
    except (KeyError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} is damaged or of another version ({reason}); {ADVICE}") from None


def fingerprint(config: PretrainConfig) -> str:
    return hashlib.sha256(json.dumps(config.as_dict(), sort_keys=True).encode()).hexdigest()


def write_model(folder: Path, model: Any, tokenizer: Any) -> None:
    """A folder that AutoModel.from_pretrained reads: written under another name, then renamed."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    with quiet():
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
