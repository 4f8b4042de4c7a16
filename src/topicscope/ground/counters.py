"""Random bits by place instead of by order: the same on every device, for all places at once.

A generator that goes from number to number would have to run where the numbers are used, and one after another. Here a
number is a function of a key and a place (SplitMix64: Steele, Lea and Flood 2014), so that any device can make any of
them. All of it is arithmetic of 64-bit integers, which has the same result everywhere.

>>> import torch
>>> bits(key_of(0, Stream.ORDER), torch.arange(2)).tolist()
[-3435053507485445911, 893928252525922383]
"""

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from topicscope.ground.streams import Stream

STEP, FIRST, SECOND = (
    number - 2**64 for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)  # as signed numbers of 64 bits

Key = int | Int[Tensor, "..."]


def key_of(seed: int, stream: Stream, *index: int) -> int:
    """The key of a stream: 64 bits, as a signed number."""
    state = np.random.SeedSequence([seed, int(stream), *index]).generate_state(1, np.uint64)
    return int(state.view(np.int64)[0])


def bits(key: Key, place: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """The 64 random bits at each place of a stream."""
    mixed = place * STEP + (key + STEP if isinstance(key, Tensor) else (key + STEP + 2**63) % 2**64 - 2**63)
    mixed = _folded(mixed, 30).mul_(FIRST)
    mixed = _folded(mixed, 27).mul_(SECOND)
    return _folded(mixed, 31)


def _folded(number: Int[Tensor, "..."], shift: int) -> Int[Tensor, "..."]:
    """number ^ (number >> shift), in place, for numbers without a sign."""
    return number.bitwise_xor_((number >> shift).bitwise_and_(2 ** (64 - shift) - 1))


def uniform(key: Key, place: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Numbers from 0 to 1, 1 excluded: 53 bits each, the same on every device."""
    return ((bits(key, place) >> 11).bitwise_and_(2**53 - 1)).double().mul_(2.0**-53)
