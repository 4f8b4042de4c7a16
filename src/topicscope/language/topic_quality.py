"""How good a fit of topics is, in four numbers; what they mean, when they are poor, and which number of topics is best.

The numbers themselves are made in `topicscope.measure`, from the topics' words and the documents alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# The rules of the warnings. Text whose words are shuffled over its documents has no topics. 50 topics fitted to such a
# text (617,000 words of WikiText-2) have coherence -.02, stability .18, and a perplexity above that of word
# frequencies; fitted to the text itself .11, .42, and 44% less. Diversity is .73 for the shuffled text and .79 for the
# text: it does not show whether topics are real, only whether they repeat each other.
POOR_COHERENCE = 0.0  # at most: the top words co-occur no more often than by chance
POOR_SHARE = 0.25  # of the topics, whose own coherence is that poor, from which on the rest is not trusted either
POOR_DIVERSITY = 0.5  # below: most of the top words are those of another topic too
POOR_STABILITY = 0.3  # below: less than 3 of 10 top words come again; halfway from shuffled text to text
POOR_GAIN = 0.05  # less: perplexity is as that of word frequencies, within what shuffled text gives either way (1%)
ERRORS = 2.0  # standard errors by which two numbers of topics must differ to be told apart


@dataclass(frozen=True, kw_only=True)
class TopicQuality:
    """How good a fit of topics is. None: not measured, since there was no second fit.

    Attributes:
        topics: Number of topics.
        coherence: Mean c_npmi.
        coherence_error: Its standard error, over topics.
        incoherent: Number of topics whose own c_npmi is poor.
        diversity: Share of distinct words among the top words of all topics.
        stability: Share of top words that come again in a second fit, mean over topics.
        perplexity: Held-out.
        unigram_perplexity: Perplexity of word frequencies alone.
        held_out: Number of documents.

    Example:
        See `best_of`.
    """

    topics: int
    coherence: float
    coherence_error: float
    incoherent: int
    diversity: float
    stability: float | None
    perplexity: float | None
    unigram_perplexity: float | None
    held_out: int

    @property
    def score(self) -> float:
        """Coherence times diversity (Dieng, Ruiz and Blei 2020); a coherence below 0 is not made better by repeats."""
        return self.coherence * (self.diversity if self.coherence > 0 else 1.0)

    def warnings(self) -> list[str]:
        """Why these topics are poor; none where they are not."""
        found = []
        if self.coherence <= POOR_COHERENCE:
            found.append(
                f"mean coherence {self.coherence:.3f} is not above {POOR_COHERENCE:g}: the top words co-occur no "
                "more often than by chance"
            )
        elif self.incoherent > POOR_SHARE * self.topics:
            found.append(
                f"{self.incoherent} of {self.topics} topics have a coherence of {POOR_COHERENCE:g} or less; ask for "
                "fewer topics, or give more text"
            )
        if self.diversity < POOR_DIVERSITY:
            found.append(
                f"diversity {self.diversity:.2f} is below {POOR_DIVERSITY:g}: most top words belong to several topics; "
                "ask for fewer topics, or leave more stop words out"
            )
        if self.stability is not None and self.stability < POOR_STABILITY:
            found.append(
                f"stability {self.stability:.2f} is below {POOR_STABILITY:g}: another seed finds other topics; ask for "
                "fewer topics, give more text, or raise iterations"
            )
        alone = self.unigram_perplexity
        if self.perplexity is not None and alone is not None and self.perplexity > (1 - POOR_GAIN) * alone:
            found.append(
                f"held-out perplexity {self.perplexity:,.0f} is not {100 * POOR_GAIN:g}% below that of word "
                f"frequencies alone ({alone:,.0f}): knowing its topics does not help to predict a document's words"
            )
        return [f"Poor topics: {reason}" for reason in found]

    def sentences(self) -> list[str]:
        """Each number with what it means."""
        said = [
            f"mean coherence (c_npmi) {self.coherence:.3f}: how much likelier than by chance two of a topic's top 10 "
            "words stand within ten words of each other (0: by chance, 1: only together)",
            f"diversity {self.diversity:.2f}: the share of distinct words among the top 10 of all topics (1: no word "
            "is in two topics)",
        ]
        if self.stability is None:
            return [*said, "stability and held-out perplexity: not measured, which takes a second fit (--stability)"]
        said.append(
            f"stability {self.stability:.2f}: the share of a topic's top 10 words that reappear in the matching "
            "topic of a second fit, with another seed and without the held-out documents (1: all of them)"
        )
        if self.perplexity is None or self.unigram_perplexity is None:
            return [*said, "held-out perplexity: not measured, since no held-out document has two known words"]
        return [
            *said,
            f"held-out perplexity {self.perplexity:,.0f} (word frequencies alone: {self.unigram_perplexity:,.0f}): the "
            f"words of {self.held_out} documents that the second fit did not see are as hard to predict, from every "
            "other word of the document, as a choice among so many equally likely words (lower is better)",
        ]

    def brief(self) -> str:
        """One line for the notes of a probe."""
        return f"{self.topics} topics: mean coherence (c_npmi) {self.coherence:.3f}, diversity {self.diversity:.2f}"


def quality_of(
    coherence: Sequence[float],
    diversity: float,
    stability: Sequence[float] | None = None,
    perplexity: float | None = None,
    unigram_perplexity: float | None = None,
    held_out: int = 0,
) -> TopicQuality:
    """From the numbers of every topic."""
    count = len(coherence)
    return TopicQuality(
        topics=count,
        coherence=float(np.mean(coherence)),
        coherence_error=float(np.std(coherence, ddof=1) / math.sqrt(count)) if count > 1 else 0.0,
        incoherent=sum(one <= POOR_COHERENCE for one in coherence),
        diversity=diversity,
        stability=None if stability is None else float(np.mean(stability)),
        perplexity=perplexity,
        unigram_perplexity=unigram_perplexity,
        held_out=held_out,
    )


def best_of(compared: Sequence[TopicQuality]) -> TopicQuality:
    """The fit with the largest coherence x diversity, among those without a warning where there are some.

    Args:
        compared: Fits with different numbers of topics.

    Returns:
        The best one; of equals that with fewer topics.

    Example:
        >>> same = {"coherence_error": 0.01, "incoherent": 0, "stability": None, "perplexity": None}
        >>> same |= {"unigram_perplexity": None, "held_out": 0}
        >>> ten = TopicQuality(topics=10, coherence=0.2, diversity=0.9, **same)
        >>> fifty = TopicQuality(topics=50, coherence=0.1, diversity=0.8, **same)
        >>> best_of([ten, fifty]).topics
        10
    """
    good = [one for one in compared if not one.warnings()] or list(compared)
    return max(good, key=lambda one: (one.score, -one.topics))


def choice(compared: Sequence[TopicQuality]) -> list[str]:
    """Which number of topics is best, by which rule, and from which others it cannot be told apart.

    Args:
        compared: Fits with different numbers of topics.

    Returns:
        Sentences.

    Example:
        >>> same = {"coherence_error": 0.01, "incoherent": 0, "stability": None, "perplexity": None}
        >>> same |= {"unigram_perplexity": None, "held_out": 0}
        >>> ten = TopicQuality(topics=10, coherence=0.2, diversity=0.9, **same)
        >>> choice([ten, TopicQuality(topics=50, coherence=0.1, diversity=0.8, **same)])
        ['best number of topics: 10 (largest coherence x diversity)']
    """
    best = best_of(compared)
    poor = [str(one.topics) for one in compared if one.warnings()]
    rule = "largest coherence x diversity" + (
        f", without those that are poor ({', '.join(poor)})" if 0 < len(poor) < len(compared) else ""
    )
    if len(poor) == len(compared):
        rule += "; all of them are poor"
    close = [
        str(one.topics) for one in compared if one is not best and str(one.topics) not in poor and _near(best, one)
    ]
    said = [f"best number of topics: {best.topics} ({rule})"]
    if close:
        said.append(
            f"{best.topics} cannot be told apart from {', '.join(close)}: coherence x diversity differs by less than "
            f"{ERRORS:g} standard errors over topics; choose by how fine the topics should be, or by stability"
        )
    return said


def _near(one: TopicQuality, other: TopicQuality) -> bool:
    errors = [quality.coherence_error * quality.diversity for quality in (one, other)]
    return abs(one.score - other.score) < ERRORS * math.hypot(*errors)
