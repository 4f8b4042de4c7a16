"""Which tokens are whole words, documents cut to a model's length, and which words stand together most often.

Whole words are found by asking the tokenizer, not by its name. A token that decodes to letters starts a word if text
with a space before it gives that same token back. It continues a word if it is written without a space after the token
before it. A position shows a whole word if its token is a word and the next token does not continue it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from itertools import chain, islice
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Int
from scipy import sparse

from topicscope.ground import (
    Common,
    Engine,
    InputError,
    Item,
    Output,
    in_order,
    read_text,
    refuse_if,
    repeatable,
    serial,
    shown,
)

if TYPE_CHECKING:
    from topicscope.language.models import LoadedModel

# of the library transformers, whose classes the type checker does not see
Tokenizer: TypeAlias = Any
LibraryModel: TypeAlias = Any

BEFORE = "a"  # text before a token, when the tokenizer is asked how it writes the token
TOKENS = 8192  # positions of a batch, padding included


@dataclass(frozen=True)
class Vocabulary:
    tokenizer: Tokenizer
    size: int  # V, its number of tokens
    token: Int[np.ndarray, " W"]  # of each word
    words: tuple[str, ...]
    continues: Bool[np.ndarray, " V"]  # whether a token continues the word before it

    @cached_property
    def index(self) -> Int[np.ndarray, " V"]:
        index = np.full(self.size, -1, dtype=np.int64)
        index[self.token] = np.arange(len(self.token))
        return index

    @cached_property
    def number(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    @cached_property
    def fingerprint(self) -> str:
        tokens = json.dumps(self.tokenizer.convert_ids_to_tokens(list(range(self.size))))
        return hashlib.sha256(tokens.encode()).hexdigest()[:16]

    def words_at(self, tokens: Int[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
        """The number of the word at each position; -1 where there is none, or only a piece of one."""
        words = self.index[tokens]
        words[:-1][self.continues[tokens[1:]]] = -1
        return words


def whole_words(tokenizer: Tokenizer, stop_words: Iterable[str] | None = None) -> Vocabulary:
    """All tokens that are words of at least two letters, without special tokens and stop words."""
    size, special = len(tokenizer), set(tokenizer.all_special_ids)
    before = tokenizer(BEFORE, add_special_tokens=False)["input_ids"]
    decode = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
    start = tokenizer.decode(before, **decode)
    written = tokenizer.batch_decode([[*before, i] for i in range(size)], **decode)
    pieces = [
        text.removeprefix(start) if text.startswith(start) and i not in special else ""
        for i, text in enumerate(written)
    ]
    stopped = {word.lower() for word in (read_stop_words("english") if stop_words is None else stop_words)}
    candidates = {
        i: piece[1:]
        for i, piece in enumerate(pieces)
        if piece[:1] == " " and len(piece) > 2 and piece[1:].isalpha() and piece[1:].lower() not in stopped
    }
    texts = [f"{BEFORE} {word}" for word in candidates.values()]
    back = tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []
    words = {i: candidates[i] for i, tokens in zip(candidates, back, strict=True) if tokens == [*before, i]}
    refuse_if(not words, "this tokenizer has no token that is a whole word; choose one that has whole words as tokens")
    return Vocabulary(
        tokenizer,
        size,
        token=np.array(list(words)),
        words=tuple(words.values()),
        continues=np.array([piece[:1].isalnum() for piece in pieces]),
    )


def read_stop_words(name: str | Path) -> frozenset[str]:
    if str(name) == "none":
        return frozenset()
    if str(name) == "english":
        file = resources.files("topicscope.language") / "data" / "stop-words-english.txt"
        return frozenset(file.read_text(encoding="utf-8").split())
    try:
        return frozenset(read_text(name, "the file", 2**26).split())
    except InputError as error:
        raise InputError(
            f"stop_words {shown(name)}: expected 'english', 'none' or a text file with one word per line ({error})"
        ) from None


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Int[np.ndarray, " N"]]:
    encoded = tokenizer(
        list(texts),
        add_special_tokens=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # no warning that a text is too long: windows are cut later
    )
    return [np.asarray(tokens, dtype=np.int64) for tokens in encoded["input_ids"]]


@dataclass(frozen=True)
class Window:
    document: int
    tokens: Int[np.ndarray, " N"]  # with the model's special ones
    places: Int[np.ndarray, " P"]  # positions of whole words
    reached: float = 0.0  # how many documents are done at its end, for the progress


def windows(
    loaded: LoadedModel,
    vocabulary: Vocabulary,
    texts: Iterable[str],
    per_document: int | None,
    length: int | None = None,
) -> Iterator[Window]:
    """Documents cut to the model's length (or `length`). A word at a cut is not a whole word."""
    before, after = special_tokens(loaded.tokenizer)
    room = min(length or loaded.window, loaded.window) - len(before) - len(after)
    for number, text in enumerate(texts):
        tokens = encode(loaded.tokenizer, [text[: room * 40 * per_document] if per_document else text])[0]
        words = vocabulary.words_at(tokens)
        starts = range(0, len(tokens), room)[:per_document]
        for place, start in enumerate(starts, start=1):
            piece = slice(start, start + room)
            yield Window(
                number,
                np.concatenate([before, tokens[piece], after]).astype(np.int64),
                np.flatnonzero(words[piece] >= 0) + len(before),
                number + place / len(starts),
            )


def special_tokens(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    bare, full = tokenizer("a", add_special_tokens=False)["input_ids"], tokenizer("a")["input_ids"]
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return full[:start], full[start + len(bare) :]
    return [], []


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


def batches(chunk: list[Window], most: int = TOKENS) -> Iterator[list[Window]]:
    rest = sorted(chunk, key=lambda window: len(window.tokens), reverse=True)
    while rest:  # each batch is padded to its first window
        count = max(1, min(TOKENS, most) // len(rest[0].tokens))
        yield rest[:count]
        rest = rest[count:]


DOCUMENTS = 256  # per shard, since their token lists are large
STRETCH = 50  # whole words of a stretch
Document = Int[np.ndarray, " N"]  # the numbers of its words


def in_shards(
    engine: Engine, work: Callable[[Common, Item], Output], common: Common, shards: Iterable[Item]
) -> Iterator[Output]:
    """`work(common, shard)` of every shard, in order. Processes unpack `common` once; serial uses the caller's own."""
    if engine is serial:
        return (work(common, shard) for shard in shards)
    return in_order(engine(_unpack_and_work, (work, bytes(ForkingPickler.dumps(common))), shards))


def _unpack_and_work(shipped: tuple[Callable[[Any, Item], Output], bytes], shard: Item) -> Output:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread per process, since there is one process per core
    work, common = shipped
    with repeatable():
        return work(_unpacked(common), shard)


_unpacked = functools.lru_cache(maxsize=1)(ForkingPickler.loads)


def word_documents(texts: Sequence[str], vocabulary: Vocabulary, engine: Engine = serial) -> list[Document]:
    return list(chain.from_iterable(in_shards(engine, whole_words_of, vocabulary, chunks(texts, DOCUMENTS))))


def whole_words_of(vocabulary: Vocabulary, texts: Sequence[str]) -> list[Document]:
    return [words[words >= 0] for words in map(vocabulary.words_at, encode(vocabulary.tokenizer, texts))]


def top_pairs(
    documents: Sequence[Document], words: int, count: int, engine: Engine = serial
) -> tuple[Int[np.ndarray, "P 2"], Int[np.ndarray, " P"]]:
    """The pairs of different words that share most stretches of text (the control of Table 2)."""
    shards = list(chunks(documents, DOCUMENTS))
    spread = sum(in_shards(engine, spread_of, words, shards), np.zeros(words, dtype=np.int64))
    order = np.argsort(-spread, kind="stable")
    size = min(words, 2000)  # of frequent words: a pair is at most as frequent as its rarer word
    while True:
        frequent = np.sort(order[:size])
        none = sparse.csr_array((size, size), dtype=np.int64)
        joint = sum(in_shards(engine, joint_counts, (words, frequent), shards), none).tocoo()
        left, right = frequent[joint.row], frequent[joint.col]
        best = np.lexsort((right, left, -joint.data))[:count]
        if size == words or (len(best) == count and spread[order[size]] < joint.data[best[-1]]):
            return np.stack([left[best], right[best]], 1), joint.data[best]
        size = min(words, 2 * size)


def spread_of(words: int, documents: Sequence[Document]) -> Int[np.ndarray, " W"]:
    return np.asarray(stretches(documents, words).sum(0)).ravel()


def joint_counts(which: tuple[int, Int[np.ndarray, " K"]], documents: Sequence[Document]) -> sparse.csr_array:
    words, some = which
    part = stretches(documents, words)[:, some]
    return sparse.triu(part.T @ part, k=1).tocsr()  # each pair once


def stretches(documents: Sequence[Document], words: int) -> sparse.csr_array:
    """One row per stretch, 1 where a word occurs in it. No stretch reaches over the end of a document."""
    lengths = np.array([len(document) for document in documents])
    counts = -(-lengths // STRETCH)
    inside = np.concatenate([np.arange(length) // STRETCH for length in lengths])
    row, column = inside + np.repeat(np.cumsum(counts) - counts, lengths), np.concatenate(documents)
    table = sparse.coo_array((np.ones(len(row), dtype=np.int64), (row, column)), shape=(counts.sum(), words)).tocsr()
    table.data[:] = 1
    return table
