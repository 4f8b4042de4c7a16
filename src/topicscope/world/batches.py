"""Masking (Section 3.2): which positions are predicted and what they show; and the batches that the model then sees.

The model has no positions, so a document is its word counts, and all positions that show the same word get the same
prediction. A `Batch` lists each pair of document and query word once (a row), with the true words wanted there and
their weight in the objective (eq 1): a masked position of document b weighs 1 / (documents * |M_b|). Infinite documents
have probabilities in place of counts, and every expectation over masks is taken exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from pydantic import model_validator

from topicscope.ground import Probability, SomeProbability, Stream, refuse_if, section, streams
from topicscope.world.topics import MASK, TopicModel

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from topicscope.world.documents import Documents

    MaskKeys = Int[Tensor, "4 *D"]  # by purpose: see `mask_keys`


@dataclass(frozen=True)
class Masked:
    """The masked positions of some documents, in order of document; all other positions show their word."""

    length: int  # N, the longest document
    flat: Int[np.ndarray, " P"]  # masked positions, each as document * N + position
    true: Int[np.ndarray, " P"]  # the word that stands there
    shown: Int[np.ndarray, " P"]  # the word that the model sees there

    @cached_property
    def document(self) -> Int[np.ndarray, " P"]:
        return self.flat // self.length

    def shown_words(self, words: Int[np.ndarray, "D N"]) -> Int[np.ndarray, "D N"]:
        shown = words.copy()
        shown.reshape(-1)[self.flat] = self.shown
        return shown

    def selected(self, words: Int[np.ndarray, "D N"]) -> Bool[np.ndarray, "D N"]:
        selected = np.zeros(words.shape, dtype=bool)
        selected.reshape(-1)[self.flat] = True
        return selected

    def take(self, rows: Int[np.ndarray, " B"]) -> Masked:
        per_document = np.bincount(self.document)  # no document is without
        sizes, ends = per_document[rows], np.cumsum(per_document)[rows]  # of each document among all positions
        index = np.arange(sizes.sum()) + np.repeat(ends - np.cumsum(sizes), sizes)
        flat = np.repeat(np.arange(len(rows)), sizes) * self.length + self.flat[index] % self.length
        return Masked(self.length, flat, self.true[index], self.shown[index])


class Positions(NamedTuple):
    """Masked positions on a device, in order of document: what `Masking.draw_at` returns."""

    flat: Int[Tensor, " P"]  # document * N + position
    document: Int[Tensor, " P"]  # document of each position
    true: Int[Tensor, " P"]  # the word that stands there
    shown: Int[Tensor, " P"]  # the word that the model sees there
    masked: Int[Tensor, " D"]  # number of masked positions per document


def where(true: Bool[Tensor, ...]) -> Int[Tensor, " n"]:
    """The places at which something is true. On a CPU numpy finds them several times faster."""
    import torch

    if true.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(true.numpy()))
    return true.view(-1).nonzero().view(-1)


@section
class Masking:
    """Each position is masked with probability `p_mask` (Section 3.2).

    A masked position shows its own word with `p_correct`, a uniformly drawn word with `p_random`, else [MASK]. A
    document without a masked position gets one, uniformly, because the objective (eq 1) divides by their number.

    Attributes:
        p_mask: p_m, in (0, 1].
        p_correct: p_c, of the masked positions.
        p_random: p_r, of the masked positions; p_correct + p_random is at most 1.
        fresh: Draw new masks whenever a document is seen again; else they are drawn once, as in the authors' code.

    Example:
        >>> from topicscope import Masking
        >>> masking = Masking(p_mask=0.2, p_correct=0.1, p_random=0.3)
        >>> round(masking.p_mask_word, 12), round(masking.k, 12)  # 1 - p_c - p_r and 1 - (1 - p_c) p_m
        (0.6, 0.82)
    """

    p_mask: SomeProbability = 0.15
    p_correct: Probability = 0.1
    p_random: Probability = 0.1
    fresh: bool = True

    @model_validator(mode="after")
    def _check(self) -> Masking:
        total = self.p_correct + self.p_random
        refuse_if(
            total > 1,
            f"p_correct + p_random = {total:g} is more than 1; choose shares of the masked positions that sum to "
            "at most 1",
        )
        return self

    @property
    def p_mask_word(self) -> float:
        """1 - p_c - p_r: how often a masked position shows [MASK]."""
        return max(0.0, 1 - self.p_correct - self.p_random)

    @property
    def k(self) -> float:
        """1 - (1 - p_c) p_m: how often a position shows its own word on purpose."""
        return 1 - (1 - self.p_correct) * self.p_mask

    def draw(self, documents: Documents, words: int, keys: MaskKeys) -> Masked:
        import torch

        text, lengths = torch.from_numpy(documents.words), torch.from_numpy(documents.lengths)
        drawn = self.draw_at(text, lengths, words, keys, torch.arange(len(text)))
        return Masked(text.shape[1], *(part.numpy() for part in (drawn.flat, drawn.true, drawn.shown)))

    def draw_at(
        self,
        text: Int[Tensor, "*D N"],
        lengths: Int[Tensor, "*D"],
        words: int,
        keys: MaskKeys,
        place: Int[Tensor, "*D"],
    ) -> Positions:
        """The same on the device of the text, for documents in any arrangement.

        The draws are those of the keys at the documents' places: the same wherever and beside whatever they are made.
        """
        import torch

        longest = text.shape[-1]
        eighths = -(-longest // 8)
        eights = place[..., None] * eighths + torch.arange(eighths, device=text.device)
        byte = streams.bits(keys[0][..., None], eights).view(torch.uint8)[..., :longest]
        number, length = (part.expand(text.shape[:-1]).reshape(-1) for part in (place, lengths))

        def drawn(purpose: int, document: Int[Tensor, " P"], at: Int[Tensor, " P"]) -> Float[Tensor, " P"]:
            key = keys[purpose]
            if key.numel() == 1:
                return streams.uniform(key.reshape(()), at)
            return streams.uniform(key.expand(text.shape[:-1]).reshape(-1).index_select(0, document), at)

        def place_of(flat: Int[Tensor, " P"], document: Int[Tensor, " P"]) -> Int[Tensor, " P"]:
            return number.index_select(0, document).sub_(document).mul_(longest).add_(flat)

        # one random byte decides, but in one case of 256, in which another number does: p_mask exactly
        threshold = min(int(256 * self.p_mask), 255)
        selected = (text > 0).logical_and_(byte <= threshold)
        flat = where(selected)
        some = flat[where(byte.reshape(-1).index_select(0, flat) == threshold)]
        left = drawn(1, some // longest, place_of(some, some // longest)) >= 256 * self.p_mask - threshold
        selected.view(-1)[some[left]] = False
        flat = where(selected)
        document = flat // longest
        # unlike torch.bincount, a GPU need not wait for it
        masked = document.new_zeros(len(number)).index_add_(0, document, document.new_ones(1).expand(len(document)))
        empty = where(masked == 0)
        if len(empty):
            masked[empty] = 1
            position = (drawn(2, empty, number[empty]) * length[empty]).long()
            flat = torch.cat([flat, empty * longest + position]).sort().values
            document = flat // longest
        true = text.reshape(-1).index_select(0, flat).long()
        # one number decides what a masked position shows; most show [MASK]
        kind = drawn(3, document, place_of(flat, document))
        shown = torch.where(kind < self.p_correct + self.p_random, true, MASK)
        if self.p_random > 0:
            replaced = where((kind >= self.p_correct).logical_and_(shown != MASK))
            share = (kind[replaced] - self.p_correct) / self.p_random  # from 0 to 1
            shown[replaced] = (1 + (share * words).long()).clamp_(max=words)
        return Positions(flat, document, true, shown, masked)


def mask_keys(stream: Stream, *seeds: int) -> MaskKeys:
    """Random keys for drawing masks: four per seed, one for each purpose.

    The purposes are: bytes that mask, numbers where a byte does not decide, empty documents, and words shown.
    """
    import torch

    return torch.tensor([[streams.key_of(seed, stream, purpose) for seed in seeds] for purpose in range(4)])


@dataclass(frozen=True)
class Batch:
    """What E models see at one step, side by side.

    Indices point into the flattened leading axes, so that one gather serves all models.
    """

    # log counts of the words that attention sees; shares where attention is uniform; D <= E
    context: Float[Tensor, "D B V"]
    row_document: Int[Tensor, " E*R"]  # d * B + document, for the model's data set d
    # e * V + word shown at the predicted positions; with `queries` e * Q + its place there
    row_query: Int[Tensor, " E*R"]
    row_weight: Float[Tensor, "E R 1"]  # weight in the objective; sums to 1 over a model's rows
    target: Int[Tensor, " E*P"]  # (e * R + row) * V + true word
    target_weight: Float[Tensor, " E*P"]  # weight of each target
    queries: Int[Tensor, "E Q"] | None = None  # the words shown at any of the positions, where they are few of the V

    def map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        return Batch(*map(change, self.parts()))

    def parts(self) -> list[Tensor]:
        return [part for part in vars(self).values() if part is not None]  # only the last one may be None

    def to(self, device: torch.device) -> Batch:
        return self.map(lambda part: part.to(device, non_blocking=True))


@dataclass(frozen=True)
class Batches:
    context: Float[Tensor, "S D B V"]  # as in `Batch`
    document: Int[Tensor, "S D R"]  # document of each row
    query: Int[Tensor, "S D R"]  # word shown, or its place in `queries`
    weight: Float[Tensor, "S D R"]  # weight of each row
    target: Int[Tensor, "S D P"]  # row * V + true word
    target_weight: Float[Tensor, "S D P"]  # weight of each target
    sizes: Int[np.ndarray, "S D 3"]  # numbers of rows, targets and queries before padding
    queries: Int[Tensor, "S D Q"] | None = None  # the words shown, where they are listed

    def each(self, data: Int[Tensor, " E"] | None = None) -> Iterator[Batch]:
        """The S batches one by one, each without the padding that only others need; `data` as in `for_models`."""
        if self.context.shape[1] == 1 and data is None:  # nothing is moved: views, taken for all steps at once
            parts = zip(*(part.unbind(0) for part in self.for_models().parts()), strict=True)
            for views, (rows, targets, listed) in zip(parts, self.sizes[:, 0].tolist(), strict=True):
                context, document, query, weight, target, target_weight, *queries = views
                yield Batch(
                    context,
                    document[:rows],
                    query[:rows],
                    weight[:, :rows],
                    target[:targets],
                    target_weight[:targets],
                    *(words[:, :listed] for words in queries),
                )
            return
        for step, (rows, targets, listed) in enumerate(self.sizes.max(1).tolist()):
            at = slice(step, step + 1)
            alone = Batches(
                self.context[at],
                self.document[at, :, :rows],
                self.query[at, :, :rows],
                self.weight[at, :, :rows],
                self.target[at, :, :targets],
                self.target_weight[at, :, :targets],
                self.sizes[at],
                None if self.queries is None else self.queries[at, :, :listed],
            )
            yield alone.for_models(data).map(lambda part: part[0])

    def for_models(self, data: Int[Tensor, " E"] | None = None) -> Batch:
        """The S batches of models side by side, in a `Batch` whose parts have one more axis in front.

        `data`: the data set of each model (default: one model for each).
        """
        import torch

        (_, sets, size, vocabulary), device = self.context.shape, self.document.device
        of = torch.arange(sets, device=device) if data is None else data
        queries = self.queries if data is None or self.queries is None else self.queries.index_select(1, data)
        document, query, weight, target, target_weight = (
            part if data is None else part.index_select(1, data)
            for part in (self.document, self.query, self.weight, self.target, self.target_weight)
        )
        model = torch.arange(len(of), device=device)[:, None]
        if len(of) > 1:
            document = document + of[:, None] * size
            query = query + model * (vocabulary if queries is None else queries.shape[2])
            target = target + model * (query.shape[2] * vocabulary)
        return Batch(
            self.context,
            document.flatten(1),
            query.flatten(1),
            weight[..., None],
            target.flatten(1),
            target_weight.flatten(1),
            queries,
        )


def word_counts(words: Int[np.ndarray, "D N"], vocabulary: int) -> Float[np.ndarray, "D V"]:
    """How often each word occurs in each document; padding is left out."""
    counts = np.zeros((len(words), vocabulary), dtype=np.float32)
    slice_size = max(1, 1_000_000 // max(1, words.shape[1]))
    for start in range(0, len(words), slice_size):
        part, into = words[start : start + slice_size], counts[start : start + slice_size]
        flat = (np.arange(len(part))[:, None] * vocabulary + part)[part >= 0]
        into[:] = np.bincount(flat, minlength=into.size).reshape(into.shape)
    return counts


def masked_batches(
    counts: Int[Tensor, "S D B V"],
    masks: Positions,
    real: torch.dtype,
    *,
    uniform: bool = False,
    hide_masked: bool = False,
    list_queries: bool = False,
    at_least: int = 1,
) -> Batches:
    """Batches of masked documents, on the device of the counts. The counts are overwritten."""
    import torch

    (steps, sets, size, vocabulary), device, document = counts.shape, counts.device, masks.document
    batches = steps * sets
    batch_of = torch.arange(batches, device=device).repeat_interleave(size)  # of each document
    context = _context(counts.view(-1, vocabulary), masks, real, uniform, hide_masked)
    # rows in order of batch, word shown, document
    first_pair = batch_of * ((vocabulary - 1) * size) + torch.arange(batches * size, device=device)
    pair = first_pair.index_select(0, document)
    if not uniform:
        pair += masks.shown * size
    present = torch.zeros(batches * vocabulary * size, dtype=torch.bool, device=device)
    present[pair] = True
    found, rank = where(present), present.cumsum(0).index_select(0, pair).sub_(1)
    rows, targets = present.view(batches, -1).sum(1), masks.masked.view(batches, size).sum(1)
    asked = present.view(batches, vocabulary, size).any(2) if list_queries else present.new_zeros(batches, 1)
    sizes = torch.stack([rows, targets, asked.sum(1)], 1).cpu().numpy()
    most_rows, most_targets, most_queries = (-(-sizes.max(0) // at_least) * at_least).tolist()
    word, row_batch = found // size, found // (vocabulary * size)
    row_in_batch = torch.arange(len(found), device=device) - (rows.cumsum(0) - rows).index_select(0, row_batch)
    row_place = row_in_batch + row_batch * most_rows
    first_target = torch.arange(batches, device=device) * most_targets - (targets.cumsum(0) - targets)
    target_place = first_target.index_select(0, batch_of).index_select(0, document)
    target_place += torch.arange(len(document), device=device)
    weight = (1 / (size * masks.masked).to(real)).index_select(0, document)
    query, queries = word - row_batch * vocabulary, None
    if list_queries:
        first = asked.to(torch.int8).argsort(dim=1, descending=True, stable=True)  # those asked for come first
        order = first[:, :most_queries]
        queries = torch.where(asked.gather(1, order), order, MASK).view(steps, sets, -1)
        query = (asked.cumsum(1) - 1).view(-1)[word]

    def padded(length: int, at: Tensor, values: Tensor) -> Tensor:
        blank = torch.zeros(batches * length, dtype=values.dtype, device=device)
        return blank.scatter_add_(0, at, values).view(steps, sets, length)

    return Batches(
        context.view(steps, sets, size, vocabulary),
        padded(most_rows, row_place, found - word * size),
        padded(most_rows, row_place, query),
        padded(most_rows, row_place.index_select(0, rank), weight),
        padded(most_targets, target_place, row_in_batch.index_select(0, rank).mul_(vocabulary).add_(masks.true)),
        padded(most_targets, target_place, weight),
        sizes.reshape(steps, sets, 3),
        queries,
    )


def _context(
    counts: Int[Tensor, "D V"], masks: Positions, real: torch.dtype, uniform: bool, hide_masked: bool
) -> Float[Tensor, "D V"]:
    import torch

    flat, base = counts.view(-1), masks.document * counts.shape[1]
    one = counts.new_ones(1).expand(len(base))
    flat.index_add_(0, base + masks.true, -one)
    seen = (counts.sum(1) == 0).index_select(0, masks.document).to(counts.dtype) if hide_masked else one
    flat.index_add_(0, base + masks.shown, seen)
    if uniform:
        return counts.to(real) / counts.sum(1, keepdim=True).to(real)
    # from a table, which is the same on every device; and a CPU's log of zero takes ten times as long as others
    logs = torch.arange(int(counts.max()) + 1, dtype=real).log_().to(counts.device)
    return logs.index_select(0, flat).view(counts.shape)


class Rows(NamedTuple):
    """One model's batch in numpy, before models are put side by side by `stack`.

    Attributes:
        context: (B x V) Log counts of the words that attention sees, or their shares.
        document: (R) Document of each row.
        query: (R) Word shown at the predicted positions.
        weight: (R) Weight in the objective.
        target: (P) row * V + true word.
        target_weight: (P) Weight of each target.

    Example:
        >>> from topicscope.world import InfiniteDocuments
        >>> [rows] = InfiniteDocuments(np.array([[1.0, 0.0]])).batches(TopicModel(2, 1), Masking())
        >>> rows.query.tolist(), rows.weight.round(6).tolist()  # [MASK] and words 1 and 2, by how often they are shown
        ([0, 1, 2], [0.8, 0.15, 0.05])
    """

    context: Float[np.ndarray, "B V"]
    document: Int[np.ndarray, " R"]
    query: Int[np.ndarray, " R"]
    weight: Float[np.ndarray, " R"]
    target: Int[np.ndarray, " P"]
    target_weight: Float[np.ndarray, " P"]


@np.errstate(divide="ignore")
def context_of(counts: Float[np.ndarray, "B V"], uniform: bool) -> Float[np.ndarray, "B V"]:
    return counts / counts.sum(1, keepdims=True) if uniform else np.log(counts)


def infinite_rows(
    topic_model: TopicModel,
    masking: Masking,
    proportions: Float[np.ndarray, "B T"],
    *,
    uniform: bool,
    hide_masked: bool,
) -> Rows:
    documents, words, vocabulary = len(proportions), topic_model.words, topic_model.vocabulary
    p = topic_model.word_distribution(proportions)  # B x Tv
    counts = np.insert(p, MASK, 0, axis=1)
    if not hide_masked:
        counts[:, MASK] = masking.p_mask * masking.p_mask_word
        counts[:, 1:] = p * masking.k + masking.p_mask * masking.p_random / words
    query = np.array([MASK]) if uniform else np.arange(vocabulary)
    joint = p[:, None, :]  # B x 1 x Tv: the shown word does not matter
    if not uniform:
        joint = np.empty((documents, vocabulary, words))  # P(shown word, true word | masked)
        joint[:, MASK] = masking.p_mask_word * p
        joint[:, 1:] = masking.p_random / words * p[:, None, :]
        joint[:, np.arange(1, vocabulary), np.arange(words)] += masking.p_correct * p
    joint = joint.reshape(-1, words) / documents
    target_row, target_word = np.nonzero(joint)
    return Rows(
        context_of(counts, uniform),
        np.repeat(np.arange(documents), len(query)),
        np.tile(query, documents),
        joint.sum(1),
        target_row * vocabulary + target_word + 1,
        joint[target_row, target_word],
    )


def stack(sets: Sequence[Rows], dtype: torch.dtype, data: Int[Tensor, " E"] | None = None) -> Batch:
    """Put batches side by side for E models; shorter ones are padded with rows and targets of weight zero."""
    import torch

    real = np.dtype(str(dtype).removeprefix("torch."))
    context, document, query, weight, target, target_weight = (
        torch.from_numpy(_side_by_side(arrays, real))[None] for arrays in zip(*sets, strict=True)
    )
    sizes = np.array([[[len(rows.document), len(rows.target), 0] for rows in sets]])
    together = Batches(context, document, query, weight, target, target_weight, sizes)
    return together.for_models(None if data is None else data.cpu()).map(lambda part: part[0])


def _side_by_side(arrays: Sequence[np.ndarray], real: np.dtype) -> np.ndarray:
    """One array for each model, as long as the longest, with zeros behind; numbers that are no indices as `real`."""
    dtype = real if arrays[0].dtype.kind == "f" else arrays[0].dtype
    if len(arrays) == 1:
        return arrays[0].astype(dtype, copy=False)[None]
    padded = np.zeros((len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), dtype=dtype)
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    return padded


class CompiledBatches:
    """Makes batches in compiled loops on the CPU. Called with the documents of a step, it returns their `Batch`.

    The result equals that of `masked_batches` bit for bit.
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
        self.models = np.arange(len(words)) if of is None else of.numpy()
        self.batch_of = kernels.batch_of

    def __call__(self, rows: Int[np.ndarray, "D B"], first: int) -> Batch:
        """The batch of a step that sees the documents at `rows`; `first` is the number of documents seen before."""
        import torch

        return Batch(*map(torch.from_numpy, self.batch_of(self.source, rows, first, self.models)))
