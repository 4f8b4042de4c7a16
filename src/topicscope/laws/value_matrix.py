"""A run's value matrix and W*: in words, where it should be, what W* costs, and what it has between which topics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.ground import FLOPS, InputError
from topicscope.laws.coverage import LAWS, RunSettings, covered_world
from topicscope.measure import partner_means, shared_topic_means, topic_pair_means
from topicscope.theory import ValueOptimum, optimum, topics_alike
from topicscope.world import Groups

MOST_WORDS = 2000  # of a world without symmetry, for which `train` computes W*: five seconds
SOLVED = 25  # operations per V^3 to decompose E[xx'] and to multiply by its parts
MOST_MAPPED = 100  # topics of the map that results hold: T x T numbers
MOST_ENTRIES = 20_000_000  # of A, up to which means are made: seconds
ELSEWHERE = ("architecture", "attention", "cross-entropy")  # runs that end elsewhere; their results do not name W*

ValueArray = Float[np.ndarray, "V V"]


class TrainingOptimum(NamedTuple):
    """W* and its loss, as the run counts it; or why they are not given."""

    matrix: ValueArray | None = None
    loss: float | None = None
    why_not: str = ""


def contributions(run: RunSettings, weights: Mapping[str, np.ndarray]) -> ValueArray:
    """W_V in words: what word j of a document adds to the prediction of word i.

    Biases are added to every column: a document's shares sum to 1, so that W x + b = (W + b 1') x.

    >>> from topicscope.training import RunConfig
    >>> config = RunConfig.of({"topic_model": {"topics": 2, "words_per_topic": 1}})
    >>> contributions(config, {"value": np.eye(3), "prediction_bias": np.array([0.0, 0.5, 0.5])}).tolist()
    [[1.0, 0.0, 0.0], [0.5, 1.5, 0.5], [0.5, 0.5, 1.5]]
    """
    embedding, model = weights.get("embedding"), run.model
    words = np.eye(run.world.topic_model.vocabulary) if embedding is None else np.asarray(embedding, dtype=float)
    value = np.asarray(weights.get("value", np.eye(len(words))), dtype=float) @ words
    value = value + np.asarray(weights.get("value_bias", 0.0), dtype=float).reshape(-1, 1)
    head = weights.get("head", words.T if model.head == "tied" else np.eye(len(value)))
    bias = np.asarray(weights.get("prediction_bias", 0.0), dtype=float).reshape(-1, 1)
    return np.asarray(head, dtype=float) @ value + bias


def world_optimum(run: RunSettings) -> ValueOptimum:
    """W* of a run's world, with documents weighted as `train` does; InputError where the table rules it out."""
    return optimum(covered_world(run, "optimum"))


def training_optimum(run: RunSettings) -> TrainingOptimum:
    """W* where a run's value matrix should end in it, if it takes at most a few seconds; else nothing, or the reason.

    >>> from topicscope.training import RunConfig
    >>> model = {"key": "zero", "query": "zero", "prediction_bias": "none"}
    >>> squared = {"objective": {"loss": "squared"}, "topic_model": {"topics": 3, "words_per_topic": 2}}
    >>> best = training_optimum(RunConfig.of(squared, model=model))
    >>> best.matrix.shape, round(best.loss, 4), best.why_not
    ((7, 7), 0.5778, '')
    """
    refusal = LAWS["end"].refusal(run)
    if refusal is not None:
        return TrainingOptimum(why_not="" if refusal.code in ELSEWHERE else refusal.reason)
    try:
        best = optimum(run.world, most_words=MOST_WORDS)
    except InputError as error:  # moments or matrices that are too large
        return TrainingOptimum(why_not=str(error))
    return TrainingOptimum(best.matrix(), best.loss * run.objective.scale(run.world.topic_model.vocabulary))


def predicted_value(run: RunSettings, best: ValueOptimum, weights: Mapping[str, np.ndarray], steps: int) -> ValueArray:
    """W(t) after `steps` steps, from the run's own start; InputError says why it does not hold for the run."""
    LAWS["course"].require(run)
    start = run.model.initial(best.vocabulary, run.seed)
    time = run.optimizer.lr * steps * run.objective.scale(best.vocabulary)
    return best.value_at(time, contributions(run, {**weights, **start}))


def needs_matrix(run: RunSettings) -> bool:
    """Whether W* may be a matrix that is solved for. Moments, which decide it, are not made here."""
    topics, known = run.world.topic_model, LAWS["end"].refusal(run) is None
    return topics.words <= MOST_WORDS and known and not topics_alike(topics, run.world.prior)


def optimum_seconds(run: RunSettings) -> float:
    """Of W*, where it is more than a handful of numbers."""
    return SOLVED * run.world.topic_model.vocabulary**3 / FLOPS if needs_matrix(run) else 0.0


def optimum_bytes(run: RunSettings) -> float:
    """Of W* and what it is made of."""
    refusal = LAWS["end"].refusal(run)
    matrices = 0 if refusal is not None and refusal.code in ELSEWHERE else 8 if needs_matrix(run) else 3
    return 8.0 * matrices * run.world.topic_model.vocabulary**2


def topic_relations(run: RunSettings, matrix: ValueArray) -> dict[str, Any]:
    """Means of a matrix over pairs of different words, by how their topics are related; None where there are none.

    Empty where topics are alike, A is too large, or the matrix is not finite. Else:

    - `topics`: T x T means by pair of topics, output word in rows. A word with several topics counts in each by its
      share A[w, t] / sum of A[w, :].
    - `shared`: means by the number of topics that two words have in common, where words have several.
    - `partners`: under the prior `groups`; words of one topic, of two topics of one group, of different groups.

    >>> from topicscope.training import RunConfig
    >>> world = {"topic_model": {"topics": 4, "words_per_topic": 1}, "documents": {"kind": "groups", "groups": 2}}
    >>> matrix = np.pad(np.kron(np.eye(2), np.ones((2, 2))), ((1, 0), (1, 0)))  # 1 inside a group, 0 across
    >>> topic_relations(RunConfig.of(world), matrix)["partners"]
    {'same': None, 'partner': 1.0, 'other': 0.0}
    """
    topics, prior = run.world.topic_model, run.world.prior
    if topics.words * topics.topics > MOST_ENTRIES or not np.isfinite(matrix).all() or topics_alike(topics, prior):
        return {}
    relations: dict[str, Any] = {}
    if topics.topics <= MOST_MAPPED:
        rows = topic_pair_means(matrix, topics.word_topics / topics.word_topics.sum(1, keepdims=True)).tolist()
        relations["topics"] = [[None if math.isnan(mean) else mean for mean in row] for row in rows]
    if not topics.disjoint:
        means = shared_topic_means(matrix, topics.word_topics > 0)
        relations["shared"] = {str(count): mean for count, mean in means.items()}
    if isinstance(prior, Groups) and run.data.train_file is None:
        group = np.arange(topics.topics) // (topics.topics // prior.groups)
        relations["partners"] = partner_means(matrix, topics.word_topics > 0, group)
    return relations
