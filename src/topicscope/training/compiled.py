"""The figures of a step by compiled kernels, on a CPU: a few calls in place of many of PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from torch import Tensor

from topicscope.world import TopicModel

if TYPE_CHECKING:
    from topicscope.training.track import Tracker


class CompiledFigures:
    """Called as `Tracker.measure_trained`, it does the same."""

    def __init__(self, tracker: Tracker, topic_model: TopicModel) -> None:
        from topicscope.training import kernels

        self.kernels, weights, index = kernels, tracker.weights, tracker.index
        self.table = tracker.table.numpy()
        self.topics, self.vocabulary = topic_model.topics, topic_model.vocabulary
        self.rotation, self.means = index.get("rotation"), index.get("value_same")
        self.same = None if topic_model.blocks or self.means is None else topic_model.same_topic.astype(float)
        self.blocks = []  # weights, gradients, and where the parts lie in them
        for group, block, gradients in zip(weights.groups, weights.blocks, weights.gradient_blocks, strict=True):
            ends = np.cumsum([weights.pairs[part].shape[2] for part in group])
            starts = [0, *ends[:-1]]
            places = np.array([[a, b, index[f"norm_{part}"]] for part, a, b in zip(group, starts, ends, strict=True)])
            self.blocks.append((block.numpy(), gradients.numpy(), places))
            if "value" in group:
                self.value = block.numpy(), int(starts[group.index("value")])

    def __call__(self, loss: Float[Tensor, " E"] | float, number: int, before: Float[Tensor, "E n"]) -> None:
        row = self.table[number]
        row[0] = loss.numpy() if isinstance(loss, Tensor) else loss
        for block, gradients, places in self.blocks:
            self.kernels.norms(block, gradients, places, row)
        if self.rotation is not None:
            self.kernels.rotations(*self.value, before.numpy(), row[self.rotation])
        if self.means is not None:
            means = row[self.means : self.means + 3]
            if self.same is None:
                self.kernels.block_means(*self.value, self.topics, self.vocabulary, means)
            else:
                self.kernels.relation_means(*self.value, self.same, means)
