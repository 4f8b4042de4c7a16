"""Masking (Section 3.2): which positions are to be predicted, and what they show.

>>> Masking().p_mask_word   # of the masked positions, the share that shows [MASK]
0.8
"""

from __future__ import annotations

from dataclasses import dataclass as plain_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from pydantic import model_validator

from topicscope.ground import Probability, SomeProbability, Stream, refuse, section
from topicscope.world.topics import MASK

if TYPE_CHECKING:
    from torch import Tensor

    from topicscope.world.documents import Documents

    MaskKeys = Int[Tensor, "4 *D"]  # by purpose: see `mask_keys`


@plain_dataclass(frozen=True)
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
        starts = np.cumsum(per_document) - per_document
        sizes = per_document[rows]
        index = np.arange(sizes.sum()) + np.repeat(starts[rows] - (np.cumsum(sizes) - sizes), sizes)
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
        refuse(
            (
                total > 1,
                f"p_correct + p_random = {total:g} is more than 1; choose shares of the masked positions that sum to "
                "at most 1",
            )
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
        """Masks of the documents; `words` is Tv, the number of words that a random replacement is drawn from."""
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

        from topicscope.ground import counters

        longest = text.shape[-1]
        eighths = -(-longest // 8)
        eights = place[..., None] * eighths + torch.arange(eighths, device=text.device)
        byte = counters.bits(keys[0][..., None], eights).view(torch.uint8)[..., :longest]
        number, length = (part.expand(text.shape[:-1]).reshape(-1) for part in (place, lengths))

        def drawn(purpose: int, document: Int[Tensor, " P"], at: Int[Tensor, " P"]) -> Float[Tensor, " P"]:
            key = keys[purpose]
            if key.numel() == 1:
                return counters.uniform(key.reshape(()), at)
            return counters.uniform(key.expand(text.shape[:-1]).reshape(-1).index_select(0, document), at)

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

    from topicscope.ground import counters

    return torch.tensor([[counters.key_of(seed, stream, purpose) for seed in seeds] for purpose in range(4)])
