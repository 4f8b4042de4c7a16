"""Priors under which topics go together: groups of topics, and the logistic normal.

>>> Groups(groups=2, rho=1.0, topics_per_document=1).moments(4).second.tolist()[0]
[0.25, 0.0, 0.0, 0.0]
"""

import math
from dataclasses import KW_ONLY
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float
from pydantic import BeforeValidator, Field

from topicscope.ground import WIDEST, Count, InputError, Matrix, Probability, Text, expected, number_only, section
from topicscope.world import moments
from topicscope.world.importance import from_normal, softmax
from topicscope.world.matrices import matrix_of
from topicscope.world.moments import Moments
from topicscope.world.normal_moments import correlated_normal, independent_normal
from topicscope.world.posteriors import Posterior, grouped_mean, in_slices
from topicscope.world.prior import MOST_SETS, DocumentPrior, Length, Proportions, equal_sets
from topicscope.world.topics import TopicModel, plain

Evidence = Float[np.ndarray, "R words"]


@section
class Groups(DocumentPrior):
    """Coarse and fine topics: `groups` groups of T / groups neighbouring topics.

    A document has `topics_per_document` (tau) topics with equal shares. With probability `rho` all of them come from
    one group (all groups, and all sets inside a group, are equally probable). Else they are any tau of all topics.

    Attributes:
        kind: 'groups', the name in configuration files.
        groups: Number of groups; it divides the number of topics.
        rho: Probability that all topics of a document come from one group.
        topics_per_document: tau.
        length: Words per document: a number, an inclusive range (low, high), or 'infinite'.

    Example:
        >>> from topicscope import Groups
        >>> second = Groups(groups=2, rho=1.0, topics_per_document=2).moments(topics=4).second
        >>> second[0].tolist()  # topics 1 and 2 come together, 1 and 3 never
        [0.125, 0.125, 0.0, 0.0]
    """

    _: KW_ONLY
    kind: Literal["groups"] = "groups"
    groups: Count
    rho: Probability = 0.5
    topics_per_document: Count = 2
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        tau, size = self.topics_per_document, topics // self.groups
        if topics % self.groups:
            raise InputError(
                f"documents.groups = {self.groups} does not divide topics = {topics}; groups have equally many topics"
            )
        if tau > topics or (self.rho > 0 and tau > size):
            most = size if self.rho > 0 else topics
            raise InputError(
                f"topics_per_document = {tau} is more than the {most} topics that they come from; choose at most {most}"
            )

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        self.check(topics)
        tau, size = self.topics_per_document, topics // self.groups
        group = np.where(rng.random(count) < self.rho, rng.integers(self.groups, size=count), -1)
        outside = (group[:, None] >= 0) & (np.arange(topics) // size != group[:, None])
        chosen = np.argpartition(rng.random((count, topics)) + outside, tau - 1, axis=1)[:, :tau]
        proportions = np.zeros((count, topics))
        np.put_along_axis(proportions, chosen, 1 / tau, axis=1)
        return proportions

    def moments(self, topics: int) -> Moments:
        self.check(topics)
        return moments.grouped_shares(topics, self.groups, self.rho, self.topics_per_document)

    def support(self, topics: int, most: int = MOST_SETS) -> tuple[Proportions, Float[np.ndarray, " K"]] | None:
        tau, size = self.topics_per_document, topics // self.groups
        found = equal_sets(topics, tau, most)
        if found is None:
            return None
        sets, rows = found
        group = sets // size
        together = (group == group[:, :1]).all(1)
        return rows, (1 - self.rho) / len(sets) + self.rho * together / max(1, together.sum())

    def posterior(self, topic_model: TopicModel, evidence: Evidence, a: float, e: float) -> Posterior:
        """Exact for disjoint topics, and for others where there are few sets of topics."""
        if not topic_model.disjoint:
            return self.posterior_of_any(topic_model, evidence, a, e)
        law = self.groups, self.rho, self.topics_per_document
        return in_slices(topic_model, evidence, e, lambda counts, q, e: grouped_mean(counts, q, *law, a, e))


Centre = Annotated[float, Field(ge=-1000, le=1000), number_only]
Variance = Annotated[float, Field(ge=0, le=1e4), number_only]
COVARIANCES = "a variance from 0 to 10,000, or a matrix: a row and a column per topic, or the file of one"


@section
class LogisticNormal(DocumentPrior):
    """theta = softmax(eta), where eta is normal: topics may be correlated.

    Moments are exact for independent topics; otherwise they are numerical, with their error.

    Attributes:
        kind: 'logistic-normal', the name in configuration files.
        mean: Mean of eta: one number for all topics, or a list with one per topic.
        covariance: A matrix (T x T), the path of one, or a number: the variance of independent topics.
        length: Words per document: a number, an inclusive range (low, high), or 'infinite'.

    Example:
        >>> from topicscope import LogisticNormal
        >>> moments = LogisticNormal(mean=[0.0, 1.0], covariance=0.5).moments(topics=2)
        >>> moments.mean.round(4).tolist(), moments.error
        ([0.3033, 0.6967], 0.0)
    """

    _: KW_ONLY
    kind: Literal["logistic-normal"] = "logistic-normal"
    mean: Annotated[Centre | Annotated[list[Centre], Field(max_length=WIDEST)], BeforeValidator(plain)] = 0.0
    covariance: Annotated[
        Variance | Matrix | Text, BeforeValidator(plain), expected("documents.covariance", COVARIANCES)
    ]
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        self._check_mean(topics)
        if not isinstance(self.covariance, float):  # a number fits any number of topics, however large
            self.law(topics)

    def _check_mean(self, topics: int) -> None:
        if isinstance(self.mean, list) and len(self.mean) != topics:
            raise InputError(f"documents.mean has {len(self.mean)} numbers; expected one number per topic ({topics})")

    def law(self, topics: int) -> tuple[Float[np.ndarray, " T"], Float[np.ndarray, "T k"]]:
        """Mean, and a root of the covariance: eta = mean + root z with z standard normal."""
        self._check_mean(topics)
        centre, name = np.full(topics, self.mean), "documents.covariance"
        if isinstance(self.covariance, float):
            return centre, math.sqrt(self.covariance) * np.eye(topics)
        matrix = matrix_of(self.covariance, name)
        if matrix.shape != (topics, topics):
            raise InputError(
                f"{name} has shape {matrix.shape}; expected ({topics}, {topics}): a row and a column per topic"
            )
        largest = np.abs(matrix).max()
        if largest > 1e4 or np.abs(matrix - matrix.T).max() > 1e-9 * largest:
            raise InputError(f"{name}: expected a symmetric matrix of numbers up to 10,000")
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        if values[0] < -1e-9 * max(largest, 1e-300):
            raise InputError(
                f"{name} is not positive semidefinite: its smallest eigenvalue is {values[0]:.3g}; "
                "no normal law has such a covariance"
            )
        kept = values > 1e-12 * largest
        return centre, vectors[:, kept] * np.sqrt(values[kept])

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        centre, root = self.law(topics)
        return softmax(centre + rng.standard_normal((count, root.shape[1])) @ root.T)

    def moments(self, topics: int) -> Moments:
        centre, root = self.law(topics)
        covariance = root @ root.T
        common = covariance[0, -1] if topics > 1 else 0.0  # a shift of all topics that all documents have alike
        rest = covariance - common
        variance = np.diagonal(rest)
        if np.abs(rest - np.diag(variance)).max() <= 1e-12 * np.abs(covariance).max() and variance.min() >= 0:
            return independent_normal(centre, variance)
        return correlated_normal(centre, root)

    def exact(self, topic_model: TopicModel) -> bool:
        return False

    def posterior(self, topic_model: TopicModel, evidence: Evidence, a: float, e: float) -> Posterior:
        """From draws around the mode of each row."""
        return from_normal(topic_model, evidence, a, e, *self.law(topic_model.topics))
