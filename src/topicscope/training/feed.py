"""The batches that the models of an ensemble see, step by step, made on their device for all of them at once.

Models with the same seed have the same data. What a model sees at a step is named by its seed and the step alone: it
does not depend on the device, on the steps before, or on the models beside it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from topicscope.ground import Stream, streams
from topicscope.training.config import BLOCK, steps_at_once
from topicscope.training.data import RunData
from topicscope.world import (
    PADDING,
    Batch,
    Batches,
    CompiledBatches,
    Documents,
    InfiniteDocuments,
    Positions,
    mask_keys,
    masked_batches,
    stack,
    word_counts,
)

FEW = 2  # query words are listed where the vocabulary has at least so many times as many words
PADDED = {"cpu": 1, "cuda": 64}  # rows and targets are rounded up to multiples: a program of a GPU has fixed sizes


@dataclass(frozen=True)
class Place:
    """The batch of a step; on a GPU one of several that were made together."""

    together: Batch  # with a number: the parts of several batches, which have one more axis in front
    number: int | None = None

    def batch(self) -> Batch:
        return self.together if self.number is None else self.together.map(lambda part: part[self.number])


class Feed:
    """Batches of all data sets, of which there is one per seed; `of` says which of them each model sees."""

    def __init__(
        self,
        data: Sequence[RunData],
        of: Sequence[int],
        device: torch.device,
        dtype: torch.dtype,
        *,
        compiled: bool = False,
    ) -> None:
        self.data, self.device, self.dtype = data, device, dtype
        self.config = data[0].config
        self.of = None if list(of) == list(range(len(data))) else torch.tensor(of, device=device)
        self.documents = len(data[0].train)
        self.batch = min(self.config.batch_size, self.documents)  # documents of a step
        self._orders: dict[int, Int[Tensor, "D n"]] = {}
        self.text: Text | None = None if isinstance(data[0].train, InfiniteDocuments) else Text(data, device, dtype)
        longest = 0 if self.text is None else self.text.words.shape[2]  # of a file: what it holds
        self.at_once = steps_at_once(self.config, len(data), device.type, longest)
        self._ahead: Ahead | None = Ahead(self) if device.type == "cuda" and self.text is not None else None
        self._compiled = self.text.compiled(self.of) if compiled and self.text is not None else None

    def order(self, epoch: int) -> Int[Tensor, "D n"]:
        if epoch not in self._orders:  # steps may need the end of one epoch and the start of the next
            self._orders = {e: order for e, order in self._orders.items() if e == epoch - 1}
            keys = torch.tensor([[streams.key_of(data.config.seed, Stream.ORDER, epoch)] for data in self.data])
            numbers = streams.bits(keys.to(self.device), torch.arange(self.documents, device=self.device))
            self._orders[epoch] = numbers.argsort(dim=1, stable=True)
        return self._orders[epoch]

    def rows(self, first: int, count: int) -> Int[Tensor, "S D B"]:
        """The documents that are seen in some steps: one epoch's order after another, with no document left out."""
        start, end = first * self.batch, (first + count) * self.batch
        epochs = range(start // self.documents, -(-end // self.documents))
        orders = torch.cat([self.order(epoch) for epoch in epochs], 1)
        skipped = start - epochs[0] * self.documents
        return orders[:, skipped : skipped + end - start].view(len(self.data), count, -1).transpose(0, 1).contiguous()

    def pieces(self, first: int, count: int) -> list[tuple[int, int]]:
        """The first of the steps that are made together, and how many they are."""
        end = first + count
        return [(start, min(self.at_once, end - start)) for start in range(first, end, self.at_once)]

    def steps(self, first: int, count: int) -> Iterator[Place]:
        pieces, end = self.pieces(first, count), first + count
        following = [*pieces[1:], *self.pieces(end, min(BLOCK, self.config.total_steps - end))[:1], None]
        for piece, coming in zip(pieces, following, strict=False):
            if self.text is None:
                yield from self._infinite(*piece)
            elif self._ahead is not None:
                together = self._ahead.take(*piece)
                yield from (Place(together, step) for step in range(piece[1]))
                if coming is not None:
                    self._ahead.make(*coming)  # while the device is busy with the steps
            elif self._compiled is not None:
                rows = self.rows(*piece).numpy()
                for step in range(piece[1]):
                    yield Place(self._compiled(rows[step], (piece[0] + step) * self.batch))
            else:
                yield from map(Place, self.made(*piece).each(self.of))

    def made(self, first: int, count: int) -> Batches:
        assert self.text is not None
        return self.text.batches(self.rows(first, count), first * self.batch)

    def _infinite(self, first: int, count: int) -> Iterator[Place]:
        documents = [data.train for data in self.data if isinstance(data.train, InfiniteDocuments)]
        for rows in self.rows(first, count).cpu().numpy():
            batches = [
                next(iter(data.task.rows(train.take(seen), self.config.dtype, size=self.batch)))
                for data, train, seen in zip(self.data, documents, rows, strict=True)
            ]
            yield Place(stack(batches, self.dtype, self.of).to(self.device))


class Ahead:
    """Batches of coming steps, made on a GPU beside the steps before them."""

    def __init__(self, feed: Feed) -> None:
        self.feed, self.stream = feed, torch.cuda.Stream(feed.device)  # type: ignore[no-untyped-call]
        self.made: tuple[int, int, Batch] | None = None

    def make(self, first: int, count: int) -> Batch:
        main = torch.cuda.current_stream(self.feed.device)
        with torch.cuda.stream(self.stream):
            together = self.feed.made(first, count).for_models(self.feed.of)
        for part in together.parts():
            part.record_stream(main)  # its memory is not given to others before the steps have read it
        self.made = first, count, together
        return together

    def take(self, first: int, count: int) -> Batch:
        made = self.made if self.made is not None and self.made[:2] == (first, count) else None
        together = self.make(first, count) if made is None else made[2]
        self.made = None
        torch.cuda.current_stream(self.feed.device).wait_stream(self.stream)
        return together


class Text:
    """The masked task on finite documents of D data sets: their words on a device, and the masks of every step."""

    def __init__(self, data: Sequence[RunData], device: torch.device, dtype: torch.dtype) -> None:
        self.config, self.device, self.dtype = data[0].config, device, dtype
        documents, vocabulary = [filled_up(one.train.finite()) for one in data], self.config.topic_model.vocabulary
        self.words = side_by_side([one.words for one in documents], device)
        self.lengths = side_by_side([one.lengths for one in documents], device)
        self.counts = side_by_side([word_counts(one.words, vocabulary).astype(np.int32) for one in documents], device)
        # decided once, from what is expected, so that no step is computed in another way than its neighbours
        masking, documents_of_a_step = self.config.masking, min(self.config.batch_size, self.words.shape[1])
        shown = masking.p_mask * (1 - masking.p_mask_word) * self.words.shape[2]  # words at the masks of a document
        few = FEW * (1 + documents_of_a_step * shown) <= vocabulary  # [MASK] is one query for all of them
        self.few_queries = few and not self.config.model.layout.uniform
        self.keys = mask_keys(Stream.TRAIN_MASKS, *(one.config.seed for one in data)).to(device)
        self.fixed: tuple[Tensor, Tensor] | None = None  # masked positions, and what all show, where drawn once
        if not self.config.masking.fresh:
            drawn = [
                (masking.draw(one, self.config.topic_model.words, keys[:, None]), one.words)
                for one, keys in zip(documents, self.keys.cpu().T, strict=True)
            ]
            self.fixed = (
                side_by_side([masks.selected(words) for masks, words in drawn], device),
                side_by_side([masks.shown_words(words) for masks, words in drawn], device),
            )

    def compiled(self, of: Int[Tensor, " E"] | None) -> CompiledBatches | None:
        """A quicker way to the same batches on a CPU, one by one; None where query words are listed."""
        if self.few_queries:
            return None
        return CompiledBatches(
            self.words,
            self.lengths,
            self.fixed,
            self.keys,
            self.config.masking,
            self.dtype,
            of,
            vocabulary=self.config.topic_model.vocabulary,
            **self.config.model.layout._asdict(),
        )

    def batches(self, rows: Int[Tensor, "S D B"], first: int) -> Batches:
        """The batches of steps that see these documents; `first` is the number of documents seen before."""
        (steps, sets, size), config = rows.shape, self.config
        row = rows + torch.arange(sets, device=self.device)[:, None] * self.words.shape[1]
        text = taken(self.words, row)
        if self.fixed is None:
            place = torch.arange(first, first + steps * size, device=self.device).view(steps, 1, size)
            masks = config.masking.draw_at(
                text, taken(self.lengths, row), config.topic_model.words, self.keys[:, None, :, None], place
            )
        else:
            selected, shown = (taken(part, row).flatten(0, 2) for part in self.fixed)
            flat = selected.view(-1).nonzero().view(-1)
            true, seen = (part.view(-1).index_select(0, flat).long() for part in (text, shown))
            masks = Positions(flat, flat // text.shape[-1], true, seen, selected.sum(1))
        return masked_batches(
            taken(self.counts, row),
            masks,
            self.dtype,
            **config.model.layout._asdict(),
            list_queries=self.few_queries,
            at_least=PADDED[self.device.type],
        )


def filled_up(documents: Documents) -> Documents:
    """With a multiple of eight positions: as many as there are bytes in whole numbers of 64 bits."""
    fill = -documents.words.shape[1] % 8
    return replace(documents, words=np.pad(documents.words, ((0, 0), (0, fill)), constant_values=PADDING))


def taken(parts: Tensor, rows: Int[Tensor, "S D B"]) -> Tensor:
    """Rows of the documents of all data sets. Several times faster than indexing."""
    return parts.flatten(0, 1).index_select(0, rows.view(-1)).view(*rows.shape, *parts.shape[2:])


def side_by_side(arrays: Sequence[np.ndarray], device: torch.device) -> Tensor:
    """A single array is not copied."""
    return torch.from_numpy(arrays[0][None] if len(arrays) == 1 else np.stack(arrays)).to(device)
