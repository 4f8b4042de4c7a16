"""Random streams: every draw comes from a stream named by a seed, a purpose and an index, whatever ran before it.

So a run can be resumed at any block of steps, and a member of an ensemble sees exactly what it sees alone.

>>> generator(0, Stream.DEV_DOCUMENTS).integers(100, size=3).tolist()
[52, 88, 99]

Random bits by place instead of by order: a number is a function of a key and a place (SplitMix64: Steele, Lea and Flood
2014), so that any device can make any of them. All of it is arithmetic of 64-bit integers, the same everywhere.

>>> import torch
>>> bits(key_of(0, Stream.ORDER), torch.arange(2)).tolist()
[-3435053507485445911, 893928252525922383]
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

if TYPE_CHECKING:
    from torch import Tensor

    Key = int | Int[Tensor, "..."]


@unique
class Stream(IntEnum):
    """The purposes of random streams. A number is part of the results: another number means other draws."""

    # the sandbox
    TRAIN_DOCUMENTS = 0
    DEV_DOCUMENTS = 1
    TRAIN_MASKS = 2  # index: purpose of the draw; the place is that of a document among all that are seen
    INITIAL_WEIGHTS = 3  # index: part
    ORDER = 4  # index: epoch
    DEV_MASKS = 5  # index: purpose of the draw
    POSTERIOR_DRAWS = 6  # index: which half; the seed is always 0
    MOMENT_POINTS = 7  # index: which set of points; the seed is always 0
    FLOW_DOCUMENTS = 8  # the seed is always 0
    # statistics
    BOOTSTRAP_TOPICS = 0xE3B
    SHUFFLED_TOPICS = 0x5AFF
    SHUFFLED_ATTENTION = 0xA77E
    BOOTSTRAP_DOCUMENTS = 0xB007  # index: document
    BOOTSTRAP_PAIRS = 0xC00C
    BOOTSTRAP_STATE_PAIRS = 0xC05E
    BOOTSTRAP_MIXTURES = 0xB05E
    SHUFFLED_MIXTURES = 0x5A1E  # index: which of the shuffles
    LABEL_FOLDS = 0x1ABE
    MIXTURE_FOLDS = 0xF01D
    STATE_HALVES = 0x4A1F
    DEALT_GROUPS = 0xDEA1
    SHOWN_DOCUMENTS = 0x5D0C
    MASKED_POSITIONS = 0x3A5D  # index: document, window
    ABLATED_HEADS = 0xAB1A
    BOOTSTRAP_ABLATION = 0xB0AB
    # text
    SAMPLED_DOCUMENTS = 0x70C5
    MADE_UP_TEXTS = 0x3ADE
    HELD_OUT_DOCUMENTS = 0x70C6
    # pretraining
    CORPUS_ORDER = 0x0D0C  # index: pass over the corpus
    DRAWN_ROWS = 0x0DAA  # index: step
    MASKED_TOKENS = 0x3A5C  # index: step, micro-batch
    DROPOUT = 0xD809  # index: step, micro-batch
    HELD_OUT_TOKENS = 0x4E1D  # index: 0, row; the seed is always 0
    PRETRAINED_WEIGHTS = 0x3E16  # index: none for the library's own start; 1 + layer, part for near-zero starts


def generator(seed: int, stream: Stream, *index: int) -> np.random.Generator:
    return np.random.default_rng([seed, int(stream), *index])


def torch_seed(seed: int, stream: Stream, *index: int) -> int:
    return int(np.random.SeedSequence([seed, int(stream), *index]).generate_state(1, np.uint64)[0] >> 1)


STEP, FIRST, SECOND = (
    number - 2**64 for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)  # as signed numbers of 64 bits


def key_of(seed: int, stream: Stream, *index: int) -> int:
    state = np.random.SeedSequence([seed, int(stream), *index]).generate_state(1, np.uint64)
    return int(state.view(np.int64)[0])


def bits(key: Key, place: Int[Tensor, ...]) -> Int[Tensor, ...]:
    mixed = place * STEP + ((key + STEP + 2**63) % 2**64 - 2**63 if isinstance(key, int) else key + STEP)
    mixed = _folded(mixed, 30).mul_(FIRST)
    mixed = _folded(mixed, 27).mul_(SECOND)
    return _folded(mixed, 31)


def _folded(number: Int[Tensor, ...], shift: int) -> Int[Tensor, ...]:
    """number ^ (number >> shift), in place, for numbers without a sign."""
    return number.bitwise_xor_((number >> shift).bitwise_and_(2 ** (64 - shift) - 1))


def uniform(key: Key, place: Int[Tensor, ...]) -> Float[Tensor, ...]:
    """Numbers from 0 to 1, 1 excluded: 53 bits each, the same on every device."""
    return ((bits(key, place) >> 11).bitwise_and_(2**53 - 1)).double().mul_(2.0**-53)
