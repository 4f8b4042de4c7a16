"""Words of a corpus, and which two stand in the same stretch of text most often (the control of Table 2).

Counted in shards: the same function over the same shards on every engine, with results in their order.
"""

import functools
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
from jaxtyping import Int
from scipy import sparse

from topicscope.ground import Common, Engine, Item, Output, in_order, repeatable, serial
from topicscope.language.vocabulary import Vocabulary, chunks, encode

DOCUMENTS = 256  # of a shard: their token lists are large
STRETCH = 50  # whole words of a stretch
Document = Int[np.ndarray, " N"]  # the numbers of its words


def in_shards(
    engine: Engine, work: Callable[[Common, Item], Output], common: Common, shards: Iterable[Item]
) -> Iterator[Output]:
    """`work(common, shard)` of every shard, in order.

    The engine serial takes one shard after another and passes the caller's own objects. Any other engine gets `common`
    packed as a pool of processes packs what it sends, but every process unpacks it only once.
    """
    if engine is serial:
        return (work(common, shard) for shard in shards)
    return in_order(engine(_unpack_and_work, (work, bytes(ForkingPickler.dumps(common))), shards))


def _unpack_and_work(shipped: tuple[Callable[[Any, Any], Any], bytes], shard: Any) -> Any:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread per process: there is one process per core
    work, common = shipped
    with repeatable():
        return work(_unpacked(common), shard)


@functools.lru_cache(maxsize=1)
def _unpacked(common: bytes) -> Any:
    return ForkingPickler.loads(common)


def word_documents(texts: Sequence[str], vocabulary: Vocabulary, engine: Engine = serial) -> list[Document]:
    found = in_shards(engine, whole_words_of, vocabulary, chunks(texts, DOCUMENTS))
    return [words for shard in found for words in shard]


def whole_words_of(vocabulary: Vocabulary, texts: Sequence[str]) -> list[Document]:
    return [words[words >= 0] for words in map(vocabulary.words_at, encode(vocabulary.tokenizer, texts))]


def top_pairs(
    documents: Sequence[Document], words: int, count: int, engine: Engine = serial
) -> tuple[Int[np.ndarray, "P 2"], Int[np.ndarray, " P"]]:
    """The pairs of different words that share most stretches of text (the control of Table 2).

    A pair is at most as frequent as its rarer word, so only frequent words are looked at.

    Args:
        documents: Numbers of the words of each document.
        words: Number of words.
        count: Number of pairs.
        engine: Counts shards of documents.

    Returns:
        The pairs (P x 2), the commonest first, and in how many stretches each occurs (P); ties by the words' numbers.

    Example:
        >>> pairs, counts = top_pairs([np.array([0, 1]), np.array([0, 1, 2])], words=3, count=1)
        >>> pairs.tolist(), counts.tolist()
        ([[0, 1]], [2])
    """
    shards = list(chunks(documents, DOCUMENTS))
    spread = sum(in_shards(engine, spread_of, words, shards), np.zeros(words, dtype=np.int64))
    order = np.argsort(-spread, kind="stable")
    size = min(words, 2000)
    while True:
        frequent = np.sort(order[:size])
        counts = in_shards(engine, joint_counts, (words, frequent), shards)
        joint = functools.reduce(operator.add, counts, sparse.csr_array((size, size), dtype=np.int64)).tocoo()
        left, right = frequent[joint.row], frequent[joint.col]
        best = np.lexsort((right, left, -joint.data))[:count]
        if size == words or (len(best) == count and spread[order[size]] < joint.data[best[-1]]):
            return np.stack([left[best], right[best]], 1), joint.data[best]
        size = min(words, 2 * size)


def spread_of(words: int, documents: Sequence[Document]) -> Int[np.ndarray, " W"]:
    """How many stretches each word is in."""
    return np.asarray(stretches(documents, words).sum(0)).ravel()


def joint_counts(which: tuple[int, Int[np.ndarray, " K"]], documents: Sequence[Document]) -> sparse.csr_array:
    """How many stretches each two of some words share, the first of the pair before the second."""
    words, some = which
    part = stretches(documents, words)[:, some]
    return sparse.triu(part.T @ part, k=1).tocsr()


def stretches(documents: Sequence[Document], words: int) -> sparse.csr_array:
    """One row per stretch, 1 where a word occurs in it. No stretch reaches over the end of a document."""
    lengths = np.array([len(document) for document in documents])
    counts = -(-lengths // STRETCH)
    inside = np.concatenate([np.arange(length) // STRETCH for length in lengths])
    row, column = inside + np.repeat(np.cumsum(counts) - counts, lengths), np.concatenate(documents)
    table = sparse.coo_array((np.ones(len(row), dtype=np.int64), (row, column)), shape=(counts.sum(), words)).tocsr()
    table.data[:] = 1
    return table
