"""Measures on word vectors: what is done to them before the dot products of pairs of words are averaged.

A new measure is one entry of MEASURES: it then is in the results, the tables and the page.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

Vectors = Float[np.ndarray, "W d"]


def unit(vectors: Vectors) -> Vectors:
    """Scale vectors to length 1, so that their dot products are cosines.

    Args:
        vectors: (W x d).

    Returns:
        The same directions (W x d); a zero vector stays zero.

    Example:
        >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def centred(vectors: Vectors) -> Vectors:
    """Less the mean word."""
    return vectors - vectors.mean(0)


# by name: what is done to the word vectors before the dot products of pairs of words are averaged
MEASURES: dict[str, Callable[[Vectors], Vectors]] = {
    "cosine": unit,
    "dot": lambda vectors: vectors,
    "cosine_centred": lambda vectors: unit(centred(vectors)),
    "dot_centred": centred,
}
