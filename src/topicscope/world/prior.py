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
from pydantic import AfterValidator, Field

from topicscope.ground import InputError, number_only
from topicscope.world.documents import PADDING, Documents, InfiniteDocuments, sample_words
from topicscope.world.importance import from_draws, from_support
from topicscope.world.moments import Moments
from topicscope.world.posteriors import Posterior
from topicscope.world.topics import TopicModel

Proportions = Float[np.ndarray, "D T"]
MOST_ROWS = 5000  # of a finite law, up to which all its rows are looked at where no closed form helps
TOLERANCE = 1e-6  # to which proportions have to sum to 1


def _checked_length(length: Any) -> Any:
    low, high = length if isinstance(length, tuple) else (length, length)
    if length != "infinite" and not 1 <= low <= high:
        raise ValueError(f"length = {length}: expected a number of words >= 1, an increasing range, or 'infinite'")
    return length


Words = Annotated[int, Field(ge=1, le=10**7), number_only]
Length = Annotated[Words | tuple[Words, Words] | Literal["infinite"], AfterValidator(_checked_length)]
"""Words of a document: a number, an inclusive range, or 'infinite' (Assumption 1)."""


class DocumentPrior(ABC):
    """What every prior has."""

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

    def support(self, topics: int) -> tuple[Proportions, Float[np.ndarray, " K"]] | None:
        """All proportions that there are and their probabilities, where they are few."""
        return None

    def exact(self, topic_model: TopicModel) -> bool:
        """Whether `posterior` is exact."""
        return topic_model.disjoint or self.support(topic_model.topics) is not None

    def posterior_of_any(
        self, topic_model: TopicModel, evidence: Float[np.ndarray, "R words"], a: float, e: float
    ) -> Posterior:
        """For any topics: exact where the law is finite and small, else estimated from draws of the prior."""
        finite = self.support(topic_model.topics)
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


def equal_sets(topics: int, tau: int) -> tuple[Int[np.ndarray, "K tau"], Proportions] | None:
    """All sets of tau topics, and the proportions of documents that share them equally; None where they are many."""
    if (tau < topics > MOST_ROWS) or math.comb(
        topics, tau
    ) > MOST_ROWS:  # at first: a binomial may be too large to know
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
    """A law of topic proportions of the user's own."""

    def sample(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        """`count` rows of proportions."""

    def moments(self, topics: int) -> Moments:
        """E[theta] and E[theta theta']; `error` says how far off they may be."""


@dataclass(frozen=True)
class Own(DocumentPrior):
    """A prior made of a law of the user's own, in Python; a configuration file cannot hold one."""

    law: Law
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        _checked_length(self.length)

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        rows = checked_proportions(self.law.sample(topics, count, rng), topics, "the law's sample")
        if len(rows) != count:
            raise InputError(f"the law's sample has {len(rows)} rows; {count} were asked for")
        return rows

    def moments(self, topics: int) -> Moments:
        found = self.law.moments(topics)
        mean, second = np.asarray(found.mean, dtype=float), np.asarray(found.second, dtype=float)
        if mean.shape != (topics,) or second.shape != (topics, topics):
            raise InputError(
                f"the law's moments have shapes {mean.shape} and {second.shape}; "
                f"expected ({topics},) and ({topics}, {topics})"
            )
        slack = TOLERANCE + 10 * found.error
        if abs(mean.sum() - 1) > slack or np.abs(second - second.T).max() > slack or abs(second.sum() - 1) > slack:
            raise InputError(
                "the law's moments are none of proportions: E[theta] and E[theta theta'] must each sum to 1"
            )
        return Moments(mean, second, float(found.error))

    def exact(self, topic_model: TopicModel) -> bool:
        return False

    def posterior(
        self, topic_model: TopicModel, evidence: Float[np.ndarray, "R words"], a: float, e: float
    ) -> Posterior:
        return self.posterior_of_any(topic_model, evidence, a, e)
