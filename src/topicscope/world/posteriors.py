"""Posterior means of topic proportions, exact for disjoint topics.

A position other than the predicted one shows word w with probability a theta_t q_w + e: its own word shown on purpose
(a = k), or a random word (e = p_m p_r / Tv). Then:
- Dirichlet: the evidence is a polynomial in theta, and E[prod theta_t^m_t] has 1 / Gamma(T alpha + M) as its only
  factor that couples topics. Hankel's integral 1/Gamma(z) = (1 / 2 pi i) int exp(s) s^-z ds decouples them; the
  trapezoidal rule on a parabola through the saddle point converges to machine precision with a few dozen nodes.
- fixed tau: a sum over subsets, which is an elementary symmetric polynomial of the topics' likelihood ratios; groups
  are a mixture of such sums.
"""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float, Int

from topicscope.world.topics import TopicModel

NODES, SHORT_NODES = 24, 48  # of the contour for documents of 20 words and more, and for shorter ones: 12 digits
ROWS_AT_A_TIME = 500

Counts = Float[np.ndarray, "R T w"]
Shares = Float[np.ndarray, "T w"]
Means = Float[np.ndarray, "R T"]
Nodes = Complex[np.ndarray, "n Q"]


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
    topic_model: TopicModel,
    evidence: Float[np.ndarray, "R Tv"],
    e: float,
    mean: Callable[[Counts, Shares, float], Means],
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


def dirichlet_mean(counts: Counts, q: Shares, alpha: float | Float[np.ndarray, " T"], a: float, e: float) -> Means:
    """Under theta ~ Dirichlet(alpha), one number for all topics or one for each: a sum over nodes of the contour."""
    total = counts.shape[1] * alpha if isinstance(alpha, float) else float(alpha.sum())
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
    factors, ratios = zip(*_topic_factors(counts, per_topic, e / (a * q), alpha, saddle, powers), strict=True)
    node = functools.reduce(np.multiply, factors, weight)
    return np.stack([(node * ratio).sum(1).real for ratio in ratios], axis=1) / node.sum(1).real[:, None]


def _topic_factors(
    counts: Counts,
    per_topic: Int[np.ndarray, "R T"],
    shift: Shares,
    alpha: float | Float[np.ndarray, " T"],
    saddle: float,
    powers: Complex[np.ndarray, "M Q"],
) -> list[tuple[Nodes, Nodes]]:
    """For each topic, its factor of the evidence at the nodes, and by which ratio one more theta_t changes it."""
    weights = [alpha] if isinstance(alpha, float) else alpha.tolist()
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


@np.errstate(divide="ignore")
def _log_likelihood(counts: Counts, p: Shares) -> Means:
    """sum over the words of a topic of count * log p, where 0 log 0 = 0."""
    return np.einsum("rtw,tw->rt", counts, np.maximum(np.log(p), -1e300))


def subset_mean(counts: Counts, q: Shares, tau: int, a: float, e: float) -> Means:
    """Under equal shares of tau topics: P(t in S | counts) / tau = r_t e_(tau-1)(r without t) / e_tau(r) / tau.

    The elementary symmetric polynomials e_n of the likelihood ratios r are computed in logarithms.
    """
    if e == 0:  # a topic that was seen is there for certain
        seen = counts.sum(2) > 0
        left = seen.sum(1, keepdims=True)
        return np.where(seen, 1.0, (tau - left) / np.maximum(counts.shape[1] - left, 1)) / tau
    return symmetric_mean(_log_ratios(counts, q, tau, a, e), tau)[0]


def weighted_mean(counts: Counts, q: Shares, weights: Float[np.ndarray, " T"], tau: int, a: float, e: float) -> Means:
    """Under equal shares of tau topics, a set of which has a probability in proportion to its product of weights."""
    return symmetric_mean(_log_ratios(counts, q, tau, a, e) + np.log(weights), tau)[0]


def grouped_mean(counts: Counts, q: Shares, groups: int, rho: float, tau: int, a: float, e: float) -> Means:
    """Under equal shares of tau topics, with probability rho of one of the groups, else of all topics."""
    log_r, topics = _log_ratios(counts, q, tau, a, e), counts.shape[1]
    size = topics // groups
    parts = [(slice(0, topics), math.log1p(-rho))] if rho < 1 else []
    parts += (
        [(slice(start, start + size), math.log(rho / groups)) for start in range(0, topics, size)] if rho > 0 else []
    )
    means, log_weights = np.zeros((len(parts), len(counts), topics)), np.empty((len(parts), len(counts)))
    for mean, log_weight, (inside, log_prior) in zip(means, log_weights, parts, strict=True):
        mean[:, inside], evidence = symmetric_mean(log_r[:, inside], tau)
        log_weight[:] = log_prior + evidence - math.log(math.comb(inside.stop - inside.start, tau))
    weight = np.exp(log_weights - np.logaddexp.reduce(log_weights, axis=0))
    return np.einsum("pr,prt->rt", weight, means)


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
