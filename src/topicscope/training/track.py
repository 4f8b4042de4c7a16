"""What is measured at every step, in few calls and without leaving the cache; read out once a block."""

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
from topicscope.training.compiled import CompiledFigures
from topicscope.training.config import BLOCK, RunConfig

RELATIONS = ("same", "different", "diagonal")


class Tracker:
    """Row s describes the weights before step s: loss on batch s, norms, gradient norms, rotation, block means."""

    def __init__(self, weights: Weights, config: RunConfig, *, compiled: bool = False) -> None:
        model, topic_model, block = config.model, config.topic_model, weights.blocks[0]
        self.weights, self.topics = weights, topic_model.topics
        self.kinds: WordKinds | None = None
        self.penalties = config.objective.penalties(weights.trained)
        self.follow_value = "value" in weights.trained
        # W_V is a matrix over words only where its inputs and its outputs are words
        over_words = self.follow_value and model.embedding == "one-hot" and model.head != "untied"
        self.matrices = [*(["value"] if over_words else []), *(["gram"] if "embedding" in weights.trained else [])]
        names = [
            "loss",
            *(["objective"] if self.penalties else []),
            *(f"{what}_{part}" for part in weights.trained for what in ("norm", "grad")),
            *(["rotation"] if self.follow_value else []),
            *(f"{matrix}_{relation}" for matrix in self.matrices for relation in RELATIONS),
        ]
        self.index = {name: i for i, name in enumerate(names)}
        self.masks = relation_masks(topic_model.same_topic, block.dtype, block.device) if over_words else None
        if "gram" in self.matrices and not topic_model.blocks:  # of words that may have several topics
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
        size = weights.parts["value"][0].numel() if self.follow_value else 0
        self.history = block.new_zeros((ROTATION_SPAN, weights.models, size))  # W_V at the last steps, as a ring
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
        """Put the figures into a row of the table, and the present W_V in place of that of ten steps before."""
        (self.measure_trained if self.compiled is None else self.compiled)(loss, number, before)
        if "gram" in self.matrices:
            embedding = self.weights.parts["embedding"]
            means = (
                gram_block_means(self.topics, embedding)
                if self.kinds is None
                else gram_relation_means(self.kinds, embedding)
            )
            self.slots[number]["gram"].copy_(means.mT)

    @torch.inference_mode()
    def measure_trained(self, loss: Float[Tensor, " E"] | float, number: int, before: Float[Tensor, "E n"]) -> None:
        """The loss, norms of all trained parts, rotation and block means of W_V."""
        row, weights = self.table[number], self.weights
        row[0] = loss
        for pair, slot in self.norm_slots[number]:
            torch.linalg.vector_norm(pair, dim=2, out=slot)
        if self.follow_value:
            now = weights.pairs["value"][0]
            # |before| |now| cos; made a rotation in `rows`
            torch.sum(before.mul_(now), 1, out=row[self.index["rotation"]])
            before.copy_(now)
        if self.masks is not None:
            self.slots[number]["value"].copy_(matrix_block_means(self.masks, weights.pairs["value"][0]).mT)

    def rows(self) -> Float[np.ndarray, "S M E"]:
        """The figures of all steps since the last call."""
        table, index = self.table[: len(self.active)].double().cpu().numpy().copy(), self.index
        if self.follow_value:
            norms = np.concatenate([self.past_norms, table[:, index["norm_value"]]])
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
