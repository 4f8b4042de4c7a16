"""`optimum`: the exact best value matrix under uniform attention and squared loss, in any world.

>>> from topicscope.world import Dirichlet, TopicModel
>>> best = optimum(TopicModel(), Dirichlet(length=125), weighting="positions")
>>> round(best.entries.diagonal - best.entries.same_topic, 6)
0.114343
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, refuse
from topicscope.theory.dense_optimum import DenseOptimum, WordTopics, dense_optimum, topic_basis
from topicscope.theory.document_moments import WEIGHTINGS, Length, Weighting, length_weights
from topicscope.theory.setting import K_FROM, NO_K
from topicscope.theory.symmetric_optimum import SymmetricOptimum, symmetric_optimum
from topicscope.theory.value_optimum import OptimumSettings
from topicscope.world import Masking, Moments, TopicModel

MOST_WORDS = 6000  # of a world without symmetry: E[xx'] is decomposed, in minutes
MOST_TOPICS = 5000  # E[theta theta'] takes 200 MB
LONGEST = 10**7  # words of a document
MOST_SPREAD = 1e-12  # relative spread of moments that are equal by symmetry
ROUNDING = 1e-6  # by which given probabilities may miss their sum


class HasMoments(Protocol):
    """What `optimum` asks of a prior: any object with these two will do."""

    @property
    def length(self) -> Any:
        """Words of a document: a number, a range or 'infinite'."""

    def moments(self, topics: int) -> Moments:
        """E[theta] and E[theta theta']."""
        ...


class World(Protocol):
    """A configuration of `train` is one."""

    @property
    def topic_model(self) -> TopicModel:
        """Which word has which probability in which topic."""

    @property
    def documents(self) -> HasMoments:
        """The prior."""

    @property
    def masking(self) -> Masking:
        """What masked positions show."""


def optimum(
    topics: World | TopicModel | WordTopics | Sequence[Sequence[float]],
    prior: HasMoments | Moments | None = None,
    masking: Masking | None = None,
    *,
    length: Length | None = None,
    weighting: Weighting = "run",
) -> SymmetricOptimum | DenseOptimum:
    """W*, its loss and its modes.

    `topics` is a topic model or a matrix A with one row per word (without [MASK]) and one column per topic. `prior`
    has the moments of theta and the length of documents, which `length` overrides. Without a prior `topics` is a whole
    world, such as a RunConfig. The weighting 'run' is that of `train`; see `document_moments` for the others.
    """
    if prior is None:
        if not hasattr(topics, "topic_model"):
            raise InputError("a topic model needs a prior: give the law of theta, or a whole RunConfig")
        world = cast("World", topics)
        if why := getattr(world, "no_optimum", ""):  # settings of a run beside its world may rule W* out
            raise InputError(why)
        topics, prior, masking = world.topic_model, world.documents, masking or world.masking
    topics = cast("TopicModel | WordTopics", topics)
    masking = masking or Masking()
    length = checked_length(getattr(prior, "length", None) if length is None else length)
    refuse(
        (masking.k < K_FROM, NO_K),
        (weighting not in WEIGHTINGS, f"weighting = {weighting!r}: expected {', '.join(WEIGHTINGS)}"),
    )
    matrix = None if isinstance(topics, TopicModel) else checked_topics(np.asarray(topics, dtype=float))
    words, count = (topics.words, topics.topics) if isinstance(topics, TopicModel) else np.shape(topics)
    refuse((count > MOST_TOPICS, f"{count:,} topics: expected at most {MOST_TOPICS:,}, since E[theta theta'] is made"))
    moments = checked_moments(prior if isinstance(prior, Moments) else prior.moments(count), count)
    settings = OptimumSettings(
        count, words, described(prior), length, weighting, masking.p_mask, masking.p_correct, masking.p_random
    )
    weights, notes = length_weights(length, masking.p_mask, weighting), notes_on(moments)
    contrast = exchangeable(moments)
    if isinstance(topics, TopicModel) and topics.uniform and contrast is not None:
        return symmetric_optimum(settings, contrast, masking, weights, notes)
    if words > MOST_WORDS:
        raise InputError(
            f"{words:,} words: without symmetry at most {MOST_WORDS:,} are taken; "
            "disjoint topics of equally probable words with an exchangeable prior may be of any size"
        )
    if matrix is None:
        matrix = topics.word_topics if isinstance(topics, TopicModel) else np.asarray(topics)
    notes += notes_on_span(matrix, moments)
    topic = topics.topic_of_word[1:] if isinstance(topics, TopicModel) and topics.disjoint else None
    return dense_optimum(settings, matrix, moments.mean, moments.second, masking, weights, notes, topic)


def checked_length(length: Any) -> Length:
    """A length, if it is one."""
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


def exchangeable(moments: Moments) -> float | None:
    """The eigenvalue of E[theta theta'] on topic contrasts, where the topics are alike; None where they are not."""
    mean, second, topics = moments.mean, moments.second, len(moments.mean)
    square = float(np.trace(second)) / topics
    pair = (float(second.sum()) - topics * square) / max(topics * (topics - 1), 1)
    alike = np.full_like(second, pair)
    np.fill_diagonal(alike, square)
    spread = max(float(np.abs(second - alike).max()) / square, float(np.ptp(mean)) * topics)
    if spread > MOST_SPREAD:
        return None
    return square - pair if square - pair > MOST_SPREAD * square else 0.0


def checked_topics(word_topics: Float[np.ndarray, "words T"]) -> WordTopics:
    """A, whose columns are the words' probabilities in each topic."""
    shape = word_topics.shape
    if word_topics.ndim != 2 or not word_topics.size:
        raise InputError(f"word_topics has shape {shape}; expected one row per word and one column per topic")
    if not np.isfinite(word_topics).all() or (word_topics < 0).any():
        raise InputError("word_topics: every entry is a probability; found one that is negative or no number")
    sums = word_topics.sum(0)
    wrong = np.flatnonzero(np.abs(sums - 1) > ROUNDING)
    if len(wrong):
        raise InputError(
            f"word_topics: column {wrong[0] + 1} of {shape[1]} sums to {sums[wrong[0]]:.6g}; expected 1: "
            "one row per word, one column per topic"
        )
    return word_topics / sums


def checked_moments(moments: Moments, topics: int) -> Moments:
    """Moments of proportions: theta is on the simplex, so E[theta] sums to 1 and E[theta theta'] 1 = E[theta]."""
    mean, second = np.asarray(moments.mean, dtype=float), np.asarray(moments.second, dtype=float)
    if mean.shape != (topics,) or second.shape != (topics, topics):
        raise InputError(f"moments have the shapes {mean.shape} and {second.shape}; expected {topics} topics")
    allowed = ROUNDING + 10 * topics * moments.error
    on_simplex = (
        np.isfinite(second).all()
        and (mean >= -allowed).all()
        and (second >= -allowed).all()
        and abs(mean.sum() - 1) <= allowed
        and np.abs(second.sum(1) - mean).max() <= allowed
        and np.abs(second - second.T).max() <= allowed
    )
    if not on_simplex:
        raise InputError("moments: theta lies outside the simplex; proportions are not negative and sum to 1")
    return moments


def notes_on(moments: Moments) -> tuple[str, ...]:
    if moments.error <= 0:
        return ()
    return (f"E[theta theta'] is numerical; the standard error of an entry is {moments.error:.2g} at most.",)


def described(prior: object) -> dict[str, Any]:
    """The prior's own numbers, without long lists."""
    if isinstance(prior, Moments) or not dataclasses.is_dataclass(prior):
        return {"kind": type(prior).__name__.lower()}
    fields = {field.name: getattr(prior, field.name, None) for field in dataclasses.fields(prior)}
    return {name: value for name, value in fields.items() if isinstance(value, str | int | float) and name != "length"}
