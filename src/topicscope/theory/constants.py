"""The three constants that every optimum is made of (Section 4)."""

from __future__ import annotations

from dataclasses import dataclass

from topicscope.ground import InputError
from topicscope.world import Masking, TopicModel


@dataclass(frozen=True)
class Constants:
    """c1, c2, c3 of Lemma 1, for a topic model and a masking scheme."""

    c1: float
    c2: float
    c3: float

    @classmethod
    def of(cls, topic_model: TopicModel, masking: Masking) -> Constants:
        if not topic_model.uniform:
            raise InputError(
                "the closed forms assume equally probable words in a topic; leave topic_model.word_probabilities out"
            )
        if masking.p_mask_word <= 1e-12:
            raise InputError(
                f"p_correct + p_random = {masking.p_correct + masking.p_random:g} leaves no [MASK]; "
                "the closed forms need less than 1"
            )
        c1 = masking.p_random / (masking.p_mask_word * masking.k * topic_model.words)
        c2 = 1 / (masking.p_mask_word * masking.p_mask) - 1
        return cls(c1, c2, 1 / masking.k)
