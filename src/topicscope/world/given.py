"""Priors that are given: as rows of proportions, or as a law of the user's own.

>>> class Halves:
...     def sample(self, topics, count, rng):
...         return np.full((count, topics), 1 / topics)
...     def moments(self, topics):
...         return Moments(np.full(topics, 1 / topics), np.full((topics, topics), 1 / topics**2))
>>> Own(Halves(), length=5).sample(TopicModel(2, 3), 4, np.random.default_rng(0)).finite().words.shape
(4, 5)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

import numpy as np
from jaxtyping import Float
from pydantic import BeforeValidator, TypeAdapter, ValidationError

from topicscope.ground import InputError, Matrix, Stream, Text, generator, refuse
from topicscope.world.matrices import matrix_of
from topicscope.world.priors import (
    LENGTHS,
    MOST_SETS,
    DocumentPrior,
    Length,
    Moments,
    Proportions,
    Support,
    checked_moments,
    checked_proportions,
    of_rows,
    prior,
)
from topicscope.world.topics import TopicModel, plain

COMPARED = 4000  # draws of a law of the user's own, with which its moments are compared


@prior
class Given(DocumentPrior):
    """The rows of a matrix as proportions: document n has row n, and after the last row the first one follows.

    Attributes:
        kind: 'given', the name in configuration files.
        proportions: One row per document and one column per topic; each row sums to 1. Or the path of such a file.
        length: Words per document: a number, an inclusive range (low, high), or 'infinite'.

    Example:
        >>> from topicscope import Given
        >>> prior = Given(proportions=[[1.0, 0.0], [0.5, 0.5]])
        >>> prior.sample_proportions(2, 3, np.random.default_rng(0)).tolist()
        [[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]]
    """

    kind: Literal["given"] = "given"
    proportions: Annotated[Matrix | Text, BeforeValidator(plain)]
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        self.rows(topics)

    def rows(self, topics: int) -> Float[np.ndarray, "rows T"]:
        return checked_proportions(
            matrix_of(self.proportions, "documents.proportions"), topics, "documents.proportions"
        )

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        rows = self.rows(topics)
        return rows[np.arange(count) % len(rows)]

    def moments(self, topics: int) -> Moments:
        return of_rows(self.rows(topics))

    def support(self, topics: int, most: int = MOST_SETS) -> Support | None:
        rows = self.rows(topics)  # they are listed, however many
        return rows, np.full(len(rows), 1 / len(rows))

    posterior = DocumentPrior.posterior_of_any


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
        refuse(
            (
                missing,
                f"the law {type(self.law).__name__} has no method {' and no method '.join(missing)}; a law needs "
                "sample(topics, count, rng) and moments(topics)",
            )
        )
        try:
            TypeAdapter(Length).validate_python(self.length)
        except ValidationError:
            raise InputError(f"length = {self.length!r}: expected {LENGTHS}") from None

    def check(self, topics: int) -> None:
        """Any number of topics may be right; the law itself says."""

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        rows = checked_proportions(self.law.sample(topics, count, rng), topics, "the law's sample")
        refuse((len(rows) != count, f"the law's sample has {len(rows)} rows; {count} were asked for"))
        return rows

    def moments(self, topics: int) -> Moments:
        found = checked_moments(self.law.moments(topics), topics, "the law's moments")
        rows = self.sample_proportions(topics, COMPARED, generator(0, Stream.MOMENT_POINTS))
        drawn = of_rows(rows)
        spread = np.sqrt(np.maximum((rows**2).T @ rows**2 / COMPARED - drawn.second**2, 0))
        for name, stated, mean, deviation, error in (
            ("E[theta]", found.mean, drawn.mean, rows.std(0), found.errors[1]),
            ("E[theta theta']", found.second, drawn.second, spread, found.errors[0]),
        ):
            # six standard errors, and as much for topics that are too rare to be drawn (Bernstein)
            allowed = 6 * (deviation / np.sqrt(COMPARED) + error) + 12 / COMPARED
            excess = np.abs(stated - mean) - allowed
            at = np.unravel_index(excess.argmax(), excess.shape)
            refuse(
                (
                    excess[at] > 0,
                    f"the law's moments are not those of its samples: {name}[{', '.join(map(str, at))}] is given as "
                    f"{stated[at]:.4g}, but {COMPARED:,} draws have {mean[at]:.4g}",
                )
            )
        return found

    def exact(self, topic_model: TopicModel) -> bool:
        return False

    posterior = DocumentPrior.posterior_of_any
