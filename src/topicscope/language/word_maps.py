"""Cosines between any words (Figure 3).

word_map(load_model("bert-base-uncased"), [["frog", "toad"], ["mozart", "schubert"]])
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float

from topicscope.ground import Folder, Kind, Result, arrow_table, read_finished, refuse, write_json
from topicscope.language.vocabulary import BEFORE
from topicscope.measure import Answer, Separation, separation

if TYPE_CHECKING:
    import pyarrow

    from topicscope.language.models import LoadedModel

WORDS = Kind("words", 2, ("words.json", "figure3*"), ("words.json",))

MEANING: dict[Answer, str] = {
    "yes": "The groups separate: words of one group are more alike than words of different groups",
    "some": "Some groups separate, others do not",
    "no": "The groups do not separate: words of one group are no more alike than words put into groups at random",
    "undecided": "Whether the groups separate cannot be decided with so few words; give more words per group",
}


@dataclass(frozen=True, repr=False)
class WordMap(Result):
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

    @functools.cached_property
    def separation(self) -> Separation:
        return separation(self.cosine, np.array(self.groups))

    def means(self) -> tuple[float, float]:
        """Mean cosine of two different words of a group, and of words of two groups; NaN where there are none."""
        inside, between = self.separation.inside, self.separation.between
        return (math.nan if inside is None else inside, math.nan if between is None else between)

    def summary(self) -> list[str]:
        found, meaning = self.separation, MEANING[self.separation.answer]
        inside, between = ("-" if mean is None else f"{mean:.3f}" for mean in (found.inside, found.between))
        means = f"mean cosine inside groups {inside}, between groups {between}"
        if found.p_value is not None and found.answer != "undecided":
            means += f"; p = {found.p_value:.2g} over all ways to put the words into groups of these sizes"
        if found.answer == "some":
            named = [
                "/".join(word for word, group in zip(self.words, self.groups, strict=True) if group == mixed)
                for mixed, apart in found.apart.items()
                if not apart
            ]
            meaning += f": the words of {', '.join(named)} are no more alike than they are to words of other groups"
        return [*self.split_words(), f"{meaning} ({means})"]

    def split_words(self) -> list[str]:
        split = [f"{word} ({count})" for word, count in zip(self.words, self.pieces, strict=True) if count > 1]
        worth = (
            "at least half of the map is made of pieces, and says little about words"
            if 2 * len(split) >= len(self.words)
            else "the mean of its pieces stands for each"
        )
        said = f"* {len(split)} of {len(self.words)} words are several tokens: {', '.join(split)}; {worth}"
        return [said] if split else []

    def table(self) -> pyarrow.Table:
        return arrow_table(
            [
                {"word": word, "group": group} | dict(zip(self.words, row.tolist(), strict=True))
                for word, group, row in zip(self.words, self.groups, self.cosine, strict=True)
            ]
        )

    def as_dict(self) -> dict[str, object]:
        return {
            "model": self.model,
            "words": list(self.words),
            "groups": list(self.groups),
            "pieces": list(self.pieces),
            "cosine": self.cosine.tolist(),
            "same_group": self.separation.inside,
            "different_group": self.separation.between,
            "separated": self.separation.answer,
            "p_value": self.separation.p_value,
            "smallest_p_value": self.separation.smallest,
            "groups_apart": [self.separation.apart.get(group) for group in dict.fromkeys(self.groups)],
            "several_tokens": [word for word, count in zip(self.words, self.pieces, strict=True) if count > 1],
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
    return read_finished(path, WORDS, WordMap.from_dict)


def word_map(loaded: LoadedModel, groups: Sequence[Sequence[str]], *, layer: bool = False) -> WordMap:
    """Cosines of the embeddings of words, groups side by side (Figure 3).

    Args:
        loaded: The model.
        groups: Groups of words.
        layer: Take the embedding layer's output, with position, type and norm.

    Returns:
        The cosines.

    Raises:
        InputError: The tokenizer does not know a word.

    Example:
        >>> from topicscope import word_map
        >>> from topicscope.language import checked
        >>> from topicscope.pretraining import PretrainConfig, build_model, train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> tiny = {"text": {"corpus": ["-"]}, "length": 16, "model": {"layers": 1, "heads": 2, "dim": 8}}
        >>> loaded = checked("tiny", build_model(PretrainConfig.of(tiny), tokenizer), tokenizer)
        >>> found = word_map(loaded, [["frog", "toad"], ["mozart", "opera"]])
        >>> found.labels, found.cosine.shape, round(float(found.cosine[0, 0]), 6)
        (['frog', 'toad', 'mozart', 'opera'], (4, 4), 1.0)
    """
    from topicscope.language.forward import word_vectors

    words = [word for group in groups for word in group]
    before = loaded.tokenizer(BEFORE, add_special_tokens=False)["input_ids"]
    tokens = [
        loaded.tokenizer(f"{BEFORE} {word}", add_special_tokens=False)["input_ids"][len(before) :] for word in words
    ]
    for word, pieces in zip(words, tokens, strict=True):
        refuse(
            (
                not pieces or loaded.tokenizer.unk_token_id in pieces,
                f"{loaded.name}: its tokenizer does not know {word!r}",
            )
        )
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
