"""Which words tell groups of documents apart: log-odds ratios with an informative Dirichlet prior, as z-scores.

Monroe, Colaresi and Quinn (2008), 'Fightin' Words', with each group against all others together.
"""

import numpy as np
from jaxtyping import Float

PRIOR = 500.0  # words that every side has beforehand, shared out as in all text


def log_odds_z(counts: Float[np.ndarray, "K W"], prior: float = PRIOR) -> Float[np.ndarray, "K W"]:
    """How much likelier a word is in a group than in the others, in standard errors.

    y is the count of word w in group k of n words, y' that in the other groups, of n' words. The prior has
    a_w = prior * (y + y') / (n + n') words w. Then
    z = (log((y + a_w) / (n + prior - y - a_w)) - log((y' + a_w) / (n' + prior - y' - a_w)))
        / sqrt(1 / (y + a_w) + 1 / (y' + a_w)).
    A word that no group has, or that is all there is, tells nothing: 0.
    """
    here = np.asarray(counts, dtype=np.float64)
    whole = here.sum(0)
    total = whole.sum()
    beforehand = prior * whole / total if total else whole
    there = whole - here
    mine, others = here + beforehand, there + beforehand
    rest, rest_of_others = here.sum(1)[:, None] + prior - mine, there.sum(1)[:, None] + prior - others
    told = np.broadcast_to((whole > 0) & (whole < total), here.shape)
    difference = np.zeros(here.shape)
    for sign, (part, other) in ((1, (mine, rest)), (-1, (others, rest_of_others))):
        difference[told] += sign * (np.log(part[told]) - np.log(other[told]))
    z = np.zeros(here.shape)
    z[told] = difference[told] / np.sqrt(1 / mine[told] + 1 / others[told])
    return z
