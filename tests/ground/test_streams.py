"""Random streams: each purpose has a number of its own, part of all results; and random bits by place."""

import numpy as np
import pytest
import torch

from topicscope.ground import Stream, generator, torch_seed
from topicscope.ground.streams import bits, key_of, uniform

NUMBERS = {
    "TRAIN_DOCUMENTS": 0, "DEV_DOCUMENTS": 1, "TRAIN_MASKS": 2, "INITIAL_WEIGHTS": 3, "ORDER": 4, "DEV_MASKS": 5,
    "POSTERIOR_DRAWS": 6, "MOMENT_POINTS": 7, "FLOW_DOCUMENTS": 8, "BOOTSTRAP_TOPICS": 0xE3B,
    "SHUFFLED_TOPICS": 0x5AFF, "SHUFFLED_ATTENTION": 0xA77E, "BOOTSTRAP_DOCUMENTS": 0xB007, "BOOTSTRAP_PAIRS": 0xC00C,
    "BOOTSTRAP_STATE_PAIRS": 0xC05E, "BOOTSTRAP_MIXTURES": 0xB05E, "SHUFFLED_MIXTURES": 0x5A1E, "LABEL_FOLDS": 0x1ABE,
    "MIXTURE_FOLDS": 0xF01D, "STATE_HALVES": 0x4A1F, "SHOWN_DOCUMENTS": 0x5D0C, "DEALT_GROUPS": 0xDEA1,
    "MASKED_POSITIONS": 0x3A5D, "ABLATED_HEADS": 0xAB1A, "BOOTSTRAP_ABLATION": 0xB0AB, "SAMPLED_DOCUMENTS": 0x70C5,
    "MADE_UP_TEXTS": 0x3ADE, "HELD_OUT_DOCUMENTS": 0x70C6, "CORPUS_ORDER": 0x0D0C, "DRAWN_ROWS": 0x0DAA,
    "MASKED_TOKENS": 0x3A5C, "DROPOUT": 0xD809, "HELD_OUT_TOKENS": 0x4E1D, "PRETRAINED_WEIGHTS": 0x3E16,
}  # fmt: skip


def test_a_number_never_changes_and_stands_for_one_purpose() -> None:
    assert {stream.name: stream.value for stream in Stream} == NUMBERS  # aliases of one number would be missing here
    assert len(set(NUMBERS.values())) == len(NUMBERS) == len(Stream.__members__)


def test_streams_differ_by_seed_purpose_and_index() -> None:
    draws = {
        (seed, stream, index): tuple(generator(seed, stream, index).integers(2**60, size=2).tolist())
        for seed in (0, 1)
        for stream in Stream
        for index in (0, 1)
    }
    assert len(set(draws.values())) == len(draws) == 4 * len(Stream)


def test_a_stream_is_numpys_generator_of_its_names() -> None:
    ours = generator(7, Stream.DRAWN_ROWS, 3).integers(1000, size=5)
    assert ours.tolist() == np.random.default_rng([7, 0x0DAA, 3]).integers(1000, size=5).tolist()
    plain = generator(7, Stream.ORDER).integers(1000, size=5)
    assert plain.tolist() == generator(7, Stream.ORDER, 0).integers(1000, size=5).tolist()


@pytest.mark.parametrize("index", [(), (1,), (1, 2)])
def test_seeds_for_torch_are_positive_and_come_from_the_same_names(index: tuple[int, ...]) -> None:
    words = np.random.SeedSequence([3, 0xD809, *index]).generate_state(1, np.uint64)
    assert torch_seed(3, Stream.DROPOUT, *index) == int(words[0]) // 2 < 2**63


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
