"""Pairs of positions of many windows at once, against single windows and by hand."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

from tests.language import tiny
from tests.language.samples import assignment
from topicscope.language import attention, whole_words
from topicscope.language.attention import PairRelation, TopicRelation, pairs_of, slabs, tally_attention
from topicscope.language.models import checked
from topicscope.language.vocabulary import windows


def test_the_pairs_of_two_windows_by_hand() -> None:
    """Four positions, words at 0, 1 and 3; and two, padded to four, a word at 1: which pairs count, and how."""
    lengths, places = (4, 2), ([0, 1, 3], [1, -1, -1])
    tokens = torch.tensor([[10, 11, 12, 13], [20, 21, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    weights = torch.arange(1.0, 33.0).view(2, 1, 4, 4)
    for part, shift, read in (
        ("encoder", 0, {0, 1, 3}),
        ("decoder", 0, {0, 1, 3}),
        ("encoder", 1, {0, 1, 3}),
        ("decoder", 1, {0, 1}),  # one place later; the last word is not read
        ("cross", 1, {0, 1, 3}),
    ):
        moved_query, moved_key = (0 if part == "encoder" else shift), (shift if part == "decoder" else 0)
        for queries in (slice(0, 3), slice(1, 2), slice(2, 9)):
            pairs = pairs_of(part, [weights, -weights], (tokens, mask), torch.tensor(places), queries, shift)
            shape = (2, -1, len(places[0][queries]), 3)
            found = pairs.weights.view(shape)
            for b, (length, words) in enumerate(zip(lengths, places, strict=True)):
                for row, i in enumerate(words[queries]):
                    for column, j in enumerate(words):
                        q, k = i + moved_query, j + moved_key
                        there = i >= 0 and j >= 0 and q < length and k < length
                        counts = there and (i > j if part == "decoder" else i != j)
                        assert pairs.allowed[b, row, column] == counts
                        if not counts:
                            continue
                        assert b == 0
                        assert {i, j} <= read or (part == "cross" and i != 3)
                        assert (int(pairs.query[b, row]), int(pairs.key[b, column])) == (10 + i, 10 + j)
                        available = q + 1 if part == "decoder" else length
                        assert found[b, 0, row, column] == pytest.approx((4 * q + k + 1) * available / 100)
                        assert found[b, 1, row, column] == -found[b, 0, row, column]


def test_slabs_cover_every_window_and_word_once() -> None:
    for windows_, words, most in ((5, 3, 20), (5, 3, 1), (2, 7, 20), (1, 1, 1), (4, 100, 2**14)):
        with mock.patch.dict(attention.TOGETHER, cpu=most):
            covered = np.zeros((windows_, words), dtype=int)
            for some, queries in slabs(windows_, words, torch.device("cpu")):
                covered[some, queries] += 1
                assert covered[some, queries].size * words <= max(most, words)
        assert (covered == 1).all()


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_windows_together_are_the_windows_alone(kind: str) -> None:
    """Batches of unequal lengths, padding, windows without a word, in one slab or in many: the same sums in float64."""
    tokenizer = tiny.tokenizer("wordpiece")
    loaded, vocabulary = checked(kind, tiny.model(kind, len(tokenizer)), tokenizer), whole_words(tokenizer)
    relations = [TopicRelation(assignment(vocabulary, several=several), len(tokenizer), 3) for several in (False, True)]
    token = np.array([vocabulary.token[vocabulary.number[word]] for word in ("bread", "butter", "judge", "court")])
    several: list[Any] = [*relations, PairRelation(token, np.array([[0, 1], [2, 3]]), len(tokenizer))]
    pieces = [*windows(loaded, vocabulary, tiny.TEXTS, None), *windows(loaded, vocabulary, tiny.TEXTS[3:], None, 9)]
    assert len({len(piece.tokens) for piece in pieces}) > 5
    assert any(len(piece.places) == 0 for piece in pieces)
    alone = [tally_attention(loaded, [piece], several, bootstrap=0) for piece in pieces]
    # most windows lack most codes, and every code that is there at all is missing somewhere
    numbers = torch.stack([next(iter(one.values()))[0].pairs for one in alone])
    assert ((numbers > 0).any(0) & (numbers == 0).any(0)).sum() > 20
    for most in (2**14, 200, 1):
        with mock.patch.dict(attention.TOGETHER, cpu=most):
            together = tally_attention(loaded, pieces, several, bootstrap=0)
        assert together.keys() == alone[0].keys()
        for part, tallies in together.items():
            for number, tally in enumerate(tallies):
                for name, table in tally.arrays().items():
                    total = sum(one[part][number].arrays()[name] for one in alone)
                    np.testing.assert_allclose(table, total, rtol=1e-10, atol=1e-12, err_msg=f"{part} {name}")
