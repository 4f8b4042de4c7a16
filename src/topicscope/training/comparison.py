"""How far a run's value matrix is from the optimum under uniform attention: of its world, and of its own documents.

compare_with_optimum(read("runs/blocks")).distances
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, Stream, refuse
from topicscope.laws import contributions, predicted_value, world_optimum
from topicscope.theory import ValueOptimum, given_moments, relative_distance, solve_moments, uniform_optimum
from topicscope.training.config import RunConfig
from topicscope.training.data import RunData
from topicscope.training.result import Run
from topicscope.world import InfiniteDocuments, mask_keys, word_counts

ValueArray = Float[np.ndarray, "V V"]


@dataclass(frozen=True)
class OptimumComparison:
    """How far a value matrix W is from W*, as relative Frobenius distances |W - W*| / |W*|."""

    best: ValueOptimum | None
    distances: dict[str, float]
    notes: tuple[str, ...] = ()


def own_optimum(config: RunConfig) -> ValueArray:
    """The best matrix under uniform attention for the run's own documents, which are drawn again from its seed.

    Where masks are drawn anew whenever a document is seen, it is the exact expectation over masks.
    """
    data, masking, topics = RunData(config), config.masking, config.topic_model
    if isinstance(data.train, InfiniteDocuments) or not masking.fresh or config.model.hide_masked:
        masked = data.train.masked(masking, topics, mask_keys(Stream.TRAIN_MASKS, config.seed))
        return uniform_optimum(data.task.rows(masked, "float64", uniform=True)).matrix
    return solve_moments(given_moments(word_counts(data.train.words, topics.vocabulary), masking))[0]


def compare_with_optimum(run: Run) -> OptimumComparison:
    """Compare a run's value matrix with W*, Theorem 2, the limit of long documents, and its own documents' optimum.

    Args:
        run: A finished run.

    Returns:
        The distances, and notes on what could not be compared.

    Raises:
        InputError: The run diverged.

    Example:
        >>> from topicscope import RunConfig, compare_with_optimum, train
        >>> settings = {
        ...     "topic_model": {"topics": 3, "words_per_topic": 2},
        ...     "documents": {"kind": "infinite", "topics_per_document": 2},
        ...     "data": {"documents": 30, "dev_documents": 30},
        ...     "objective": {"loss": "squared"},
        ...     "model": {"key": "zero", "query": "zero", "prediction_bias": "none", "init_scale": 0.0},
        ...     "optimizer": {"name": "sgd", "lr": 0.3},
        ... }
        >>> comparison = compare_with_optimum(train(RunConfig.of(settings, steps=300)))
        >>> {name: round(distance, 2) for name, distance in comparison.distances.items()}
        {'optimum': 0.0, 'theorem2': 0.0, 'limit': 0.11, 'own_documents': 0.0, 'predicted': 0.0}
    """
    matrix = contributions(run.config, run.weights)
    diverged = run.status == "diverged"
    refuse((not np.isfinite(matrix).all(), "the run diverged: its value matrix is not finite"))
    last = f"The run diverged at step {run.results['steps']:,}: its matrix is the last one that was sound."
    notes = [last] if diverged else []
    distances = {"own_documents": relative_distance(matrix, own_optimum(run.config))}
    try:
        best = world_optimum(run.config)
    except InputError as error:
        return OptimumComparison(None, distances, (*notes, f"No W*: {error}."))
    distances = best.distances(matrix) | distances
    try:
        refuse((diverged, "the run diverged"))
        predicted = predicted_value(run.config, best, run.weights, run.results["steps"])
        distances["predicted"] = relative_distance(matrix, predicted)
    except InputError as error:
        notes.append(f"No predicted W(t): {error}.")
    return OptimumComparison(best, distances, tuple(notes))
