"""Posterior means of topic proportions for any topic model and any prior, by enumeration or by importance sampling.

Words w are seen with probability a (A theta)_w + e. A finite law is summed over all its rows, exactly. Else proportions
are drawn from a proposal near the posterior and weighted by prior times likelihood over proposal. A tenth of the
proposal is the prior itself, so that no weight is more than ten times the likelihood: the estimate is consistent
whatever the rest of the proposal is. Draws come in two independent halves, from which whoever uses the mean can tell
its error; `effective` says how many draws each row's weights are worth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Stream, generator
from topicscope.world.posteriors import Posterior
from topicscope.world.topics import TopicModel

DRAWS = 500  # of each half, for each row
PRIOR_DRAWS = 10_000  # of each half, where all rows share the draws of the prior
PRIOR_SHARE = 0.1  # of a proposal that is the prior itself
WIDER = 0.2  # of a Dirichlet proposal that has half of its counts
AT_A_TIME = 200  # rows

Evidence = Float[np.ndarray, "R words"]
Sampler = Callable[[int, int, np.random.Generator], Float[np.ndarray, "D T"]]
Proposal = Callable[[np.random.Generator], tuple[Float[np.ndarray, "n T"], Float[np.ndarray, " n"]]]
"""Draws, and the log of prior over proposal at each of them."""


def from_support(
    topic_model: TopicModel,
    evidence: Evidence,
    a: float,
    e: float,
    rows: Float[np.ndarray, "K T"],
    probability: Float[np.ndarray, " K"],
) -> Posterior:
    """Exact, for a law of finitely many proportions."""
    with np.errstate(divide="ignore"):
        seen = np.maximum(np.log(a * topic_model.word_distribution(rows) + e), -1e300)
        prior = np.log(probability)
    mean = np.empty((len(evidence), rows.shape[1]))
    for start in range(0, len(evidence), AT_A_TIME):
        part = slice(start, start + AT_A_TIME)
        weight, _ = _weights(evidence[part] @ seen.T + prior)
        mean[part] = weight @ rows
    return Posterior(mean)


def from_draws(topic_model: TopicModel, evidence: Evidence, a: float, e: float, sampler: Sampler) -> Posterior:
    """From draws of the prior, the same for all rows: for priors of which nothing else is known."""
    halves, effective = [], np.zeros(len(evidence))
    for half in range(2):
        theta = sampler(topic_model.topics, PRIOR_DRAWS, generator(0, Stream.POSTERIOR_DRAWS, half))
        with np.errstate(divide="ignore"):
            seen = np.maximum(np.log(a * topic_model.word_distribution(theta) + e), -1e300)
        mean = np.empty((len(evidence), topic_model.topics))
        for start in range(0, len(evidence), AT_A_TIME):
            part = slice(start, start + AT_A_TIME)
            weight, worth = _weights(evidence[part] @ seen.T)
            mean[part] = weight @ theta
            effective[part] += worth
        halves.append(mean)
    return Posterior((halves[0] + halves[1]) / 2, (halves[0], halves[1]), effective)


def from_proposals(
    topic_model: TopicModel, evidence: Evidence, a: float, e: float, proposal_of: Callable[[int], Proposal]
) -> Posterior:
    """From a proposal for each row."""
    halves, effective = np.empty((2, len(evidence), topic_model.topics)), np.zeros(len(evidence))
    generators = [generator(0, Stream.POSTERIOR_DRAWS, half) for half in range(2)]
    for row, counts in enumerate(evidence):
        there = np.flatnonzero(counts)
        words, proposal = topic_model.word_topics[there], proposal_of(row)
        for half, rng in enumerate(generators):
            theta, log_ratio = proposal(rng)
            with np.errstate(divide="ignore"):
                seen = np.maximum(np.log(a * theta @ words.T + e), -1e300)
            weight, worth = _weights((seen @ counts[there] + log_ratio)[None])
            halves[half, row] = weight[0] @ theta
            effective[row] += worth[0]
    return Posterior((halves[0] + halves[1]) / 2, (halves[0], halves[1]), effective)


def _weights(log_weight: Float[np.ndarray, "R n"]) -> tuple[Float[np.ndarray, "R n"], Float[np.ndarray, " R"]]:
    """Weights that sum to 1, and how many equal ones they are worth."""
    weight = np.exp(log_weight - log_weight.max(1, keepdims=True))
    weight /= weight.sum(1, keepdims=True)
    return weight, 1 / (weight**2).sum(1)


def from_dirichlet(
    topic_model: TopicModel, evidence: Evidence, a: float, e: float, alpha: Float[np.ndarray, " T"]
) -> Posterior:
    """Proposals: the variational posterior of each row (a Dirichlet), the same with half its counts, and the prior."""
    gamma = variational(topic_model.word_topics, evidence, a, e, alpha)

    def proposal_of(row: int) -> Proposal:
        weights = np.stack([gamma[row], (alpha + gamma[row]) / 2, alpha])
        return lambda rng: dirichlet_draws(weights, np.array([1 - WIDER - PRIOR_SHARE, WIDER, PRIOR_SHARE]), rng)

    return from_proposals(topic_model, evidence, a, e, proposal_of)


def variational(
    words: Float[np.ndarray, "words T"], evidence: Evidence, a: float, e: float, alpha: Float[np.ndarray, " T"]
) -> Float[np.ndarray, "R T"]:
    """Weights of the Dirichlet that is nearest to the posterior in mean field: word counts shared out to topics."""
    from scipy.special import digamma  # here, since not every command needs it

    gamma = alpha + evidence.sum(1, keepdims=True) / len(alpha)
    for _ in range(50):
        expected = np.exp(digamma(gamma) - digamma(gamma.sum(1, keepdims=True)))
        share = evidence / np.maximum(a * expected @ words.T + e, 1e-300)
        gamma = alpha + a * expected * (share @ words)
    return gamma


def dirichlet_draws(
    weights: Float[np.ndarray, "K T"], shares: Float[np.ndarray, " K"], rng: np.random.Generator
) -> tuple[Float[np.ndarray, "n T"], Float[np.ndarray, " n"]]:
    """Draws of a mixture of Dirichlets, of which the last is the prior; and the log of prior over mixture."""
    from scipy.special import gammaln

    number: Int[np.ndarray, " K"] = np.round(shares * DRAWS).astype(int)
    theta = np.concatenate([rng.dirichlet(one, size=n) for one, n in zip(weights, number, strict=True)])
    constant = gammaln(weights.sum(1)) - gammaln(weights).sum(1)
    extra = weights - weights[-1]
    log_ratio = np.log(np.maximum(theta, 1e-300)) @ extra.T + constant - constant[-1] + np.log(shares)
    return theta, -np.logaddexp.reduce(log_ratio, axis=1)


def from_normal(
    topic_model: TopicModel,
    evidence: Evidence,
    a: float,
    e: float,
    centre: Float[np.ndarray, " T"],
    root: Float[np.ndarray, "T k"],
) -> Posterior:
    """theta = softmax(centre + root z), z normal. Proposals: Student's t around the mode of each row, and the prior."""

    def proposal_of(row: int) -> Proposal:
        there = np.flatnonzero(evidence[row])
        mode, spread = normal_mode(topic_model.word_topics[there], evidence[row, there], a, e, centre, root)
        return lambda rng: normal_draws(mode, spread, centre, root, rng)

    return from_proposals(topic_model, evidence, a, e, proposal_of)


def normal_mode(
    words: Float[np.ndarray, "w T"],
    counts: Float[np.ndarray, " w"],
    a: float,
    e: float,
    centre: Float[np.ndarray, " T"],
    root: Float[np.ndarray, "T k"],
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
    """Mode of z by Fisher scoring with halved steps, and a root of the inverse information there."""
    k = root.shape[1]

    def value(z: Float[np.ndarray, " k"]) -> float:
        return float(counts @ np.log(np.maximum(a * words @ softmax(centre + root @ z) + e, 1e-300)) - z @ z / 2)

    z, information = np.zeros(k), np.eye(k)
    best = value(z)
    for _ in range(30):
        theta = softmax(centre + root @ z)
        p = np.maximum(a * words @ theta + e, 1e-300)
        slope = a * (words * theta - np.outer(words @ theta, theta)) @ root / p[:, None]  # of log p in z
        information = np.eye(k) + (slope * counts[:, None]).T @ slope
        step = np.linalg.solve(information, counts @ slope - z)
        size = 1.0
        while size > 1e-3 and value(z + size * step) < best:
            size /= 2
        if size <= 1e-3 or size * np.abs(step).max() < 1e-6:
            break
        z = z + size * step
        best = value(z)
    return z, np.linalg.inv(np.linalg.cholesky(information)).T


def normal_draws(
    mode: Float[np.ndarray, " k"],
    spread: Float[np.ndarray, "k k"],
    centre: Float[np.ndarray, " T"],
    root: Float[np.ndarray, "T k"],
    rng: np.random.Generator,
    freedom: float = 6.0,
) -> tuple[Float[np.ndarray, "n T"], Float[np.ndarray, " n"]]:
    """Draws of a mixture of a Student's t and the prior; and the log of prior over mixture."""
    from scipy.special import gammaln

    k, own = len(mode), round((1 - PRIOR_SHARE) * DRAWS)
    scale = np.sqrt(freedom / rng.chisquare(freedom, size=(own, 1)))
    near = mode + scale * rng.standard_normal((own, k)) @ spread.T
    z = np.concatenate([near, rng.standard_normal((DRAWS - own, k))])
    distance = (np.linalg.solve(spread, (z - mode).T) ** 2).sum(0)
    student = gammaln((freedom + k) / 2) - gammaln(freedom / 2) - k / 2 * np.log(freedom * np.pi)
    log_student = student - np.linalg.slogdet(spread)[1] - (freedom + k) / 2 * np.log1p(distance / freedom)
    log_prior = -(z**2).sum(1) / 2 - k / 2 * np.log(2 * np.pi)
    mixture = np.logaddexp(np.log(own / DRAWS) + log_student, np.log(1 - own / DRAWS) + log_prior)
    return softmax(centre + z @ root.T), log_prior - mixture


def softmax(scores: Float[np.ndarray, "*n T"]) -> Float[np.ndarray, "*n T"]:
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    shares: Float[np.ndarray, "*n T"] = grown / grown.sum(-1, keepdims=True)
    return shares
