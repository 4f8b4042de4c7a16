"""Random bits by place: SplitMix64's own numbers, whatever the shape in which they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from topicscope.ground import Stream
from topicscope.ground.streams import bits, key_of, uniform


def test_the_bits_are_those_of_splitmix64() -> None:
    """The first five numbers that the published generator gives after the seed 1234567."""
    found = bits(1234567, torch.arange(5))
    assert found.dtype == torch.int64
    assert [number % 2**64 for number in found.tolist()] == [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip


def test_a_place_has_its_bits_in_any_company() -> None:
    keys = torch.tensor([key_of(seed, Stream.TRAIN_MASKS) for seed in (0, 1, 2)])
    together = bits(keys[:, None], torch.arange(100))
    for number, key in enumerate(keys.tolist()):
        assert torch.equal(together[number], bits(key, torch.arange(100)))
        assert bits(key, torch.tensor([[57]])).item() == together[number, 57]
    assert len({key_of(seed, stream, i) for seed in (0, 1) for stream in Stream for i in (0, 1)}) == 4 * len(Stream)


def test_numbers_are_uniform_and_keys_independent() -> None:
    n = 200_000
    a, b = (uniform(key_of(seed, Stream.ORDER), torch.arange(n)).numpy() for seed in (0, 1))
    for numbers in (a, b):
        assert numbers.min() >= 0
        assert numbers.max() < 1
        counts = np.bincount((numbers * 50).astype(int), minlength=50)
        assert ((counts - n / 50) ** 2 / (n / 50)).sum() < 100  # chi square with 49 degrees: mean 49, deviation 10
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(n)
    assert abs(np.corrcoef(a[:-1], a[1:])[0, 1]) < 5 / np.sqrt(n)


def test_the_whole_range_of_keys_works() -> None:
    for key in (-(2**63), 2**63 - 1, -1, 0):
        assert bits(key, torch.arange(3)).tolist() == bits(torch.tensor(key), torch.arange(3)).tolist()
    with pytest.raises(ValueError, match="negative"):
        key_of(-1, Stream.ORDER)
