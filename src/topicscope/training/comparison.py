"""How far a run's value matrix is from the optimum under uniform attention: of its world, and of its own documents.

compare_with_optimum(read("runs/blocks")).distances
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, Stream, refuse
from topicscope.theory import ValueOptimum, given_moments, optimum, relative_distance, solve_moments, uniform_optimum
from topicscope.training.config import RunConfig
from topicscope.training.data import RunData
from topicscope.training.optimum_cost import MOST_TOPICS, MOST_WORDS, ends_in_optimum
from topicscope.training.result import Run
from topicscope.world import InfiniteDocuments, LogisticNormal, mask_keys, word_counts

ValueArray = Float[np.ndarray, "V V"]
Weights = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class OptimumComparison:
    """How far a value matrix W is from W*, as relative Frobenius distances |W - W*| / |W*|.

    Attributes:
        best: W* of the run's world; None where it is not known.
        distances: By what W is compared with: 'optimum', 'theorem2', 'limit', 'own_documents' and, where it applies,
            'predicted'.
        notes: What could not be compared, and why.

    Example:
        See `compare_with_optimum`.
    """

    best: ValueOptimum | None
    distances: dict[str, float]
    notes: tuple[str, ...] = ()


def contributions(config: RunConfig, weights: Weights) -> ValueArray:
    """W_V in words: what word j of a document adds to the prediction of word i.

    Biases are added to every column: a document's shares sum to 1, so that W x + b = (W + b 1') x.

    Args:
        config: Config of the run.
        weights: Trained parts by name.

    Returns:
        The matrix (V x V).

    Example:
        >>> config = RunConfig.of({"topic_model": {"topics": 2, "words_per_topic": 1}})
        >>> contributions(config, {"value": np.eye(3), "prediction_bias": np.array([0.0, 0.5, 0.5])}).tolist()
        [[1.0, 0.0, 0.0], [0.5, 1.5, 0.5], [0.5, 0.5, 1.5]]
    """
    embedding, model = weights.get("embedding"), config.model
    words = np.eye(config.topic_model.vocabulary) if embedding is None else np.asarray(embedding, dtype=float)
    value = np.asarray(weights.get("value", np.eye(len(words))), dtype=float) @ words
    value = value + np.asarray(weights.get("value_bias", 0.0), dtype=float).reshape(-1, 1)
    head = weights.get("head", words.T if model.head == "tied" else np.eye(len(value)))
    whole = np.asarray(head, dtype=float) @ value
    return whole + np.asarray(weights.get("prediction_bias", 0.0), dtype=float).reshape(-1, 1)


def world_optimum(config: RunConfig) -> ValueOptimum:
    """W* of the world that a config describes, with documents weighted as `train` does.

    Args:
        config: Config of the run.

    Returns:
        W* with its loss and modes; see `theory.optimum`.

    Raises:
        InputError: W* is not defined for this config; `config.no_optimum` says why.

    Example:
        >>> best = world_optimum(RunConfig.of({"topic_model": {"topics": 3, "words_per_topic": 2}}))
        >>> best.matrix().shape, round(best.loss, 4)
        ((7, 7), 0.5778)
    """
    return optimum(config)


def own_optimum(config: RunConfig) -> ValueArray:
    """The best matrix under uniform attention for the run's own documents, which are drawn again from its seed.

    Where masks are drawn anew whenever a document is seen, it is the exact expectation over masks.

    Args:
        config: Config of the run.

    Returns:
        The matrix (V x V).

    Example:
        >>> from topicscope.theory import relative_distance
        >>> def distance(documents):  # to W* of the world
        ...     world = {"topic_model": {"topics": 3, "words_per_topic": 2}}
        ...     config = RunConfig.of(world | {"data": {"documents": documents}})
        ...     return relative_distance(own_optimum(config), world_optimum(config).matrix())
        >>> [round(distance(documents), 1) for documents in (40, 400)]  # few documents have an optimum of their own
        [0.6, 0.1]
    """
    data, masking, topics = RunData(config), config.masking, config.topic_model
    if isinstance(data.train, InfiniteDocuments) or not masking.fresh or config.model.hide_masked:
        masked = data.train.masked(masking, topics, mask_keys(Stream.TRAIN_MASKS, config.seed))
        batches = masked.batches(
            topics, masking, np.dtype("float64"), uniform=True, hide_masked=config.model.hide_masked
        )
        return uniform_optimum(batches).matrix
    return solve_moments(given_moments(word_counts(data.train.words, topics.vocabulary), masking))[0]


class TrainingOptimum(NamedTuple):
    """W* and its loss, as the run counts it; or why they are not given."""

    matrix: ValueArray | None = None
    loss: float | None = None
    why_not: str = ""


def training_optimum(config: RunConfig) -> TrainingOptimum:
    """W* where a run's value matrix should end in it; else nothing, or the reason.

    It is given only where it takes at most a few seconds.

    Args:
        config: Config of the run.

    Returns:
        `matrix` and `loss` (as the run counts it), or `why_not`.

    Example:
        >>> model = {"key": "zero", "query": "zero", "prediction_bias": "none"}
        >>> squared = {"objective": {"loss": "squared"}, "topic_model": {"topics": 3, "words_per_topic": 2}}
        >>> found = training_optimum(RunConfig.of(squared, model=model))
        >>> found.matrix.shape, round(found.loss, 4), found.why_not
        ((7, 7), 0.5778, '')
    """
    if not ends_in_optimum(config):
        return TrainingOptimum()
    topics = config.topic_model.topics
    if isinstance(config.documents, LogisticNormal) and topics > MOST_TOPICS:
        slow = f"{topics:,} topics: the moments of a logistic normal take seconds above {MOST_TOPICS:,}"
        return TrainingOptimum(why_not=slow)
    try:
        best = optimum(config, most_words=MOST_WORDS)
        return TrainingOptimum(best.matrix(), best.loss * config.objective.scale(config.topic_model.vocabulary))
    except InputError as error:  # documents from a file, hidden positions, L2, moments or matrices that are too large
        return TrainingOptimum(why_not=str(error))


def predicted_value(run: Run, best: ValueOptimum) -> ValueArray:
    """W(t) at the run's last step, from its own start; InputError says why it does not hold for the run."""
    config, model, optimizer = run.config, run.config.model, run.config.optimizer
    refuse(
        (run.status == "diverged", "the run diverged"),
        (not ends_in_optimum(config), "it holds under uniform attention and squared loss"),
        (optimizer.name != "sgd" or optimizer.momentum > 0, "it holds for SGD without momentum"),
        (set(model.trained_shapes(best.vocabulary)) != {"value"}, "it holds where the value matrix alone is trained"),
        (model.embedding != "one-hot", "it holds for one-hot words"),
        (bool(config.schedule.phases), "it holds where the value matrix trains throughout"),
        (not config.masking.fresh, "it holds where masks are drawn anew"),
    )
    start = model.initial(best.vocabulary, config.seed)
    frozen = {name: part for name, part in run.weights.items() if name not in start}
    time = optimizer.lr * run.results["steps"] * config.objective.scale(config.topic_model.vocabulary)
    return best.value_at(time, contributions(config, frozen | start))


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
    notes: tuple[str, ...] = ()
    if not np.isfinite(matrix).all():
        raise InputError("the run diverged: its value matrix is not finite")
    if run.status == "diverged":
        notes = (f"The run diverged at step {run.results['steps']:,}: its matrix is the last one that was sound.",)
    distances = {"own_documents": relative_distance(matrix, own_optimum(run.config))}
    try:
        best = world_optimum(run.config)
    except InputError as error:
        return OptimumComparison(None, distances, (*notes, f"No W*: {error}."))
    try:
        distances["predicted"] = relative_distance(matrix, predicted_value(run, best))
    except InputError as error:
        notes = (*notes, f"No predicted W(t): {error}.")
    return OptimumComparison(best, best.distances(matrix) | distances, notes)
