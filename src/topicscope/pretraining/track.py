"""What is measured at every step, layer by layer: norms of W_K, W_Q and W_V, and the rotation of W_V.

The figures of a block of steps are read out together, so that a GPU does not wait at every step.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.measure import ROTATION_SPAN
from topicscope.pretraining.layers import PARTS
from topicscope.pretraining.model import AttentionLayer

BLOCK = 50
"""Steps that are read out together."""


class Tracker:
    """Row s describes the weights before step s, and their loss on batch s."""

    def __init__(self, layers: list[AttentionLayer]) -> None:
        self.layers = layers
        self.matrices = [getattr(layer, part) for part in PARTS for layer in layers]
        count, value = len(layers), layers[0].value
        self.names = (
            "loss",
            "lr",
            *(f"norm_{part}_{layer.name}" for part in PARTS for layer in layers),
            *(f"rotation_{layer.name}" for layer in layers),
        )
        self.table = torch.full((BLOCK, len(self.names)), math.nan, dtype=torch.float64, device=value.device)
        # W_V at the last steps, as a ring
        self.history = torch.zeros((ROTATION_SPAN, count, value.numel()), device=value.device)
        self.past_norms = np.full((ROTATION_SPAN, count), math.nan)  # oldest first
        self.start = self.row = 0  # step of the first row held, and rows held

    @torch.no_grad()
    def record(self, step: int, lr: float) -> None:
        row, count, ring = self.table[self.row], len(self.layers), self.history[step % ROTATION_SPAN]
        self.start = step if self.row == 0 else self.start
        row[1] = lr
        row[2 : 2 + 3 * count] = torch.stack(torch._foreach_norm(self.matrices))
        now = torch.stack([layer.value.flatten() for layer in self.layers]).float()
        row[2 + 3 * count :] = (ring * now).sum(1)  # |before| |now| cos; `rows` turns it into a rotation
        ring.copy_(now)
        self.row += 1

    def loss(self, loss: Float[Tensor, ""]) -> None:
        """Of the step that was just recorded."""
        self.table[self.row - 1, 0] = loss

    def rows(self) -> Float[np.ndarray, "S M"]:
        """The figures of all steps since the last call."""
        table, count = self.table[: self.row].cpu().numpy().copy(), len(self.layers)
        norms = np.concatenate([self.past_norms, table[:, 2 + 2 * count : 2 + 3 * count]])
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = table[:, 2 + 3 * count :] / (norms[ROTATION_SPAN:] * norms[:-ROTATION_SPAN])
        table[:, 2 + 3 * count :] = (1 - np.clip(cosine, -1, 1)) / 2
        self.past_norms = norms[len(norms) - ROTATION_SPAN :]
        self.row = 0
        self.table.fill_(math.nan)
        return table
