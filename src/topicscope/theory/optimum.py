"""`optimum`: the exact best value matrix under uniform attention and squared loss, in any world."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np

from topicscope.ground import InputError, refuse
from topicscope.theory.dense_optimum import DenseOptimum, WordTopics, dense_optimum, topic_basis
from topicscope.theory.document_moments import WEIGHTINGS, Length, Weighting, length_weights
from topicscope.theory.setting import K_FROM, NO_K
from topicscope.theory.value_optimum import OptimumSettings, SymmetricOptimum, symmetric_optimum
from topicscope.world import Dirichlet, Fixed, Masking, Moments, TopicModel, World, checked_moments, checked_word_topics

MOST_WORDS = 6000  # of a world without symmetry: E[xx'] is decomposed, in minutes
MOST_TOPICS = 5000  # E[theta theta'] takes 200 MB
LONGEST = 10**7  # words of a document
MOST_LISTED = 20  # numbers of a prior that a result repeats
MOST_SPREAD = 1e-12  # relative spread of moments that are equal by symmetry


class HasMoments(Protocol):
    """What `optimum` asks of a prior: any object with these two will do."""

    @property
    def length(self) -> Any:
        """Words of a document: a number, a range or 'infinite'."""

    def moments(self, topics: int) -> Moments:
        """E[theta] and E[theta theta']."""
        ...


class HasWorld(Protocol):
    """A configuration of `train` has a world, and says whether a law covers it."""

    @property
    def world(self) -> World: ...

    def world_for(self, law: str) -> World: ...


def optimum(
    topics: World | HasWorld | TopicModel | WordTopics | Sequence[Sequence[float]],
    prior: HasMoments | Moments | None = None,
    masking: Masking | None = None,
    *,
    length: Length | None = None,
    weighting: Weighting = "run",
    most_words: int = MOST_WORDS,
) -> SymmetricOptimum | DenseOptimum:
    """W*: the exact best value matrix under uniform attention and squared loss, in any world.

    Args:
        topics: A topic model, or A (one row per word without [MASK], one column per topic); without a prior a
            World, or a RunConfig, which has one.
        prior: Has the moments of theta and the length of documents.
        masking: The masking scheme; None: that of the world, or the usual one.
        length: Overrides the prior's length.
        weighting: How the loss weighs documents: 'run' (as `train` does), 'positions' or 'documents'.
        most_words: A world without symmetry is refused above it: 2,000 words take about 5 s, 6,000 minutes.

    Returns:
        W*, its loss, and its modes in the order of learning.

    Raises:
        InputError: The world is not whole, too large, or has no such optimum.

    Example:
        >>> from topicscope import Fixed, TopicModel, theory
        >>> best = theory.optimum(TopicModel(4, 3), Fixed(topics_per_document=2, length=20))
        >>> round(best.loss, 6), [mode.name for mode in best.modes]
        (0.840569, ['mean', 'topic contrasts', '[MASK] against words', 'within-topic'])
    """
    if prior is None:
        if not isinstance(topics, World) and not hasattr(topics, "world_for"):
            raise InputError("a topic model needs a prior: give the law of theta, or a World or RunConfig")
        world = topics if isinstance(topics, World) else cast("HasWorld", topics).world_for("optimum")
        topics, prior, masking = world.topic_model, world.prior, masking or world.masking
    topics = cast("TopicModel | WordTopics", topics)
    masking = masking or Masking()
    length = checked_length(getattr(prior, "length", None) if length is None else length)
    refuse(
        (masking.k < K_FROM, NO_K),
        (weighting not in WEIGHTINGS, f"weighting = {weighting!r}: expected {', '.join(WEIGHTINGS)}"),
    )
    matrix = (
        None if isinstance(topics, TopicModel) else checked_word_topics(np.asarray(topics, dtype=float), "word_topics")
    )
    words, count = (topics.words, topics.topics) if isinstance(topics, TopicModel) else np.shape(topics)
    plain = isinstance(topics, TopicModel) and topics.uniform  # what the prior may make symmetric
    refuse((not plain and words > most_words, too_many(words, most_words)))
    refuse((count > MOST_TOPICS, f"{count:,} topics: expected at most {MOST_TOPICS:,}, since E[theta theta'] is made"))
    moments = checked_moments(prior if isinstance(prior, Moments) else prior.moments(count), count, "moments")
    settings = OptimumSettings(
        count, words, described(prior), length, weighting, masking.p_mask, masking.p_correct, masking.p_random
    )
    weights, notes = length_weights(length, masking.p_mask, weighting), notes_on(moments)
    contrast = exchangeable(moments)
    if plain and contrast is not None:
        return symmetric_optimum(settings, contrast, masking, weights, notes)
    refuse((words > most_words, too_many(words, most_words)))
    if matrix is None:
        matrix = topics.word_topics if isinstance(topics, TopicModel) else np.asarray(topics)
    notes += notes_on_span(matrix, moments)
    topic = topics.topic_of_word[1:] if isinstance(topics, TopicModel) and topics.disjoint else None
    return dense_optimum(settings, matrix, moments, masking, weights, notes, topic)


def too_many(words: int, most: int) -> str:
    return (
        f"{words:,} words: without symmetry at most {most:,} are taken; "
        "disjoint topics of equally probable words with an exchangeable prior may be of any size"
    )


def checked_length(length: Any) -> Length:
    numbers = length if isinstance(length, tuple | list) and len(length) == 2 else (length, length)
    whole = all(isinstance(n, int | np.integer) and 1 <= n <= LONGEST for n in numbers) and numbers[0] <= numbers[1]
    if length != "infinite" and not whole:
        raise InputError(
            f"length = {length!r}: expected a number of words from 1 to {LONGEST:,}, an increasing range of them, "
            "or 'infinite'"
        )
    return length if isinstance(length, str | int) else (int(numbers[0]), int(numbers[1]))  # type: ignore[return-value]


def notes_on_span(word_topics: WordTopics, moments: Moments) -> tuple[str, ...]:
    """Where A (R A)^+ does not hold as it stands, what does."""
    topics = word_topics.shape[1]
    rank = topic_basis(word_topics, moments.second).shape[1]
    if rank == topics:
        return ()
    return (
        f"Topics are dependent, or some mixtures of them never occur: documents span {rank} of {topics} dimensions. "
        "For infinite documents W* = A (R A)^+ needs all; a basis of their span is used instead of A.",
    )


def topics_alike(topic_model: TopicModel, prior: HasMoments) -> bool:
    """Whether topics are disjoint, have equal words and are exchangeable, so that W* is a handful of numbers.

    Args:
        topic_model: Words and topics.
        prior: Of documents.

    Returns:
        True or False.

    Example:
        >>> from topicscope.world import Groups
        >>> topics_alike(TopicModel(), Dirichlet()), topics_alike(TopicModel(), Groups(groups=5))
        (True, False)
    """
    topics = topic_model.topics
    if not topic_model.uniform:
        return False
    weights = prior.alpha if isinstance(prior, Dirichlet) else prior.weights if isinstance(prior, Fixed) else [0, 1]
    if weights is None or np.ptp(weights) == 0:
        return True
    return topics <= MOST_TOPICS and exchangeable(prior.moments(topics)) is not None


def exchangeable(moments: Moments) -> float | None:
    """The eigenvalue of E[theta theta'] on topic contrasts, where the topics are alike; None where they are not."""
    mean, second, topics = moments.mean, moments.second, len(moments.mean)
    square = float(np.trace(second)) / topics
    pair = (float(second.sum()) - topics * square) / max(topics * (topics - 1), 1)
    others = np.ascontiguousarray(second).ravel()[1:].reshape(topics - 1, topics + 1)[:, :-1]  # all but the diagonal
    ranges = [np.ptp(part) for part in (np.diagonal(second), others) if part.size]
    spread = max(float(max(ranges)) / square, float(np.ptp(mean)) * topics)
    if spread > MOST_SPREAD:
        return None
    return square - pair if square - pair > MOST_SPREAD * square else 0.0


def notes_on(moments: Moments) -> tuple[str, ...]:
    second, mean, norm = moments.errors
    if second <= 0:
        return ()
    return (
        f"E[theta theta'] is numerical; the standard error of an entry is {second:.2g} at most, of one of E[theta] "
        f"{mean:.2g}, and its eigenvalues may be off by {norm:.2g}. Topic contrasts whose rates this cannot tell "
        "apart are one mode."
        + ("" if moments.parts else " How far W* is off with them is not known: they have no `parts`."),
    )


def described(prior: object) -> dict[str, object]:
    """The prior's own numbers; of matrices and long lists how many there are."""
    if isinstance(prior, Moments) or not dataclasses.is_dataclass(prior) or not hasattr(prior, "kind"):
        return {"kind": type(prior).__name__.lower()}
    fields = {field.name: getattr(prior, field.name, None) for field in dataclasses.fields(prior)}
    return {
        name: value if np.ndim(value) < 2 and np.size(value) <= MOST_LISTED else f"{np.size(value):,} numbers"
        for name, value in fields.items()
        if isinstance(value, str | int | float | list) and name != "length"
    }
