"""What every prior of documents has: its moments and its posterior means. And the priors that users give.

A prior is one file: a class with `@prior`, its sampling, moments and posterior, and the numbers that the explorer's
form asks for. Settings, help and the explorer then know it by its kind.

The posterior: words w are seen with probability a (A theta)_w + e, where a position other than the predicted one shows
its own word on purpose (a = k), or a random word (e = p_m p_r / Tv). A finite law is summed over all its rows, exactly.
Else proportions are drawn from a proposal near the posterior and weighted by prior times likelihood over proposal.
Draws come in two independent halves, from which whoever uses the mean can tell its error.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar, dataclass_transform

import numpy as np
import pydantic
from jaxtyping import Float
from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from topicscope.ground import (
    InputError,
    Matrix,
    Stream,
    Text,
    expected,
    generator,
    number_only,
    refuse,
    refuse_if,
    section,
)
from topicscope.world.documents import PADDING, Documents, InfiniteDocuments, sample_words
from topicscope.world.topics import TopicModel, matrix_of, plain

Proportions = Float[np.ndarray, "D T"]
Evidence = Float[np.ndarray, "R words"]
Counts = Float[np.ndarray, "R T w"]
Shares = Float[np.ndarray, "T w"]
Means = Float[np.ndarray, "R T"]
Support = tuple[Proportions, Float[np.ndarray, " K"]]
# draws, and the log of prior over proposal at each of them
Proposal = Callable[[np.random.Generator], tuple[Float[np.ndarray, "n T"], Float[np.ndarray, " n"]]]

MOST_SETS = 5000  # of topics that are listed for whoever asks for all of them
# sets x (words + topics) of a posterior that looks at all of them: 80 MB, some 10 s for 500 documents
MOST_NUMBERS = 10**7
TOLERANCE = 1e-6  # to which proportions have to sum to 1
ROUNDING = 1e-6  # to which moments have to be those of proportions
MOST_SLACK = 1e-2  # beyond this no stated error excuses moments that no law has
ROWS_AT_A_TIME = 500
DRAWS = 500  # of each half, for each row
PRIOR_DRAWS = 10_000  # of each half, where all rows share the draws of the prior
AT_A_TIME, MOST_WEIGHTS = 200, 2 * 10**6  # rows, and rows times draws or proportions


def _increasing(length: object) -> object:
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


@dataclass(frozen=True)
class Moments:
    """E[theta] and E[theta theta'] of a prior. All errors are 0 where they are exact.

    Attributes:
        mean: E[theta] (T).
        second: E[theta theta'] (T x T).
        error: Largest standard error of an entry of E[theta theta'].
        mean_error: Largest standard error of an entry of E[theta]; None: as `error`.
        norm_error: Error of E[theta theta'] in spectral norm, which bounds that of its eigenvalues; None: T times
            `error`.
        parts: Independent estimates of which these are the mean; what is made of them shows its error by their spread.

    Example:
        >>> Moments(np.array([0.5, 0.5]), np.eye(2) / 2, error=0.01).errors
        (0.01, 0.01, 0.02)
    """

    mean: Float[np.ndarray, " T"]
    second: Float[np.ndarray, "T T"]
    error: float = 0.0
    mean_error: float | None = None
    norm_error: float | None = None
    parts: tuple[Moments, ...] = ()

    @property
    def errors(self) -> tuple[float, float, float]:
        """Of entries of E[theta theta'] and of E[theta], and of eigenvalues of E[theta theta']."""
        mean = self.error if self.mean_error is None else self.mean_error
        return self.error, mean, len(self.mean) * self.error if self.norm_error is None else self.norm_error


def checked_moments(found: Moments, topics: int, name: str) -> Moments:
    """Check that some law of proportions can have these moments.

    E[theta] and E[theta theta'] are not negative, E[theta theta'] 1 = E[theta], whose sum is 1, and the covariance is
    positive semidefinite; all up to rounding and the stated errors.
    """
    try:
        mean, second = np.array(found.mean, dtype=float), np.array(found.second, dtype=float)
        errors = tuple(map(float, found.errors))
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"{name}: expected Moments(mean, second, error) of numbers") from None
    refuse(
        (
            mean.shape != (topics,) or second.shape != (topics, topics),
            f"{name} have the shapes {mean.shape} and {second.shape}; expected ({topics},) and ({topics}, {topics})",
        ),
        (
            not (np.isfinite(mean).all() and np.isfinite(second).all() and all(0 <= x < np.inf for x in errors)),
            f"{name}: every entry must be a finite number, and the errors not negative",
        ),
    )
    slack = min(ROUNDING + 10 * topics * max(errors[:2]), MOST_SLACK)
    off = np.abs(second.sum(1) - mean)
    row = int(off.argmax())
    refuse(
        (np.abs(second - second.T).max() > slack, f"{name}: E[theta theta'] must be symmetric"),
        (
            min(mean.min(), second.min()) < -slack,
            f"{name}: E[theta] and E[theta theta'] must not be negative, as proportions are not",
        ),
        (
            abs(mean.sum() - 1) > slack,
            f"{name}: E[theta] sums to {mean.sum():.6g}; proportions sum to 1, so it must be 1",
        ),
        (
            off[row] > slack,
            f"{name}: row {row} of E[theta theta'] sums to {second[row].sum():.6g}, but E[theta] is {mean[row]:.6g} "
            "there; proportions sum to 1, so the two must be equal",
        ),
    )
    try:
        np.linalg.cholesky(second - np.outer(mean, mean) + slack * np.eye(topics))
    except np.linalg.LinAlgError:
        raise InputError(
            f"{name}: no law has them; the covariance E[theta theta'] - E[theta] E[theta]' must be positive"
        ) from None
    parts = tuple(checked_moments(part, topics, f"{name}, a part of them") for part in found.parts)
    return Moments(mean, second, errors[0], errors[1], errors[2], parts)


def of_rows(rows: Float[np.ndarray, "D T"]) -> Moments:
    return Moments(rows.mean(0), rows.T @ rows / len(rows))


@dataclass(frozen=True)
class Posterior:
    """E[theta | words seen] for each row of evidence.

    Attributes:
        mean: Posterior means (R x T).
        halves: Where they are estimates: two independent ones, of which `mean` is the mean. None: exact.
        effective: Effective number of draws behind each row's estimate (R); None: exact.

    Example:
        >>> from topicscope.world import Fixed
        >>> seen = np.array([[3.0, 0.0]])  # word 1 three times, word 2 never
        >>> posterior = Fixed(topics_per_document=1).posterior(TopicModel(2, 1), seen, a=0.9, e=0.01)
        >>> posterior.mean.round(6).tolist(), posterior.halves
        ([[0.999999, 1e-06]], None)
    """

    mean: Means
    halves: tuple[Means, Means] | None = None
    effective: Float[np.ndarray, " R"] | None = None


def in_slices(
    topic_model: TopicModel, evidence: Evidence, e: float, mean: Callable[[Counts, Shares, float], Means]
) -> Posterior:
    """`mean(counts by topic, q, e)` of all rows of `evidence`, a slice of rows at a time. Topics are disjoint."""
    counts, q = topic_model.by_topic(evidence), topic_model.by_topic(topic_model.word_in_topic[1:], fill=1.0)
    if topic_model.uniform:  # only the counts of topics matter: the words of a topic become one
        counts, q, e = counts.sum(2, keepdims=True), np.ones((topic_model.topics, 1)), e * topic_model.block_size
    result = np.empty((len(counts), topic_model.topics))
    order = np.argsort(counts.sum((1, 2)))  # similar lengths together, so that one contour serves a slice
    for start in range(0, len(order), ROWS_AT_A_TIME):
        rows = order[start : start + ROWS_AT_A_TIME]
        result[rows] = mean(counts[rows], q, e)
    return Posterior(result)


@dataclass(frozen=True)
class Asked:
    """A number of a prior that the explorer's form asks for."""

    name: str  # the field of the prior
    type: Any  # what its box may hold, such as `Probability`
    default: float  # what the form begins with
    label: str  # what the form calls it
    low: float = 0  # left end of the slider
    high: float = 1  # right end
    log: bool = False  # whether the slider multiplies
    whole: bool = False  # whether it is a whole number


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

    kind: str  # its name in settings
    length: Length
    FORM: ClassVar[tuple[Asked, ...] | None] = None  # what the explorer's form asks for; None: it does not offer it

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
    def posterior(self, topic_model: TopicModel, evidence: Evidence, a: float, e: float) -> Posterior:
        """E[theta | counts of the words seen], where word w is seen with probability a (A theta)_w + e.

        It is exact, or estimated from draws, and says which.
        """

    def support(self, topics: int, most: int = MOST_SETS) -> Support | None:
        """All proportions that there are and their probabilities, where they are few: `most` sets of topics."""
        return None

    def exact(self, topic_model: TopicModel) -> bool:
        """Whether `posterior` is exact. A prior that leaves its posterior to `posterior_of_any` has its own `exact`."""
        return topic_model.disjoint or self._small_support(topic_model) is not None

    def _small_support(self, topic_model: TopicModel) -> Support | None:
        """Where every row of evidence can be held against all proportions."""
        return self.support(topic_model.topics, MOST_NUMBERS // (topic_model.words + topic_model.topics))

    def posterior_of_any(self, topic_model: TopicModel, evidence: Evidence, a: float, e: float) -> Posterior:
        """For any topics: exact where the law is finite and small, else estimated from draws of the prior."""
        finite = self._small_support(topic_model)
        if finite is not None:
            with np.errstate(divide="ignore"):
                return Posterior(_means(topic_model, evidence, a, e, finite[0], np.log(finite[1]))[0])
        thetas = (
            self.sample_proportions(topic_model.topics, PRIOR_DRAWS, rng)
            for rng in (generator(0, Stream.POSTERIOR_DRAWS, half) for half in range(2))
        )
        (first, worth), (second, more) = (_means(topic_model, evidence, a, e, theta, 0.0) for theta in thetas)
        return Posterior((first + second) / 2, (first, second), worth + more)

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


KINDS: dict[str, type[DocumentPrior]] = {}
"""The priors by kind, in the order of the alphabet."""

PriorClass = TypeVar("PriorClass", bound=type)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(pydantic.Field, dataclasses.field))
def prior(cls: PriorClass) -> PriorClass:
    """Make a class of `DocumentPrior` a prior that settings, help and the explorer know by its `kind`.

    Args:
        cls: The class, with annotated fields, the first of them `kind`.

    Returns:
        The class, as a part of a configuration.

    Example:
        >>> from topicscope.world import PRIORS
        >>> list(PRIORS)
        ['dirichlet', 'fixed', 'given', 'groups', 'logistic-normal']
    """
    built: Any = section(cls, kw_only=True)
    if missing := sorted(built.__abstractmethods__):
        raise TypeError(f"the prior {built.__name__} has no method {' and no method '.join(missing)}")
    KINDS[built.kind] = built
    for kind in sorted(KINDS):
        KINDS[kind] = KINDS.pop(kind)
    return built


def checked_proportions(theta: object, topics: int, name: str) -> Proportions:
    """Rows inside the simplex, made to sum to 1 exactly; else InputError."""
    try:
        rows = np.array(theta, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name}: expected a matrix of numbers, one row per document") from None
    if rows.ndim != 2 or rows.shape[1] != topics:
        raise InputError(f"{name} has shape {rows.shape}; expected ({len(rows)}, {topics}): one column per topic")
    refuse_if(
        not (rows >= 0).all() or not np.allclose(rows.sum(1), 1, atol=TOLERANCE),
        f"{name}: every row must be non-negative and sum to 1",
    )
    return rows / rows.sum(1, keepdims=True)


def from_proposals(
    topic_model: TopicModel,
    evidence: Evidence,
    a: float,
    e: float,
    proposal_of: Callable[[Float[np.ndarray, "w T"], Float[np.ndarray, " w"]], Proposal],
) -> Posterior:
    """Estimates from draws of `proposal_of(topics of the words that a row has, counts of these words)`."""
    halves, effective = np.empty((2, len(evidence), topic_model.topics)), np.zeros(len(evidence))
    generators = [generator(0, Stream.POSTERIOR_DRAWS, half) for half in range(2)]
    for row, seen in enumerate(evidence):
        words, counts = topic_model.word_topics[seen > 0], seen[seen > 0]
        proposal = proposal_of(words, counts)
        for half, rng in enumerate(generators):
            theta, log_ratio = proposal(rng)
            weight, worth = _weights((_log(a * theta @ words.T + e) @ counts + log_ratio)[None])
            halves[half, row] = weight[0] @ theta
            effective[row] += worth[0]
    return Posterior((halves[0] + halves[1]) / 2, (halves[0], halves[1]), effective)


def _means(
    topic_model: TopicModel,
    evidence: Evidence,
    a: float,
    e: float,
    rows: Proportions,
    log_prior: float | Float[np.ndarray, " K"],
) -> tuple[Means, Float[np.ndarray, " R"]]:
    """Means over these rows of proportions, weighted by prior times likelihood; how many equal ones they are worth."""
    seen = _log(a * topic_model.word_distribution(rows) + e)
    mean, worth = np.empty((len(evidence), rows.shape[1])), np.empty(len(evidence))
    at_a_time = min(AT_A_TIME, max(1, MOST_WEIGHTS // len(rows)))
    for start in range(0, len(evidence), at_a_time):
        part = slice(start, start + at_a_time)
        weight, worth[part] = _weights(evidence[part] @ seen.T + log_prior)
        mean[part] = weight @ rows
    return mean, worth


@np.errstate(divide="ignore")
def _log(p: np.ndarray) -> np.ndarray:
    return np.maximum(np.log(p), -1e300)


def _weights(log_weight: Float[np.ndarray, "R n"]) -> tuple[Float[np.ndarray, "R n"], Float[np.ndarray, " R"]]:
    weight = np.exp(log_weight - log_weight.max(1, keepdims=True))
    weight /= weight.sum(1, keepdims=True)
    return weight, 1 / (weight**2).sum(1)


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
        refuse_if(
            missing,
            f"the law {type(self.law).__name__} has no method {' and no method '.join(missing)}; a law needs "
            "sample(topics, count, rng) and moments(topics)",
        )
        try:
            TypeAdapter(Length).validate_python(self.length)
        except ValidationError:
            raise InputError(f"length = {self.length!r}: expected {LENGTHS}") from None

    def check(self, topics: int) -> None:
        """Any number of topics may be right; the law itself says."""

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        rows = checked_proportions(self.law.sample(topics, count, rng), topics, "the law's sample")
        refuse_if(len(rows) != count, f"the law's sample has {len(rows)} rows; {count} were asked for")
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
            refuse_if(
                excess[at] > 0,
                f"the law's moments are not those of its samples: {name}[{', '.join(map(str, at))}] is given as "
                f"{stated[at]:.4g}, but {COMPARED:,} draws have {mean[at]:.4g}",
            )
        return found

    def exact(self, topic_model: TopicModel) -> bool:
        return False

    posterior = DocumentPrior.posterior_of_any
