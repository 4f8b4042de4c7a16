"""Documents with the same text: they must not be on both sides where one side is to say something of the other.

A classifier knows the label of a document whose copy it was fitted to, and the states of a text are those of its copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from jaxtyping import Int

from topicscope.ground import Stream, generator
from topicscope.language.state_rows import HALVES

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
