"""Priors with exact posteriors for disjoint topics: Dirichlet, and equal shares of tau topics (any, or of one group).

The Dirichlet's evidence is a polynomial in theta, and E[prod theta_t^m_t] has 1 / Gamma(T alpha + M) as its only factor
that couples topics. Hankel's integral 1/Gamma(z) = (1 / 2 pi i) int exp(s) s^-z ds decouples them; the trapezoidal
rule on a parabola through the saddle point converges to machine precision with a few dozen nodes. Equal shares are sums
over sets: elementary symmetric polynomials of the topics' likelihood ratios, in logarithms.
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Complex, Float, Int
from pydantic import BeforeValidator, Field

from topicscope.ground import WIDEST, Count, PositiveRate, Probability, number_only, refuse, refuse_if
from topicscope.world.priors import (
    DRAWS,
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
    Proposal,
    Shares,
    Support,
    from_proposals,
    in_slices,
    prior,
)
from topicscope.world.topics import TopicModel, left_out, plain

LEAST_SHARE = 0.02  # of every part of a proposal, so that none is left out

Concentration = Annotated[float, Field(ge=1e-6, le=1e6), number_only]  # below that a draw underflows
Weights = Annotated[list[Concentration], Field(max_length=WIDEST)]
NODES, SHORT_NODES = 24, 48  # of the contour for documents of 20 words and more, and for shorter ones: 12 digits
Nodes = Complex[np.ndarray, "n Q"]


@prior
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

    FORM: ClassVar = (Asked("alpha", PositiveRate, 0.1, "alpha", low=0.001, high=10, log=True),)

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: Annotated[Concentration | Weights, BeforeValidator(plain)] = 0.1
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        given = len(self.alpha) if isinstance(self.alpha, list) else topics
        refuse_if(given != topics, f"documents.alpha has {given} numbers; expected one number per topic ({topics})")

    def weights(self, topics: int) -> Float[np.ndarray, " T"]:
        self.check(topics)
        return np.full(topics, self.alpha)

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        return rng.dirichlet(self.weights(topics), size=count)

    def moments(self, topics: int) -> Moments:
        """E[theta_s theta_t] = (a_s a_t + [s = t] a_s) / (a (a + 1)), where a is the sum of the weights."""
        alpha = self.weights(topics)
        total = alpha.sum()
        return Moments(alpha / total, (np.outer(alpha, alpha) + np.diag(alpha)) / (total * (total + 1)))

    def posterior(self, topic_model: TopicModel, evidence: Evidence, a: float, e: float) -> Posterior:
        weights = self.weights(topic_model.topics)
        if not topic_model.disjoint:
            return from_dirichlet(topic_model, evidence, a, e, weights)
        alpha = weights if isinstance(self.alpha, list) else weights[:1]  # one number for all topics
        return in_slices(topic_model, evidence, e, lambda counts, q, e: dirichlet_mean(counts, q, alpha, a, e))


def dirichlet_mean(counts: Counts, q: Shares, alpha: Float[np.ndarray, " k"], a: float, e: float) -> Means:
    """Under theta ~ Dirichlet(alpha), one number for all topics or one for each: a sum over nodes of the contour."""
    total = counts.shape[1] // len(alpha) * float(alpha.sum())
    per_topic = counts.sum(2).astype(int)
    if e == 0:
        return (per_topic + alpha) / (per_topic.sum(1, keepdims=True) + total)
    saddle = max(1.0, total + float(np.median(per_topic.sum(1))))
    u = np.linspace(0, math.sqrt(40 / saddle), NODES if saddle > 20 else SHORT_NODES)
    turn = (1 + 1j * u) ** 2  # s / saddle on the contour
    # weights of the nodes up to a common factor: exp(s) s^(-total) ds; the nodes below the axis are their conjugates
    weight = np.exp(saddle * (turn - 1)) * turn**-total * (1 + 1j * u)
    weight[0] /= 2
    powers = turn ** -np.arange(per_topic.max() + 2.0)[:, None]
    factors, ratios = zip(*_topic_factors(counts, per_topic, e / (a * q), alpha.tolist(), saddle, powers), strict=True)
    node = functools.reduce(np.multiply, factors, weight)
    return np.stack([(node * ratio).sum(1).real for ratio in ratios], axis=1) / node.sum(1).real[:, None]


def _topic_factors(
    counts: Counts,
    per_topic: Int[np.ndarray, "R T"],
    shift: Shares,
    weights: list[float],
    saddle: float,
    powers: Complex[np.ndarray, "M Q"],
) -> list[tuple[Nodes, Nodes]]:
    """For each topic, its factor of the evidence at the nodes, and by which ratio one more theta_t changes it."""
    if counts.shape[2] == 1:  # one kind of word per topic: a table by count serves all rows, and topics of equal alpha
        distinct, which = np.unique(per_topic, return_inverse=True)
        coefficients = _log_binomials(distinct, math.log(shift[0, 0]))
        tables = [_at_nodes(coefficients, distinct, weight, saddle, powers) for weight in weights]
        by_topic = zip(itertools.cycle(tables), which.reshape(per_topic.shape).T, strict=False)
        return [(factor[rows], ratio[rows]) for (factor, ratio), rows in by_topic]
    return [
        _at_nodes(_log_products(counts[:, t], here), per_topic[:, t], weights[t % len(weights)], saddle, powers)
        for t, here in enumerate(shift)
    ]


def _at_nodes(
    log_coefficients: Float[np.ndarray, "n m"],
    count: Int[np.ndarray, " n"],
    alpha: float,
    saddle: float,
    powers: Complex[np.ndarray, "M Q"],
) -> tuple[Nodes, Nodes]:
    """sum_m a_m (alpha)_m s^-m at the nodes, and by which ratio one more theta_t changes it.

    Rows are scaled by their term m = n.
    """
    m = np.arange(log_coefficients.shape[1] + 1)
    log_rising = np.array([math.lgamma(alpha + i) for i in m]) - m * math.log(saddle)
    scale = log_rising[count][:, None]
    plain = np.exp(log_coefficients + log_rising[:-1] - scale) @ powers[m[:-1]]
    tilted = np.exp(log_coefficients + log_rising[1:] - scale) @ powers[m[1:]]
    return plain, tilted / plain


def _log_binomials(count: Int[np.ndarray, " n"], log_shift: float) -> Float[np.ndarray, "n m"]:
    log_factorial = np.array([math.lgamma(m + 1) for m in range(count.max() + 1)])
    rest = count[:, None] - np.arange(count.max() + 1)
    left = np.maximum(rest, 0)
    logs = log_factorial[count][:, None] - log_factorial - log_factorial[left] + left * log_shift
    return np.where(rest >= 0, logs, -np.inf)


@np.errstate(divide="ignore")
def _log_products(counts: Float[np.ndarray, "R w"], shift: Float[np.ndarray, " w"]) -> Float[np.ndarray, "R m"]:
    """Log coefficients of prod_w (y + shift_w)^count_w, multiplied out one factor at a time."""
    coefficients = np.zeros((len(counts), int(counts.sum(1).max()) + 1))
    coefficients[:, 0] = 1
    for w, rho in enumerate(shift):
        for power in range(int(counts[:, w].max())):
            rows = counts[:, w] > power
            grown = rho * coefficients[rows]
            grown[:, 1:] += coefficients[rows, :-1]
            coefficients[rows] = grown
    return np.log(coefficients)


def from_dirichlet(
    topic_model: TopicModel, evidence: Evidence, a: float, e: float, alpha: Float[np.ndarray, " T"]
) -> Posterior:
    """theta = G / sum(G), G gamma variables. Proposals: how many of the words seen each topic may have made."""

    def proposal_of(words: Float[np.ndarray, "w T"], counts: Float[np.ndarray, " w"]) -> Proposal:
        return functools.partial(gamma_draws, counts, word_shares(words, counts, a, e, alpha), alpha)

    return from_proposals(topic_model, evidence, a, e, proposal_of)


def word_shares(
    words: Float[np.ndarray, "w T"], counts: Float[np.ndarray, " w"], a: float, e: float, alpha: Float[np.ndarray, " T"]
) -> Float[np.ndarray, "w T"]:
    """Probability that each topic made a word seen, nearly (collapsed variational Bayes); the rest is chance."""
    chance = e / a * (alpha.sum() + counts.sum() - 1)
    shares = words / words.sum(1, keepdims=True)
    for _ in range(15):
        likely = words * np.maximum(alpha + counts @ shares - shares, 1e-12)
        shares = likely / np.maximum(likely.sum(1, keepdims=True) + chance, 1e-300)
    return shares


def gamma_draws(
    counts: Float[np.ndarray, " w"],
    shares: Float[np.ndarray, "w T"],
    alpha: Float[np.ndarray, " T"],
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "n T"], Float[np.ndarray, " n"]]:
    """Draws, and the log of prior over proposal, up to a constant.

    The sum of all G does not matter for theta; its law is chosen such that the posterior would be independent gamma
    variables if it were known which topic made which word. A topic that made n words has shape alpha + n; each topic's
    proposal is a mixture for no word, one word, the mean number of more, and half of it with twice the spread.
    """
    from scipy.special import gammaln

    none = np.exp(counts @ np.log1p(-np.minimum(shares, 1 - 1e-12)))
    one = none * (counts @ (shares / np.maximum(1 - shares, 1e-12)))
    total, more = counts @ shares, np.maximum(1 - none - one, 0)
    rest = np.where(more > 1e-6, np.maximum(total - one, 0) / np.maximum(more, 1e-6), 2.0)
    mixture = np.stack([none, one, 0.8 * more, 0.2 * more]) + LEAST_SHARE
    mixture /= mixture.sum(0)
    shape = np.stack([alpha, alpha + 1, alpha + rest, (alpha + rest) / 2])
    scale = np.array([1.0, 1.0, 1.0, 2.0])[:, None]
    kind = (rng.random((DRAWS, 1, len(alpha))) > np.cumsum(mixture, axis=0)[:-1]).sum(1)
    topic = np.arange(len(alpha))
    g = np.maximum(rng.standard_gamma(shape[kind, topic]) * scale[kind, 0], 1e-300)
    size, log_g = g.sum(1), np.log(g)
    constant = np.log(mixture) - gammaln(shape) - shape * np.log(scale)
    parts = constant[None] + (shape - 1) * log_g[:, None] - g[:, None] / scale
    most = parts.max(1)
    log_proposal = (most + np.log(np.exp(parts - most[:, None]).sum(1))).sum(1)
    log_target = total.sum() * np.log(size) + ((alpha - 1) * log_g - g).sum(1)
    return g / size[:, None], log_target - log_proposal


TAU = Asked("topics_per_document", Count, 3, "tau, topics per document", low=1, high=50, whole=True)


class EqualShares(DocumentPrior):
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
