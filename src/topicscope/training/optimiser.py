"""The optimisers, and how one of them moves an ensemble: members with the same hyperparameters by one call.

A new optimiser is a class of `Rule`, with `register_optimiser` on it. The steps of Adam and SGD are torch.optim's own
functions, without its classes around them: the classes import the compiler (2 s) and cost as much at every step as the
arithmetic. On a CPU compiled loops compute the same (kernels.py). The tests compare both with torch.optim.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeVar

import numpy as np
from pydantic import AfterValidator, model_validator
from pydantic_core import PydanticCustomError

from topicscope.ground import Decay, PositiveRate, Rate, Text, only_for, section

if TYPE_CHECKING:
    from torch import Tensor

    from topicscope.model import Weights


class Rule(ABC):
    """How an optimiser moves a block of weights along its gradient."""

    NAME: ClassVar[str]
    SETTINGS: ClassVar[tuple[str, ...]] = ()  # of `Optimizer`, those that only some optimisers have

    def moments(self, settings: Optimizer) -> tuple[str, ...]:
        """Names of what is remembered of each weight: numbers that start at zero."""
        return ()

    def state(self, settings: Optimizer, weights: Tensor) -> dict[str, Tensor]:
        """What is remembered before the first step."""
        return {name: weights.new_zeros(weights.shape) for name in self.moments(settings)}

    @abstractmethod
    def step(self, settings: Optimizer, weights: Tensor, gradients: Tensor, memory: dict[str, Tensor]) -> None:
        """Change the weights, and what is remembered, in place."""

    def kernel(
        self, settings: Optimizer, weights: np.ndarray, gradients: np.ndarray, memory: dict[str, np.ndarray]
    ) -> None:
        """The same by compiled loops, on a CPU; a rule without them leaves this out."""
        raise NotImplementedError


OPTIMISERS: dict[str, Rule] = {}  # by the name that `optimizer.name` has in configurations

Kind = TypeVar("Kind", bound=type[Rule])


def register_optimiser(cls: Kind) -> Kind:
    if cls.NAME in OPTIMISERS:
        raise ValueError(f"an optimiser {cls.NAME!r} exists already")
    OPTIMISERS[cls.NAME] = cls()
    return cls


def optimiser_names(quote: str = "") -> str:
    """All of them, as in 'adam or sgd'."""
    *others, last = (f"{quote}{name}{quote}" for name in OPTIMISERS)
    return f"{', '.join(others)} or {last}"


def _known(name: str) -> str:
    if name not in OPTIMISERS:
        raise PydanticCustomError("optimizer", "Input should be " + optimiser_names("'"))
    return name


@section
class Optimizer:
    """SGD or Adam, as in torch.optim.

    Attributes:
        name: 'adam' or 'sgd'.
        lr: Learning rate.
        momentum: Momentum of SGD.
        betas: Decay rates of Adam's moments.
        eps: Epsilon of Adam.

    Example:
        >>> from topicscope import Optimizer
        >>> Optimizer(name="sgd", lr=0.1).lr
        0.1
        >>> Optimizer(name="sgd", eps=1e-4)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        topicscope.ground.errors.InputError: Optimizer: optimizer.eps belongs to adam; ...
    """

    name: Annotated[Text, AfterValidator(_known)] = "adam"
    lr: PositiveRate = 0.01
    momentum: Decay = 0.0
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    eps: Rate = 1e-8

    @model_validator(mode="after")
    def _check(self) -> Optimizer:
        for setting in ("momentum", "betas", "eps"):
            owners = [name for name, rule in OPTIMISERS.items() if setting in rule.SETTINGS]
            if self.name not in owners:
                only_for(self, "optimizer", owners[0], setting)
        return self


@register_optimiser
class Adam(Rule):
    NAME = "adam"
    SETTINGS = ("betas", "eps")

    def moments(self, settings: Optimizer) -> tuple[str, ...]:
        return "moment1", "moment2"

    def state(self, settings: Optimizer, weights: Tensor) -> dict[str, Tensor]:
        return super().state(settings, weights) | {"steps": weights.new_zeros(()).float()}

    def step(self, settings: Optimizer, weights: Tensor, gradients: Tensor, memory: dict[str, Tensor]) -> None:
        from torch.optim.adam import adam

        adam(
            [weights],
            [gradients],
            [memory["moment1"]],
            [memory["moment2"]],
            [],
            [memory["steps"]],
            fused=True,
            amsgrad=False,
            beta1=settings.betas[0],
            beta2=settings.betas[1],
            lr=settings.lr,
            weight_decay=0.0,
            eps=settings.eps,
            maximize=False,
        )

    def kernel(
        self, settings: Optimizer, weights: np.ndarray, gradients: np.ndarray, memory: dict[str, np.ndarray]
    ) -> None:
        from topicscope.training import kernels

        memory["steps"] += 1
        state = memory["moment1"], memory["moment2"], float(memory["steps"])
        kernels.adam(weights, gradients, *state, settings.lr, *settings.betas, settings.eps)


@register_optimiser
class SGD(Rule):
    NAME = "sgd"
    SETTINGS = ("momentum",)

    def moments(self, settings: Optimizer) -> tuple[str, ...]:
        return ("momentum",) if settings.momentum else ()

    def step(self, settings: Optimizer, weights: Tensor, gradients: Tensor, memory: dict[str, Tensor]) -> None:
        from torch.optim.sgd import sgd

        sgd(
            [weights],
            [gradients],
            [memory.get("momentum")],
            fused=True,
            weight_decay=0.0,
            momentum=settings.momentum,
            lr=settings.lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )

    def kernel(
        self, settings: Optimizer, weights: np.ndarray, gradients: np.ndarray, memory: dict[str, np.ndarray]
    ) -> None:
        from topicscope.training import kernels

        kernels.sgd(weights, gradients, memory.get("momentum", weights[:0]), settings.lr, settings.momentum)


class Slice:
    """The rows of a block of members with the same hyperparameters, and what the optimiser remembers of them."""

    def __init__(self, part: str, settings: Optimizer, weights: Tensor, gradients: Tensor, *, compiled: bool) -> None:
        import torch

        rule = OPTIMISERS[settings.name]
        self.part = part  # one of the parts of the block, which are active together
        self.memory = rule.state(settings, weights)
        if compiled and type(rule).kernel is not Rule.kernel:
            remembered = {name: value.numpy() for name, value in self.memory.items()}  # the same numbers
            self.step = partial(rule.kernel, settings, weights.numpy(), gradients.numpy(), remembered)
        else:
            self.step = torch.inference_mode()(partial(rule.step, settings, weights, gradients, self.memory))


class EnsembleOptimiser:
    """Members must be ordered so that equal hyperparameters stand together."""

    def __init__(self, weights: Weights, members: Sequence[Optimizer], *, compiled: bool = False) -> None:
        equal = [list(same) for _, same in itertools.groupby(range(len(members)), key=lambda e: members[e])]
        self.slices = [
            Slice(parts[0], members[rows.start], block[rows], gradient[rows], compiled=compiled)
            for rows in (slice(same[0], same[-1] + 1) for same in equal)
            for parts, block, gradient in zip(weights.groups, weights.blocks, weights.gradient_blocks, strict=True)
        ]

    def step(self, active: tuple[str, ...]) -> None:
        """Move the active parts along their gradients; the others, and what is remembered of them, stay as they are."""
        for piece in self.slices:
            if piece.part in active:
                piece.step()

    def state(self) -> dict[str, Tensor]:
        return {f"{i}.{name}": value for i, piece in enumerate(self.slices) for name, value in piece.memory.items()}
