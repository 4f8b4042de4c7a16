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
    """Makes batches in compiled loops on the CPU. Called with the documents of a step, it returns their `Batch`.

    The result equals that of `masked_batches` bit for bit.

    Args:
        words: (D x n x N) Word ids of all documents; N is a multiple of eight.
        lengths: (D x n) Words per document.
        fixed: Masked positions and what all positions show (D x n x N each), where masks are drawn once; else None.
        keys: (4 x D) Random keys of the masks, from `mask_keys`.
        masking: The masking scheme.
        real: Floating-point type of the batches.
        of: (E) The data set of each model; None: one model per data set.
        vocabulary: V.
        uniform: As in `masked_batches`.
        hide_masked: As in `masked_batches`.

    Example:
        >>> import torch
        >>> from topicscope.ground import Stream
        >>> from topicscope.world import mask_keys
        >>> words, keys = torch.tensor([[[1, 2, 3, 4, 1, 2, 3, 4]]]), mask_keys(Stream.TRAIN_MASKS, 0)
        >>> layout = {"vocabulary": 5, "uniform": True, "hide_masked": False}
        >>> lengths = torch.tensor([[8]])
        >>> make = CompiledBatches(words, lengths, None, keys, Masking(p_mask=1.0), torch.float64, None, **layout)
        >>> batch = make(np.array([[0]]), first=0)
        >>> len(batch.target), round(float(batch.context.sum()), 12)
        (8, 1.0)
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
