"""Batches of finite documents on a CPU, made by compiled loops: one per step, for all models side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int

from topicscope.world.batches import Batch
from topicscope.world.masking import Masking

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class CompiledBatches:
    """Called with the documents of a step, it gives the `Batch` that `masked_batches` gives, bit for bit.

    All tensors are on the CPU; `words` has a multiple of eight positions. `fixed` are the masked positions and what all
    positions show, where masks are drawn once. `of` says which data set each model has.
    """

    def __init__(
        self,
        words: Int[Tensor, "D n N"],
        lengths: Int[Tensor, "D n"],
        fixed: tuple[Bool[Tensor, "D n N"], Int[Tensor, "D n N"]] | None,
        keys: Int[Tensor, "4 D"],
        masking: Masking,
        real: torch.dtype,
        of: Int[Tensor, " E"] | None,
        *,
        vocabulary: int,
        uniform: bool,
        hide_masked: bool,
    ) -> None:
        import torch

        from topicscope.world import kernels

        self.kernels = kernels
        selected, shown = fixed or (torch.zeros(0, 0, 0, dtype=torch.bool), words[:0])
        self.source = kernels.Source(
            words=words.numpy(),
            lengths=lengths.numpy(),
            selected=selected.numpy(),
            shown=shown.numpy(),
            keys=keys.T.contiguous().numpy().view(np.uint64),
            p_mask=masking.p_mask,
            p_correct=masking.p_correct,
            p_random=masking.p_random,
            logs=torch.arange(words.shape[2] + 1, dtype=real).log_().numpy(),  # to the bit as `masked_batches` has them
            vocabulary=vocabulary,
            uniform=uniform,
            hide_masked=hide_masked,
        )
        self.of = np.arange(len(words)) if of is None else of.numpy()

    def __call__(self, rows: Int[np.ndarray, "D B"], first: int) -> Batch:
        """The batch of a step that sees the documents at `rows`; `first` is the number of documents seen before."""
        import torch

        return Batch(*map(torch.from_numpy, self.kernels.batch_of(self.source, rows, first, self.of)))
