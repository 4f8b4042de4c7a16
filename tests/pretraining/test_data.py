"""Rows from a stream of documents, shared by several processes, and tokenizers trained on them."""

import copy
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from tests.pretraining import small
from topicscope.ground.errors import InputError
from topicscope.language import Corpus, whole_words
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
    # two passes, and the beginning of the third
    read = [*small.texts(), *small.texts(), *islice(rows._shuffled(), rows.drawn)]
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


def test_what_is_held_in_memory_does_not_grow_with_the_corpus() -> None:
    """A thousand documents, and 4096 rows."""
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield "boat bread " * 200

    rows = Rows(endless(), small.tokenizer(), small.LENGTH, 0)
    next(rows._shuffled())
    assert read == 1001
    rows.take(0, 8)
    assert rows.store.shape == (4096, small.LENGTH)
    assert len(rows.rest) < 33 * 401  # what one reading brings


def test_a_batch_may_be_the_whole_store_but_no_more() -> None:
    text = " ".join(["boat"] * 43)  # and the token between documents: two rows of 22
    assert Rows([text], small.tokenizer(), small.LENGTH, 0).take(0, 2).shape == (2, small.LENGTH)
    with pytest.raises(InputError, match="has 2 rows of 24 tokens, fewer than a batch of 3; give more text"):
        Rows([text], small.tokenizer(), small.LENGTH, 0).take(0, 3)
    with pytest.raises(InputError, match="the corpus has no text"):
        Rows([], small.tokenizer(), small.LENGTH, 0).take(0, 1)


def test_a_corpus_of_files_is_known_by_its_fingerprint(corpus: str) -> None:
    read = Corpus([corpus])
    assert Rows(read, small.tokenizer(), small.LENGTH, 0).fingerprint == read.fingerprint()
    assert Rows(small.texts(), small.tokenizer(), small.LENGTH, 0).fingerprint == "given"


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_a_trained_tokenizer_writes_words_back(kind: str) -> None:
    tokenizer = small.tokenizer(kind)
    text = "the boat and the judge are of flour"
    assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]).strip() == text
    assert tokenizer("boat")["input_ids"][0] == tokenizer.cls_token_id
    assert tokenizer("boat")["input_ids"][-1] == tokenizer.sep_token_id
    assert len({getattr(tokenizer, f"{name}_token_id") for name in ("pad", "unk", "cls", "sep", "mask")}) == 5
    if kind != "unigram":  # which makes pieces, not words, of so small a corpus
        assert "boat" in whole_words(tokenizer).number  # and can be probed
    assert tokenizer.model_max_length == small.LENGTH


def test_a_vocabulary_that_the_corpus_cannot_fill_is_one_line() -> None:
    with pytest.raises(InputError, match=r"supports \d+ tokens of kind wordpiece, fewer than the vocabulary of 5000"):
        train_tokenizer(list(small.texts()), "wordpiece", 5000, 24)
    with pytest.raises(InputError, match="a vocabulary of 20 is too small"):
        train_tokenizer(list(small.texts()), "wordpiece", 20, 24)


def test_a_tokenizer_of_the_configs_kind_is_trained_on_the_first_documents(corpus: str, tmp_path: Path) -> None:
    texts = ["ab ba"] * 5 + ["cd dc"] * 5
    phases: list[str] = []
    settings = {"vocab_size": 11, "documents": 5}

    def progress(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        phases.append(phase)

    made = data.make_tokenizer(small.config(tokenizer=settings), texts, progress)
    assert phases == ["training a tokenizer"]
    assert set(made.get_vocab()) == {*data.SPECIAL.values(), "a", "b", "##a", "##b", "ab", "ba"}
    (tmp_path / "empty.txt").write_text("")
    empty = Corpus([str(tmp_path / "empty.txt")])
    with pytest.raises(InputError, match=r"the corpus has no text \(.*empty\.txt: .*\); give files with text in them"):
        data.make_tokenizer(small.config(str(tmp_path / "empty.txt")), empty)
    with pytest.raises(InputError, match="the corpus has no text; give files"):
        data.make_tokenizer(small.config(), [])


def test_a_tokenizer_that_exists_needs_a_mask(tmp_path: Path) -> None:
    own = copy.deepcopy(small.tokenizer())
    own.save_pretrained(tmp_path / "own")
    config = small.config(length=12, tokenizer={"existing": str(tmp_path / "own")})
    found = data.make_tokenizer(config, [])
    assert found.get_vocab() == small.tokenizer().get_vocab()
    assert found.model_max_length == 12
    own.mask_token = None
    own.save_pretrained(tmp_path / "none")
    with pytest.raises(InputError, match="has no mask token, which masked language modelling needs"):
        data.make_tokenizer(small.config(tokenizer={"existing": str(tmp_path / "none")}), [])


def test_wordpiece_continues_with_letters_and_not_with_what_it_splits_at() -> None:
    texts = ["ab1€, b$a —c."] * 3
    tokenizer = train_tokenizer(texts, "wordpiece", 40, 24, exact=False)
    tokens = set(tokenizer.get_vocab())
    assert {"a", "b", "1", "€", ",", "$", "—", ".", "##a", "##b", "##1", "##€", "##c"} <= tokens
    assert not tokens & {"##,", "##$", "##—", "##."}
    assert tokenizer.tokenize("c, b.") == ["c", ",", "b", "."]
    assert tokenizer.backend_tokenizer.decode(tokenizer("c , b .", add_special_tokens=False)["input_ids"]) == "c , b ."


def test_a_wordpiece_alphabet_has_the_thousand_most_frequent_letters() -> None:
    letters = [chr(0x4E00 + i) for i in range(1010)]
    texts = [" ".join(letters[:1003]), " ".join(letters[3:])]  # 1000 letters twice, the others once
    tokens = set(train_tokenizer(texts, "wordpiece", 3000, 24, exact=False).get_vocab())
    assert tokens & set(letters) == set(letters[3:1003])


def test_bytes_are_told_apart_and_a_word_is_the_same_everywhere() -> None:
    tokenizer = small.tokenizer("bpe")
    first, second = tokenizer.tokenize("boat boat")
    assert first == second
    assert tokenizer.decode(tokenizer("Ünïcödé", add_special_tokens=False)["input_ids"]).strip() == "Ünïcödé"
    assert len(tokenizer) == 330


def test_unigram_pieces_come_by_probability_after_the_special_tokens() -> None:
    tokenizer = small.tokenizer("unigram")
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    names = [name for name, _ in model["vocab"]]
    assert names[:5] == list(data.SPECIAL.values())
    assert len(set(names)) == len(names) == 60
    pieces = [(-score, name) for name, score in model["vocab"][5:]]
    assert pieces == sorted(pieces)
    assert tokenizer("ß", add_special_tokens=False)["input_ids"][-1] == tokenizer.unk_token_id
    assert tokenizer.tokenize("THE") == tokenizer.tokenize("the")


class Pieces:
    """A trainer's result with pieces of equal probability, in an order of its own."""

    def __init__(self, model: Any) -> None: ...

    def train_from_iterator(self, lines: Iterator[str], trainer: Any) -> None:
        self.lines = list(lines)

    def to_str(self) -> str:
        vocabulary = [["[UNK]", 0.0], ["c", -1.0], ["b", -1.00000004], ["d", -0.5], ["a", -1.0]]
        return json.dumps({"model": {"vocab": vocabulary}})


def test_unigram_pieces_of_equal_probability_come_by_name() -> None:
    library = MagicMock()
    library.Tokenizer = Pieces
    library.models.Unigram.side_effect = lambda *given: given
    made: Any = data.unigram(library, ["a b\nc", "d"], 9)
    built, (vocabulary, unknown, _) = made
    assert built.lines == ["a b", "c", "d"]  # short texts
    assert [name for name, _ in vocabulary] == [*data.SPECIAL.values(), "d", "a", "b", "c"]
    assert vocabulary[unknown][0] == "[UNK]"


SCRIPT = """
from tests.pretraining import small
import json
vocabularies = [small.tokenizer(kind).get_vocab() for kind in ("wordpiece", "bpe")]
print(json.dumps(vocabularies))
"""


def test_the_same_tokenizer_every_time() -> None:
    """Another process has the library's tables in another order."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [small.tokenizer(kind).get_vocab() for kind in ("wordpiece", "bpe")]


class Counting:
    """The tokenizer, and how often it was given each text."""

    def __init__(self) -> None:
        self.given: Counter[str] = Counter()

    def __call__(self, texts: list[str], **settings: Any) -> Any:
        self.given.update(text for text in texts if text in small.texts())
        return small.tokenizer()(texts, **settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(small.tokenizer(), name)


def together(count: int, work: Callable[[Rows], Any], **settings: Any) -> tuple[list[Any], list[Counter[str]]]:
    """What `work` returns in each of `count` processes (here: threads), and the texts that each has tokenised."""
    barrier, found = threading.Barrier(count), [None] * count
    shelf: list[list[Any]] = [[] for _ in range(count)]
    tokenizers = [Counting() for _ in range(count)]

    def one(rank: int) -> None:
        def exchange(mine: list[np.ndarray]) -> list[list[np.ndarray]]:
            shelf[rank] = mine
            barrier.wait(60)
            everyone = list(shelf)
            barrier.wait(60)
            return everyone

        shared: dict[str, Any] = {"rank": rank, "processes": count, "exchange": exchange, **settings}
        found[rank] = work(Rows(small.texts(), tokenizers[rank], small.LENGTH, 1, **shared))

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found, [tokenizer.given for tokenizer in tokenizers]


def steps(first: int, last: int) -> Callable[[Rows], np.ndarray]:
    return lambda rows: np.stack([rows.take(step, 8) for step in range(first, last)])


@pytest.mark.parametrize("count", [2, 3])
def test_each_process_tokenises_its_share_and_all_hold_the_rows_of_one(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "ROWS", 64)
    [alone], [every] = together(1, steps(0, 100), held_out=0.05)
    rows, shares = together(count, steps(0, 100), held_out=0.05)
    for one in rows:
        np.testing.assert_array_equal(one, alone)
    read = sum(shares, Counter())
    assert every.total() > 300  # more than a pass
    assert all(read[text] >= times for text, times in every.items())
    assert read.total() - every.total() < 2 * count  # read ahead by a few at most: no document twice
    for share in shares:
        assert abs(share.total() - read.total() / count) < 0.05 * read.total()


def test_any_number_of_processes_goes_on_with_what_another_number_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "ROWS", 64)

    def stopped(rows: Rows) -> dict[str, np.ndarray]:
        steps(0, 25)(rows)
        return rows.state()

    def resumed(rows: Rows) -> np.ndarray:
        rows.load(states[0])
        return steps(25, 60)(rows)

    [whole], _ = together(1, steps(0, 60))
    for before, after in ((1, 2), (2, 1), (2, 3)):
        states, _ = together(before, stopped)
        for rows in together(after, resumed)[0]:
            np.testing.assert_array_equal(rows, whole[25:])


def test_how_many_documents_are_read_at_once_changes_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """And epochs are counted alike; but no more is read than a step needs."""
    monkeypatch.setattr(data, "ROWS", 64)
    found = []
    for most in (32, 5, 1):
        monkeypatch.setattr(data, "TOGETHER", most)
        rows = Rows(small.texts(), small.tokenizer(), small.LENGTH, 0)
        taken = [rows.take(step, 8) for step in range(90)]
        found.append((np.stack(taken), rows.epoch))
        assert len(rows.rest) < (3 if most == 32 else 2) * 22 * 8
    for other, epoch in found[1:]:
        np.testing.assert_array_equal(other, found[0][0])
        assert epoch == found[0][1] > 0
