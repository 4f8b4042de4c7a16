"""Cosines between any words (Figure 3): word_map(loaded, [["frog", "toad"], ["mozart", "schubert"]])."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError
from topicscope.language.models import LoadedModel, word_vectors
from topicscope.language.vocabulary import BEFORE


@dataclass(frozen=True)
class WordMap:
    """`pieces[i]` is how many tokens word i has; the vectors of several are averaged."""

    words: tuple[str, ...]
    groups: tuple[int, ...]
    pieces: tuple[int, ...]
    cosine: Float[np.ndarray, "n n"]

    @property
    def labels(self) -> list[str]:
        """Words that are not one token, and so a mean of pieces, have a star."""
        return [word if count == 1 else f"{word}*" for word, count in zip(self.words, self.pieces, strict=True)]

    def means(self) -> tuple[float, float]:
        """Mean cosine of two different words of a group, and of two groups; NaN where there are none."""
        group = np.array(self.groups)
        same, own = group[:, None] == group, np.eye(len(group), dtype=bool)
        return tuple(float(self.cosine[mask].mean()) if mask.any() else float("nan") for mask in (same & ~own, ~same))  # type: ignore[return-value]


def word_map(loaded: LoadedModel, groups: Sequence[Sequence[str]], *, layer: bool = False) -> WordMap:
    """Cosines of the words' embeddings, groups side by side."""
    words = [word for group in groups for word in group]
    if len(words) < 2:
        raise InputError("give at least two words, groups parted by /, for example: frog toad / mozart schubert")
    before = loaded.tokenizer(BEFORE, add_special_tokens=False)["input_ids"]
    tokens = [
        loaded.tokenizer(f"{BEFORE} {word}", add_special_tokens=False)["input_ids"][len(before) :] for word in words
    ]
    unknown = loaded.tokenizer.unk_token_id
    for word, pieces in zip(words, tokens, strict=True):
        if not pieces or (unknown is not None and unknown in pieces):
            raise InputError(f"{loaded.name}: its tokenizer does not know {word!r}")
    used = sorted({token for pieces in tokens for token in pieces})
    place = {token: i for i, token in enumerate(used)}
    vectors = word_vectors(loaded, np.array(used), layer=layer)
    means = np.stack([vectors[[place[token] for token in pieces]].mean(0) for pieces in tokens])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    numbers = tuple(number for number, group in enumerate(groups) for _ in group)
    return WordMap(tuple(words), numbers, tuple(len(pieces) for pieces in tokens), means @ means.T)
