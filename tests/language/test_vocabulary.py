"""Whole words, documents cut to a model's length, and words that stand together."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.language import tiny
from topicscope import InputError
from topicscope.language import (
    Window,
    batches,
    chunks,
    encode,
    read_stop_words,
    special_tokens,
    vocabulary as vocabulary_module,
    whole_words,
)
from topicscope.language.attention import padded_places
from topicscope.language.vocabulary import STRETCH, joint_counts, spread_of, top_pairs, windows


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_words_are_found_where_the_text_has_them(kind: str) -> None:
    """Against the text itself: a position shows a word exactly if the text between its borders is that word."""
    tokenizer = tiny.tokenizer(kind)
    vocabulary = whole_words(tokenizer, ["the", "and"])
    assert {"bread", "boat", "cello", "judge"} <= set(vocabulary.words)
    assert not {"the", "and"} & set(vocabulary.words)
    assert all(word.isalpha() and len(word) > 1 for word in vocabulary.words)
    assert not set(vocabulary.token.tolist()) & set(tokenizer.all_special_ids)
    checked = 0
    for text in tiny.TEXTS:
        tokens = encode(tokenizer, [text])[0]
        spans = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        for (start, end), word in zip(spans, vocabulary.words_at(tokens), strict=True):
            shown = text[start:end].strip()
            start = end - len(shown)
            alone = (start == 0 or not text[start - 1].isalnum()) and (end == len(text) or not text[end].isalnum())
            expected = shown if alone and shown in vocabulary.number else None
            assert (vocabulary.words[word] if word >= 0 else None) == expected, (text, shown)
            checked += expected is not None
    assert checked > 80


def test_fingerprints_tell_tokenizers_apart() -> None:
    prints = [whole_words(tiny.tokenizer(kind)).fingerprint for kind in (*tiny.KINDS, "bpe")]
    assert len(set(prints)) == 3
    assert prints[1] == prints[3]


def test_encode_is_the_tokenizer_alone() -> None:
    tokenizer = tiny.tokenizer("unigram", 5)
    long = " ".join(tiny.WORDS)
    assert np.array_equal(encode(tokenizer, [long])[0], tokenizer(long, add_special_tokens=False)["input_ids"])


def test_words_have_two_letters_at_least_and_no_special_token_is_one() -> None:
    vocabulary = whole_words(tiny.tokenizer("wordpiece"), ())
    assert {"of", "un", "bread"} <= set(vocabulary.words)
    assert "a" not in vocabulary.words
    assert whole_words(tiny.tokenizer("wordpiece"), ["OF", "Bread"]).number.keys() == vocabulary.number.keys() - {
        "of",
        "bread",
    }
    assert not {"the", "of"} & set(whole_words(tiny.tokenizer("wordpiece")).words)  # English stop words
    assert len(vocabulary.fingerprint) == 16
    for tokens in ([], [vocabulary.token[3]]):
        found = vocabulary.words_at(np.array(tokens, dtype=np.int64))
        assert found.tolist() == [3] * len(tokens)


def test_stop_words(tmp_path: Path) -> None:
    assert {"the", "and", "of", "would"} <= read_stop_words("english")
    assert read_stop_words("none") == frozenset()
    with pytest.raises(InputError, match="expected 'english', 'none' or a text file"):
        read_stop_words("nowhere.txt")
    (tmp_path / "stop.txt").write_text("eins\nzwei drei\n\u00fcber\n", encoding="utf-8")
    assert read_stop_words(tmp_path / "stop.txt") == {"eins", "zwei", "drei", "\u00fcber"}
    (tmp_path / "stop.txt").write_bytes(b"\xff")
    with pytest.raises(InputError, match="one word per line"):
        read_stop_words(tmp_path / "stop.txt")


@pytest.mark.parametrize(("before", "after"), [([], []), ([1], [2]), ([1], []), ([], [2, 3])])
def test_special_tokens_stand_around_a_text(before: list[int], after: list[int]) -> None:
    full = [*before, 5, 6, *after]

    def tokenizer(_: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": full if add_special_tokens else [5, 6]}

    assert special_tokens(tokenizer) == (before, after)
    full = [5, 1, 6]  # taken apart: what stands around it is not known
    assert special_tokens(tokenizer) == ([], [])


@given(st.lists(st.integers(1, 12), min_size=1, max_size=20))
def test_batches_are_full_and_no_larger(lengths: list[int]) -> None:
    windows_ = [Window(i, np.arange(length), np.arange(0)) for i, length in enumerate(lengths)]
    with mock.patch.object(vocabulary_module, "TOKENS", 24):
        found = list(batches(windows_))
    sizes = [[len(window.tokens) for window in batch] for batch in found]
    assert [size for batch in sizes for size in batch] == sorted(lengths, reverse=True)
    assert sorted(window.document for batch in found for window in batch) == list(range(len(lengths)))
    for batch, after in itertools.zip_longest(sizes, sizes[1:]):
        assert len(batch) * batch[0] <= 24
        assert after is None or (len(batch) + 1) * batch[0] > 24


def test_windows_and_the_words_in_them() -> None:
    tokenizer = tiny.tokenizer("wordpiece")
    vocabulary = whole_words(tokenizer)
    loaded: Any = SimpleNamespace(tokenizer=tokenizer, window=6)
    ids = tokenizer("bread the boat honey boatly court", add_special_tokens=False)["input_ids"]
    assert len(ids) == 7
    texts = ["bread the boat honey boatly court", "", "judge"]
    found = list(windows(loaded, vocabulary, texts, None))
    assert [window.document for window in found] == [0, 0, 2]
    assert [window.tokens.tolist() for window in found[:2]] == [[2, *ids[:4], 3], [2, *ids[4:], 3]]
    assert [window.places.tolist() for window in found] == [[1, 3, 4], [3], [1]]
    assert [len(window.tokens) for window in windows(loaded, vocabulary, texts, None, 5)] == [5, 5, 3, 3]
    assert [len(window.tokens) for window in windows(loaded, vocabulary, texts, None, 99)] == [6, 5, 3]
    assert [window.document for window in windows(loaded, vocabulary, texts * 2, 1)] == [0, 2, 3, 5]
    wanted = np.zeros(len(tokenizer), dtype=bool)
    wanted[ids[2]] = True
    assert padded_places(found[:2], wanted).tolist() == [[3], [-1]]


def test_chunks() -> None:
    assert list(chunks(iter("abcde"), 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(chunks([], 2)) == []


def test_rare_words_are_looked_at_where_they_may_count() -> None:
    """All pairs are as frequent: the first by number, though the last words are as common as any."""
    words = 4500
    documents = [np.array([word, words - 1 - word]) for word in range(words // 2)]
    pairs, counts = top_pairs(documents, words, 3)
    assert pairs.tolist() == [[0, 4499], [1, 4498], [2, 4497]]
    assert counts.tolist() == [1, 1, 1]
    assert len(top_pairs(documents, words, 10**4)[0]) == words // 2


def test_the_most_frequent_pairs_are_found_among_the_most_frequent_words() -> None:
    """2,001 frequent words that never meet, and a rarer pair that does."""
    alone = [np.array([word]) for word in range(2100) for _ in range(3)]
    together = [np.array([2200, 2300])] * 2
    pairs, counts = top_pairs([*alone, *together], 2400, 1)
    assert (pairs.tolist(), counts.tolist()) == ([[2200, 2300]], [2])
    often = [np.array([5, 3, 5])] * 9
    pairs, counts = top_pairs([*alone, *often], 2400, 1)
    assert (pairs.tolist(), counts.tolist()) == ([[3, 5]], [9])


def test_a_stretch_is_fifty_words_and_ends_with_its_document() -> None:
    assert STRETCH == 50
    documents = [np.array([0] * 50 + [1] * 50 + [0, 2]), np.array([1, 2])]
    assert spread_of(4, documents).tolist() == [2, 2, 2, 0]
    found = joint_counts((4, np.array([0, 1, 2])), documents).toarray()
    assert found.tolist() == [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
