"""What is measured at every step, in few calls and without leaving the cache; read out once a block."""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.measure import (
    ROTATION_SPAN,
    WordKinds,
    gram_block_means,
    gram_relation_means,
    matrix_block_means,
    relation_masks,
    rotations,
)
from topicscope.model import Weights
from topicscope.training.config import BLOCK, RunConfig
from topicscope.world import TopicModel

RELATIONS = ("same", "different", "diagonal")


class Tracker:
    """Row s describes the weights before step s: loss on batch s, norms, gradient norms, rotation, block means."""

    def __init__(self, weights: Weights, config: RunConfig, *, compiled: bool = False) -> None:
        topic_model, block = config.topic_model, weights.blocks[0]
        self.weights, self.topics = weights, topic_model.topics
        self.kinds: WordKinds | None = None
        self.penalties = config.objective.penalties(weights.trained)
        self.rotating, self.tables, self.grams = config.model.followed()
        self.matrices = [*self.tables, *self.grams]
        names = [
            "loss",
            *(["objective"] if self.penalties else []),
            *(f"{what}_{part}" for part in weights.trained for what in ("norm", "grad")),
            *(["rotation"] if self.rotating else []),
            *(f"{matrix}_{relation}" for matrix in self.matrices for relation in RELATIONS),
        ]
        self.index = {name: i for i, name in enumerate(names)}
        self.masks = relation_masks(topic_model.same_topic, block.dtype, block.device) if self.tables else None
        if self.grams and not topic_model.blocks:  # of words that may have several topics
            self.kinds = WordKinds.of(*topic_model.word_kinds, block)
        # of a block of steps; and a row more, for the figures of a step whose number only the device knows
        self.table = block.new_full((BLOCK + 1, len(names), weights.models), math.nan)
        # where each step's figures go, sliced once instead of at every step
        self.norm_slots = [
            [(pair, row[self.index[f"norm_{part}"] :][:2]) for part, pair in weights.pairs.items()]
            for row in self.table
        ]
        self.slots = [
            {matrix: row[self.index[f"{matrix}_same"] :][:3] for matrix in self.matrices} for row in self.table
        ]
        self.active: list[tuple[str, ...]] = []  # the parts that trained, of each step since the last call of `rows`
        size = weights.parts[self.rotating][0].numel() if self.rotating else 0
        self.history = block.new_zeros((ROTATION_SPAN, weights.models, size))  # the last steps, as a ring
        self.past_norms = np.full((ROTATION_SPAN, weights.models), math.nan)  # their norms, oldest first
        self.clock = block.new_zeros(2, dtype=torch.int64)  # row of the table and step of the next `record_next`
        self.expected = (0, 0)  # what the clock shows then
        self.compiled = CompiledFigures(self, topic_model) if compiled else None

    def record(self, step: int, loss: Float[Tensor, " E"] | float, active: tuple[str, ...]) -> None:
        """Measure the present weights, and the gradients of the active parts."""
        self.measure(loss, len(self.active), self.history[step % ROTATION_SPAN])
        self.active.append(active)

    def expect(self, step: int, active: tuple[str, ...]) -> None:
        """The next call of `record_next`, which a captured program makes by itself, is that of this step."""
        now = (len(self.active), step)
        if now != self.expected:
            for place, number in zip(self.clock, now, strict=True):
                place.fill_(number)
        self.expected = (now[0] + 1, step + 1)
        self.active.append(active)

    @torch.inference_mode()
    def record_next(self, loss: Float[Tensor, " E"]) -> None:
        """As `record`, in calls that are the same at every step: the clock says which step it is."""
        place = self.clock[1:] % ROTATION_SPAN
        past = self.history.index_select(0, place)
        self.measure(loss, BLOCK, past[0])
        self.table[:BLOCK].index_copy_(0, self.clock[:1], self.table[BLOCK:])
        self.history.index_copy_(0, place, past)
        self.clock.add_(1)

    def measure(self, loss: Float[Tensor, " E"] | float, number: int, before: Float[Tensor, "E n"]) -> None:
        """Put the figures into a row of the table, and the rotating part in place of itself ten steps before."""
        (self.measure_trained if self.compiled is None else self.compiled)(loss, number, before)
        for name, part in self.grams.items():
            vectors = self.weights.parts[part]
            means = (
                gram_block_means(self.topics, vectors)
                if self.kinds is None
                else gram_relation_means(self.kinds, vectors)
            )
            self.slots[number][name].copy_(means.mT)

    @torch.inference_mode()
    def measure_trained(self, loss: Float[Tensor, " E"] | float, number: int, before: Float[Tensor, "E n"]) -> None:
        """The loss, norms of all trained parts, rotation and block means of tables."""
        row, weights = self.table[number], self.weights
        row[0] = loss
        for pair, slot in self.norm_slots[number]:
            torch.linalg.vector_norm(pair, dim=2, out=slot)
        if self.rotating:
            now = weights.pairs[self.rotating][0]
            # |before| |now| cos; made a rotation in `rows`
            torch.sum(before.mul_(now), 1, out=row[self.index["rotation"]])
            before.copy_(now)
        if self.masks is not None:
            for name, part in self.tables.items():
                self.slots[number][name].copy_(matrix_block_means(self.masks, weights.pairs[part][0]).mT)

    def rows(self) -> Float[np.ndarray, "S M E"]:
        """The figures of all steps since the last call."""
        table, index = self.table[: len(self.active)].double().cpu().numpy().copy(), self.index
        if self.rotating:
            norms = np.concatenate([self.past_norms, table[:, index[f"norm_{self.rotating}"]]])
            table[:, index["rotation"]] = rotations(table[:, index["rotation"]], norms)
            self.past_norms = norms[-ROTATION_SPAN:]
        for part in self.weights.trained:
            table[[part not in active for active in self.active], index[f"grad_{part}"]] = math.nan
        if self.penalties:
            table[:, 1] = table[:, 0] + sum(
                rate * table[:, index[f"norm_{part}"]] ** 2 for part, rate in self.penalties.items()
            )
        self.active = []
        self.table.fill_(math.nan)
        return table


class CompiledFigures:
    """Called as `Tracker.measure_trained`, it does the same."""

    def __init__(self, tracker: Tracker, topic_model: TopicModel) -> None:
        from topicscope.training import kernels

        self.kernels, weights, index = kernels, tracker.weights, tracker.index
        self.table = tracker.table.numpy()
        self.topics, self.vocabulary = topic_model.topics, topic_model.vocabulary
        self.same = None if topic_model.blocks else topic_model.same_topic.astype(float)
        self.blocks = []  # weights, gradients, and where the parts lie in them
        start_of: dict[str, tuple[np.ndarray, int]] = {}
        for group, block, gradients in zip(weights.groups, weights.blocks, weights.gradient_blocks, strict=True):
            ends = np.cumsum([weights.pairs[part].shape[2] for part in group])
            starts = [0, *ends[:-1]]
            places = np.array([[a, b, index[f"norm_{part}"]] for part, a, b in zip(group, starts, ends, strict=True)])
            self.blocks.append((block.numpy(), gradients.numpy(), places))
            start_of |= {part: (block.numpy(), int(start)) for part, start in zip(group, starts, strict=True)}
        self.rotating = None if tracker.rotating is None else (*start_of[tracker.rotating], index["rotation"])
        self.tables = [(*start_of[part], index[f"{name}_same"]) for name, part in tracker.tables.items()]

    def __call__(self, loss: Float[Tensor, " E"] | float, number: int, before: Float[Tensor, "E n"]) -> None:
        row = self.table[number]
        row[0] = loss.numpy() if isinstance(loss, Tensor) else loss
        for block, gradients, places in self.blocks:
            self.kernels.norms(block, gradients, places, row)
        if self.rotating is not None:
            block, start, line = self.rotating
            self.kernels.rotations(block, start, before.numpy(), row[line])
        for block, start, line in self.tables:
            if self.same is None:
                self.kernels.block_means(block, start, self.topics, self.vocabulary, row[line : line + 3])
            else:
                self.kernels.relation_means(block, start, self.same, row[line : line + 3])
