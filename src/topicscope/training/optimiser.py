"""torch.optim over the blocks of an ensemble: members with the same hyperparameters share a parameter group."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from topicscope.model import Weights
from topicscope.training.config import Optimizer


class EnsembleOptimiser:
    """One optimiser for all members. Members must be ordered so that equal hyperparameters stand together."""

    def __init__(self, weights: Weights, members: Sequence[Optimizer]) -> None:
        self.weights = weights
        self._leaves: list[tuple[int, Tensor, Tensor]] = []  # block, parameter, its gradient
        groups, start = [], 0
        for settings, equal in itertools.groupby(members):
            stop = start + len(list(equal))
            parameters = []
            for index, (block, gradient) in enumerate(zip(weights.blocks, weights.gradient_blocks, strict=True)):
                leaf = block[start:stop].detach()  # shares memory with the block
                self._leaves.append((index, leaf, gradient[start:stop]))
                parameters.append(leaf)
            adam = {"betas": settings.betas, "eps": settings.eps}
            groups.append({"params": parameters, "lr": settings.lr, **(adam if settings.name == "adam" else {"momentum": settings.momentum})})
            start = stop
        kind = torch.optim.Adam if members[0].name == "adam" else torch.optim.SGD
        self.optimiser: torch.optim.Optimizer = kind(groups, lr=members[0].lr, fused=True)
        self._active: tuple[str, ...] | None = None

    def step(self, active: tuple[str, ...]) -> None:
        """Move the active parts along their gradients; the others, and their moments, stay as they are."""
        if active != self._active:
            moving = [any(part in active for part in group) for group in self.weights.groups]
            for index, leaf, gradient in self._leaves:
                leaf.grad = gradient if moving[index] else None
            self._active = active
        self.optimiser.step()

    def state(self) -> dict[str, Tensor]:
        """Moments and step counts, as flat named tensors."""
        return {
            f"{index}.{key}": value
            for index, (_, leaf, _) in enumerate(self._leaves)
            for key, value in self.optimiser.state.get(leaf, {}).items()
            if isinstance(value, Tensor)
        }

    def load(self, state: dict[str, Tensor]) -> None:
        for name, value in state.items():
            index, key = name.split(".", 1)
            leaf = self._leaves[int(index)][1]
            # torch keeps step counts of the fused optimisers beside the parameters, as float32
            self.optimiser.state[leaf][key] = value.to(leaf.device)
