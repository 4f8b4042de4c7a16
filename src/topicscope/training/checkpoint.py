"""Checkpoints: everything that the rest of a run depends on. Random streams are named: their state is the step."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open

from topicscope.ground import InputError, read_tensors, write_tensors
from topicscope.training.config import RunConfig
from topicscope.training.ensemble import Ensemble

ADVICE = "start the run anew with --force"


def fingerprint(configs: Sequence[RunConfig]) -> str:
    """What has to be the same for a checkpoint to be of use: the configs, and which of them run together."""
    text = json.dumps([config.as_dict() for config in configs], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def save(path: Path, ensemble: Ensemble) -> None:
    tensors = {f"block.{i}": block.cpu().numpy() for i, block in enumerate(ensemble.weights.blocks)}
    tensors |= {f"optimiser.{name}": value.cpu().numpy() for name, value in ensemble.optimiser.state().items()}
    tensors["history"] = ensemble.tracker.history.cpu().numpy()
    tensors["past_norms"] = ensemble.tracker.past_norms
    tensors["first_loss"] = ensemble.first_loss
    members = []
    for e, member in enumerate(ensemble.members):
        members.append({"dev": list(member.dev.items()), "status": member.status, "end": member.end})
        tensors |= {f"member.{e}.{name}": value for name, value in member.weights.items()}
    note = {
        "step": str(ensemble.step),
        "members": json.dumps(members),
        "fingerprint": fingerprint([m.config for m in ensemble.members]),
    }
    write_tensors(path, tensors, note)


def below(prefix: str, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def load(path: Path, ensemble: Ensemble) -> None:
    """Bring a fresh ensemble to where the checkpoint stands."""
    tensors = read_tensors(path, ADVICE)
    try:
        with safe_open(path, "np") as stream:
            note = stream.metadata() or {}
        if note["fingerprint"] != fingerprint([m.config for m in ensemble.members]):
            raise InputError(f"{path} belongs to a run with another config; resume with that config, or {ADVICE}")
        ensemble.step = int(note["step"])
        for i, block in enumerate(ensemble.weights.blocks):
            block.copy_(torch.from_numpy(tensors[f"block.{i}"]))
        remembered = below("optimiser.", tensors)
        ensemble.optimiser.load({name: torch.from_numpy(value) for name, value in remembered.items()})
        ensemble.tracker.history.copy_(torch.from_numpy(tensors["history"]))
        ensemble.tracker.past_norms = tensors["past_norms"]
        ensemble.first_loss = tensors["first_loss"]
        for e, stored in enumerate(json.loads(note["members"])):
            member = ensemble.members[e]
            member.dev = {int(step): float(loss) for step, loss in stored["dev"]}
            member.status, member.end = stored["status"], stored["end"]
            member.weights = below(f"member.{e}.", tensors)
    except InputError:
        raise
    except (KeyError, ValueError, RuntimeError, SafetensorError) as error:
        raise InputError(
            f"{path} is damaged or of another version ({' '.join(str(error).split())}); {ADVICE}"
        ) from None
