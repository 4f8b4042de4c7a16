"""How two words of a text are related, as a code for every pair of positions: what attention is averaged over."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from topicscope.ground import Stream, generator
from topicscope.language.assignment import Assignment
from topicscope.measure import frequency_bins

SAME_WORD, SAME_TOPIC, DIFFERENT = 0, 1, 2


@dataclass
class TopicRelation:
    """Same word (elsewhere in the text), another word of the same topic, a word of another topic; by word frequencies.

    Codes: relation * strata + stratum, and -1 for pairs that do not count. A pair of words with several topics counts
    once.
    """

    assignment: Assignment
    vocabulary_size: int
    shuffles: int = 0
    seed: int = 0
    bins: int = 5
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    relations: ClassVar[int] = 3

    def __post_init__(self) -> None:
        members, words = self.assignment.membership, len(self.assignment.token)
        self.index = torch.full((self.vocabulary_size,), -1, dtype=torch.int64, device=self.device)
        self.index[torch.as_tensor(self.assignment.token, device=self.device)] = torch.arange(words, device=self.device)
        bin_of = frequency_bins(self.assignment.frequency, self.bins)
        self.bin_count = int(bin_of.max(initial=0)) + 1
        self.strata = self.bin_count**2
        self.bin_of = torch.as_tensor(bin_of, device=self.device)
        several = bool((members.topics_of_word > 1).any())
        matrix = members.matrix()
        rng = generator(self.seed, Stream.SHUFFLED_ATTENTION)
        orders = np.stack([np.arange(words), *(rng.permutation(words) for _ in range(self.shuffles))])
        if several:  # which words share a topic; a shuffle moves the words
            self.share = torch.from_numpy((matrix @ matrix.T).toarray() > 0).to(self.device)
            self.orders = torch.as_tensor(orders, device=self.device)
        else:
            topic = np.empty(words, dtype=np.int64)
            topic[members.word] = members.topic
            narrow = torch.int16 if members.topics < 2**15 else torch.int32  # compared by the million
            # (1 + shuffles) x W: the topics as they are, then shuffled
            self.topic = torch.as_tensor(topic[orders], device=self.device).to(narrow)
        self.several = several

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_from(self)

    def codes(
        self, query: Int[Tensor, " Q"], key: Int[Tensor, " K"], allowed: Bool[Tensor, "Q K"]
    ) -> Int[Tensor, "Q K"]:
        """Of every pair of positions with these tokens."""
        i, j = self.index[query], self.index[key]
        counts = allowed & (i >= 0)[:, None] & (j >= 0)
        i, j = i.clamp(min=0), j.clamp(min=0)
        relation = torch.where(
            i[:, None] == j, SAME_WORD, torch.where(self._same(i, j, slice(0, 1))[0], SAME_TOPIC, DIFFERENT)
        )
        stratum = self.bin_of[i][:, None] * self.bin_count + self.bin_of[j]
        return torch.where(counts, relation * self.strata + stratum, -1)

    def shuffled(
        self, query: Int[Tensor, " Q"], key: Int[Tensor, " K"], allowed: Bool[Tensor, "Q K"]
    ) -> tuple[Bool[Tensor, "S Q K"], Bool[Tensor, "Q K"]]:
        """For each shuffle the pairs that are then in the same topic; and all pairs of different words."""
        i, j = self.index[query], self.index[key]
        other = allowed & (i >= 0)[:, None] & (j >= 0) & (i[:, None] != j)
        return self._same(i.clamp(min=0), j.clamp(min=0), slice(1, None)) & other, other

    def _same(self, i: Tensor, j: Tensor, which: slice) -> Bool[Tensor, "S Q K"]:
        if self.several:
            orders = self.orders[which]
            return self.share[orders[:, i][:, :, None], orders[:, j][:, None, :]]
        topic = self.topic[which]
        return topic[:, i][:, :, None] == topic[:, j][:, None, :]


@dataclass
class PairRelation:
    """A list of pairs of words (the top co-occurring ones): code 0 for them, -1 for all others."""

    token: Int[np.ndarray, " W"]
    pairs: Int[np.ndarray, "P 2"]  # places in `token`
    vocabulary_size: int
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    relations: ClassVar[int] = 1
    strata: ClassVar[int] = 1
    shuffles: ClassVar[int] = 0

    def __post_init__(self) -> None:
        self.index = torch.full((self.vocabulary_size,), -1, dtype=torch.int64, device=self.device)
        self.index[torch.as_tensor(self.token, device=self.device)] = torch.arange(len(self.token), device=self.device)
        listed = torch.zeros(len(self.token), len(self.token), dtype=torch.bool)
        left, right = torch.as_tensor(self.pairs).T
        listed[left, right] = listed[right, left] = True
        self.listed = listed.to(self.device)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_from(self)

    def codes(
        self, query: Int[Tensor, " Q"], key: Int[Tensor, " K"], allowed: Bool[Tensor, "Q K"]
    ) -> Int[Tensor, "Q K"]:
        i, j = self.index[query], self.index[key]
        counts = allowed & (i >= 0)[:, None] & (j >= 0)
        return torch.where(counts & self.listed[i.clamp(min=0)[:, None], j.clamp(min=0)], 0, -1)


Relation = TopicRelation | PairRelation


def _made_from(relation: Relation) -> tuple[Any, ...]:
    """Sent without its tables (words by words, or shuffles by words), which are made again from the fields."""
    return type(relation), tuple(getattr(relation, part.name) for part in fields(relation))
