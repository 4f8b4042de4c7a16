"""Cosines between any words (Figure 3).

word_map(load_model("bert-base-uncased"), [["frog", "toad"], ["mozart", "schubert"]])
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float

from topicscope.ground import Folder, InputError, Kind, Result, arrow_table, read_finished, write_json
from topicscope.language.vocabulary import BEFORE

if TYPE_CHECKING:
    import pyarrow

    from topicscope.language.models import LoadedModel

WORDS = Kind("words", 2, ("words.json", "figure3*"), ("words.json",))


@dataclass(frozen=True, repr=False)
class WordMap(Result):
    """`pieces[i]` is how many tokens word i has; the vectors of several are averaged."""

    kind: ClassVar[str] = WORDS.name
    model: str
    words: tuple[str, ...]
    groups: tuple[int, ...]
    pieces: tuple[int, ...]
    cosine: Float[np.ndarray, "n n"]

    @property
    def labels(self) -> list[str]:
        """Words that are not one token, and so a mean of pieces, have a star."""
        return [word if count == 1 else f"{word}*" for word, count in zip(self.words, self.pieces, strict=True)]

    def means(self) -> tuple[float, float]:
        """Mean cosine of two different words of a group, and of words of two groups; NaN where there are none."""
        group = np.array(self.groups)
        same, own = group[:, None] == group, np.eye(len(group), dtype=bool)
        inside, between = (float(self.cosine[mask].mean()) if mask.any() else math.nan for mask in (same & ~own, ~same))
        return inside, between

    def summary(self) -> list[str]:
        inside, between = ("-" if math.isnan(mean) else f"{mean:.3f}" for mean in self.means())
        starred = ["* not one token: the mean of its pieces"] if max(self.pieces) > 1 else []
        return [*starred, f"mean cosine inside groups {inside}, between groups {between}"]

    def table(self) -> pyarrow.Table:
        """One row per word, one column per word."""
        return arrow_table(
            [
                {"word": word, "group": group} | dict(zip(self.words, row.tolist(), strict=True))
                for word, group, row in zip(self.words, self.groups, self.cosine, strict=True)
            ]
        )

    def as_dict(self) -> dict[str, Any]:
        same, different = (None if math.isnan(mean) else mean for mean in self.means())
        return {
            "model": self.model,
            "words": list(self.words),
            "groups": list(self.groups),
            "pieces": list(self.pieces),
            "cosine": self.cosine.tolist(),
            "same_group": same,
            "different_group": different,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        words, groups, pieces = (tuple(data[name]) for name in ("words", "groups", "pieces"))
        return cls(data["model"], words, groups, pieces, np.array(data["cosine"]))

    def write(self, folder: Folder) -> None:
        write_json(folder.file("words.json"), self.as_dict())
        folder.finish(self.as_dict())

    def _about(self) -> str:
        return f"{self.model}, {len(self.words)} words"


def read_words(path: str | os.PathLike[str]) -> WordMap:
    """The words of a finished folder."""
    return read_finished(path, WORDS, WordMap.from_dict)


def word_map(loaded: LoadedModel, groups: Sequence[Sequence[str]], *, layer: bool = False) -> WordMap:
    """Cosines of the words' embeddings, groups side by side."""
    from topicscope.language.models import word_vectors

    words = [word for group in groups for word in group]
    before = loaded.tokenizer(BEFORE, add_special_tokens=False)["input_ids"]
    tokens = [
        loaded.tokenizer(f"{BEFORE} {word}", add_special_tokens=False)["input_ids"][len(before) :] for word in words
    ]
    unknown = loaded.tokenizer.unk_token_id
    for word, pieces in zip(words, tokens, strict=True):
        if not pieces or (unknown is not None and unknown in pieces):
            raise InputError(f"{loaded.name}: its tokenizer does not know {word!r}")
    counts = tuple(len(pieces) for pieces in tokens)
    vectors = word_vectors(loaded.model, np.concatenate(tokens), layer=layer)
    means = np.stack([part.mean(0) for part in np.split(vectors, np.cumsum(counts)[:-1])])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return WordMap(
        loaded.name,
        tuple(words),
        tuple(number for number, group in enumerate(groups) for _ in group),
        counts,
        means @ means.T,
    )
