"""What every prior of documents has, and how a law of the user's own becomes one.

>>> class Halves:
...     def sample(self, topics, count, rng):
...         return np.full((count, topics), 1 / topics)
...     def moments(self, topics):
...         return Moments(np.full(topics, 1 / topics), np.full((topics, topics), 1 / topics**2))
>>> Own(Halves(), length=5).sample(TopicModel(2, 3), 4, np.random.default_rng(0)).finite().words.shape
(4, 5)
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from jaxtyping import Float, Int
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from topicscope.ground import InputError, Stream, expected, generator, number_only
from topicscope.world.documents import PADDING, Documents, InfiniteDocuments, sample_words
from topicscope.world.importance import from_draws, from_support
from topicscope.world.moments import Moments, checked_moments, of_rows
from topicscope.world.posteriors import Posterior
from topicscope.world.topics import TopicModel

Proportions = Float[np.ndarray, "D T"]
MOST_SETS = 5000  # of topics that are listed for whoever asks for all of them
MOST_NUMBERS = (
    10**7
)  # sets x (words + topics) of a posterior that looks at all of them: 80 MB, some 10 s for 500 documents
TOLERANCE = 1e-6  # to which proportions have to sum to 1
COMPARED = 4000  # draws of a law of the user's own, with which its moments are compared


def _increasing(length: Any) -> Any:
    if isinstance(length, tuple) and length[0] > length[1]:
        raise ValueError("a range ends before it begins")
    return length


LENGTHS = "a number of words from 1 to 10,000,000, an increasing range of them such as [100, 150], or 'infinite'"
Words = Annotated[int, Field(ge=1, le=10**7), number_only]
Length = Annotated[
    Words | tuple[Words, Words] | Literal["infinite"],
    AfterValidator(_increasing),
    expected("documents.length", LENGTHS),
]
"""Words of a document: a number, an inclusive range, or 'infinite' (Assumption 1)."""


class DocumentPrior(ABC):
    """How topic proportions (theta) and lengths of documents are drawn: the base of all priors.

    A new prior defines `check`, `sample_proportions`, `moments` and `posterior`; `sample` and the rest follow from
    them.

    Attributes:
        length: Words per document: a number, an inclusive range (low, high), or 'infinite' (Assumption 1).

    Example:
        >>> from topicscope.world import Fixed, TopicModel
        >>> prior = Fixed(topics_per_document=2, length=6)
        >>> isinstance(prior, DocumentPrior), prior.moments(4).mean.tolist()
        (True, [0.25, 0.25, 0.25, 0.25])
        >>> prior.sample(TopicModel(4, 3), 5, np.random.default_rng(0)).words.shape
        (5, 6)
    """

    length: Length

    @abstractmethod
    def check(self, topics: int) -> None:
        """Raise InputError for what is wrong with this number of topics."""

    @abstractmethod
    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        """Topic proportions of `count` documents."""

    @abstractmethod
    def moments(self, topics: int) -> Moments:
        """E[theta] and E[theta theta'], exact or with their error."""

    @abstractmethod
    def posterior(
        self, topic_model: TopicModel, evidence: Float[np.ndarray, "R words"], a: float, e: float
    ) -> Posterior:
        """E[theta | counts of the words seen], where word w is seen with probability a (A theta)_w + e.

        It is exact, or estimated from draws, and says which.
        """

    def support(self, topics: int, most: int = MOST_SETS) -> tuple[Proportions, Float[np.ndarray, " K"]] | None:
        """All proportions that there are and their probabilities, where they are few: `most` sets of topics."""
        return None

    def exact(self, topic_model: TopicModel) -> bool:
        """Whether `posterior` is exact. A prior that leaves its posterior to `posterior_of_any` has its own `exact`."""
        return topic_model.disjoint or self._small_support(topic_model) is not None

    def _small_support(self, topic_model: TopicModel) -> tuple[Proportions, Float[np.ndarray, " K"]] | None:
        """Where every row of evidence can be held against all proportions."""
        return self.support(topic_model.topics, MOST_NUMBERS // (topic_model.words + topic_model.topics))

    def posterior_of_any(
        self, topic_model: TopicModel, evidence: Float[np.ndarray, "R words"], a: float, e: float
    ) -> Posterior:
        """For any topics: exact where the law is finite and small, else estimated from draws of the prior."""
        finite = self._small_support(topic_model)
        if finite is not None:
            return from_support(topic_model, evidence, a, e, *finite)
        return from_draws(topic_model, evidence, a, e, self.sample_proportions)

    def sample(self, topic_model: TopicModel, count: int, rng: np.random.Generator) -> Documents | InfiniteDocuments:
        """Draw `count` documents; the same generator state gives the same documents."""
        proportions = self.sample_proportions(topic_model.topics, count, rng)
        if isinstance(self.length, str):
            return InfiniteDocuments(proportions)
        low, high = self.length if isinstance(self.length, tuple) else (self.length, self.length)
        lengths = rng.integers(low, high + 1, size=count)
        words = sample_words(topic_model, proportions, high, rng)
        words[np.arange(high) >= lengths[:, None]] = PADDING
        return Documents(words, lengths, proportions)


def equal_sets(topics: int, tau: int, most: int) -> tuple[Int[np.ndarray, "K tau"], Proportions] | None:
    """All sets of tau topics, and the proportions of documents that share them equally; None where they are many."""
    # one topic more or less makes T sets at least: of more topics than sets there is no need to count them
    if (topics > most and tau < topics) or math.comb(topics, tau) > most:
        return None
    sets = np.array(list(itertools.combinations(range(topics), tau)))
    rows = np.zeros((len(sets), topics))
    np.put_along_axis(rows, sets, 1 / tau, axis=1)
    return sets, rows


def checked_proportions(theta: Any, topics: int, name: str) -> Proportions:
    """Rows inside the simplex, made to sum to 1 exactly; else InputError."""
    try:
        rows = np.array(theta, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name}: expected a matrix of numbers, one row per document") from None
    if rows.ndim != 2 or rows.shape[1] != topics:
        raise InputError(f"{name} has shape {rows.shape}; expected ({len(rows)}, {topics}): one column per topic")
    if not (rows >= 0).all() or not np.allclose(rows.sum(1), 1, atol=TOLERANCE):
        raise InputError(f"{name}: every row must be non-negative and sum to 1")
    return rows / rows.sum(1, keepdims=True)


class Law(Protocol):
    """A law of topic proportions of your own: any object with these two methods. `Own` makes a prior of it.

    Example:
        >>> class OneTopic:
        ...     def sample(self, topics, count, rng):
        ...         return np.eye(topics)[rng.integers(topics, size=count)]
        ...     def moments(self, topics):
        ...         return Moments(np.full(topics, 1 / topics), np.eye(topics) / topics)
        >>> Own(OneTopic()).moments(2).second.tolist()
        [[0.5, 0.0], [0.0, 0.5]]
    """

    def sample(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        """`count` rows of proportions."""

    def moments(self, topics: int) -> Moments:
        """E[theta] and E[theta theta']; `error` says how far off they may be."""


@dataclass(frozen=True)
class Own(DocumentPrior):
    """A prior made of a law of your own, in Python; a configuration file cannot hold one.

    Attributes:
        law: An object with `sample` and `moments` (see `Law`). Samples and moments are compared before they are used.
        length: Words per document: a number, an inclusive range (low, high), or 'infinite'.

    Raises:
        InputError: The length is wrong; later, samples or moments are not those of proportions, or do not fit each
            other.

    Example:
        >>> class Equal:
        ...     def sample(self, topics, count, rng):
        ...         return np.full((count, topics), 1 / topics)
        ...     def moments(self, topics):
        ...         return Moments(np.full(topics, 1 / topics), np.full((topics, topics), 1 / topics**2))
        >>> Own(Equal(), length=5).sample_proportions(2, 3, np.random.default_rng(0)).tolist()
        [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    """

    law: Law
    length: Length = (100, 150)

    def __post_init__(self) -> None:
        missing = [name for name in ("sample", "moments") if not callable(getattr(self.law, name, None))]
        if missing:
            raise InputError(
                f"the law {type(self.law).__name__} has no method {' and no method '.join(missing)}; a law needs "
                "sample(topics, count, rng) and moments(topics)"
            )
        try:
            TypeAdapter(Length).validate_python(self.length)
        except ValidationError:
            raise InputError(f"length = {self.length!r}: expected {LENGTHS}") from None

    def check(self, topics: int) -> None:
        """Any number of topics may be right; the law itself says."""

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        rows = checked_proportions(self.law.sample(topics, count, rng), topics, "the law's sample")
        if len(rows) != count:
            raise InputError(f"the law's sample has {len(rows)} rows; {count} were asked for")
        return rows

    def moments(self, topics: int) -> Moments:
        found = checked_moments(self.law.moments(topics), topics, "the law's moments")
        rows = self.sample_proportions(topics, COMPARED, generator(0, Stream.MOMENT_POINTS))
        drawn = of_rows(rows)
        spread = [rows.std(0), np.sqrt(np.maximum((rows**2).T @ rows**2 / COMPARED - drawn.second**2, 0))]
        stated_errors = found.errors[1], found.errors[0]
        names = "E[theta]", "E[theta theta']"
        for name, stated, mean, deviation, error in zip(
            names, (found.mean, found.second), (drawn.mean, drawn.second), spread, stated_errors, strict=True
        ):
            # six standard errors, and as much for topics that are too rare to be drawn (Bernstein)
            allowed = 6 * (deviation / np.sqrt(COMPARED) + error) + 12 / COMPARED
            excess = np.abs(stated - mean) - allowed
            if (excess > 0).any():
                at = np.unravel_index(excess.argmax(), excess.shape)
                raise InputError(
                    f"the law's moments are not those of its samples: {name}[{', '.join(map(str, at))}] is given as "
                    f"{stated[at]:.4g}, but {COMPARED:,} draws have {mean[at]:.4g}"
                )
        return found

    def exact(self, topic_model: TopicModel) -> bool:
        return False

    def posterior(
        self, topic_model: TopicModel, evidence: Float[np.ndarray, "R words"], a: float, e: float
    ) -> Posterior:
        return self.posterior_of_any(topic_model, evidence, a, e)
