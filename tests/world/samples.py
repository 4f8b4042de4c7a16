"""What the tests of several rooms make from documents."""

import numpy as np
import torch

from topicscope.ground import Stream
from topicscope.world import (
    Batch,
    InfiniteDocuments,
    MaskedDocuments,
    Masking,
    Positions,
    TopicModel,
    mask_keys,
    masked_batches,
    stack,
    word_counts,
)


def keys(seed: int = 0) -> torch.Tensor:
    """The keys of masks."""
    return mask_keys(Stream.DEV_MASKS, seed)


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


def listed_batch(documents: list[MaskedDocuments], topic_model: TopicModel, *, list_queries: bool) -> Batch:
    """All documents of each of several models, whose query words are listed or not; in float64."""
    words = np.stack([one.documents.words for one in documents])
    models, size, longest = words.shape
    flat = [one.masks.flat + number * size * longest for number, one in enumerate(documents)]
    true, shown = ([getattr(one.masks, name) for one in documents] for name in ("true", "shown"))
    position = np.concatenate(flat)
    parts = (position, position // longest, *map(np.concatenate, (true, shown)), np.bincount(position // longest))
    masks = Positions(*map(torch.from_numpy, parts))
    counts = torch.from_numpy(word_counts(words.reshape(-1, longest), topic_model.vocabulary)).int()
    batches = masked_batches(counts.view(1, models, size, -1), masks, torch.float64, list_queries=list_queries)
    return batches.for_models().map(lambda part: part[0])
