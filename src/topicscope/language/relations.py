"""How two words of a text stand to each other: a code for every pair of positions, by topics or by a list of pairs."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from topicscope.ground import Stream, generator
from topicscope.language.assignment import Assignment
from topicscope.measure import frequency_bins

SAME_WORD, SAME_TOPIC, DIFFERENT = 0, 1, 2
CPU = torch.device("cpu")


class NumberedWords:
    """Words of a relation. `index[token]` is the word's number; 0 for other tokens, which `wanted` leaves out."""

    def number(self, token: Int[np.ndarray, " W"], vocabulary_size: int, device: torch.device) -> None:
        self.wanted = np.zeros(vocabulary_size, dtype=bool)
        self.wanted[token] = True
        index = np.zeros(vocabulary_size, dtype=np.int64)
        index[token] = np.arange(len(token))
        self.index = torch.as_tensor(index, device=device)

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent without its tables (words by words, or shuffles by words), which are made again from the fields."""
        return type(self), tuple(getattr(self, part.name) for part in fields(self))  # type: ignore[arg-type]


@dataclass
class TopicRelation(NumberedWords):
    """How two words of a text stand to each other: same word, another word of the same topic, a word of another topic.

    Codes are relation * strata + stratum, where a stratum is a pair of classes of word frequency. A pair of words with
    several topics counts once.

    Attributes:
        assignment: Words and their topics.
        vocabulary_size: V, of the tokenizer.
        shuffles: Number of shuffles of topics among words.
        seed: Seed of the shuffles.
        device: Where codes are made.

    Example:
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> from topicscope.language import assign, fit_topics, whole_words
        >>> words = whole_words(tokenizer)
        >>> topics = fit_topics(texts, words, topics=2, iterations=20, stability=False)
        >>> relation = TopicRelation(assign(topics, 0.05), words.size, shuffles=3)
        >>> tuple(relation.topic.shape)  # the topics of all words as they are, and shuffled three times
        (4, 6)
    """

    assignment: Assignment
    vocabulary_size: int
    shuffles: int = 0
    seed: int = 0
    device: torch.device = CPU
    relations: ClassVar[int] = 3

    def __post_init__(self) -> None:
        members, words = self.assignment.membership, len(self.assignment.token)
        bins = frequency_bins(self.assignment.frequency)
        self.bin_of = torch.as_tensor(bins, device=self.device)
        self.bin_count = int(bins.max()) + 1
        self.strata = self.bin_count**2
        self.number(self.assignment.token, self.vocabulary_size, self.device)
        self.several = bool((members.topics_of_word > 1).any())
        rng = generator(self.seed, Stream.SHUFFLED_ATTENTION)
        orders = np.stack([np.arange(words), *(rng.permutation(words) for _ in range(self.shuffles))])
        if self.several:  # which words share a topic; a shuffle moves the words
            matrix = members.matrix()
            self.share = torch.from_numpy((matrix @ matrix.T).toarray() > 0).to(self.device)
            self.orders = torch.as_tensor(orders, device=self.device)
        else:
            topic = np.empty(words, dtype=np.int64)
            topic[members.word] = members.topic
            # (1 + shuffles) x W: the topics as they are, then shuffled; small numbers, since they are compared often
            self.topic = torch.as_tensor(topic[orders], device=self.device).to(
                torch.int16 if members.topics < 2**15 else torch.int32
            )

    def codes(
        self, i: Int[Tensor, "B Q"], j: Int[Tensor, "B K"]
    ) -> tuple[Int[Tensor, "B Q K"], Bool[Tensor, "B S Q K"] | None]:
        """Of every pair of positions with the words i and j; and which pairs each shuffle puts into the same topic."""
        same = self._same(i, j)
        relation = torch.where(same[:, 0], SAME_TOPIC * self.strata, DIFFERENT * self.strata)
        relation = torch.where(i[:, :, None] == j[:, None], SAME_WORD * self.strata, relation)
        strata = (self.bin_of[i] * self.bin_count)[:, :, None] + self.bin_of[j][:, None]
        return relation + strata, same[:, 1:] if self.shuffles else None

    def _same(self, i: Tensor, j: Tensor) -> Bool[Tensor, "B 1+S Q K"]:
        """Whether two words share a topic: as the topics are, then with every shuffle."""
        table = self.orders if self.several else self.topic
        left, right = (table[:, words].transpose(0, 1).contiguous() for words in (i, j))
        left, right = left[:, :, :, None], right[:, :, None]
        return self.share[left, right] if self.several else left == right


@dataclass
class PairRelation(NumberedWords):
    """A list of pairs of words (the top co-occurring ones): code 0 for them, -1 for all others."""

    token: Int[np.ndarray, " W"]
    pairs: Int[np.ndarray, "P 2"]  # places in `token`
    vocabulary_size: int
    device: torch.device = CPU
    relations: ClassVar[int] = 1
    strata: ClassVar[int] = 1
    shuffles: ClassVar[int] = 0

    def __post_init__(self) -> None:
        self.number(self.token, self.vocabulary_size, self.device)
        self.listed = torch.zeros(len(self.token), len(self.token), dtype=torch.bool, device=self.device)
        left, right = torch.as_tensor(self.pairs, device=self.device).T
        self.listed[left, right] = self.listed[right, left] = True

    def codes(self, i: Int[Tensor, "B Q"], j: Int[Tensor, "B K"]) -> tuple[Int[Tensor, "B Q K"], None]:
        return torch.where(self.listed[i[:, :, None], j[:, None]], 0, -1), None


Relation = TopicRelation | PairRelation
