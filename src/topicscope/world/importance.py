"""Posterior means of topic proportions for any topic model and any prior, by enumeration or by importance sampling.

Words w are seen with probability a (A theta)_w + e. A finite law is summed over all its rows, exactly. Else proportions
are drawn from a proposal near the posterior and weighted by prior times likelihood over proposal, which is positive
wherever the prior is: the estimate is consistent whatever the proposal is. Draws come in two independent halves, from
which whoever uses the mean can tell its error; `effective` says how many draws each row's weights are worth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from topicscope.ground import Stream, generator
from topicscope.world.posteriors import Posterior
from topicscope.world.topics import TopicModel

DRAWS = 500  # of each half, for each row
PRIOR_DRAWS = 10_000  # of each half, where all rows share the draws of the prior
PRIOR_SHARE = 0.1  # of a normal proposal that is the prior itself
LEAST_SHARE = 0.02  # of every part of a Dirichlet proposal, so that none is left out
AT_A_TIME, MOST_WEIGHTS = 200, 2 * 10**6  # rows, and rows times draws or proportions

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
    at_a_time = min(AT_A_TIME, max(1, MOST_WEIGHTS // len(rows)))
    for start in range(0, len(evidence), at_a_time):
        part = slice(start, start + at_a_time)
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
    """theta = G / sum(G), G gamma variables. Proposals: how many of the words seen each topic may have made."""

    def proposal_of(row: int) -> Proposal:
        there = np.flatnonzero(evidence[row])
        counts = evidence[row, there]
        shares = word_shares(topic_model.word_topics[there], counts, a, e, alpha)
        return lambda rng: gamma_draws(counts, shares, alpha, rng)

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


def from_normal(
    topic_model: TopicModel,
    evidence: Evidence,
    a: float,
    e: float,
    centre: Float[np.ndarray, " T"],
    root: Float[np.ndarray, "T k"],
) -> Posterior:
    """theta = softmax(centre + root z), z normal. Proposals: Student's t around the mode of each row, and the prior."""
    mode = np.zeros(root.shape[1])

    def proposal_of(row: int) -> Proposal:
        nonlocal mode  # rows of one document follow one another, and have nearly the same mode
        there = np.flatnonzero(evidence[row])
        mode, spread = normal_mode(topic_model.word_topics[there], evidence[row, there], a, e, centre, root, mode)
        return lambda rng: normal_draws(mode, spread, centre, root, rng)

    return from_proposals(topic_model, evidence, a, e, proposal_of)


def normal_mode(
    words: Float[np.ndarray, "w T"],
    counts: Float[np.ndarray, " w"],
    a: float,
    e: float,
    centre: Float[np.ndarray, " T"],
    root: Float[np.ndarray, "T k"],
    start: Float[np.ndarray, " k"],
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
    """Mode of z by Gauss-Newton steps, halved where they lead down, and a root of the inverse curvature there."""
    z, identity = start, np.eye(root.shape[1])

    def value(z: Float[np.ndarray, " k"]) -> float:
        return float(counts @ np.log(np.maximum(a * words @ softmax(centre + root @ z) + e, 1e-300)) - z @ z / 2)

    best = value(z)
    for _ in range(30):
        theta = softmax(centre + root @ z)
        p = np.maximum(a * words @ theta + e, 1e-300)
        own = a * words * theta / p[:, None]  # share of a word's probability that each topic has; the rest is chance
        whole = own.sum(1)
        slope = own - whole[:, None] * theta  # of log p in the scores of topics
        information = identity + root.T @ ((slope * counts[:, None]).T @ slope) @ root
        step = np.linalg.solve(information, counts @ slope @ root - z)
        size = 1.0
        while size > 1e-3 and value(z + size * step) < best:
            size /= 2
        if size <= 1e-3 or size * np.abs(step).max() < 1e-3:
            break
        z = z + size * step
        best = value(z)
    # the second derivative itself, where it is that of a peak
    made, seen = counts @ own, counts @ whole
    curvature = np.diag(made - seen * theta) - np.outer(made, theta) - (own * counts[:, None]).T @ slope
    curvature += seen * np.outer(theta, theta) - np.outer(theta, (counts * (1 - whole)) @ slope)
    exact = identity - root.T @ ((curvature + curvature.T) / 2) @ root
    precision = exact if np.linalg.eigvalsh(exact)[0] > 0.1 else information
    return z, np.linalg.inv(np.linalg.cholesky(precision)).T


def normal_draws(
    mode: Float[np.ndarray, " k"],
    spread: Float[np.ndarray, "k k"],
    centre: Float[np.ndarray, " T"],
    root: Float[np.ndarray, "T k"],
    rng: np.random.Generator,
    freedom: float = 10.0,
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
