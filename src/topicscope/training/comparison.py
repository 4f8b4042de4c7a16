"""How far a run's value matrix is from the optimum under uniform attention: of its world, and of its own documents.

compare_with_optimum(read("runs/blocks")).distances
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, Stream
from topicscope.theory import ValueOptimum, given_moments, optimum, relative_distance, solve_moments, uniform_optimum
from topicscope.training.config import RunConfig
from topicscope.training.data import RunData
from topicscope.training.result import Run
from topicscope.world import InfiniteDocuments, mask_keys, word_counts

ValueArray = Float[np.ndarray, "V V"]
Weights = Mapping[str, np.ndarray]

MOST_WORDS = 2000  # of a world without symmetry, for which `train` computes W*: up to ten seconds


@dataclass(frozen=True)
class OptimumComparison:
    """Relative Frobenius distances of a matrix: |W - W*| / |W*|; `best` is None where the world is not known."""

    best: ValueOptimum | None
    distances: dict[str, float]  # to 'optimum', 'theorem2', 'limit' and 'own_documents'
    notes: tuple[str, ...] = ()


def contributions(config: RunConfig, weights: Weights) -> ValueArray:
    """W_V in words: what word j of a document adds to the prediction of word i.

    Biases are added to every column: a document's shares sum to 1, so that W x + b = (W + b 1') x.
    """
    embedding, model = weights.get("embedding"), config.model
    words = np.eye(config.topic_model.vocabulary) if embedding is None else np.asarray(embedding, dtype=float)
    value = np.asarray(weights.get("value", np.eye(len(words))), dtype=float) @ words
    value = value + np.asarray(weights.get("value_bias", 0.0), dtype=float).reshape(-1, 1)
    head = weights.get("head", words.T if model.head == "tied" else np.eye(len(value)))
    whole = np.asarray(head, dtype=float) @ value
    return whole + np.asarray(weights.get("prediction_bias", 0.0), dtype=float).reshape(-1, 1)


def world_optimum(config: RunConfig) -> ValueOptimum:
    """W* of the world that a config describes, weighted as `train` does; refused where `no_optimum` says why."""
    return optimum(config)


def own_optimum(config: RunConfig) -> ValueArray:
    """The best matrix under uniform attention for the run's own documents, made again from its seed.

    Where masks are drawn anew whenever a document is seen, it is the exact expectation over them.
    """
    data, masking, topics = RunData(config), config.masking, config.topic_model
    if isinstance(data.train, InfiniteDocuments) or not masking.fresh or config.model.hide_masked:
        masked = data.train.masked(masking, topics, mask_keys(Stream.TRAIN_MASKS, config.seed))
        batches = masked.batches(
            topics, masking, np.dtype("float64"), uniform=True, hide_masked=config.model.hide_masked
        )
        return uniform_optimum(batches).matrix
    return solve_moments(given_moments(word_counts(data.train.words, topics.vocabulary), masking))[0]


def training_optimum(config: RunConfig) -> ValueArray | None:
    """W* where a run's value matrix should end in it; None where attention is learnt or the loss is not squared.

    Also None where the world has no W*, or one that takes longer than a few seconds.
    """
    if not config.model.uniform_attention or config.objective.loss == "cross-entropy":
        return None
    if not config.topic_model.uniform and config.topic_model.words > MOST_WORDS:
        return None
    try:
        return world_optimum(config).matrix()
    except InputError:  # documents from a file, hidden positions, L2, moments or matrices that are too large
        return None


def compare_with_optimum(run: Run) -> OptimumComparison:
    """A run's value matrix against W*, Theorem 2, the limit of long documents, and its own documents' optimum."""
    matrix = contributions(run.config, run.weights)
    if not np.isfinite(matrix).all():
        raise InputError("the run diverged: its value matrix is not finite")
    own = {"own_documents": relative_distance(matrix, own_optimum(run.config))}
    try:
        best = world_optimum(run.config)
    except InputError as error:
        return OptimumComparison(None, own, (f"No W*: {error}.",))
    return OptimumComparison(best, best.distances(matrix) | own)
