"""The best that any predictor can do: the Bayes-optimal loss on given masked documents, under the prior that made them.

What is seen at a position other than the predicted one is word w with probability a theta_t q_w + e: its own word shown on purpose
(a = k), or a random word (e = p_m p_r / Tv). The posterior mean of the topic proportions follows exactly for every prior:
- Dirichlet: the evidence is a polynomial in theta, and E[prod theta_t^m_t] has 1 / Gamma(T alpha + M) as its only factor that couples
  topics. Hankel's integral 1/Gamma(z) = (1 / 2 pi i) int exp(s) s^-z ds decouples them; the trapezoidal rule on a parabola
  through the saddle point converges to machine precision with a few dozen nodes.
- fixed tau: a sum over subsets, which is an elementary symmetric polynomial of the topics' likelihood ratios.
- given proportions: a finite mixture of the rows.
The predictor is exact; its loss is that on these documents and masks, a sample mean whose standard error is returned beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Complex, Float, Int

from topicscope.world import MASK, DocumentPrior, Documents, Masked, Masking, TopicModel, infinite_rows, word_counts

NODES, SHORT_NODES = 24, 48
"""Nodes of the contour for documents of 20 words and more, and for shorter ones: 12 digits of the posterior (see the tests)."""

ROWS_AT_A_TIME = 500


@dataclass(frozen=True)
class BayesLoss:
    """Mean over documents, its standard error, and how many there were."""

    loss: float
    standard_error: float
    documents: int


def bayes_loss(
    loss: Literal["cross-entropy", "squared", "squared-mean"],
    topic_model: TopicModel,
    prior: DocumentPrior,
    masking: Masking,
    documents: Documents,
    masked: Masked | None,
    *,
    hide_masked: bool = False,
    own_word: bool = True,
) -> BayesLoss:
    """Loss of the Bayes-optimal predictor. `hide_masked`: it is told which positions are masked, as a model with that option is.

    Without `own_word` it predicts from the posterior of the document's topics alone, given all words shown: it does not ask which of
    them its own position shows. Attention that is the same for every query comes near to that.
    """
    if documents.words is None or masked is None:
        return _infinite_loss(loss, topic_model, masking, documents, own_word)
    counts = word_counts(masked.shown_words(documents.words), topic_model.vocabulary)
    a, e = masking.k, masking.p_mask * masking.p_random / topic_model.words
    if hide_masked:
        np.subtract.at(counts, (masked.document, masked.shown), 1)
        a, e = 1.0, 0.0
    looked_at = masked.shown if own_word else np.full_like(masked.shown, MASK)
    pair, row = np.unique(masked.document * topic_model.vocabulary + looked_at, return_inverse=True)
    document, shown = np.divmod(pair, topic_model.vocabulary)
    evidence = counts[document, 1:]
    if own_word and not hide_masked:  # the predicted position itself is judged apart, since it is known to be masked
        words = np.flatnonzero(shown != MASK)
        evidence[words, shown[words] - 1] -= 1
    mean = posterior_mean(topic_model, prior, evidence, a, e)
    cost = _position_costs(loss, topic_model, masking, mean, shown, row, masked.true)
    per_document = np.bincount(masked.document, weights=cost, minlength=len(documents)) / np.bincount(
        masked.document, minlength=len(documents)
    )
    return BayesLoss(float(per_document.mean()), float(per_document.std() / math.sqrt(len(documents))), len(documents))


def _position_costs(
    loss: str,
    topic_model: TopicModel,
    masking: Masking,
    mean: Float[np.ndarray, "R T"],
    shown: Int[np.ndarray, " R"],
    row: Int[np.ndarray, " P"],
    true: Int[np.ndarray, " P"],
) -> Float[np.ndarray, " P"]:
    """Cost of each masked position: the prediction is spread * (mean_t q_w) plus a bonus at the word shown, if one is shown."""
    q = topic_model.word_given_topic
    v = topic_model.words_per_topic
    word = np.maximum(shown - 1, 0)
    own = np.where(
        shown == MASK, 0, masking.p_correct * mean[np.arange(len(mean)), word // v] * q[word // v, word % v]
    )  # P(its own word, shown)
    other = np.where(shown == MASK, 1, masking.p_random / topic_model.words)  # P(shown | a replacement)
    spread, bonus = other / (other + own), own / (other + own)
    topic, inside = np.divmod(true - 1, v)
    p = spread[row] * mean[row, topic] * q[topic, inside] + np.where(shown[row] == true, bonus[row], 0)
    if loss == "cross-entropy":
        return -np.log(p)
    square = spread**2 * (mean**2 @ (q**2).sum(1))
    square += bonus * (bonus + 2 * spread * mean[np.arange(len(mean)), word // v] * q[word // v, word % v])
    cost = square[row] - 2 * p + 1
    return cost / topic_model.vocabulary if loss == "squared-mean" else cost


def _infinite_loss(
    loss: str, topic_model: TopicModel, masking: Masking, documents: Documents, own_word: bool
) -> BayesLoss:
    """An infinite document shows its proportions exactly; what is left is the randomness of the word given the word shown."""
    assert documents.proportions is not None
    total = 0.0
    for start in range(0, len(documents), 50):
        proportions = documents.proportions[start : start + 50]
        rows = infinite_rows(topic_model, masking, proportions, uniform=not own_word, hide_masked=False)
        share = rows.target_weight / rows.weight[rows.target // topic_model.vocabulary]
        # expected -log p or 1 - |p|^2 of the true distribution p of each row
        cost = -(rows.target_weight @ np.log(share)) if loss == "cross-entropy" else 1 - rows.target_weight @ share
        total += cost * len(proportions)
    mean = float(total) / len(documents)
    return BayesLoss(mean / topic_model.vocabulary if loss == "squared-mean" else mean, 0.0, len(documents))


def posterior_mean(
    topic_model: TopicModel, prior: DocumentPrior, evidence: Float[np.ndarray, "R Tv"], a: float, e: float
) -> Float[np.ndarray, "R T"]:
    """E[theta | counts of the words seen], each seen with probability a theta_t q_w + e."""
    by_topic = evidence.reshape(len(evidence), topic_model.topics, topic_model.words_per_topic)
    q = topic_model.word_given_topic
    if topic_model.uniform:  # only the counts of topics matter: the words of a topic become one
        by_topic, q, e = (
            by_topic.sum(2, keepdims=True),
            np.ones((topic_model.topics, 1)),
            e * topic_model.words_per_topic,
        )
    result = np.empty((len(by_topic), topic_model.topics))
    order = np.argsort(by_topic.sum((1, 2)))  # alike lengths together, so that one contour serves a slice
    for start in range(0, len(order), ROWS_AT_A_TIME):
        rows = order[start : start + ROWS_AT_A_TIME]
        if prior.kind == "dirichlet":
            result[rows] = _dirichlet_mean(by_topic[rows], q, prior.alpha, a, e)
        elif prior.kind == "given":
            result[rows] = _mixture_mean(by_topic[rows], q, prior.given(topic_model.topics), a, e)
        else:
            result[rows] = _subset_mean(by_topic[rows], q, prior.topics_per_document, a, e)
    return result


def _dirichlet_mean(
    counts: Float[np.ndarray, "R T w"], q: Float[np.ndarray, "T w"], alpha: float, a: float, e: float
) -> Float[np.ndarray, "R T"]:
    rows, topics, _ = counts.shape
    per_topic = counts.sum(2).astype(int)
    if e == 0:
        return (per_topic + alpha) / (per_topic.sum(1, keepdims=True) + topics * alpha)
    saddle = max(1.0, topics * alpha + float(np.median(per_topic.sum(1))))
    u = np.linspace(0, math.sqrt(40 / saddle), NODES if saddle > 20 else SHORT_NODES)
    turn = (1 + 1j * u) ** 2  # s / saddle on the contour
    # weights of the nodes up to a common factor: exp(s) s^(-T alpha) ds; the nodes below the axis are their conjugates
    weight = np.exp(saddle * (turn - 1)) * turn ** (-topics * alpha) * (1 + 1j * u)
    weight[0] /= 2
    powers = turn ** -np.arange(per_topic.max() + 2.0)[:, None]
    node = np.tile(weight, (rows, 1))
    ratios = []
    table, table_of = None, None
    if counts.shape[2] == 1:  # one kind of word a topic: a table by count serves all rows and topics
        distinct, table_of = np.unique(per_topic, return_inverse=True)
        table = _at_nodes(_log_binomials(distinct, math.log(e / (a * q[0, 0]))), distinct, alpha, saddle, powers)
    for t in range(topics):
        if table is not None and table_of is not None:
            which = table_of.reshape(rows, topics)[:, t]
            factor, ratio = table[0][which], table[1][which]
        else:
            factor, ratio = _at_nodes(
                _log_products(counts[:, t], e / (a * q[t])), per_topic[:, t], alpha, saddle, powers
            )
        node *= factor
        ratios.append(ratio)
    evidence = node.sum(1).real
    return np.stack([(node * ratio).sum(1).real for ratio in ratios], axis=1) / evidence[:, None]


def _at_nodes(
    log_coefficients: Float[np.ndarray, "n m"],
    count: Int[np.ndarray, " n"],
    alpha: float,
    saddle: float,
    powers: Complex[np.ndarray, "M Q"],
) -> tuple[Complex[np.ndarray, "n Q"], Complex[np.ndarray, "n Q"]]:
    """sum_m a_m (alpha)_m s^-m at the nodes, and by which ratio one more theta_t changes it. Rows are scaled by their term m = n."""
    m = np.arange(log_coefficients.shape[1] + 1)
    log_rising = np.array([math.lgamma(alpha + i) for i in m]) - m * math.log(saddle)
    scale = log_rising[count][:, None]
    plain = np.exp(log_coefficients + log_rising[:-1] - scale) @ powers[m[:-1]]
    tilted = np.exp(log_coefficients + log_rising[1:] - scale) @ powers[m[1:]]
    return plain, tilted / plain


def _log_binomials(count: Int[np.ndarray, " n"], log_shift: float) -> Float[np.ndarray, "n m"]:
    """Log coefficients of (y + shift)^count."""
    log_factorial = np.array([math.lgamma(i + 1) for i in range(count.max() + 1)])
    m = np.arange(count.max() + 1)
    left = count[:, None] - m
    inside = left >= 0
    left = np.maximum(left, 0)
    return np.where(
        inside, log_factorial[count][:, None] - log_factorial[m] - log_factorial[left] + left * log_shift, -np.inf
    )


def _log_products(counts: Float[np.ndarray, "R w"], shift: Float[np.ndarray, " w"]) -> Float[np.ndarray, "R m"]:
    """Log coefficients of prod_w (y + shift_w)^count_w, multiplied out one factor at a time."""
    coefficients = np.zeros((len(counts), int(counts.sum(1).max()) + 1))
    coefficients[:, 0] = 1
    for w, rho in enumerate(shift):
        for power in range(int(counts[:, w].max(initial=0))):
            rows = counts[:, w] > power
            grown = rho * coefficients[rows]
            grown[:, 1:] += coefficients[rows, :-1]
            coefficients[rows] = grown
    with np.errstate(divide="ignore"):
        return np.log(coefficients)


def _log_likelihood(counts: Float[np.ndarray, "R T w"], p: Float[np.ndarray, "*K T w"]) -> Float[np.ndarray, "R *K T"]:
    """sum over the words of a topic of count * log p, where 0 log 0 = 0."""
    with np.errstate(divide="ignore"):
        log_p = np.maximum(np.log(p), -1e300)
    return np.einsum("rtw,...tw->r...t", counts, log_p)


def _mixture_mean(
    counts: Float[np.ndarray, "R T w"], q: Float[np.ndarray, "T w"], given: Float[np.ndarray, "K T"], a: float, e: float
) -> Float[np.ndarray, "R T"]:
    log_posterior = _log_likelihood(counts, a * given[:, :, None] * q + e).sum(-1)
    weight = np.exp(log_posterior - log_posterior.max(1, keepdims=True))
    return (weight / weight.sum(1, keepdims=True)) @ given


def _subset_mean(
    counts: Float[np.ndarray, "R T w"], q: Float[np.ndarray, "T w"], tau: int, a: float, e: float
) -> Float[np.ndarray, "R T"]:
    """P(t in S | counts) / tau = r_t e_(tau-1)(r without t) / e_tau(r) / tau, with elementary symmetric polynomials in logarithms."""
    rows, topics, _ = counts.shape
    if e == 0:  # a topic that was seen is there for certain
        seen = counts.sum(2) > 0
        left = seen.sum(1, keepdims=True)
        return np.where(seen, 1.0, (tau - left) / np.maximum(topics - left, 1)) / tau
    log_r = _log_likelihood(counts, a / tau * q + e) - _log_likelihood(counts, np.full_like(q, e))
    prefix = np.full((topics + 1, rows, tau + 1), -np.inf)
    suffix = prefix.copy()
    prefix[0, :, 0] = suffix[topics, :, 0] = 0
    for t in range(topics):
        prefix[t + 1] = prefix[t]
        prefix[t + 1, :, 1:] = np.logaddexp(prefix[t, :, 1:], prefix[t, :, :-1] + log_r[:, t, None])
        back = topics - 1 - t
        suffix[back] = suffix[back + 1]
        suffix[back, :, 1:] = np.logaddexp(suffix[back + 1, :, 1:], suffix[back + 1, :, :-1] + log_r[:, back, None])
    total = prefix[topics, :, tau]
    mean = np.empty((rows, topics))
    for t in range(topics):
        without = np.logaddexp.reduce(prefix[t, :, :tau] + suffix[t + 1, :, :tau][:, ::-1], axis=1)
        mean[:, t] = np.exp(log_r[:, t] + without - total) / tau
    return mean
