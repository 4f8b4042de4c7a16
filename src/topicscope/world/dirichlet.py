"""The Dirichlet prior (Section 6.1).

Its posterior is exact for disjoint topics: the evidence is a polynomial in theta, and E[prod theta_t^m_t] has
1 / Gamma(T alpha + M) as its only factor that couples topics. Hankel's integral 1/Gamma(z) = (1 / 2 pi i) int exp(s)
s^-z ds decouples them; the trapezoidal rule on a parabola through the saddle point converges to machine precision with
a few dozen nodes. For other topics it is estimated from draws.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Complex, Float, Int
from pydantic import BeforeValidator, Field

from topicscope.ground import WIDEST, PositiveRate, number_only, refuse
from topicscope.world.priors import (
    DRAWS,
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
    from_proposals,
    in_slices,
    prior,
)
from topicscope.world.topics import TopicModel, plain

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
        refuse((given != topics, f"documents.alpha has {given} numbers; expected one number per topic ({topics})"))

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
        """Exact for disjoint topics, and from draws of a variational proposal for others."""
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
    """Log coefficients of (y + shift)^count."""
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
