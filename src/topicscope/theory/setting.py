"""The setting of Section 5: infinite documents of tau topics, and topic-wise attention (Assumption 2).

Nothing here grows with V.

Attention gives the same word beta c, another word of the same topic alpha c, a word of another topic c.
"""

from __future__ import annotations

from dataclasses import dataclass

from topicscope.ground import MOST, SMALLEST, refuse
from topicscope.theory.document_moments import K_FROM, NO_K
from topicscope.world import Masking, TopicModel


@dataclass(frozen=True)
class Constants:
    """c1, c2, c3 of Lemma 1, of which every optimum is made (Section 4).

    Attributes:
        c1: p_r / ((1 - p_c - p_r) k T v).
        c2: 1 / ((1 - p_c - p_r) p_m) - 1.
        c3: 1 / k.

    Example:
        >>> round(Setting.of().constants.c3, 6)
        1.156069
    """

    c1: float
    c2: float
    c3: float


@dataclass(frozen=True)
class Setting:
    """T, v, tau and the masking scheme, with the helper quantities of Appendix D.1 (F.1 in the ICML version).

    Documents are infinite and share tau topics equally. Theorems 1 and 2 do not depend on tau.

    Attributes:
        topic_model: T disjoint topics of v equal words.
        topics_per_document: tau.
        masking: The masking scheme.

    Raises:
        InputError: A number is out of range, or the topics are not alike.

    Example:
        >>> from topicscope import theory
        >>> setting = theory.Setting.of(topics=20, words_per_topic=5, topics_per_document=4)
        >>> setting.letters, round(setting.p0, 6), round(setting.p1 * 20 + setting.p2 * 80 + setting.p0, 6)
        ('T = 20, v = 5, tau = 4', 0.12, 1.0)
    """

    topic_model: TopicModel
    topics_per_document: int
    masking: Masking

    def __post_init__(self) -> None:
        m = self.masking
        refuse(
            (
                not 1 <= self.tau <= self.T,
                f"topics_per_document = {self.tau}: expected a number from 1 to topics = {self.T}",
            ),
            (
                not self.topic_model.uniform,
                "the closed forms assume disjoint topics of equally many, equally probable words in a topic; "
                "give topic_model.topics and topic_model.words_per_topic alone",
            ),
            (
                m.p_mask_word <= 1e-12,
                f"p_correct + p_random = {m.p_correct + m.p_random:g} leaves no [MASK]; "
                "the closed forms need less than 1",
            ),
            (m.k < K_FROM, NO_K),
        )

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
        refuse(
            *(
                (
                    not SMALLEST <= p <= 1 - SMALLEST,
                    f"{name} = {p:g}: expected a probability strictly between 0 and 1, "
                    f"at least {SMALLEST:g} away from both",
                )
                for name, p in (("p_mask", p_mask), ("p_correct", p_correct), ("p_random", p_random))
            ),
            (
                p_correct + p_random > 1 - SMALLEST,
                f"p_correct + p_random = {p_correct + p_random:g}: expected less than 1, "
                "so that [MASK] is shown at all",
            ),
            *(
                (not 1 <= count <= MOST, f"{name} = {count}: expected a number from 1 to {MOST:,}")
                for name, count in (("topics", topics), ("words_per_topic", words_per_topic))
            ),
        )
        return cls(TopicModel(topics, words_per_topic), topics_per_document, Masking(p_mask, p_correct, p_random))

    def as_dict(self) -> dict[str, float]:
        return {
            "topics": self.T,
            "words_per_topic": self.v,
            "topics_per_document": self.tau,
            "p_mask": self.masking.p_mask,
            "p_correct": self.masking.p_correct,
            "p_random": self.masking.p_random,
        }

    @property
    def letters(self) -> str:
        return f"T = {self.T}, v = {self.v}, tau = {self.tau}"

    @property
    def constants(self) -> Constants:
        m = self.masking
        return Constants(
            c1=m.p_random / (m.p_mask_word * m.k * self.topic_model.words),
            c2=1 / (m.p_mask_word * m.p_mask) - 1,
            c3=1 / m.k,
        )

    @property
    def T(self) -> int:  # noqa: N802  (the paper's letter)
        return self.topic_model.topics

    @property
    def v(self) -> int:
        return self.topic_model.block_size

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
