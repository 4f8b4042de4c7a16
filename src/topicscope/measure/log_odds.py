"""Which words tell groups of documents apart: log-odds ratios with an informative Dirichlet prior, as z-scores.

Monroe, Colaresi and Quinn (2008), 'Fightin' Words', with each group against all others together.
"""

import numpy as np
from jaxtyping import Float

PRIOR = 500.0  # words that every side has beforehand, shared out as in all text


def log_odds_z(counts: Float[np.ndarray, "K W"], prior: float = PRIOR) -> Float[np.ndarray, "K W"]:
    """How much likelier a word is in a group of documents than in the others, in standard errors.

    y is the count of word w in group k of n words, y' that in the other groups, of n' words. The prior has a_w = prior
    * (y + y') / (n + n') words w. Then z = (log((y + a_w) / (n + prior - y - a_w)) - log((y' + a_w) / (n' + prior - y'
    - a_w))) / sqrt(1 / (y + a_w) + 1 / (y' + a_w)).

    Args:
        counts: Words of each group (K x W).
        prior: Number of words that the prior has.

    Returns:
        z (K x W); 0 for a word that no group has, or that is all there is.

    Example:
        >>> log_odds_z(np.array([[50.0, 50.0], [10.0, 90.0]])).round(1).tolist()
        [[3.0, -4.6], [-3.0, 4.6]]
    """
    whole = counts.sum(0, dtype=np.float64)
    total = whole.sum()
    told = np.flatnonzero((whole > 0) & (whole < total))
    z = np.zeros(counts.shape)
    for k, row in enumerate(counts):  # one at a time: there may be many groups of many words
        size, beforehand = row.sum(), prior * whole[told] / total
        here, there = row[told] + beforehand, whole[told] - row[told] + beforehand
        odds, other_odds = here / (size + prior - here), there / (total - size + prior - there)
        z[k, told] = np.log(odds / other_odds) / np.sqrt(1 / here + 1 / there)
    return z
