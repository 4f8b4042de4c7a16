"""Pairs of positions of many windows at once: their attention weights, and sums of these by the words' relation.

Windows are padded to the one with the most words. A sum by relation is a product with a matrix of zeros and ones: the
same few calls for one window as for a hundred, and on a GPU the same order of additions every time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from topicscope.language.relations import Relation
from topicscope.language.vocabulary import Window

DEBIAS = 100
# pairs of positions that are summed together. A CPU is fastest where they fit into its cache, a GPU with few calls
TOGETHER = {"cpu": 2**14, "cuda": 2**19}


@dataclass(frozen=True)
class PositionPairs:
    """Whole words of some windows in one part of a model. The rest up to the largest number of words is not allowed."""

    weights: Float[Tensor, "B H Q*K"]  # debiased, of all heads
    query: Int[Tensor, "B Q"]  # tokens
    key: Int[Tensor, "B K"]
    allowed: Bool[Tensor, "B Q K"]


def padded_places(windows: Sequence[Window], wanted: Bool[np.ndarray, " V"]) -> Int[np.ndarray, "B P"]:
    """The positions of the wanted words of each window; -1 after the last."""
    chosen = [window.places[wanted[window.tokens[window.places]]] for window in windows]
    places = np.full((len(windows), max(1, *map(len, chosen))), -1)
    for row, some in zip(places, chosen, strict=True):
        row[: len(some)] = some
    return places


def slabs(windows: int, words: int, device: torch.device) -> Iterator[tuple[slice, slice]]:
    """Windows and query words that are summed together: several windows, or a part of one that has many words."""
    most = TOGETHER[device.type]
    several, queries = max(1, most // words**2), min(words, max(1, most // words))
    for start in range(0, windows, several):
        for first in range(0, words, queries):
            yield slice(start, start + several), slice(first, first + queries)


def pairs_of(
    part: str,
    layers: Sequence[Float[Tensor, "B H N N"]],
    inputs: tuple[Int[Tensor, "B N"], Int[Tensor, "B N"]],
    places: Int[Tensor, "B P"],
    queries: slice,
    shift: int,
) -> PositionPairs:
    """The pairs of some query words and all key words; `inputs` are tokens and mask.

    A position does not pair with itself; in a decoder only with those before it. The decoder of an encoder-decoder
    reads each word `shift` = 1 places later; a word that it does not read any more is in no pair.
    """
    tokens, mask = inputs
    size, length = tokens.shape[1], mask.sum(1, keepdim=True)
    known, first = places >= 0, places.clamp(min=0)
    if shift and part != "encoder":
        read = known & (places + shift < length)
        later = torch.where(read, places + shift, 0)
    else:
        read, later = known, first
    query, query_known = (first if part == "encoder" else later)[:, queries], read[:, queries]
    key, key_known = (later, read) if part == "decoder" else (first, known)
    here, there = places[:, queries, None], places[:, None]
    # the same place of the text is no pair, in cross attention neither
    allowed = (here > there) if part == "decoder" else (here != there)
    flat = (query[:, :, None] * size + key[:, None]).flatten(1)[:, None]
    weights = torch.cat([layer.flatten(2).gather(2, flat.expand(-1, layer.shape[1], -1)) for layer in layers], 1)
    available = query + 1 if part == "decoder" else length.expand(query.shape)
    scale = available.to(weights.dtype) / DEBIAS
    weights.view(len(weights), -1, *allowed.shape[1:]).mul_(scale[:, None, :, None])
    word = tokens.gather(1, first)
    return PositionPairs(weights, word[:, queries], word, allowed & query_known[:, :, None] & key_known[:, None])


def sums_by_relation(relation: Relation, pairs: PositionPairs) -> dict[str, Float[Tensor, "B ..."]]:
    """Of each window and head: sums and numbers of pairs for every code; the same of pairs in one topic after each
    shuffle, and of all pairs of different words.
    """
    weights, allowed = pairs.weights, pairs.allowed
    i, j = relation.index[pairs.query], relation.index[pairs.key]
    codes, shuffled = relation.codes(i, j)
    count = relation.relations * relation.strata
    # a row for every code, and a last one for what does not count
    codes = torch.where(allowed & (codes >= 0), codes, count).flatten(1)[:, None]
    marks = weights.new_zeros(len(weights), count + 1, weights.shape[2]).scatter_(1, codes, 1)[:, :-1]
    sums = {"sums": marks @ weights.mT, "pairs": marks.sum(2)}
    if shuffled is not None:
        other = allowed & (i[:, :, None] != j[:, None])
        # bytes become numbers five times as fast as truth values
        chosen = (shuffled & other[:, None]).flatten(2).view(torch.uint8).to(weights.dtype)
        every = other.flatten(1)[:, :, None].view(torch.uint8).to(weights.dtype)
        sums |= {"null_sums": chosen @ weights.mT, "null_pairs": chosen.sum(2)}
        sums |= {"other_sums": (weights @ every)[:, :, 0], "other_pairs": every.sum(1)}
    return sums
