"""Priors of documents (Sections 3.1 and 6.1): how topic proportions and lengths are drawn, and their posteriors.

A new prior is one class that has `kind`, `length` and the abstract methods, and its name in `KINDS` and `Prior`.

>>> rng = np.random.default_rng(0)
>>> Fixed(topics_per_document=2, length=5).sample(TopicModel(3, 2), 4, rng).finite().words.shape
(4, 5)
"""

import functools
import inspect
from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Float
from pydantic import BeforeValidator, Field, TypeAdapter

from topicscope.ground import WIDEST, Count, InputError, Matrix, Text, nearest, number_only, section
from topicscope.world import moments
from topicscope.world.correlated import Groups, LogisticNormal
from topicscope.world.importance import from_dirichlet
from topicscope.world.matrices import matrix_of
from topicscope.world.moments import Moments
from topicscope.world.posteriors import Posterior, dirichlet_mean, in_slices, subset_mean, weighted_mean
from topicscope.world.prior import MOST_SETS, DocumentPrior, Length, Proportions, checked_proportions, equal_sets
from topicscope.world.topics import TopicModel, left_out, plain

Evidence = Float[np.ndarray, "R words"]
Concentration = Annotated[float, Field(ge=1e-6, le=1e6), number_only]  # below that a draw underflows
Weights = Annotated[list[Concentration], Field(max_length=WIDEST)]


@section
class Dirichlet(DocumentPrior):
    """theta ~ Dirichlet(alpha) (Section 6.1).

    Attributes:
        kind: 'dirichlet', the name in configuration files.
        alpha: One number for all topics, or a list with one number per topic.
        length: Words per document: a number, an inclusive range (low, high), or 'infinite'.

    Example:
        >>> from topicscope import Dirichlet
        >>> Dirichlet(alpha=[1.0, 3.0]).moments(topics=2).mean.tolist()
        [0.25, 0.75]
    """

    _: KW_ONLY
    kind: Literal["dirichlet"] = "dirichlet"
    alpha: Annotated[Concentration | Weights, BeforeValidator(plain)] = 0.1
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        if isinstance(self.alpha, list) and len(self.alpha) != topics:
            raise InputError(f"documents.alpha has {len(self.alpha)} numbers; expected one number per topic ({topics})")

    def weights(self, topics: int) -> Float[np.ndarray, " T"]:
        """alpha of every topic."""
        self.check(topics)
        return np.full(topics, self.alpha)

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        return rng.dirichlet(self.weights(topics), size=count)

    def moments(self, topics: int) -> Moments:
        return moments.dirichlet(self.weights(topics))

    def posterior(self, topic_model: TopicModel, evidence: Evidence, a: float, e: float) -> Posterior:
        """Exact for disjoint topics, and from draws of a variational proposal for others."""
        alpha = self.alpha if isinstance(self.alpha, float) else self.weights(topic_model.topics)
        if not topic_model.disjoint:
            return from_dirichlet(topic_model, evidence, a, e, self.weights(topic_model.topics))
        return in_slices(topic_model, evidence, e, lambda counts, q, e: dirichlet_mean(counts, q, alpha, a, e))


@section
class Fixed(DocumentPrior):
    """`topics_per_document` (tau) distinct topics with equal shares (Section 3.1).

    Every set of tau topics has the same probability. With `weights`, the probability of a set is proportional to the
    product of its topics' weights. Moments of this law, and posteriors of disjoint topics, are exact.

    Attributes:
        kind: 'fixed', the name in configuration files.
        topics_per_document: tau, at most the number of topics.
        weights: One positive number per topic; None: all equal.
        length: Words per document: a number, an inclusive range (low, high), or 'infinite'.

    Example:
        >>> from topicscope import Fixed
        >>> prior = Fixed(topics_per_document=2, length="infinite")
        >>> prior.sample_proportions(3, 2, np.random.default_rng(0)).tolist()
        [[0.0, 0.5, 0.5], [0.5, 0.5, 0.0]]
        >>> len(prior.support(topics=4)[0])  # all sets of 2 out of 4 topics
        6
    """

    _: KW_ONLY
    kind: Literal["fixed"] = "fixed"
    topics_per_document: Count = 3
    weights: Annotated[Weights | None, BeforeValidator(plain), Field(exclude_if=left_out)] = None
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        tau = self.topics_per_document
        if tau > topics:
            raise InputError(f"topics_per_document = {tau} is more than topics = {topics}; choose at most {topics}")
        if self.weights is not None and len(self.weights) != topics:
            raise InputError(
                f"documents.weights has {len(self.weights)} numbers; expected one number per topic ({topics})"
            )

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        self.check(topics)
        tau = self.topics_per_document
        if self.weights is not None:
            return weighted_sets(np.array(self.weights), tau, count, rng) / tau
        chosen = np.argpartition(rng.random((count, topics)), tau - 1, axis=1)[:, :tau]
        proportions = np.zeros((count, topics))
        np.put_along_axis(proportions, chosen, 1 / tau, axis=1)
        return proportions

    def moments(self, topics: int) -> Moments:
        self.check(topics)
        if self.weights is not None:
            return moments.weighted_shares(np.array(self.weights), self.topics_per_document)
        return moments.equal_shares(topics, self.topics_per_document)

    def support(self, topics: int, most: int = MOST_SETS) -> tuple[Proportions, Float[np.ndarray, " K"]] | None:
        found = equal_sets(topics, self.topics_per_document, most)
        if found is None:
            return None
        sets, rows = found
        weight = np.log(np.full(topics, 1.0) if self.weights is None else np.array(self.weights))[sets].sum(1)
        weight = np.exp(weight - weight.max())
        return rows, weight / weight.sum()

    def posterior(self, topic_model: TopicModel, evidence: Evidence, a: float, e: float) -> Posterior:
        """Exact for disjoint topics, and for others where there are few sets of topics."""
        tau, weights = self.topics_per_document, self.weights
        if not topic_model.disjoint:
            return self.posterior_of_any(topic_model, evidence, a, e)
        if weights is not None:
            w = np.array(weights)
            return in_slices(topic_model, evidence, e, lambda counts, q, e: weighted_mean(counts, q, w, tau, a, e))
        return in_slices(topic_model, evidence, e, lambda counts, q, e: subset_mean(counts, q, tau, a, e))


def weighted_sets(
    weights: Float[np.ndarray, " T"], tau: int, count: int, rng: np.random.Generator
) -> Float[np.ndarray, "D T"]:
    """Sets of tau topics, 1 where a topic is in: one topic after another, given how many are still to come."""
    topics, log_w = len(weights), np.log(weights)
    chosen, left = np.zeros((count, topics)), np.full(count, tau)
    # log e_n of the weights of the topics from t on
    tails = np.array([[-np.inf] * (tau + 2)] * (topics + 1))
    tails[:, 1] = 0  # n = 0; the place before it stands for n = -1
    for t in reversed(range(topics)):
        tails[t, 2:] = np.logaddexp(tails[t + 1, 2:], log_w[t] + tails[t + 1, 1:-1])
    for t in range(topics):
        with np.errstate(invalid="ignore"):
            probability = np.exp(log_w[t] + tails[t + 1, left] - tails[t, left + 1])
        inside = (rng.random(count) < probability) | (left == topics - t)  # rounding may leave no topic out
        chosen[inside, t] = 1
        left = left - inside
    return chosen


@section
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

    _: KW_ONLY
    kind: Literal["given"] = "given"
    proportions: Annotated[Matrix | Text, BeforeValidator(plain)]
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        self.rows(topics)

    def rows(self, topics: int) -> Float[np.ndarray, "rows T"]:
        """The matrix, checked."""
        return checked_proportions(
            matrix_of(self.proportions, "documents.proportions"), topics, "documents.proportions"
        )

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        rows = self.rows(topics)
        return rows[np.arange(count) % len(rows)]

    def moments(self, topics: int) -> Moments:
        return moments.of_rows(self.rows(topics))

    def support(self, topics: int, most: int = MOST_SETS) -> tuple[Proportions, Float[np.ndarray, " K"]] | None:
        rows = self.rows(topics)  # they are listed, however many
        return rows, np.full(len(rows), 1 / len(rows))

    def posterior(self, topic_model: TopicModel, evidence: Evidence, a: float, e: float) -> Posterior:
        """Exact for all topics."""
        return self.posterior_of_any(topic_model, evidence, a, e)


KINDS: dict[str, type[DocumentPrior]] = {
    "dirichlet": Dirichlet,
    "fixed": Fixed,
    "given": Given,
    "groups": Groups,
    "logistic-normal": LogisticNormal,
}
"""The priors by kind. A class that lacks a method is a type error here."""


adapter_of = functools.cache(TypeAdapter[DocumentPrior])  # building one takes milliseconds


def prior_of(settings: Any) -> Any:
    """The prior that flat settings describe, for example {'kind': 'fixed', 'topics_per_document': 2}.

    Without a kind it is dirichlet. Kind 'infinite' means kind 'fixed' with length 'infinite'. A prior passes as it is.
    """
    if isinstance(settings, DocumentPrior) and type(settings) not in KINDS.values():
        raise ValueError(f"documents: a configuration cannot hold {type(settings).__name__}; choose {', '.join(KINDS)}")
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


Prior = Annotated[
    Dirichlet | Fixed | Given | Groups | LogisticNormal, Field(discriminator="kind"), BeforeValidator(prior_of)
]
"""Any prior, as a field of a configuration: built from flat settings by `prior_of`."""
