"""Documents that stand for a law of theta in a gradient flow: all of them where they are few, else some with weights.

Of a law with many documents a few are drawn, and each is taken with its topics in T orders, one turned against the
next, so that all topics are equally frequent. Twenty such documents have topic contrasts up to 14% off (Dirichlet of
.1, T = 10), and with them every rate. So they get weights: those nearest to equal ones with which the second moments
of theta and the force on attention (R2) are those of the law. With more topics twenty documents cannot have all of
them: contrasts are then as near as they get (7% off at T = 20, 15% at T = 30; 22% and more with equal weights).

>>> from topicscope.world import Dirichlet
>>> thetas, probability = flow_documents(Dirichlet(alpha=0.1, length="infinite"), 10, 5, Masking())
>>> round(float(probability @ thetas[:, 0] ** 2), 6)  # (alpha + 1) / (T (T alpha + 1))
0.055
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, Stream, generator
from topicscope.theory.forces import contrast_force
from topicscope.theory.shares import SAME, listed_shares, topic_shares
from topicscope.world import DocumentPrior, Masking

MOST_LISTED = 300  # documents of a finite law up to which all are taken
DRAWN = 20  # documents of another law
STRICT = 1e4  # weight of the moments against that of equal weights


def flow_documents(
    prior: DocumentPrior, topics: int, words_per_topic: int, masking: Masking
) -> tuple[Float[np.ndarray, "D T"], Float[np.ndarray, " D"]]:
    """Topic proportions and their probabilities. Topics of a law with many documents count as alike."""
    support = prior.support(topics)
    if support is not None and len(support[0]) <= MOST_LISTED:
        return support
    drawn = prior.sample_proportions(topics, DRAWN, generator(0, Stream.FLOW_DOCUMENTS))
    weights = matching_weights(drawn, prior, words_per_topic, masking)
    drawn, weights = drawn[weights > 0], weights[weights > 0]
    turned = np.concatenate([np.roll(drawn, turn, axis=1) for turn in range(topics)])
    return turned, np.tile(weights / topics, topics)


def matching_weights(
    drawn: Float[np.ndarray, "n T"], prior: DocumentPrior, words_per_topic: int, masking: Masking
) -> Float[np.ndarray, " n"]:
    """Weights of drawn documents: E[theta_s theta_t], which in turns depends on t - s alone, and the force."""
    from scipy.optimize import nnls  # a tenth of a second that closed forms do not need

    (count, topics), law = drawn.shape, prior.moments(topics=drawn.shape[1]).second
    lags = range(topics // 2 + 1)
    wanted = np.array([np.roll(law, -lag, axis=1).trace() / topics for lag in lags])
    second = np.array([(drawn * np.roll(drawn, -lag, axis=1)).mean(1) for lag in lags])
    contrast = wanted[0] - wanted[-1]
    if contrast <= SAME * wanted[0]:
        return np.full(count, 1 / count)  # all documents are alike: nothing to match
    rows, ends = [np.ones(count), *second / contrast], [1.0, *wanted / contrast]
    force = force_of(prior, topics, words_per_topic, masking)
    if force > 0:
        each = (contrast_force(listed_shares(theta[None], np.ones(1)), words_per_topic, masking) for theta in drawn)
        rows, ends = [*rows, np.array([*each]) / force], [*ends, 1.0]
    equal = np.full(count, 1 / count)
    found, _ = nnls(np.vstack([STRICT * np.array(rows), np.eye(count)]), np.append(STRICT * np.array(ends), equal))
    weights: Float[np.ndarray, " n"] = found / found.sum()
    return weights


def force_of(prior: DocumentPrior, topics: int, words_per_topic: int, masking: Masking) -> float:
    """Sigma of the law; 0 where it has none, or none in closed form."""
    try:
        return contrast_force(topic_shares(prior, topics), words_per_topic, masking)
    except InputError:
        return 0.0
