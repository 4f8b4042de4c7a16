"""One topic's share of a document, and what the other topics have then: all that the second stage needs of a prior.

The topics must be exchangeable: alike, in every order. Attention that treats them alike looks at one topic and at all
the others, so the joint law of theta_1 and |theta|^2 decides the force on it (R2) and how it grows (R3).

>>> topic_shares(Fixed(topics_per_document=3), 10).contrast  # (T - tau) / (tau T (T - 1))
0.025925925925925925
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError
from topicscope.world import Dirichlet, DocumentPrior, Fixed

NODES = 32  # of the quadrature over a Dirichlet share: exact for polynomials up to degree 63
SAME = 1e-12  # difference of proportions and probabilities that are equal


@dataclass(frozen=True, eq=False)
class TopicShares:
    """The law of one topic's share of a document, and what the other topics have then.

    Attributes:
        topics: T.
        share: Values of theta_1 (n).
        others: E[sum of theta_s^2 over the other topics], given each value (n).
        probability: Probability of each value (n).

    Example:
        See `topic_shares`.
    """

    topics: int
    share: Float[np.ndarray, " n"]
    others: Float[np.ndarray, " n"]
    probability: Float[np.ndarray, " n"]

    def mean(self, values: Float[np.ndarray, "... n"]) -> Any:
        """Expectation over the law of one topic: a number, or one for each row."""
        found = values @ self.probability
        return float(found) if found.ndim == 0 else found

    @property
    def contrast(self) -> float:
        """Eigenvalue of E[theta theta'] on topic contrasts: E[theta_1^2] - E[theta_1 theta_2]."""
        square = self.mean(self.share**2)
        pair = self.mean(self.share * (1 - self.share)) / max(self.topics - 1, 1)
        return max(square - pair, 0.0) if square - pair > SAME * square else 0.0


def fixed_shares(topics: int, tau: int) -> TopicShares:
    """tau distinct topics with equal shares."""
    inside = tau / topics
    return TopicShares(
        topics, np.array([1 / tau, 0.0]), np.array([(tau - 1) / tau**2, 1 / tau]), np.array([inside, 1 - inside])
    )


def dirichlet_shares(topics: int, alpha: float) -> TopicShares:
    """theta_1 is Beta(alpha, (T-1) alpha); the others, divided by 1 - theta_1, are Dirichlet again."""
    if topics == 1:
        return TopicShares(1, np.ones(1), np.zeros(1), np.ones(1))
    rest = (topics - 1) * alpha
    share, probability = beta_quadrature(alpha, rest)
    return TopicShares(topics, share, (1 - share) ** 2 * (alpha + 1) / (rest + 1), probability)


def beta_quadrature(a: float, b: float) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Gauss's nodes and weights for Beta(a, b): eigenvalues of the matrix of its orthogonal polynomials' recurrence.

    scipy.special.roots_jacobi has the same, but overflows for large a + b and loses digits for small a.
    """
    n, total = np.arange(1, NODES), a + b
    middle = ((a - 1) ** 2 - (b - 1) ** 2) / ((2 * n + total - 2) * (2 * n + total))
    side = np.sqrt(
        n
        * (n + a - 1)
        * (n + b - 1)
        / ((2 * n + total - 2) ** 2 * (2 * n + total - 1))
        * np.where(n == 1, 1.0, (n + total - 2) / np.where(n == 1, 1.0, 2 * n + total - 3))
    )  # of n = 1 the last quotient is 1, also where it is 0 / 0
    matrix = np.diag(np.concatenate([[a / total], (1 + middle) / 2]))
    nodes, vectors = np.linalg.eigh(matrix + np.diag(side, 1) + np.diag(side, -1))
    return np.clip(nodes, 0, 1), vectors[0] ** 2


def listed_shares(thetas: Float[np.ndarray, "K T"], probability: Float[np.ndarray, " K"]) -> TopicShares:
    """From all the proportions that there are."""
    squares = (thetas**2).sum(1)[:, None] - thetas**2
    each = np.repeat(probability / thetas.shape[1], thetas.shape[1])
    return TopicShares(thetas.shape[1], thetas.ravel(), squares.ravel(), each)


def topic_shares(prior: DocumentPrior, topics: int) -> TopicShares:
    """The law of one topic's share, which is all that the second stage needs of a prior.

    Args:
        prior: An exchangeable prior: the topics are alike, in every order.
        topics: T.

    Returns:
        The values of theta_1 with their probabilities.

    Raises:
        InputError: The prior is not exchangeable, or its law is known only by draws.

    Example:
        >>> shares = topic_shares(Fixed(topics_per_document=2), topics=4)
        >>> shares.share.tolist(), shares.probability.tolist()
        ([0.5, 0.0], [0.5, 0.5])
    """
    prior.check(topics)
    if isinstance(prior, Fixed) and (prior.weights is None or np.ptp(prior.weights) == 0):
        return fixed_shares(topics, prior.topics_per_document)
    if isinstance(prior, Dirichlet) and np.ptp(prior.alpha) == 0:
        return dirichlet_shares(topics, float(np.ravel(prior.alpha)[0]))
    finite = prior.support(topics)
    if finite is not None and exchangeable_rows(*finite):
        return listed_shares(*finite)
    raise InputError(
        f"documents.kind = {getattr(prior, 'kind', type(prior).__name__)!r}: the force on attention is known in closed "
        "form where all topics are alike: kind fixed or dirichlet, or a finite law that is the same in every order"
    )


def exchangeable_rows(thetas: Float[np.ndarray, "K T"], probability: Float[np.ndarray, " K"]) -> bool:
    """Whether a swap of two topics and a turn of all of them, which make every order, leave the law as it is."""

    def law(rows: Float[np.ndarray, "K T"]) -> Float[np.ndarray, "u c"]:
        different, place = np.unique(np.round(rows, 11), axis=0, return_inverse=True)
        return np.hstack([different, np.bincount(place.ravel(), probability)[:, None]])

    topics, here = thetas.shape[1], law(thetas)
    swapped = [1, 0, *range(2, topics)] if topics > 1 else [0]
    orders = (swapped, [*range(1, topics), 0])
    return all(
        here.shape == there.shape and bool(np.abs(here - there).max() <= SAME)
        for there in (law(thetas[:, order]) for order in orders)
    )
