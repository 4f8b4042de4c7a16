"""The collapsed pass by a compiled kernel, for one-hot words on a CPU: the same numbers in fewer calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.model.parts import ModelConfig, Objective
from topicscope.model.weights import Weights
from topicscope.world import Batch

if TYPE_CHECKING:
    from topicscope.model.kernels import Arrays, Space

LOSSES = ("cross-entropy", "squared", "squared-mean")  # by their number in the kernel


class CompiledPass:
    """The collapsed pass by compiled loops, for one-hot words on a CPU.

    Called with a batch and the names of the wanted parts, it does what `loss_and_gradient` does. Weights and gradients
    stay where PyTorch has them.

    Args:
        weights: Weights of E models, on the CPU.
        objective: Loss and L2 penalty.

    Example:
        >>> from topicscope.model import ModelConfig
        >>> CompiledPass.covers(ModelConfig()), CompiledPass.covers(ModelConfig(embedding="trained"))
        (True, False)
    """

    def __init__(self, weights: Weights, objective: Objective) -> None:
        from topicscope.model import kernels  # numba takes a third of a second, and a GPU does without

        self.kernels, self.weights = kernels, weights
        self.loss = LOSSES.index(objective.loss)
        self.penalties = objective.penalties(weights.trained)
        self.real = weights.blocks[0].numpy().dtype
        self.parts = [self._arrays(weights.member(e)) for e in range(weights.models)]
        self._gradients: dict[tuple[str, ...], list[Arrays]] = {}
        self._space: Space | None = None

    @staticmethod
    def covers(config: ModelConfig) -> bool:
        """Whether words are one-hot on both sides, so that the tables of words are the parts themselves."""
        return config.embedding == "one-hot" and config.head != "untied"

    def __call__(self, batch: Batch, wanted: Collection[str] | None = None) -> Float[Tensor, " E"]:
        """Loss of every model, without the penalty. The gradient goes to `weights.gradients`, penalty included."""
        assert batch.queries is None
        weights = self.weights
        wanted = weights.trained if wanted is None else tuple(wanted)
        seen = self.kernels.Seen(*(np.ascontiguousarray(part.numpy()) for part in batch.parts()))
        space, gradients = self._space_for(seen.row_weight.shape[1], seen.context.shape[2]), self._wanted(wanted)
        losses = [
            self.kernels.loss_and_gradient(self.loss, self.parts[e], gradients[e], seen, e, weights.models, space)
            for e in range(weights.models)
        ]
        if self.penalties:
            self._penalise(wanted)
        return torch.from_numpy(np.array(losses, dtype=self.real))

    @torch.inference_mode()
    def _penalise(self, wanted: tuple[str, ...]) -> None:
        for part, rate in self.penalties.items():
            if part in wanted:
                self.weights.gradients[part].add_(self.weights.parts[part], alpha=2 * rate)

    def _wanted(self, names: tuple[str, ...]) -> list[Arrays]:
        """Where the gradients of some parts go, for every model."""
        if names not in self._gradients:
            wanted = {name: self.weights.gradients[name] for name in names}
            self._gradients[names] = [
                self._arrays({name: part[e] for name, part in wanted.items()}) for e in range(self.weights.models)
            ]
        return self._gradients[names]

    def _arrays(self, parts: Mapping[str, Tensor]) -> Arrays:
        absent = {1: np.empty(0, self.real), 2: np.empty((0, 0), self.real)}
        return self.kernels.Arrays(
            *(
                parts[name].numpy() if name in parts else absent[1 if name.endswith("_bias") else 2]
                for name in self.kernels.Arrays._fields
            )
        )

    def _space_for(self, rows: int, vocabulary: int) -> Space:
        """Room for so many rows; more than is needed does no harm."""
        if self._space is None or len(self._space.attention) < rows:
            row, table = (rows, vocabulary), (vocabulary, vocabulary)
            projected = (len(self.parts[0].key), vocabulary)
            shapes = (row, row, row, table, projected, projected, vocabulary, self.kernels.LANES)
            self._space = self.kernels.Space(*(np.ones(shape, self.real) for shape in shapes))
        return self._space
