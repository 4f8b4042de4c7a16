"""Which topics are alike: Hellinger distances between their word probabilities, neighbours, and a map in the plane.

The Hellinger distance of p and q is sqrt(1 - sum_w sqrt(p_w q_w)): 0 where they are equal, 1 where they share no word.
It is the Euclidean distance of the vectors sqrt(p / 2), so that a map by principal components distorts nothing but by
leaving dimensions out, and all distances are one matrix product.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

ROWS = 256  # topics whose distances to all others are in memory together


@dataclass(frozen=True)
class TopicMap:
    """Places of topics in the plane.

    Attributes:
        places: (K x 2).
        shown: Share of their squared distances that the plane keeps.

    Example:
        See `topic_map`.
    """

    places: Float[np.ndarray, "K 2"]
    shown: float


def hellinger(left: Float[np.ndarray, "K W"], right: Float[np.ndarray, "L W"]) -> Float[np.ndarray, "K L"]:
    """Hellinger distances between topics: sqrt(1 - sum_w sqrt(p_w q_w)), from 0 (equal) to 1 (no word in common).

    Args:
        left: Probabilities of words (K x W).
        right: The same of other topics (L x W).

    Returns:
        Distances (K x L).

    Example:
        >>> hellinger(np.eye(2), np.eye(2)).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    return np.sqrt(np.maximum(0.0, 1 - np.sqrt(left) @ np.sqrt(right).T))


def nearest_topics(
    probability: Float[np.ndarray, "K W"],
) -> tuple[Int[np.ndarray, " K"], Float[np.ndarray, " K"]]:
    """Of each topic the nearest other one, by Hellinger distance.

    Args:
        probability: Probability of each word in each topic (K x W).

    Returns:
        The nearest topic of each (K; ties: the first), and its distance (K).

    Example:
        >>> nearest_topics(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]))[0].tolist()
        [1, 0, 1]
    """
    topics = len(probability)
    nearest, distance = np.zeros(topics, dtype=np.int64), np.zeros(topics)
    for start in range(0, topics, ROWS):
        rows = np.arange(start, min(start + ROWS, topics))
        block = hellinger(probability[rows], probability)
        block[rows - start, rows] = np.inf
        nearest[rows] = block.argmin(1)
        distance[rows] = block[rows - start, nearest[rows]]
    return nearest, distance


def topic_map(probability: Float[np.ndarray, "K W"]) -> TopicMap:
    """Topics in the plane: the first two principal components of sqrt(p / 2).

    This is classical scaling of Hellinger distances.

    Signs are fixed: in each component the entry that is largest in size is positive (of equal ones the first).

    Args:
        probability: Probability of each word in each topic (K x W).

    Returns:
        Places, and how much of the distances they keep.

    Example:
        >>> found = topic_map(np.eye(2))
        >>> found.places.round(6).tolist(), round(found.shown, 6)
        ([[0.5, 0.0], [-0.5, 0.0]], 1.0)
    """
    points = np.sqrt(probability / 2)
    points = points - points.mean(0)
    values, vectors = np.linalg.eigh(points @ points.T)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    places = np.zeros((len(points), 2))
    total = float(values.sum())
    for axis in range(min(2, len(points))):
        if values[axis] > 1e-12 * total:  # else all topics are at one place along it, and only noise is left
            column = vectors[:, axis] * np.sqrt(values[axis])
            largest = int(np.argmax(np.abs(column) > (1 - 1e-9) * np.abs(column).max()))
            places[:, axis] = column * np.sign(column[largest])
    return TopicMap(places, float(values[:2].sum() / total) if total > 0 else 1.0)
