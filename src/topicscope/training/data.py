"""The documents and batches of one run. Steps are prepared in blocks; each block has a random stream of its own."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Stream, generator
from topicscope.training.config import RunConfig
from topicscope.world import Documents, InfiniteDocuments, Masked, Rows, masked_rows, read_documents, word_counts

BLOCK = 50
"""Steps whose batches are prepared together; checkpoints fall on multiples of it."""


class RunData:
    """Training and development documents of one run, and its stream of batches."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.train = self._documents(config.data.train_file, Stream.TRAIN_DOCUMENTS, config.data.documents)
        self.dev = self._documents(config.data.dev_file, Stream.DEV_DOCUMENTS, config.data.dev_documents)
        self.dev_masked = self.dev.masked(config.masking, config.topic_model, generator(config.seed, Stream.DEV_MASKS))
        self.layout = {"uniform": config.model.uniform_attention, "hide_masked": config.model.hide_masked}
        self._order = lru_cache(2)(self._draw_order)  # a block may need the end of one epoch and the start of the next

    def _documents(self, file: str | None, stream: Stream, count: int) -> Documents | InfiniteDocuments:
        config = self.config
        if file is not None:
            return read_documents(file, config.topic_model).take(slice(count))  # a shorter file is used whole
        return config.documents.sample(config.topic_model, count, generator(config.seed, stream))

    @cached_property
    def _counts(self) -> Float[np.ndarray, "D V"]:
        """Word counts of the training documents."""
        return word_counts(self.train.finite().words, self.config.topic_model.vocabulary)

    @cached_property
    def _fixed_masks(self) -> Masked:
        """The masks of the training documents, where they are drawn once."""
        rng = generator(self.config.seed, Stream.TRAIN_MASKS)
        return self.config.masking.draw(self.train.finite(), self.config.topic_model.words, rng)

    def _draw_order(self, epoch: int) -> Int[np.ndarray, " D"]:
        return generator(self.config.seed, Stream.ORDER, epoch).permutation(len(self.train))

    def rows_of_block(self, block: int) -> Int[np.ndarray, " BLOCK*B"]:
        """Documents seen in a block of steps: one epoch's order after another, with no document left out."""
        size = BLOCK * self.config.batch_size
        epochs, places = np.divmod(np.arange(block * size, (block + 1) * size), len(self.train))
        return np.concatenate([self._order(epoch)[places[epochs == epoch]] for epoch in np.unique(epochs).tolist()])

    def block(self, block: int) -> list[Rows]:
        """The batches of the steps BLOCK * block, ..., BLOCK * (block + 1) - 1."""
        config, rows, real = self.config, self.rows_of_block(block), np.dtype(self.config.dtype)
        if isinstance(self.train, InfiniteDocuments):
            taken, size = self.train.take(rows), config.batch_size
            return list(taken.batches(config.topic_model, config.masking, real, size=size, **self.layout))
        if config.masking.fresh:
            rng = generator(config.seed, Stream.TRAIN_MASKS, block)
            masks = config.masking.draw(self.train.take(rows), config.topic_model.words, rng)
        else:
            masks = self._fixed_masks.take(rows)
        return masked_rows(self._counts[rows], masks, config.batch_size, real, **self.layout)

    def dev_rows(self) -> list[Rows]:
        """The development set with its masks, which are drawn once."""
        config, real = self.config, np.dtype(self.config.dtype)
        return list(self.dev_masked.batches(config.topic_model, config.masking, real, **self.layout))
