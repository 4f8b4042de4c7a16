"""A prior from outside, in one file: documents of two topics, which are more often neighbours than not."""

import itertools
from dataclasses import KW_ONLY
from typing import ClassVar, Literal

import numpy as np

from topicscope.ground import Probability
from topicscope.world import Asked, DocumentPrior, Moments, Posterior, TopicModel, prior


@prior
class Pairs(DocumentPrior):
    """Topics 1 and 2, 3 and 4, ... are neighbours. A document has a pair of neighbours with probability `near`."""

    FORM: ClassVar = (Asked("near", Probability, 0.5, "share of neighbours"),)

    _: KW_ONLY
    kind: Literal["pairs"] = "pairs"
    near: Probability = 0.5
    length: int = 9

    def check(self, topics: int) -> None:
        """Any even number of topics."""

    def support(self, topics: int, most: int = 5000) -> tuple[np.ndarray, np.ndarray]:
        pairs = np.array(list(itertools.combinations(range(topics), 2)))
        neighbours = (pairs[:, 0] % 2 == 0) & (pairs[:, 1] == pairs[:, 0] + 1)
        share = np.where(neighbours, self.near / neighbours.sum(), (1 - self.near) / (~neighbours).sum())
        return np.eye(topics)[pairs].mean(1), share

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> np.ndarray:
        rows, share = self.support(topics)
        return rows[rng.choice(len(rows), size=count, p=share)]

    def moments(self, topics: int) -> Moments:
        rows, share = self.support(topics)
        return Moments(share @ rows, (rows * share[:, None]).T @ rows)

    def posterior(self, topic_model: TopicModel, evidence: np.ndarray, a: float, e: float) -> Posterior:
        return self.posterior_of_any(topic_model, evidence, a, e)
