"""Masking (Section 3.2): which positions are to be predicted, and what they show.

>>> Masking().p_mask_word   # of the masked positions, the share that shows [MASK]
0.8
"""

from __future__ import annotations

from dataclasses import dataclass as plain_dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int
from pydantic import model_validator

from topicscope.ground import Probability, SomeProbability, section
from topicscope.world.topics import MASK

if TYPE_CHECKING:
    from topicscope.world.documents import Documents


@plain_dataclass(frozen=True)
class Masked:
    """The masked positions of some documents, in order of document; all other positions show their word."""

    length: int  # N, the longest document
    flat: Int[np.ndarray, " P"]  # document * N + position
    true: Int[np.ndarray, " P"]  # the word that stood there
    shown: Int[np.ndarray, " P"]  # the word that the model sees there

    @cached_property
    def document(self) -> Int[np.ndarray, " P"]:
        return self.flat // self.length

    def shown_words(self, words: Int[np.ndarray, "D N"]) -> Int[np.ndarray, "D N"]:
        """The masked documents, position by position."""
        shown = words.copy()
        shown.reshape(-1)[self.flat] = self.shown
        return shown

    def selected(self, words: Int[np.ndarray, "D N"]) -> Bool[np.ndarray, "D N"]:
        """True at the masked positions (the paper's M)."""
        selected = np.zeros(words.shape, dtype=bool)
        selected.reshape(-1)[self.flat] = True
        return selected

    def take(self, rows: Int[np.ndarray, " B"]) -> Masked:
        """The masked positions of the documents at `rows`, in that order."""
        per_document = np.bincount(self.document)  # no document is without
        starts = np.cumsum(per_document) - per_document
        sizes = per_document[rows]
        index = np.arange(sizes.sum()) + np.repeat(starts[rows] - (np.cumsum(sizes) - sizes), sizes)
        flat = np.repeat(np.arange(len(rows)), sizes) * self.length + self.flat[index] % self.length
        return Masked(self.length, flat, self.true[index], self.shown[index])


@section
class Masking:
    """Each position is masked with probability `p_mask`.

    A masked position shows its own word with `p_correct`, a uniformly drawn word with `p_random`, else [MASK].

    `fresh` draws new masks whenever a document is seen again; otherwise they are drawn once, as in the authors' code.
    A document of which no position was drawn gets one, uniformly: the objective (eq 1) divides by their number.
    """

    p_mask: SomeProbability = 0.15
    p_correct: Probability = 0.1
    p_random: Probability = 0.1
    fresh: bool = True

    @model_validator(mode="after")
    def _check(self) -> Masking:
        if self.p_correct + self.p_random > 1:
            raise ValueError(
                f"p_correct + p_random = {self.p_correct + self.p_random:g} is more than 1; "
                "choose shares of the masked positions that sum to at most 1"
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

    def draw(self, documents: Documents, words: int, rng: np.random.Generator) -> Masked:
        """Masks of the documents; `words` is Tv, the number of words that a random replacement is drawn from."""
        text = documents.words
        drawn = bernoulli(self.p_mask, text.size, rng).reshape(text.shape) & (text > 0)
        empty = np.flatnonzero(~drawn.any(axis=1))
        drawn[empty, (rng.random(len(empty)) * documents.lengths[empty]).astype(np.int64)] = True
        flat = np.flatnonzero(drawn)
        true = text.ravel()[flat].astype(np.int64)
        # one uniform number decides what a masked position shows; most show [MASK]
        kind = rng.random(len(flat))
        shown = np.where(kind < self.p_correct + self.p_random, true, MASK)
        replaced = np.flatnonzero((kind >= self.p_correct) & (shown != MASK))
        share = (kind[replaced] - self.p_correct) / self.p_random  # uniform from 0 to 1
        shown[replaced] = np.minimum(1 + (share * words).astype(np.int64), words)
        return Masked(text.shape[1], flat, true, shown)


def bernoulli(p: float, size: int, rng: np.random.Generator) -> Bool[np.ndarray, " size"]:
    """True with probability p, exactly, at an eighth of the random bits.

    A random byte decides, except in one case of 256, in which another number does.
    """
    bits = rng.bit_generator.random_raw(-(-size // 8)).view(np.uint8)[:size]
    threshold = int(256 * p)
    drawn = bits < threshold
    undecided = np.flatnonzero(bits == threshold)
    drawn[undecided[rng.random(len(undecided)) < 256 * p - threshold]] = True
    return drawn
