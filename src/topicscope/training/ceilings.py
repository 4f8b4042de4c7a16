"""How much of a document's topic mixture is in the output of the sandbox's attention, and how much could be at most.

topic_ceiling(run.config, run.weights).sentence

The linear probe is the one that reads the hidden states of language models. Here the mixtures are known, and so is the
best that any probe can do: the exact posterior mean of the mixture, given the words that the masked document shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.measure import FEWEST, Interval, Scores, direct_scores, ridge_scores
from topicscope.model import ModelConfig
from topicscope.theory import shown_evidence
from topicscope.training.config import RunConfig
from topicscope.training.data import LONGEST, UNEQUAL_DOCUMENTS, RunData
from topicscope.world import MaskedDocuments

DOCUMENTS = 1000  # dev documents, at most


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

    Attributes:
        model: R^2 and 95% interval, from the model's mean attention output.
        bag_of_words: The same from the shares of words.
        posterior: The same for the exact posterior mean: the best that any probe can do.
        documents: Number of documents.

    Example:
        See `topic_ceiling`.
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
    config: RunConfig, weights: Mapping[str, np.ndarray], *, resamples: int = 1000, seed: int = 0
) -> TopicCeiling | None:
    """How much of a document's topic mixture is in the output of attention, and how much could be at most.

    Args:
        config: Config of the run; its dev documents are used.
        weights: Trained parts by name.
        resamples: Number of resamples of the bootstrap over documents.
        seed: Seed of the bootstrap.

    Returns:
        The scores; None where the mixtures are not known (a file), documents are infinite, very long or few, or the
        posterior is not exact.

    Example:
        >>> from topicscope import RunConfig, train
        >>> small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 60}}
        >>> run = train(RunConfig.of(small, steps=30))
        >>> ceiling = topic_ceiling(run.config, run.weights, resamples=50)
        >>> ceiling.documents, round(ceiling.posterior.r2, 2), ceiling.model.r2 < ceiling.posterior.r2
        (60, 1.0, True)
    """
    dev = RunData(config).dev_masked
    if not isinstance(dev, MaskedDocuments) or config.data.dev_file is not None:
        return None
    dev = dev.first(DOCUMENTS if config.topic_model.uniform else UNEQUAL_DOCUMENTS)
    shares = dev.documents.proportions
    if shares is None or len(dev) < FEWEST or dev.documents.lengths.max() > LONGEST:
        return None
    hide_masked = config.model.hide_masked
    counts, a, e = shown_evidence(config.topic_model, config.masking, dev, hide_masked=hide_masked)
    words = counts / np.maximum(counts.sum(1, keepdims=True, dtype=float), 1)
    posterior = config.documents.posterior(config.topic_model, counts[:, 1:], a, e)
    if posterior.halves is not None:  # an estimate is no ceiling
        return None
    parts = {**config.model.frozen(config.topic_model, config.masking), **weights}

    def scored(scores: Scores) -> Predicted:
        return Predicted(scores.r2, scores.interval(resamples, seed))

    return TopicCeiling(
        scored(ridge_scores(mean_outputs(config.model, parts, counts), shares, seed=seed)[0]),
        scored(ridge_scores(words, shares, seed=seed)[0]),
        scored(direct_scores(posterior.mean, shares, seed=seed)),
        len(dev),
    )


def mean_outputs(
    model: ModelConfig, parts: Mapping[str, np.ndarray], counts: Float[np.ndarray, "D V"]
) -> Float[np.ndarray, "D d"]:
    """W_V Z A + b_V (eq 6), the mean over the positions of each document, from the counts of the words it shows.

    Positions that show the same word have the same output, so one row of attention per word is enough.
    """
    scores = np.zeros((counts.shape[1],) * 2) if model.uniform_attention else word_scores(parts)
    attended = np.zeros(counts.shape)  # how much each word is attended to
    for document, count in enumerate(counts.astype(float)):
        there = np.flatnonzero(count)
        if len(there):
            here = scores[np.ix_(there, there)]
            weight = np.exp(here - here.max(1, keepdims=True)) * count[there]
            share = count[there] / count.sum()
            attended[document, there] = share @ (weight / weight.sum(1, keepdims=True))
    output = attended if model.embedding == "one-hot" else attended @ parts["embedding"].T.astype(float)
    output = output @ parts["value"].T.astype(float) if "value" in parts else output
    return output + parts["value_bias"] if "value_bias" in parts else output


def word_scores(weights: Mapping[str, np.ndarray]) -> Float[np.ndarray, "V V"]:
    """Attention scores between words (eq 5).

    Args:
        weights: Trained parts by name; a missing query matrix counts as zero.

    Returns:
        Scores (V x V), query word in rows.

    Example:
        >>> word_scores({"key": np.eye(4), "query": 2 * np.eye(4)})[0].tolist()  # 2 / sqrt(d_a)
        [1.0, 0.0, 0.0, 0.0]
    """
    key = weights["key"].astype(float)
    query = weights["query"].astype(float) if "query" in weights else np.zeros_like(key)
    if "embedding" in weights:
        key, query = key @ weights["embedding"], query @ weights["embedding"]
    key = key + weights.get("key_bias", np.zeros(1))[:, None]
    query = query + weights.get("query_bias", np.zeros(1))[:, None]
    return query.T @ key / np.sqrt(len(key))
