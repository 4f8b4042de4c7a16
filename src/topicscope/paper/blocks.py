"""What a matrix over words shows: means by relation, blocks or a diagonal, and the matrix itself as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from topicscope import training
from topicscope.figures import Heat
from topicscope.measure import Estimate, estimate

Which = Literal["value", "gram"]
"""The value matrix W_V, or the Gram matrix W_E'W_E of the embeddings."""

RELATIONS = ("same", "different", "diagonal")

DIAGONAL_RULE = (
    "Diagonal: the mean of the diagonal stands further above the same-topic mean "
    "than that does above the different-topic mean."
)


@dataclass(frozen=True)
class Blocks:
    """Means of one run's matrix over other words of the same topic, words of different topics, and the diagonal."""

    same: float
    different: float
    diagonal: float
    spread: float = float("nan")  # standard deviation of the different-topic entries
    diverged: bool = False
    diagonal_at_start: float = float("nan")  # of a Gram matrix, before the first step

    @property
    def contrast(self) -> float:
        return self.same - self.different

    @property
    def diagonal_stands_out(self) -> bool:
        """By DIAGONAL_RULE."""
        return self.diagonal - self.same > self.contrast


@dataclass(frozen=True)
class WordMatrix:
    """A matrix over the vocabulary: [MASK], then the words topic by topic."""

    values: np.ndarray
    topics: int
    words_per_topic: int

    @classmethod
    def of(cls, values: np.ndarray, run: training.Run) -> WordMatrix:
        return cls(values, run.config.topic_model.topics, run.config.topic_model.words_per_topic)

    def heat(self, title: str) -> Heat:
        """Colours from the 0.2% to the 99.8% quantile, so that single entries do not hide the rest."""
        low, high = np.quantile(self.values, [0.002, 0.998]).tolist()
        rounded = np.round(self.values.astype(float), 6).tolist()
        return Heat(title, rounded, topics=self.topics, words_per_topic=self.words_per_topic, low=low, high=high)


def matrix_of(run: training.Run, which: Which) -> np.ndarray:
    return run.weights["value"] if which == "value" else run.weights["embedding"].T @ run.weights["embedding"]


def blocks_of(run: training.Run, which: Which = "value") -> Blocks:
    """With the spread of the different-topic entries: the contrast has to stand out from it."""
    means = {name: float("nan") if mean is None else mean for name, mean in run.results[which].items()}
    topics = run.config.topic_model.topic_of_word[1:]
    entries = matrix_of(run, which)[1:, 1:][topics[:, None] != topics]
    start = float(run.metrics["gram_diagonal"][0]) if which == "gram" else float("nan")
    return Blocks(**means, spread=float(entries.std()), diverged=run.status == "diverged", diagonal_at_start=start)


def contrast(runs: Sequence[Blocks]) -> Estimate:
    """Same-topic minus different-topic mean, diagonal left out, over seeds."""
    return estimate([run.contrast for run in runs])


def mean_spread(runs: Sequence[Blocks]) -> float:
    return float(np.mean([run.spread for run in runs]))
