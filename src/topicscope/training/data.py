"""The documents and batches of one run. Blocks of steps are prepared together, and each block has a random stream of its own."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Int

from topicscope.ground import Stream, generator
from topicscope.training.config import RunConfig
from topicscope.world import Documents, Masked, Rows, infinite_rows, masked_rows, read_documents, word_counts

BLOCK = 50
"""Steps whose batches are prepared together; checkpoints fall on multiples of it."""

DEV_BATCH = 500
"""Documents evaluated at a time."""


class RunData:
    """Training and development documents of one run, and its stream of batches."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.train = self._documents(config.data.train_file, Stream.TRAIN_DOCUMENTS, config.data.documents)
        self.dev = self._documents(config.data.dev_file, Stream.DEV_DOCUMENTS, config.data.dev_documents)
        self.dev_masked = self._mask_all(self.dev, Stream.DEV_MASKS)
        self.layout = {"uniform": config.model.uniform_attention, "hide_masked": config.model.hide_masked}
        self.counts = None if self.train.words is None else word_counts(self.train.words, config.topic_model.vocabulary)
        self.train_masked = None if config.masking.fresh else self._mask_all(self.train, Stream.TRAIN_MASKS)
        self._orders: dict[int, Int[np.ndarray, " D"]] = {}

    def _documents(self, file: str | None, stream: Stream, count: int) -> Documents:
        config = self.config
        if file is not None:
            documents = read_documents(file, config.topic_model)
            cut = slice(0, count)  # at most so many; a shorter file is used whole
            return dataclasses.replace(
                documents,
                words=documents.words[cut] if documents.words is not None else None,
                lengths=documents.lengths[cut],
            )
        return config.documents.sample(config.topic_model, count, generator(config.seed, stream))

    def _mask_all(self, documents: Documents, stream: Stream) -> Masked | None:
        if documents.infinite:
            return None
        return self.config.masking.draw(documents, self.config.topic_model.words, generator(self.config.seed, stream))

    def _order(self, epoch: int) -> Int[np.ndarray, " D"]:
        if epoch not in self._orders:
            self._orders = {e: order for e, order in self._orders.items() if e == epoch - 1}
            self._orders[epoch] = generator(self.config.seed, Stream.ORDER, epoch).permutation(len(self.train))
        return self._orders[epoch]

    def rows_of_block(self, block: int) -> Int[np.ndarray, " BLOCK*B"]:
        """Documents seen in a block of steps: one epoch's order after another, with no document left out."""
        size = BLOCK * self.config.batch_size
        position, stop = block * size, (block + 1) * size
        pieces = []
        while position < stop:
            epoch, offset = divmod(position, len(self.train))
            piece = self._order(epoch)[offset : offset + stop - position]
            pieces.append(piece)
            position += len(piece)
        return np.concatenate(pieces)

    def block(self, block: int) -> list[Rows]:
        """The batches of the steps BLOCK * block, ..., BLOCK * (block + 1) - 1."""
        config, rows = self.config, self.rows_of_block(block)
        if self.counts is None:
            assert self.train.proportions is not None
            batches = self.train.proportions[rows].reshape(BLOCK, config.batch_size, -1)
            return [infinite_rows(config.topic_model, config.masking, batch, **self.layout) for batch in batches]
        if self.train_masked is None:
            rng = generator(config.seed, Stream.TRAIN_MASKS, block)
            masked = config.masking.draw(self.train, config.topic_model.words, rng, rows)
        else:
            masked = self.train_masked.take(rows)
        return masked_rows(self.counts[rows], masked, config.batch_size, np.dtype(config.dtype), **self.layout)

    def dev_rows(self) -> list[Rows]:
        """The development set with its masks, which are drawn once."""
        return dev_rows(self.config, self.dev, self.dev_masked, **self.layout)


def dev_rows(
    config: RunConfig,
    dev: Documents,
    masked: Masked | None,
    *,
    uniform: bool,
    hide_masked: bool,
    batch: int = DEV_BATCH,
) -> list[Rows]:
    if masked is None or dev.words is None:
        assert dev.proportions is not None
        pieces = [dev.proportions[i : i + batch // 10] for i in range(0, len(dev), batch // 10)]
        return [
            infinite_rows(config.topic_model, config.masking, piece, uniform=uniform, hide_masked=hide_masked)
            for piece in pieces
        ]
    counts = word_counts(dev.words, config.topic_model.vocabulary)
    return masked_rows(counts, masked, batch, np.dtype(config.dtype), uniform=uniform, hide_masked=hide_masked)
