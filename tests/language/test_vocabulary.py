from __future__ import annotations

import numpy as np
import pytest

from tests.language import tiny
from topicscope import InputError
from topicscope.language import read_stop_words, whole_words
from topicscope.language.vocabulary import encode


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


def test_pieces_of_words_are_none() -> None:
    vocabulary = whole_words(tiny.tokenizer("wordpiece"))
    tokens = encode(vocabulary.tokenizer, ["boat boatly boat"])[0]
    assert len(tokens) > 3
    found = [vocabulary.words[i] for i in vocabulary.words_at(tokens) if i >= 0]
    assert found == ["boat", "boat"]


def test_fingerprints_tell_tokenizers_apart() -> None:
    prints = [whole_words(tiny.tokenizer(kind)).fingerprint for kind in (*tiny.KINDS, "bpe")]
    assert len(set(prints)) == 3
    assert prints[1] == prints[3]


def test_stop_words(tmp_path: object) -> None:
    english = read_stop_words("english")
    assert {"the", "and", "of", "would"} <= english
    assert read_stop_words("none") == frozenset()
    with pytest.raises(InputError, match="expected 'english', 'none' or a text file"):
        read_stop_words("nowhere.txt")


def test_encode_is_the_tokenizer_alone() -> None:
    tokenizer = tiny.tokenizer("unigram", 5)
    long = " ".join(tiny.WORDS)
    assert np.array_equal(encode(tokenizer, [long])[0], tokenizer(long, add_special_tokens=False)["input_ids"])
