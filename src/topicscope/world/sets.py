"""Priors of tau topics with equal shares: any of the topics (Section 3.1), or topics of one group.

Posteriors for disjoint topics are exact sums over sets: elementary symmetric polynomials of the topics' likelihood
ratios, computed in logarithms; groups are a mixture of such sums.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import BeforeValidator, Field

from topicscope.ground import Count, Probability, refuse
from topicscope.world.dirichlet import Weights
from topicscope.world.priors import (
    MOST_SETS,
    Asked,
    Counts,
    DocumentPrior,
    Evidence,
    Length,
    Means,
    Moments,
    Posterior,
    Proportions,
    Shares,
    Support,
    in_slices,
    prior,
)
from topicscope.world.topics import TopicModel, left_out, plain

TAU = Asked("topics_per_document", Count, 3, "tau, topics per document", low=1, high=50, whole=True)


class EqualShares(DocumentPrior):
    """Equal shares of the topics of a set; the priors here differ in how probable a set is."""

    topics_per_document: int

    @abstractmethod
    def probabilities(self, sets: Int[np.ndarray, "K tau"], topics: int) -> Float[np.ndarray, " K"]:
        """How probable each of all sets of tau topics is."""

    @abstractmethod
    def mean_of_disjoint(self, counts: Counts, q: Shares, a: float, e: float) -> Means:
        """Posterior means where topics are disjoint, from the counts of their words."""

    def support(self, topics: int, most: int = MOST_SETS) -> Support | None:
        tau = self.topics_per_document
        # one topic more or less makes T sets at least: of more topics than sets there is no need to count them
        if (topics > most and tau < topics) or math.comb(topics, tau) > most:
            return None
        sets = np.array(list(itertools.combinations(range(topics), tau)))
        rows = np.zeros((len(sets), topics))
        np.put_along_axis(rows, sets, 1 / tau, axis=1)
        return rows, self.probabilities(sets, topics)

    def posterior(self, topic_model: TopicModel, evidence: Evidence, a: float, e: float) -> Posterior:
        """Exact for disjoint topics, and for others where there are few sets of topics."""
        if not topic_model.disjoint:
            return self.posterior_of_any(topic_model, evidence, a, e)
        return in_slices(topic_model, evidence, e, lambda counts, q, e: self.mean_of_disjoint(counts, q, a, e))


@prior
class Fixed(EqualShares):
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

    FORM: ClassVar = (TAU,)

    kind: Literal["fixed"] = "fixed"
    topics_per_document: Count = 3
    weights: Annotated[Weights | None, BeforeValidator(plain), Field(exclude_if=left_out)] = None
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        tau, count = self.topics_per_document, topics if self.weights is None else len(self.weights)
        refuse(
            (tau > topics, f"topics_per_document = {tau} is more than topics = {topics}; choose at most {topics}"),
            (count != topics, f"documents.weights has {count} numbers; expected one number per topic ({topics})"),
        )

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        self.check(topics)
        tau = self.topics_per_document
        if self.weights is not None:
            return weighted_sets(np.array(self.weights), tau, count, rng) / tau
        return lowest(rng.random((count, topics)), tau)

    def moments(self, topics: int) -> Moments:
        self.check(topics)
        if self.weights is not None:
            return weighted_shares(np.array(self.weights), self.topics_per_document)
        tau = self.topics_per_document  # P(s and t) = tau (tau - 1) / (T (T - 1))
        pair = tau * (tau - 1) / (topics * (topics - 1)) if topics > 1 else 0.0
        second = np.full((topics, topics), pair / tau**2)
        np.fill_diagonal(second, 1 / (tau * topics))
        return Moments(np.full(topics, 1 / topics), second)

    def probabilities(self, sets: Int[np.ndarray, "K tau"], topics: int) -> Float[np.ndarray, " K"]:
        weight = np.log(np.full(topics, 1.0) if self.weights is None else np.array(self.weights))[sets].sum(1)
        weight = np.exp(weight - weight.max())
        return weight / weight.sum()

    def mean_of_disjoint(self, counts: Counts, q: Shares, a: float, e: float) -> Means:
        """P(t in S | counts) / tau = r_t e_(tau-1)(r without t) / e_tau(r) / tau.

        The elementary symmetric polynomials e_n of the likelihood ratios r are computed in logarithms. With weights a
        set has a probability in proportion to their product.
        """
        tau = self.topics_per_document
        if e == 0 and self.weights is None:  # a topic that was seen is there for certain
            seen = counts.sum(2) > 0
            left = seen.sum(1, keepdims=True)
            return np.where(seen, 1.0, (tau - left) / np.maximum(counts.shape[1] - left, 1)) / tau
        log_r = _log_ratios(counts, q, tau, a, e)
        return symmetric_mean(log_r if self.weights is None else log_r + np.log(self.weights), tau)[0]


def lowest(numbers: Float[np.ndarray, "D T"], tau: int) -> Proportions:
    """Equal shares of the topics with the tau lowest numbers of each row."""
    proportions = np.zeros(numbers.shape)
    np.put_along_axis(proportions, np.argpartition(numbers, tau - 1, axis=1)[:, :tau], 1 / tau, axis=1)
    return proportions


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


@prior
class Groups(EqualShares):
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

    FORM: ClassVar = (
        Asked("groups", Count, 5, "groups of topics", low=1, high=50, whole=True),
        Asked("rho", Probability, 0.5, "rho, share of one-group documents"),
        TAU,
    )

    kind: Literal["groups"] = "groups"
    groups: Count
    rho: Probability = 0.5
    topics_per_document: Count = 2
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        tau, most = self.topics_per_document, topics // self.groups if self.rho > 0 else topics
        refuse(
            (
                topics % self.groups,
                f"documents.groups = {self.groups} does not divide topics = {topics}; groups have equally many topics",
            ),
            (
                tau > most,
                f"topics_per_document = {tau} is more than the {most} topics that they come from; choose at most "
                f"{most}",
            ),
        )

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        self.check(topics)
        tau, size = self.topics_per_document, topics // self.groups
        group = np.where(rng.random(count) < self.rho, rng.integers(self.groups, size=count), -1)
        outside = (group[:, None] >= 0) & (np.arange(topics) // size != group[:, None])
        return lowest(rng.random((count, topics)) + outside, tau)

    def moments(self, topics: int) -> Moments:
        self.check(topics)
        tau, rho, size = self.topics_per_document, self.rho, topics // self.groups
        across = (1 - rho) * tau * (tau - 1) / (topics * (topics - 1)) if topics > 1 else 0.0
        inside = across + (rho * tau * (tau - 1) / (topics * (size - 1)) if size > 1 else 0.0)
        group = np.arange(topics) // size
        pairs = np.where(group[:, None] == group, inside, across)  # P(s and t)
        np.fill_diagonal(pairs, tau / topics)
        return Moments(np.full(topics, 1 / topics), pairs / tau**2)

    def probabilities(self, sets: Int[np.ndarray, "K tau"], topics: int) -> Float[np.ndarray, " K"]:
        group = sets // (topics // self.groups)
        together = (group == group[:, :1]).all(1)
        return (1 - self.rho) / len(sets) + self.rho * together / max(1, together.sum())

    def mean_of_disjoint(self, counts: Counts, q: Shares, a: float, e: float) -> Means:
        """A mixture: with probability rho the topics of one of the groups, else all topics."""
        tau, topics = self.topics_per_document, counts.shape[1]
        size, log_r = topics // self.groups, _log_ratios(counts, q, tau, a, e)
        parts = [(slice(0, topics), math.log1p(-self.rho))] if self.rho < 1 else []
        if self.rho > 0:
            log_group = math.log(self.rho / self.groups)
            parts += [(slice(start, start + size), log_group) for start in range(0, topics, size)]
        means, log_weights = np.zeros((len(parts), *counts.shape[:2])), np.empty((len(parts), len(counts)))
        for mean, log_weight, (inside, log_prior) in zip(means, log_weights, parts, strict=True):
            mean[:, inside], evidence = symmetric_mean(log_r[:, inside], tau)
            log_weight[:] = log_prior + evidence - math.log(math.comb(inside.stop - inside.start, tau))
        return np.einsum("pr,prt->rt", np.exp(log_weights - np.logaddexp.reduce(log_weights, axis=0)), means)


def weighted_shares(weights: Float[np.ndarray, " T"], tau: int) -> Moments:
    """tau of the topics, a set with a probability in proportion to the product of its weights; exact.

    Given that t is among them, the others are a set of tau - 1 of the other topics by the same law.
    """
    log_w, topics = np.log(weights), len(weights)
    chosen = tau * symmetric_mean(log_w[None], tau)[0][0]
    pairs = np.zeros((topics, topics))
    for t in range(topics) if tau > 1 else ():
        others = np.where(np.arange(topics) == t, -np.inf, log_w)
        pairs[t] = chosen[t] * (tau - 1) * symmetric_mean(others[None], tau - 1)[0][0]
    pairs = (pairs + pairs.T) / 2
    np.fill_diagonal(pairs, chosen)
    return Moments(chosen / tau, pairs / tau**2)


@np.errstate(divide="ignore")
def _log_likelihood(counts: Counts, p: Shares) -> Means:
    """sum over the words of a topic of count * log p, where 0 log 0 = 0."""
    return np.einsum("rtw,tw->rt", counts, np.maximum(np.log(p), -1e300))


SEEN = 800.0  # log likelihood ratio of a topic that was seen for certain: sets without it have weight exp(-800) = 0


def _log_ratios(counts: Counts, q: Shares, tau: int, a: float, e: float) -> Float[np.ndarray, "R T"]:
    """Log likelihood of the words of each topic if it is in the document, less that if it is not."""
    if e == 0:
        return np.where(counts.sum(2) > 0, SEEN, 0.0)
    return _log_likelihood(counts, a / tau * q + e) - _log_likelihood(counts, np.full_like(q, e))


def symmetric_mean(log_r: Float[np.ndarray, "R T"], tau: int) -> tuple[Means, Float[np.ndarray, " R"]]:
    """Means of equal shares of tau topics where a set weighs the product of its ratios; log of the sum of weights."""
    prefix, suffix = _log_symmetric(log_r, tau), _log_symmetric(log_r[:, ::-1], tau)[::-1]
    without = [  # the polynomial of degree tau - 1 of all ratios but one
        np.logaddexp.reduce(before[:, :tau] + after[:, :tau][:, ::-1], axis=1)
        for before, after in zip(prefix[:-1], suffix[1:], strict=True)
    ]
    return np.exp(log_r + np.stack(without, axis=1) - prefix[-1, :, tau:]) / tau, prefix[-1, :, tau]


def _log_symmetric(log_r: Float[np.ndarray, "R T"], tau: int) -> Float[np.ndarray, "T+1 R tau+1"]:
    """Logs of the elementary symmetric polynomials e_0, ..., e_tau of the first t ratios, for t = 0, ..., T."""
    rows, topics = log_r.shape
    logs = np.full((topics + 1, rows, tau + 1), -np.inf)
    logs[:, :, 0] = 0
    for t in range(topics):
        logs[t + 1, :, 1:] = np.logaddexp(logs[t, :, 1:], logs[t, :, :-1] + log_r[:, t, None])
    return logs
