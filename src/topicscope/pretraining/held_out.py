"""The loss on text that a run is not trained on.

It is taken without dropout. Rows and masks are the same every time, and the same for every seed.
"""

from contextlib import AbstractContextManager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.ground import Stream
from topicscope.pretraining.batches import Batches
from topicscope.pretraining.model import MaskedLoss, Masker


class HeldOutLoss:
    """Rows are masked one by one: masks do not depend on how many go through the model together."""

    def __init__(self, batches: Batches, tokenizer: Any, rank: int) -> None:
        config = batches.config
        self.every, self.last = config.held_out.every, config.steps
        rows = batches.rows.held_out_rows(config.held_out.rows)
        masker = Masker(tokenizer, config.masking, 0)
        masked = [masker(rows[number : number + 1], 0, number, Stream.HELD_OUT_TOKENS) for number in range(len(rows))]
        self.places = sum(len(targets) for _, _, targets in masked)
        parts = [masked[start : start + batches.micro] for start in range(0, len(masked), batches.micro)]
        self.mine = [batches.on_device(together(part)) for part in parts[rank :: batches.processes]]
        self.zero = torch.zeros((), device=batches.device)

    def due(self, step: int) -> bool:
        return self.places > 0 and (step % self.every == 0 or step == self.last)

    @torch.no_grad()
    def __call__(self, loss_of: MaskedLoss, precision: AbstractContextManager[Any]) -> Float[Tensor, ""]:
        """This process's share of the mean over all masked places."""
        loss_of.eval()
        with precision:
            loss = sum((loss_of(*part) for part in self.mine), self.zero) / self.places
        loss_of.train()
        return loss


def together(rows: list[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Masked rows as one micro-batch."""
    shown, places, targets = zip(*rows, strict=True)
    length = shown[0].shape[1]
    return torch.cat(shown), torch.cat([at + i * length for i, at in enumerate(places)]), torch.cat(targets)
