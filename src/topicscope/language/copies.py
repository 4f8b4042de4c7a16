"""Documents with the same text: they must not be on both sides where one side is to say something of the other.

A classifier knows the label of a document whose copy it was fitted to, and the states of a text are those of its copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from jaxtyping import Int

from topicscope.ground import Stream, generator
from topicscope.language.document_rows import DocumentRow
from topicscope.language.state_rows import HALVES

LARGE_SHARE = 0.2  # of what is measured: where one text has more, an answer may hold for this text alone
Originals = Int[np.ndarray, " D"]


def originals(texts: Sequence[str]) -> Originals:
    """Of each text the number of the first that has the same words; spaces and ends of lines do not count."""
    first: dict[bytes, int] = {}
    digests = (
        blake2b(" ".join(text.split()).encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts
    )
    return np.array([first.setdefault(digest, number) for number, digest in enumerate(digests)], dtype=np.int64)


def drawn_halves(of: Originals, seed: int) -> Int[np.ndarray, " D"]:
    """A half for every document: as many different texts in one as in the other, up to one.

    Halves are drawn: a corpus may be in an order, such as two sources in turn.
    """
    texts, which = np.unique(of, return_inverse=True)
    return (generator(seed, Stream.STATE_HALVES).permutation(len(texts)) % HALVES)[which]


def once(documents: Sequence[int], of: Originals) -> list[int]:
    """Of documents by number those that count where each text does so once: its first."""
    first: dict[int, int] = {}
    for number in documents:
        first.setdefault(int(of[number]), number)
    return sorted(first.values())


def copies_note(of: Originals) -> str:
    """Empty where all texts differ."""
    copies = len(of) - len(np.unique(of))
    return (
        f"{copies:,} of the {len(of):,} documents have the text of another: where the topics or labels of documents "
        "are predicted each text counts once, and no states are compared between copies"
        if copies
        else ""
    )


def large_text_note(rows: Sequence[DocumentRow], of: Originals) -> str:
    """Names the text that has, with its copies, more than LARGE_SHARE of what is measured; empty where none has.

    Attention is a mean over pairs of positions, of one topic and of different topics; states are means over positions.
    """
    counts = {
        "pairs of positions of one topic": [row.same_pairs for row in rows],
        "pairs of positions of different topics": [row.different_pairs for row in rows],
        "positions of topic words": [row.topic_words for row in rows],
    }
    texts = np.array([of[row.document] for row in rows], dtype=np.int64)
    weights = {what: np.bincount(texts, weights=count) for what, count in counts.items() if sum(count)}
    shares = [(float(by_text.max() / by_text.sum()), int(by_text.argmax()), what) for what, by_text in weights.items()]
    share, text, what = max(shares, key=lambda one: one[0], default=(0.0, 0, ""))
    if share <= LARGE_SHARE:
        return ""
    mine = [row for row, owner in zip(rows, texts, strict=True) if owner == text]
    copies = f" with {len(mine) - 1} of its copies" if len(mine) > 1 else ""
    return (
        f"warning: document {mine[0].named}{copies} has {share:.0%} of the {what}, so the answers on attention and "
        "hidden states may hold for it alone; take less of each document (--windows 1) or more documents "
        "(--documents), or leave it out"
    )
