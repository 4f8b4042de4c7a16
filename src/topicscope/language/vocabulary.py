"""Which tokens are whole words: found by asking the tokenizer, not by its name. And documents, cut to a model's length.

A token that decodes to letters starts a word if text with a space before it gives that same token back. It continues a
word if it is written without a space after the token before it. A position shows a whole word if its token is a word
and the next token does not continue it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Int

from topicscope.ground import InputError, Item, read_text, shown

if TYPE_CHECKING:
    from topicscope.language.models import LoadedModel

BEFORE = "a"  # what stands before a token when the tokenizer is asked how it is written
MOST_STOP_WORDS = 2**26  # bytes of a file of stop words
TOKENS = 8192  # positions of a batch, padding included


@dataclass(frozen=True)
class Vocabulary:
    """The whole words of a tokenizer.

    Attributes:
        tokenizer: The tokenizer.
        size: V, its number of tokens.
        token: Token of each word (W).
        words: The words.
        continues: Whether a token continues the word before it (V).

    Example:
        See `whole_words`.
    """

    tokenizer: Any
    size: int
    token: Int[np.ndarray, " W"]
    words: tuple[str, ...]
    continues: Bool[np.ndarray, " V"]

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
        """A digest of all tokens: it tells tokenizers apart."""
        tokens = self.tokenizer.convert_ids_to_tokens(list(range(self.size)))
        return hashlib.sha256(json.dumps(tokens).encode()).hexdigest()[:16]

    def words_at(self, tokens: Int[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
        """The number of the word at each position; -1 where there is none, or only a piece of one."""
        words = self.index[tokens]
        words[:-1][self.continues[tokens[1:]]] = -1
        return words


def whole_words(tokenizer: Any, stop_words: Iterable[str] | None = None) -> Vocabulary:
    """All tokens that are words of at least two letters, without special tokens and stop words.

    Args:
        tokenizer: A tokenizer of the library transformers.
        stop_words: Words to leave out; None: the English ones.

    Returns:
        The words.

    Raises:
        InputError: No token is a whole word.

    Example:
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> words = whole_words(tokenizer, stop_words=["pond"])
        >>> "frog" in words.words, "pond" in words.words
        (True, False)
    """
    size, special = len(tokenizer), set(tokenizer.all_special_ids)
    before = tokenizer(BEFORE, add_special_tokens=False)["input_ids"]
    decode = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
    start = tokenizer.decode(before, **decode)
    written = tokenizer.batch_decode([[*before, i] for i in range(size)], **decode)
    pieces = [text[len(start) :] if text.startswith(start) else "" for text in written]
    continues = np.array([bool(piece) and piece[0].isalnum() and i not in special for i, piece in enumerate(pieces)])
    stopped = {word.lower() for word in (read_stop_words("english") if stop_words is None else stop_words)}
    candidates = [
        (i, piece[1:])
        for i, piece in enumerate(pieces)
        if piece[:1] == " " and len(piece) > 2 and piece[1:].isalpha() and piece[1:].lower() not in stopped
        if i not in special
    ]
    texts = [f"{BEFORE} {word}" for _, word in candidates]
    back = tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []
    words = [(i, word) for (i, word), tokens in zip(candidates, back, strict=True) if tokens == [*before, i]]
    if not words:
        raise InputError("this tokenizer has no token that is a whole word; choose one that has whole words as tokens")
    return Vocabulary(tokenizer, size, np.array([i for i, _ in words]), tuple(word for _, word in words), continues)


def read_stop_words(name: str | Path) -> frozenset[str]:
    """Stop words by name or from a file.

    Args:
        name: 'english', 'none', or a file with one word per line.

    Returns:
        The words.

    Raises:
        InputError: The file cannot be read.

    Example:
        >>> "the" in read_stop_words("english"), len(read_stop_words("none"))
        (True, 0)
    """
    if str(name) == "none":
        return frozenset()
    if str(name) == "english":
        english = resources.files("topicscope.language") / "data" / "stop-words-english.txt"
        return frozenset(english.read_text(encoding="utf-8").split())
    try:
        return frozenset(read_text(name, "the file", MOST_STOP_WORDS).split())
    except InputError as error:
        raise InputError(
            f"stop_words {shown(name)}: expected 'english', 'none' or a text file with one word per line ({error})"
        ) from None


def encode(tokenizer: Any, texts: Sequence[str]) -> list[Int[np.ndarray, " N"]]:
    """Tokens of texts, without special tokens, however long.

    Args:
        tokenizer: A tokenizer of the library transformers.
        texts: The texts.

    Returns:
        Token numbers of each text.

    Example:
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> [len(tokens) for tokens in encode(tokenizer, ["frog toad", "mozart"])]
        [2, 1]
    """
    encoded = tokenizer(
        list(texts),
        add_special_tokens=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # 'longer than the model can take': windows are cut later
    )
    return [np.asarray(tokens, dtype=np.int64) for tokens in encoded["input_ids"]]


@dataclass(frozen=True)
class Window:
    """A stretch of a document that the model reads at once.

    Attributes:
        document: Number of the document.
        tokens: Numbers of its tokens, with the model's special ones (N).
        places: Positions of whole words in it (P).
        reached: How many documents are done at its end, for the progress.

    Example:
        >>> window = Window(document=0, tokens=np.array([2, 7, 5, 3]), places=np.array([1]))  # [CLS] frog . [SEP]
        >>> window.tokens[window.places].tolist()  # its whole words
        [7]
    """

    document: int
    tokens: Int[np.ndarray, " N"]
    places: Int[np.ndarray, " P"]
    reached: float = 0.0


def windows(
    loaded: LoadedModel,
    vocabulary: Vocabulary,
    texts: Iterable[str],
    per_document: int | None,
    length: int | None = None,
) -> Iterator[Window]:
    """Documents cut to the model's length (or a smaller one), at most `per_document` windows of each.

    A word at a cut is not a whole word. Nobody knows how many windows there are before the last is cut; how many
    documents are done is known all the way.
    """
    before, after = special_tokens(loaded.tokenizer)
    room = min(length or loaded.window, loaded.window) - len(before) - len(after)
    for number, text in enumerate(texts):
        tokens = encode(loaded.tokenizer, [text[: room * 40 * per_document] if per_document else text])[0]
        words = vocabulary.words_at(tokens)
        starts = range(0, len(tokens), room)[:per_document]
        for place, start in enumerate(starts, start=1):
            piece = slice(start, start + room)
            places = np.flatnonzero(words[piece] >= 0) + len(before)
            full = np.concatenate([before, tokens[piece], after]).astype(np.int64)
            yield Window(number, full, places, number + place / len(starts))


def special_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:
    """What a tokenizer puts before and after a text.

    Args:
        tokenizer: A tokenizer of the library transformers.

    Returns:
        Tokens before, and tokens after.

    Example:
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> tokenizer.convert_ids_to_tokens(special_tokens(tokenizer)[0])
        ['[CLS]']
    """
    bare, full = tokenizer("a", add_special_tokens=False)["input_ids"], tokenizer("a")["input_ids"]
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return full[:start], full[start + len(bare) :]
    return [], []


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` items, in order; the last one may be shorter.

    Args:
        items: Any items.
        size: Items per list.

    Returns:
        The lists, one after another.

    Example:
        >>> list(chunks(range(5), 2))
        [[0, 1], [2, 3], [4]]
    """
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


def batches(chunk: list[Window], most: int | None = None) -> Iterator[list[Window]]:
    """Put windows of about the same length into batches.

    Args:
        chunk: The windows.
        most: Most positions of a batch, padding included; None: a fixed number.

    Returns:
        The batches, the longest windows first.

    Example:
        >>> chunk = [Window(n, np.zeros(size, dtype=int), np.zeros(0, dtype=int)) for n, size in enumerate((2, 4, 3))]
        >>> [[window.document for window in batch] for batch in batches(chunk, most=8)]
        [[1, 2], [0]]
    """
    batch: list[Window] = []
    room = TOKENS if most is None else min(TOKENS, most)
    for window in sorted(chunk, key=lambda window: len(window.tokens), reverse=True):
        if batch and (len(batch) + 1) * len(batch[0].tokens) > room:
            yield batch
            batch = []
        batch.append(window)
    yield batch
