"""Priors of documents (Sections 3.1 and 6.1): how topic proportions and lengths are drawn, and their posteriors.

A new prior is one class here that has `kind`, `length` and the abstract methods, and its name in `KINDS` and `Prior`.

>>> rng = np.random.default_rng(0)
>>> Fixed(topics_per_document=2, length=5).sample(TopicModel(3, 2), 4, rng).finite().words.shape
(4, 5)
"""

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Float
from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

from topicscope.ground import Count, InputError, Matrix, Text, nearest, number_only, section
from topicscope.world import moments
from topicscope.world.documents import PADDING, Documents, InfiniteDocuments, sample_words
from topicscope.world.matrices import matrix_of
from topicscope.world.moments import Moments
from topicscope.world.posteriors import dirichlet_mean, in_slices, mixture_mean, subset_mean
from topicscope.world.topics import TopicModel

Proportions = Float[np.ndarray, "D T"]


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
    def posterior_mean(
        self, topic_model: TopicModel, evidence: Float[np.ndarray, "R Tv"], a: float, e: float
    ) -> Float[np.ndarray, "R T"]:
        """E[theta | counts of the words seen], where word w of topic t is seen with probability a theta_t q_w + e."""

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


@section
class Dirichlet(DocumentPrior):
    """theta ~ Dirichlet(alpha, ..., alpha) (Section 6.1)."""

    _: KW_ONLY
    kind: Literal["dirichlet"] = "dirichlet"
    alpha: Annotated[float, Field(ge=1e-6, le=1e6), number_only] = 0.1  # below that a draw underflows
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        """Any number of topics is right."""

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        return rng.dirichlet(np.full(topics, self.alpha), size=count)

    def moments(self, topics: int) -> Moments:
        return moments.dirichlet(np.full(topics, self.alpha))

    def posterior_mean(
        self, topic_model: TopicModel, evidence: Float[np.ndarray, "R Tv"], a: float, e: float
    ) -> Float[np.ndarray, "R T"]:
        return in_slices(topic_model, evidence, e, lambda counts, q, e: dirichlet_mean(counts, q, self.alpha, a, e))


@section
class Fixed(DocumentPrior):
    """`topics_per_document` (tau) distinct topics with equal shares (Section 3.1)."""

    _: KW_ONLY
    kind: Literal["fixed"] = "fixed"
    topics_per_document: Count = 3
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        tau = self.topics_per_document
        if tau > topics:
            raise InputError(f"topics_per_document = {tau} is more than topics = {topics}; choose at most {topics}")

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        self.check(topics)
        tau = self.topics_per_document
        chosen = np.argpartition(rng.random((count, topics)), tau - 1, axis=1)[:, :tau]
        proportions = np.zeros((count, topics))
        np.put_along_axis(proportions, chosen, 1 / tau, axis=1)
        return proportions

    def moments(self, topics: int) -> Moments:
        self.check(topics)
        return moments.equal_shares(topics, self.topics_per_document)

    def posterior_mean(
        self, topic_model: TopicModel, evidence: Float[np.ndarray, "R Tv"], a: float, e: float
    ) -> Float[np.ndarray, "R T"]:
        return in_slices(
            topic_model, evidence, e, lambda counts, q, e: subset_mean(counts, q, self.topics_per_document, a, e)
        )


@section
class Given(DocumentPrior):
    """The rows of `proportions`, in turn: a matrix with one column per topic, or the file of one."""

    _: KW_ONLY
    kind: Literal["given"] = "given"
    proportions: Matrix | Text
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        self.rows(topics)

    def rows(self, topics: int) -> Float[np.ndarray, "rows T"]:
        """The matrix, checked."""
        rows = matrix_of(self.proportions, "documents.proportions")
        if rows.shape[1] != topics:
            raise InputError(
                f"documents.proportions has shape {rows.shape}; expected ({len(rows)}, {topics}): one column per topic"
            )
        if not (rows >= 0).all() or not np.allclose(rows.sum(1), 1, atol=1e-6):
            raise InputError("documents.proportions: every row must be non-negative and sum to 1")
        return rows / rows.sum(1, keepdims=True)

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        rows = self.rows(topics)
        return rows[np.arange(count) % len(rows)]

    def moments(self, topics: int) -> Moments:
        return moments.of_rows(self.rows(topics))

    def posterior_mean(
        self, topic_model: TopicModel, evidence: Float[np.ndarray, "R Tv"], a: float, e: float
    ) -> Float[np.ndarray, "R T"]:
        rows = self.rows(topic_model.topics)
        return in_slices(topic_model, evidence, e, lambda counts, q, e: mixture_mean(counts, q, rows, a, e))


KINDS: dict[str, type[DocumentPrior]] = {"dirichlet": Dirichlet, "fixed": Fixed, "given": Given}
"""The priors by kind. A class that lacks a method is a type error here."""


adapter_of = functools.cache(TypeAdapter[DocumentPrior])  # building one takes milliseconds


def prior_of(settings: Any) -> Any:
    """The prior that flat settings describe, for example {'kind': 'fixed', 'topics_per_document': 2}.

    Without a kind it is dirichlet. Kind 'infinite' means kind 'fixed' with length 'infinite'. A prior passes as it is.
    """
    if not isinstance(settings, Mapping):
        return settings
    named = settings.get("kind", "dirichlet")
    fields = {str(key): value for key, value in settings.items()} | {"kind": named}
    if named == "infinite":
        length = fields.get("length", "infinite")
        if length != "infinite":
            raise ValueError(f"documents.length = {length!r}: kind infinite has no length; choose kind fixed for that")
        fields |= {"kind": "fixed", "length": "infinite"}
    if not isinstance(named, str) or fields["kind"] not in KINDS:
        raise ValueError(f"documents.kind = {named!r}: expected {', '.join(KINDS)} or infinite")
    _check_names(fields, fields["kind"], named)
    return adapter_of(KINDS[fields["kind"]]).validate_python(fields)


def _check_names(fields: Collection[str], kind: str, named: str) -> None:
    """Every field belongs to the kind, and none that it needs is missing."""
    parameters = {kind: inspect.signature(prior).parameters for kind, prior in KINDS.items()}
    own = parameters[kind]
    for key in fields:
        owners = [kind for kind, names in parameters.items() if key in names]
        if not owners:
            raise ValueError(f"unknown key 'documents.{key}'; {nearest(key, own)}")
        if key not in own:
            raise ValueError(
                f"documents.{key} belongs to kind {' or '.join(owners)}, but the kind is {named}; "
                f"set documents.kind to {owners[0]}, or leave documents.{key} out"
            )
    for name, parameter in own.items():
        if parameter.default is parameter.empty and name not in fields:
            raise ValueError(f"documents.{name} is missing; kind {named} needs it")


Prior = Annotated[Dirichlet | Fixed | Given, Field(discriminator="kind"), BeforeValidator(prior_of)]
"""Any prior, as a field of a configuration: built from flat settings by `prior_of`."""
