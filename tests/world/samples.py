"""What the tests of several rooms make from documents."""

from __future__ import annotations

import numpy as np
import torch

from topicscope.world import Batch, InfiniteDocuments, MaskedDocuments, Masking, TopicModel, stack


def one_batch(
    documents: MaskedDocuments | InfiniteDocuments,
    topic_model: TopicModel,
    masking: Masking,
    dtype: torch.dtype = torch.float64,
    *,
    uniform: bool = False,
    hide_masked: bool = False,
) -> Batch:
    """All documents in one batch of one model."""
    real = np.dtype(str(dtype).removeprefix("torch."))
    size = len(documents)
    return stack(
        list(documents.batches(topic_model, masking, real, uniform=uniform, hide_masked=hide_masked, size=size)), dtype
    )
