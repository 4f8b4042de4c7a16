"""The topics of a document from its words, for topics that are given: no fit, no draw."""

import numpy as np
from jaxtyping import Float

PRIOR = 0.1  # words that every topic has beforehand
TOLERANCE, MOST_STEPS = 1e-7, 1000


def folded_in(
    probability: Float[np.ndarray, "K W"],
    counts: Float[np.ndarray, " W"],
    *,
    prior: float = PRIOR,
    tolerance: float = TOLERANCE,
) -> Float[np.ndarray, " K"]:
    """The likeliest mixture theta of given topics for a document, by EM.

    It maximises sum_w n_w log(sum_k theta_k p_kw) + prior * sum_k log(theta_k). With a positive prior there is one
    maximum, which EM reaches from everywhere.

    Args:
        probability: Probability of each word in each topic (K x W).
        counts: Words of the document (W); words that no topic has do not count.
        prior: Weight of the prior.
        tolerance: Stop where a step moves theta by less in all.

    Returns:
        theta (K).

    Example:
        >>> folded_in(np.eye(2), np.array([3.0, 1.0]), prior=1e-9).round(4).tolist()
        [0.75, 0.25]
    """
    topics = len(probability)
    used = np.flatnonzero((counts > 0) & (probability.sum(0) > 0))
    words, number = np.ascontiguousarray(probability[:, used]), counts[used].astype(float)  # K x U
    theta = np.full(topics, 1 / topics)
    for _ in range(MOST_STEPS):
        share = theta * (words @ (number / (theta @ words))) + prior
        share /= share.sum()
        moved, theta = np.abs(share - theta).sum(), share
        if moved < tolerance:
            break
    return theta
