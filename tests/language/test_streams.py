"""Random draws of measure and language: each has a stream of its own name, and no two names share draws."""

import re
from pathlib import Path

import topicscope
from topicscope.ground import Stream, generator

SOURCE = Path(topicscope.__file__).parent


def sources() -> dict[str, str]:
    return {str(path): path.read_text() for room in ("language", "measure") for path in (SOURCE / room).glob("*.py")}


def test_every_stream_has_draws_of_its_own() -> None:
    names = list(Stream.__members__)
    assert len(names) == len({int(stream) for stream in Stream}), "two names stand for the same number"
    first = {tuple(generator(0, stream).integers(2**32, size=4).tolist()) for stream in Stream}
    assert len(first) == len(names)


def test_every_draw_names_its_stream_and_no_two_purposes_share_one() -> None:
    used = [name for text in sources().values() for name in re.findall(r"Stream\.([A-Z_]+)", text)]
    assert sorted(used) == sorted(set(used)), "a stream is drawn from in two places"
    # the numbers are part of the results: with others, the same seed would give other figures
    assert {name: int(Stream[name]) for name in used} == {
        "BOOTSTRAP_TOPICS": 0xE3B,
        "SHUFFLED_TOPICS": 0x5AFF,
        "SHUFFLED_ATTENTION": 0xA77E,
        "BOOTSTRAP_DOCUMENTS": 0xB007,
        "BOOTSTRAP_PAIRS": 0xC00C,
        "BOOTSTRAP_STATE_PAIRS": 0xC05E,
        "BOOTSTRAP_MIXTURES": 0xB05E,
        "SHUFFLED_MIXTURES": 0x5A1E,
        "LABEL_FOLDS": 0x1ABE,
        "MIXTURE_FOLDS": 0xF01D,
        "STATE_HALVES": 0x4A1F,
        "SHOWN_DOCUMENTS": 0x5D0C,
        "DEALT_GROUPS": 0xDEA1,
        "MASKED_POSITIONS": 0x3A5D,
        "ABLATED_HEADS": 0xAB1A,
        "BOOTSTRAP_ABLATION": 0xB0AB,
        "SAMPLED_DOCUMENTS": 0x70C5,
        "HELD_OUT_DOCUMENTS": 0x70C6,
    }
    for path, text in sources().items():
        assert "default_rng" not in text, f"{path} draws without a name"
        assert not re.search(r"0x[0-9A-F]{3,}", text), f"{path} has a number for a stream"
