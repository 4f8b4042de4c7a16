"""Adam and SGD over the blocks of an ensemble: members with the same hyperparameters are moved by one call.

These are torch.optim's own functions, without its classes around them: the classes import the compiler (2 s) and cost
as much at every step as the arithmetic. On a CPU compiled loops compute the same (kernels.py). The tests hold both
against torch.optim.Adam and torch.optim.SGD.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from topicscope.model import Weights
from topicscope.training.config import Optimizer


@dataclass
class Slice:
    """The rows of a block of members with the same hyperparameters, and what the optimiser remembers of them."""

    part: str  # one of the parts of the block, which are active together
    settings: Optimizer
    weights: Tensor
    gradients: Tensor
    compiled: bool
    memory: dict[str, Tensor] = field(init=False)

    def __post_init__(self) -> None:
        self.memory = self.blank()
        if self.compiled:
            from topicscope.training import kernels

            self.kernels, self.arrays = kernels, (self.weights.numpy(), self.gradients.numpy())
            self.remembered = {name: value.numpy() for name, value in self.memory.items()}  # the same numbers

    @torch.inference_mode()
    def step(self) -> None:
        s, memory = self.settings, self.memory
        if s.name == "adam":
            adam(
                [self.weights],
                [self.gradients],
                [memory["moment1"]],
                [memory["moment2"]],
                [],
                [memory["steps"]],
                fused=True,
                amsgrad=False,
                beta1=s.betas[0],
                beta2=s.betas[1],
                lr=s.lr,
                weight_decay=0.0,
                eps=s.eps,
                maximize=False,
            )
        else:
            sgd(
                [self.weights],
                [self.gradients],
                [memory.get("momentum")],
                fused=True,
                weight_decay=0.0,
                momentum=s.momentum,
                lr=s.lr,
                dampening=0.0,
                nesterov=False,
                maximize=False,
            )

    def compiled_step(self) -> None:
        s, memory = self.settings, self.remembered
        if s.name == "adam":
            memory["steps"] += 1
            moments = memory["moment1"], memory["moment2"]
            self.kernels.adam(*self.arrays, *moments, float(memory["steps"]), s.lr, *s.betas, s.eps)
        elif s.momentum:
            self.kernels.sgd_with_momentum(*self.arrays, memory["momentum"], s.lr, s.momentum)
        else:
            self.kernels.sgd(*self.arrays, s.lr)

    def blank(self) -> dict[str, Tensor]:
        """What is remembered before the first step; plain SGD remembers nothing."""
        if self.settings.name == "adam":
            steps = torch.zeros((), dtype=torch.float32, device=self.weights.device)
            return {
                "moment1": torch.zeros_like(self.weights),
                "moment2": torch.zeros_like(self.weights),
                "steps": steps,
            }
        return {"momentum": torch.zeros_like(self.weights)} if self.settings.momentum else {}


class EnsembleOptimiser:
    """Members must be ordered so that equal hyperparameters stand together."""

    def __init__(self, weights: Weights, members: Sequence[Optimizer], *, compiled: bool = False) -> None:
        self.slices: list[Slice] = []
        for settings, equal in itertools.groupby(range(len(members)), key=lambda e: members[e]):
            first, *others = equal
            rows = slice(first, first + 1 + len(others))
            for parts, block, gradient in zip(weights.groups, weights.blocks, weights.gradient_blocks, strict=True):
                self.slices.append(Slice(parts[0], settings, block[rows], gradient[rows], compiled))

    def step(self, active: tuple[str, ...]) -> None:
        """Move the active parts along their gradients; the others, and what is remembered of them, stay as they are."""
        for piece in self.slices:
            if piece.part in active:
                (piece.compiled_step if piece.compiled else piece.step)()

    def state(self) -> dict[str, Tensor]:
        """Moments and step counts, as flat named tensors."""
        return {f"{i}.{name}": value for i, piece in enumerate(self.slices) for name, value in piece.memory.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` gave. Values are copied: a captured program knows the tensors by their place."""
        for name, value in self.state().items():
            value.copy_(state[name])
