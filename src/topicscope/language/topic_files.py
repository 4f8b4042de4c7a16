"""The files of fitted topics, checked as they are read: names, shapes and types of arrays, and what their head says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pydantic
from jaxtyping import Float, Int

from topicscope.ground import check_tensors, refuse, shown
from topicscope.language.topic_quality import TopicQuality

ADVICE = "fit the topics again with 'topicscope topics'"


@dataclass(frozen=True, kw_only=True)
class TopicFit:
    """How topics were fitted, and how well.

    Attributes:
        backend: Library that fitted.
        topics: Number of topics.
        iterations: Sweeps of the sampler.
        seed: Seed of the sampler.
        min_documents: Words of fewer documents were left out.
        documents: Number of documents.
        tokens: Number of words in them.
        log_likelihood: Per word, every ten sweeps.
        coherence: c_npmi per topic.
        corpus: What was read, in words.
        stability: Per topic, the share of its top words that come again in a second fit; None: no second fit.
        held_out: Number of documents by which perplexity was measured.
        perplexity: Held-out; None: no second fit.
        unigram_perplexity: Perplexity of word frequencies alone, on the same words.

    Example:
        See `fit_topics`.
    """

    backend: str
    topics: int
    iterations: int
    seed: int
    min_documents: int
    documents: int
    tokens: int
    log_likelihood: list[float]
    coherence: list[float]
    corpus: str = ""
    stability: list[float] | None = None
    held_out: int = 0
    perplexity: float | None = None
    unigram_perplexity: float | None = None


ARRAYS: dict[str, Any] = {
    "token": np.int64,
    "probability": np.float64,
    "frequency": np.float64,
    "document_topics": np.float32,
    "document_lengths": np.int64,
    "cooccurring": np.int64,
}
"""What is stored, and as which type."""


@pydantic.dataclasses.dataclass(frozen=True, config=pydantic.ConfigDict(extra="forbid", strict=True))
class Head:
    """topics.json."""

    vocabulary_size: Annotated[int, pydantic.Field(ge=1, le=2**31)]
    fingerprint: str
    digest: str  # of the tensors
    fit: TopicFit
    words: list[str]
    compared: list[TopicQuality]


def check_arrays(arrays: Mapping[str, np.ndarray], head: Head, path: Path) -> None:
    """Raise InputError unless the arrays are those of the topics and words that the head names."""
    topics, words, size = head.fit.topics, len(head.words), head.vocabulary_size
    documents = len(arrays["document_lengths"]) if "document_lengths" in arrays else 0
    pairs = len(arrays["cooccurring"]) if "cooccurring" in arrays else 0
    shapes: dict[str, tuple[int, ...]] = {
        "token": (words,),
        "probability": (topics, words),
        "frequency": (words,),
        "document_topics": (documents, topics),
        "document_lengths": (documents,),
        "cooccurring": (pairs, 2),
    }
    # shapes without memory behind them: only names, types and sizes are compared
    expected = {name: np.broadcast_to(ARRAYS[name](0), shape) for name, shape in shapes.items()}
    check_tensors(arrays, expected, path, ADVICE)
    refuse(
        *(
            (wrong, f"{shown(path)} is damaged: {said}; {ADVICE}")
            for wrong, said in (
                (_outside(arrays["token"], size), f"a token is not one of {size}"),
                (_outside(arrays["cooccurring"], words), f"a pair has a word that is not one of {words}"),
                (not _distributions(arrays["probability"]), "the probabilities of a topic do not add up to 1"),
                (not _distributions(arrays["document_topics"]), "the topics of a document do not add up to 1"),
                (_outside(arrays["document_lengths"], 2**40), "the length of a document is negative"),
                (
                    not (np.isfinite(arrays["frequency"]) & (arrays["frequency"] >= 0)).all(),
                    "a frequency is not a count",
                ),
                (len(head.fit.coherence) != topics, f"it has the coherence of {len(head.fit.coherence)} topics"),
                (len(head.fit.stability or head.fit.coherence) != topics, "it has the stability of other topics"),
            )
        )
    )


def _outside(numbers: Int[np.ndarray, ...], end: int) -> bool:
    return bool(((numbers < 0) | (numbers >= end)).any())


def _distributions(rows: Float[np.ndarray, "R n"]) -> bool:
    """Whether each row is finite, not negative, and adds up to 1 (of what was stored in half the digits: about)."""
    return bool(np.isfinite(rows).all() and (rows >= 0).all() and (np.abs(rows.sum(1) - 1) < 1e-3).all())
