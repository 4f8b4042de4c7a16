"""A run against the truth: when topic structure appears, by the true topics, and how far W_V is from its optimum.

Topic structure is that of the embedding (with one-hot words: of the value matrix) and of the attention.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, Stream, folders, load_settings, open_folder, refuse, refuse_if
from topicscope.laws import contributions, predicted_value, world_optimum
from topicscope.measure import (
    FEWEST,
    TIMELINE,
    Effect,
    Interval,
    PairSums,
    Timeline,
    attention_pair_sums,
    direct_scores,
    embedding_effect,
    matrix_pair_sums,
    ridge_scores,
)
from topicscope.model import Reading
from topicscope.theory import (
    ValueOptimum,
    given_moments,
    relative_distance,
    shown_evidence,
    solve_moments,
    uniform_optimum,
)
from topicscope.training.config import UNEQUAL_DOCUMENTS, RunConfig
from topicscope.training.data import LONGEST, RunData
from topicscope.training.result import TRAIN, Run, Weights, stored_snapshots
from topicscope.world import Documents, InfiniteDocuments, MaskedDocuments, mask_keys, word_counts

DOCUMENTS = 1000  # dev documents, at most, whose attention is averaged and whose mixtures are read


def is_sandbox(folder: str | os.PathLike[str]) -> bool:
    about = folders.read_about(folder)
    return about is not None and about.kind == TRAIN.name


def sandbox_timeline(
    folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, *, bootstrap: int = 1000, seed: int = 0
) -> Timeline:
    """When topic structure appears in a run of `train`, against the true topics.

    Args:
        folder: A run folder with snapshots.
        out: Folder for the results; a timeline that is there is replaced. None: nothing is written.
        bootstrap: Resamples of the bootstrap over topics.
        seed: Seed of the bootstrap.

    Returns:
        The timeline: same topic against different topic at every snapshot.

    Raises:
        InputError: The folder is no run, or has no snapshots.

    Example:
        >>> import tempfile
        >>> from topicscope import RunConfig, sandbox_timeline, train
        >>> small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = train(RunConfig.of(small, steps=30, snapshots=[0, 30]), f"{folder}/run")
        ...     timeline = sandbox_timeline(f"{folder}/run", bootstrap=20)
        >>> sorted({(row.measure, row.step) for row in timeline.rows})
        [('attention', 0), ('attention', 30), ('value', 0), ('value', 30)]
    """
    config, snapshots = read_snapshots(Path(folder))
    settings = {"snapshots": [str(folder)], "bootstrap": bootstrap, "seed": seed}
    with open_folder(out, TIMELINE, settings, force=True) if out is not None else nullcontext() as opened:
        topics = "true topics" if config.topic_model.disjoint else "words' main topics, of several"
        data = RunData(config)
        notes = [f"{folder}, against its {topics}; 95%: bootstrap over topics"]
        for step in dict.fromkeys((min(snapshots), max(snapshots))):
            ceiling = topic_ceiling(config, snapshots[step], resamples=bootstrap, seed=seed, data=data)
            notes += [] if ceiling is None else [f"step {step:,}: {ceiling.sentence}"]
        timeline = Timeline.of(sandbox_effects(config, snapshots, bootstrap, seed, data), notes)
        if opened is not None:
            opened.begin()  # an older timeline stays whole until here
            timeline.write(opened)
    return timeline


def snapshot_timeline(
    config: RunConfig,
    snapshots: Mapping[int, Mapping[str, np.ndarray]],
    resamples: int = 1000,
    seed: int = 0,
    notes: Sequence[str] = (),
) -> Timeline:
    return Timeline.of(sandbox_effects(config, snapshots, resamples, seed), notes)


def sandbox_effects(
    config: RunConfig,
    snapshots: Mapping[int, Mapping[str, np.ndarray]],
    resamples: int = 1000,
    seed: int = 0,
    data: RunData | None = None,
) -> dict[str, dict[int, Effect | None]]:
    """Same topic against different topic, by measure and step, with intervals from a bootstrap over topics."""
    topic, counts = config.topic_model.main_topic, None
    readings = {step: config.model.read(weights) for step, weights in sorted(snapshots.items())}
    if next(iter(readings.values())).scores is not None:
        dev = (data or RunData(config)).dev
        if isinstance(dev, Documents):
            counts = word_counts(dev.words[:DOCUMENTS], config.topic_model.vocabulary).astype(float)
    effects: dict[str, dict[int, Effect | None]] = {}
    for step, reading in readings.items():
        for name, sums in reading_sums(reading, topic, counts).items():
            effects.setdefault(name, {})[step] = embedding_effect([sums], resamples=resamples, seed=seed)
    refuse_if(not effects, "this run trains neither embedding, value matrix nor attention: there is nothing to follow")
    return effects


def reading_sums(reading: Reading, topic: np.ndarray, counts: Float[np.ndarray, "D V"] | None) -> dict[str, PairSums]:
    sums: dict[str, PairSums] = {}
    once = np.ones((len(topic), len(topic)))
    if reading.embedding is not None:
        vectors = reading.embedding.astype(float)
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=0), 1e-300)
        sums["embedding"] = matrix_pair_sums(unit.T @ unit, once, topic)
    else:
        for name, table in reading.tables.items():
            if table.matrix.shape == once.shape:
                sums[name] = matrix_pair_sums(table.matrix.astype(float), once, topic)
    if counts is not None and reading.scores is not None:
        sums["attention"] = attention_pair_sums(reading.scores, topic, counts)
    return sums


def read_snapshots(folder: Path) -> tuple[RunConfig, dict[int, Weights]]:
    about = folders.about_of(folder, TRAIN)
    one = folder / "run-000"
    refuse_if(about.runs is not None, f"{folder} holds several runs; give one of them, such as {one}")
    folders.check_digest(folder, about, folders.CONFIG)
    config = RunConfig.of(load_settings(folder / folders.CONFIG, own=True))
    snapshots = stored_snapshots(folder, "train again with --force")
    done = about.status == "done"
    missing = sorted(set(config.snapshot_steps) - set(snapshots))
    nothing = not config.snapshot_steps or (not snapshots and not done)
    refuse(
        (nothing, f"{folder} has no snapshots; train with --snapshots log"),
        (done and missing, f"{folder} lacks the snapshot of step {min(missing, default=0)}; train again with --force"),
    )
    return config, snapshots


@dataclass(frozen=True)
class Predicted:
    """R2 of predicted mixtures, pooled over topics, with its 95% interval from a bootstrap over documents."""

    r2: float | None
    interval: Interval | None

    def __str__(self) -> str:
        if self.r2 is None:
            return "undefined"
        return f"{self.r2:.3f}" + (f" [{self.interval[0]:.3f}, {self.interval[1]:.3f}]" if self.interval else "")


@dataclass(frozen=True)
class TopicCeiling:
    """How well a document's topic mixture can be read: from the model, from word counts, and at best.

    The first two are linear (ridge) maps, cross-validated over documents. The posterior mean is exact and needs no fit.
    """

    model: Predicted
    bag_of_words: Predicted
    posterior: Predicted
    documents: int

    @property
    def sentence(self) -> str:
        return (
            f"R2 of a document's topic mixture: {self.model} by a linear map of the mean attention output, "
            f"{self.bag_of_words} of its shares of words; at best {self.posterior}, the exact posterior mean "
            f"({self.documents} dev documents)"
        )


def topic_ceiling(
    config: RunConfig,
    weights: Mapping[str, np.ndarray],
    *,
    resamples: int = 1000,
    seed: int = 0,
    data: RunData | None = None,
) -> TopicCeiling | None:
    """How much of a document's topic mixture is in the output of attention, and how much could be at most."""
    dev = (data or RunData(config)).task.dev
    if not isinstance(dev, MaskedDocuments) or config.data.dev_file is not None:
        return None
    dev = dev.first(DOCUMENTS if config.topic_model.uniform else UNEQUAL_DOCUMENTS)
    shares = dev.documents.proportions
    if shares is None or len(dev) < FEWEST or dev.documents.lengths.max() > LONGEST:
        return None
    hidden = config.model.layout.hide_masked
    counts, a, e = shown_evidence(config.topic_model, config.masking, dev, hide_masked=hidden)
    words = counts / np.maximum(counts.sum(1, keepdims=True, dtype=float), 1)
    posterior = config.documents.posterior(config.topic_model, counts[:, 1:], a, e)
    parts = {**config.model.frozen(config.topic_model, config.masking), **weights}
    outputs = config.model.mean_outputs(parts, counts)
    if outputs is None or posterior.halves is not None:  # an estimate is no ceiling
        return None

    linear = [ridge_scores(features, shares, seed=seed)[0] for features in (outputs, words)]
    scored = [*linear, direct_scores(posterior.mean, shares, seed=seed)]
    model, bag_of_words, best = (Predicted(one.r2, one.interval(resamples, seed)) for one in scored)
    return TopicCeiling(model, bag_of_words, best, len(dev))


@dataclass(frozen=True)
class OptimumComparison:
    """How far a value matrix W is from W*, as relative Frobenius distances |W - W*| / |W*|."""

    best: ValueOptimum | None
    distances: dict[str, float]
    notes: tuple[str, ...] = ()


def own_optimum(config: RunConfig) -> Float[np.ndarray, "V V"]:
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
    refuse_if(not np.isfinite(matrix).all(), "the run diverged: its value matrix is not finite")
    steps = run.results["steps"]
    notes = [f"The run diverged at step {steps:,}: its matrix is the last one that was sound."] if diverged else []
    distances = {"own_documents": relative_distance(matrix, own_optimum(run.config))}
    try:
        best = world_optimum(run.config)
    except InputError as error:
        return OptimumComparison(None, distances, (*notes, f"No W*: {error}."))
    distances = best.distances(matrix) | distances
    try:
        refuse_if(diverged, "the run diverged")
        distances["predicted"] = relative_distance(matrix, predicted_value(run.config, best, run.weights, steps))
    except InputError as error:
        notes.append(f"No predicted W(t): {error}.")
    return OptimumComparison(best, distances, tuple(notes))
