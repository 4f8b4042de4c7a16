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
    """The likeliest mixture theta of topics for a document with these counts of words.

    It maximises sum_w n_w log(sum_k theta_k p_kw) + prior * sum_k log(theta_k). With a positive prior this is strictly
    concave, so there is one maximum, and EM, whose every step raises the sum, leads to it from everywhere. Stops where
    a step moves theta by less than `tolerance` in all. Words that no topic has do not count.
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
