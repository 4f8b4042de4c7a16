"""Small worlds whose documents can all be listed: the other side of the certificates of `optimum`.

Every text, every set of masked positions and every word shown there is listed with its probability. Nothing here uses
the moments that `optimum` is made of.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.theory.document_moments import Weighting
from topicscope.world import Masking, Moments


@dataclass(frozen=True, eq=False)
class SmallWorld:
    """A world whose law of theta has few values, so that all its documents can be listed.

    Attributes:
        word_topics: A (words x T).
        thetas: The values of theta (L x T).
        probabilities: Their probabilities (L).

    Example:
        >>> world = SmallWorld(np.eye(2), thetas=np.eye(2), probabilities=np.array([0.25, 0.75]))
        >>> world.moments().mean.tolist(), world.infinite(Masking())[1].tolist()
        ([0.25, 0.75], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    """

    word_topics: Float[np.ndarray, "words T"]
    thetas: Float[np.ndarray, "L T"]
    probabilities: Float[np.ndarray, " L"]

    def moments(self) -> Moments:
        p = self.probabilities
        return Moments(p @ self.thetas, self.thetas.T @ (p[:, None] * self.thetas))

    def infinite(self, masking: Masking) -> tuple[Float[np.ndarray, "L V"], Float[np.ndarray, "L V"]]:
        """What infinite documents show (x), and their words' distributions (P), from the masking scheme (3.2)."""
        words = len(self.word_topics)
        p = np.hstack([np.zeros((len(self.thetas), 1)), self.thetas @ self.word_topics.T])
        x = (1 - masking.p_mask) * p + masking.p_mask * masking.p_correct * p
        x[:, 1:] += masking.p_mask * masking.p_random / words
        x[:, 0] += masking.p_mask * masking.p_mask_word
        return x, p


def random_world(rng: np.random.Generator, words: int = 3, topics: int = 2, laws: int = 3) -> SmallWorld:
    return SmallWorld(
        rng.dirichlet(np.ones(words), topics).T, rng.dirichlet(np.ones(topics), laws), rng.dirichlet(np.ones(laws))
    )


def subset_world(topics: int, v: int, subsets: dict[tuple[int, ...], float]) -> SmallWorld:
    """A small world of disjoint topics of v equally probable words, whose documents share a set of topics equally.

    Args:
        topics: T.
        v: Words per topic.
        subsets: Weights by set of topics; topics count from 0.

    Returns:
        The world.

    Example:
        >>> subset_world(3, 1, {(0, 1): 1.0, (1, 2): 3.0}).moments().mean.tolist()
        [0.125, 0.5, 0.375]
    """
    thetas = np.array([[float(t in subset) / len(subset) for t in range(topics)] for subset in subsets])
    p = np.array(list(subsets.values()))
    return SmallWorld(np.kron(np.eye(topics), np.full((v, 1), 1 / v)), thetas, p / p.sum())


def grouped_subsets(topics: int, tau: int, groups: int = 1, rho: float = 0.0) -> dict[tuple[int, ...], float]:
    """All sets of tau topics with their probabilities, where topics may come in groups.

    Args:
        topics: T.
        tau: Topics per document.
        groups: Number of groups.
        rho: Probability that all topics of a document come from one group.

    Returns:
        Probabilities by set of topics.

    Example:
        >>> grouped_subsets(4, 2, groups=2, rho=1.0)[(0, 1)], grouped_subsets(4, 2, groups=2, rho=1.0)[(0, 2)]
        (0.5, 0.0)
    """
    every, h = list(itertools.combinations(range(topics), tau)), topics // groups
    inside = [subset for subset in every if len({t // h for t in subset}) == 1]
    return {subset: (1 - rho) / len(every) + (rho / len(inside) if subset in inside else 0.0) for subset in every}


def every_masked_document(
    world: SmallWorld, masking: Masking, length: int, weighting: Weighting
) -> tuple[Float[np.ndarray, "R V"], Float[np.ndarray, "R V"], Float[np.ndarray, " R"]]:
    """Every masked document of N words: what it shows (x), the mean of its masked true words (y), and its weight."""
    words = len(world.word_topics)
    shown_as = np.full((words + 1, words + 1), masking.p_random / words)  # true word, word shown
    shown_as[:, 0] = masking.p_mask_word
    shown_as[np.arange(words + 1), np.arange(words + 1)] += masking.p_correct
    text = np.array(list(itertools.product(range(1, words + 1), repeat=length)))
    each = (world.thetas @ world.word_topics.T)[:, text - 1].prod(2)  # law of theta, text
    text_probability = world.probabilities @ each
    eye, xs, ys, weights = np.eye(words + 1), [], [], []
    for chosen in itertools.product((False, True), repeat=length):
        drawn, masks = np.flatnonzero(chosen), [np.flatnonzero(chosen)]
        probability = masking.p_mask ** len(drawn) * (1 - masking.p_mask) ** (length - len(drawn))
        if not len(drawn):
            if weighting != "run":
                continue
            masks = [np.array([position]) for position in range(length)]  # `Masking.draw` picks one
        for masked in masks:
            share = probability / len(masks) * (len(masked) if weighting == "positions" else 1)
            for shown in itertools.product(range(words + 1), repeat=len(masked)):
                seen = text.copy()
                seen[:, masked] = shown
                chance = shown_as[text[:, masked], np.array(shown)].prod(1)
                xs.append(eye[seen].mean(1))
                ys.append(eye[text[:, masked]].mean(1))
                weights.append(text_probability * share * chance)
    weight = np.concatenate(weights)
    return np.concatenate(xs), np.concatenate(ys), weight / weight.sum()


def least_squares(
    x: Float[np.ndarray, "R V"], y: Float[np.ndarray, "R V"], weight: Float[np.ndarray, " R"]
) -> Float[np.ndarray, "V V"]:
    """The W of least norm that minimises the weighted mean of |W x - y|^2."""
    root = np.sqrt(weight)[:, None]
    return np.linalg.lstsq(root * x, root * y, rcond=1e-12)[0].T
