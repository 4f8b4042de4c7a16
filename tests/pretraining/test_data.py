"""Rows from a stream of documents, and tokenizers trained on them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from tests.pretraining import small
from topicscope.ground.errors import InputError
from topicscope.language import whole_words
from topicscope.language.vocabulary import encode
from topicscope.pretraining import data, train_tokenizer
from topicscope.pretraining.data import Rows


def inner(rows: np.ndarray) -> list[int]:
    """The tokens of rows without what stands around them."""
    return rows[:, 1:-1].ravel().tolist()


def test_an_epoch_has_every_token_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows that were handed out, all that are held and the rest: the corpus, once for each pass."""
    monkeypatch.setattr(data, "ROWS", 64)
    monkeypatch.setattr(data, "DOCUMENTS", 50)
    tokenizer = small.tokenizer()
    rows = Rows(small.texts(), tokenizer, small.LENGTH, 3)
    seen: list[int] = []
    step = 0
    while rows.epoch < 2:
        seen += inner(rows.take(step, 16))
        step += 1
    seen += inner(rows.store) + rows.rest.tolist()
    border = tokenizer.sep_token_id
    read = [
        *small.texts(),
        *small.texts(),
        *islice(rows._shuffled(), rows.drawn),
    ]  # two passes, and the beginning of the third
    assert Counter(seen) == Counter(token for tokens in encode(tokenizer, read) for token in [*tokens.tolist(), border])


def test_documents_come_in_another_order_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    for held in (1000, 50):  # more than there are, fewer
        monkeypatch.setattr(data, "DOCUMENTS", held)
        rows = Rows(small.texts(), small.tokenizer(), small.LENGTH, 0)
        first, again = list(rows._shuffled()), list(rows._shuffled())
        rows.epoch = 1
        second = list(rows._shuffled())
        assert first == again
        assert sorted(first) == sorted(second) == sorted(small.texts())
        assert first != second
        moved = [abs(i - first.index(text)) for i, text in enumerate(small.texts())]
        assert np.mean(moved) > min(held, 300) / 6  # far from where they were


def test_rows_are_text_between_special_tokens() -> None:
    tokenizer = small.tokenizer()
    rows = Rows(small.texts(), tokenizer, small.LENGTH, 0).take(0, 32)
    assert rows.shape == (32, small.LENGTH)
    assert set(rows[:, 0]) == {tokenizer.cls_token_id}
    assert set(rows[:, -1]) == {tokenizer.sep_token_id}
    stretch = tokenizer.decode(rows[0, 1:-1].tolist()).replace(" [SEP]", "").split()
    assert stretch[1:-1]
    assert set(stretch[1:-1]) <= {word for text in small.texts() for word in text.split()}


def test_the_state_goes_on_with_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "ROWS", 64)
    whole, stopped = (Rows(small.texts(), small.tokenizer(), small.LENGTH, 1) for _ in range(2))
    for step in range(90):
        whole.take(step, 8)
    for step in range(20):
        stopped.take(step, 8)
    resumed = Rows(small.texts(), small.tokenizer(), small.LENGTH, 1)
    resumed.load(stopped.state())
    for step in range(20, 90):
        resumed.take(step, 8)
    assert whole.epoch > 0  # it has gone round the corpus
    assert np.array_equal(whole.take(90, 8), resumed.take(90, 8))
    other = Rows(small.texts(), small.tokenizer(), small.LENGTH, 2)
    assert not np.array_equal(other.take(0, 8), Rows(small.texts(), small.tokenizer(), small.LENGTH, 1).take(0, 8))


def test_a_corpus_smaller_than_a_batch_is_one_line() -> None:
    rows = Rows(["the bread and the butter"], small.tokenizer(), small.LENGTH, 0)
    with pytest.raises(InputError, match="0 rows of 24 tokens, fewer than a batch of 8"):
        rows.take(0, 8)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_a_trained_tokenizer_writes_words_back(kind: str) -> None:
    tokenizer = small.tokenizer(kind)
    text = "the boat and the judge are of flour"
    assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]).strip() == text
    assert tokenizer("boat")["input_ids"][0] == tokenizer.cls_token_id
    assert tokenizer("boat")["input_ids"][-1] == tokenizer.sep_token_id
    assert (
        len(
            {
                tokenizer.pad_token_id,
                tokenizer.unk_token_id,
                tokenizer.cls_token_id,
                tokenizer.sep_token_id,
                tokenizer.mask_token_id,
            }
        )
        == 5
    )
    if kind != "unigram":  # which makes pieces, not words, of so small a corpus
        assert "boat" in whole_words(tokenizer).number  # and can be probed
    assert tokenizer.model_max_length == small.LENGTH


def test_a_vocabulary_that_the_corpus_cannot_fill_is_one_line() -> None:
    with pytest.raises(InputError, match=r"supports \d+ tokens of kind wordpiece, fewer than the vocabulary of 5000"):
        train_tokenizer(list(small.texts()), "wordpiece", 5000, 24)
    with pytest.raises(InputError, match="a vocabulary of 20 is too small"):
        train_tokenizer(list(small.texts()), "wordpiece", 20, 24)


SCRIPT = """
from tests.pretraining import small
import json
vocabularies = [small.tokenizer(kind).get_vocab().items() for kind in ("wordpiece", "bpe")]
print(json.dumps([sorted(vocabulary, key=lambda item: item[1]) for vocabulary in vocabularies]))
"""


def test_the_same_tokenizer_every_time() -> None:
    """In two processes: the library's tables are in another order in each."""
    first, second = (
        subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first == second
    assert len(first) > 1000
