"""The setting of Section 5: infinite documents of tau topics, and topic-wise attention (Assumption 2).

Nothing here grows with V.

Attention gives the same word beta c, another word of the same topic alpha c, a word of another topic c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from topicscope.ground import InputError
from topicscope.theory.constants import Constants
from topicscope.world import Masking, TopicModel


@dataclass(frozen=True)
class Setting:
    """T, v, tau and the masking scheme, with the helper quantities of Appendix D.1 (F.1 in the ICML version).

    Theorems 1 and 2 do not depend on tau.
    """

    topic_model: TopicModel
    topics_per_document: int
    masking: Masking

    def __post_init__(self) -> None:
        tau, topics = self.topics_per_document, self.topic_model.topics
        if not 1 <= tau <= topics:
            raise InputError(f"topics_per_document = {tau}: expected a number from 1 to topics = {topics}")
        self.constants  # noqa: B018  (refuses settings for which the closed forms are not defined)

    @classmethod
    def of(
        cls,
        topics: int = 10,
        words_per_topic: int = 10,
        topics_per_document: int = 3,
        *,
        p_mask: float = 0.15,
        p_correct: float = 0.1,
        p_random: float = 0.1,
    ) -> Setting:
        """From plain numbers; each probability must be inside (0, 1), as the theorems assume."""
        for name, p in (("p_mask", p_mask), ("p_correct", p_correct), ("p_random", p_random)):
            if not 0 < p < 1:
                raise InputError(f"{name} = {p:g}: expected a probability strictly between 0 and 1")
        if p_correct + p_random >= 1:
            raise InputError(
                f"p_correct + p_random = {p_correct + p_random:g}: expected less than 1, so that [MASK] is shown at all"
            )
        for name, number in (("topics", topics), ("words_per_topic", words_per_topic)):
            if number < 1:
                raise InputError(f"{name} = {number}: expected at least 1")
        return cls(TopicModel(topics, words_per_topic), topics_per_document, Masking(p_mask, p_correct, p_random))

    def as_dict(self) -> dict[str, Any]:
        """The plain numbers, by the names that `of` takes."""
        m = self.masking
        sizes = {"topics": self.T, "words_per_topic": self.v, "topics_per_document": self.tau}
        return sizes | {"p_mask": m.p_mask, "p_correct": m.p_correct, "p_random": m.p_random}

    @property
    def letters(self) -> str:
        """The sizes in the paper's letters."""
        return f"T = {self.T}, v = {self.v}, tau = {self.tau}"

    @property
    def constants(self) -> Constants:
        return Constants.of(self.topic_model, self.masking)

    @property
    def T(self) -> int:  # noqa: N802  (the paper's letter)
        return self.topic_model.topics

    @property
    def v(self) -> int:
        return self.topic_model.words_per_topic

    @property
    def tau(self) -> int:
        return self.topics_per_document

    @property
    def p0(self) -> float:
        """Share of [MASK] in a masked document: p_m (1 - p_c - p_r)."""
        return self.masking.p_mask * self.masking.p_mask_word

    @property
    def p1(self) -> float:
        """Share of each word of the document's topics (eq 18)."""
        return self.masking.k / (self.v * self.tau) + self.p2

    @property
    def p2(self) -> float:
        """Share of each other word (eq 19): random replacements only."""
        return self.masking.p_mask * self.masking.p_random / (self.v * self.T)

    @property
    def shown_cases(self) -> tuple[float, float, float, float]:
        """How often a masked position shows each kind of word.

        Its own word; another word of its topic; a word of another topic of the document; a word of an absent topic.
        """
        correct, random = self.masking.p_correct, self.masking.p_random
        return (
            correct + random / (self.T * self.v),
            random * (self.v - 1) / (self.T * self.v),
            random * (self.tau - 1) / self.T,
            random * (1 - self.tau / self.T),
        )

    def gamma(self, alpha: float, beta: float) -> float:
        """(v - 1)/v alpha + beta/v: the average attention inside a topic (Theorem 3)."""
        return (self.v - 1) / self.v * alpha + beta / self.v
