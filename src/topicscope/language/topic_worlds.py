"""Fitted topics as a world for `train`: A and the law of theta from a corpus, as settings.

RunConfig.of(topic_world(Topics.load("runs/topics"), words=500).settings, steps=1000)

The world is the fitted model of the text with rarer words left out, exactly: if c_t is the share of topic t that the
kept words have, the kept words of a document have the law sum_t theta'_t A'_wt with A'_wt = A_wt / c_t and theta'_t in
proportion to theta_t c_t, and there are about sum_t theta_t c_t of them per word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, refuse, shown
from topicscope.language.topic_files import ADVICE
from topicscope.language.topics import Topics, best

WORDS = 500
MOST_MIXTURES = 1000  # documents whose mixtures are the law of theta
MOST_NUMBERS = 400_000  # that a configuration holds: config.yaml stays below 8 MB, and is read in seconds
LONGEST_NAME = 60  # signs of a word
DECIMALS = 6  # of a mixture


@dataclass(frozen=True)
class TopicWorld:
    """Fitted topics as a world for `train`.

    Attributes:
        settings: Sections of a `RunConfig`: `topic_model` and `documents`.
        notes: What was kept, in sentences.

    Example:
        See `topic_world`.
    """

    settings: dict[str, dict[str, Any]]
    notes: tuple[str, ...]


def topic_world(topics: Topics, words: int = WORDS) -> TopicWorld:
    """Make a world for `train` of fitted topics: A and the law of theta from a corpus.

    The law of theta is the mixtures of up to 1,000 documents, evenly spread over the corpus, in turn. The length of
    documents is the middle half of the lengths that the documents have in these words.

    Args:
        topics: Fitted topics.
        words: The most probable words of the corpus that are kept.

    Returns:
        Settings for `RunConfig.of`, and what was kept.

    Raises:
        InputError: The topics have no document mixtures, or the world is too large.

    Example:
        >>> from topicscope import RunConfig, topic_world
        >>> from topicscope.language import fit_topics, whole_words
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> topics = fit_topics(texts, whole_words(tokenizer), topics=2, iterations=20, stability=False)
        >>> config = RunConfig.of(topic_world(topics, words=6).settings, steps=100)
        >>> config.topic_model.topics, config.topic_model.words, config.documents.kind
        (2, 6, 'given')
    """
    refuse((words < 1, f"words = {words}: expected at least 1"))
    with_words = topics.document_lengths > 0
    if not with_words.any():
        raise InputError(f"these topics have no document mixtures, so the law of theta is not known; {ADVICE}")
    theta, lengths = topics.document_topics[with_words].astype(float), topics.document_lengths[with_words]
    probability = lengths @ theta / lengths.sum() @ topics.probability
    kept = np.sort(best(probability, min(words, int(np.count_nonzero(probability)))))
    share = topics.probability[:, kept].sum(1)  # c
    lost = np.flatnonzero(share <= 0)
    stays, mass = share > 0, theta @ share
    theta, lengths, mass = theta[mass > 0], lengths[mass > 0], mass[mass > 0]
    spread = np.unique(np.linspace(0, len(theta) - 1, min(len(theta), MOST_MIXTURES)).round().astype(int))
    columns, rows = topics.probability[stays][:, kept] / share[stays, None], (theta * share)[spread][:, stays]
    refuse(
        (
            columns.size + rows.size > MOST_NUMBERS,
            f"{len(kept):,} words and {len(rows):,} mixtures of {len(columns):,} topics are more than {MOST_NUMBERS:,} "
            "numbers; keep fewer words, or fit fewer topics",
        )
    )
    low, high = (max(1, round(float(length))) for length in np.quantile(lengths * mass, [0.25, 0.75]))
    names = [shown(topics.words[word])[:LONGEST_NAME] for word in kept]
    settings: dict[str, dict[str, Any]] = {
        "topic_model": {"matrix": significant(columns.T), "word_names": names},
        "documents": {"kind": "given", "proportions": rounded(rows), "length": [low, high]},
    }
    notes = [
        f"The world is that of {len(kept):,} of {len(topics.words):,} words ({probability[kept].sum():.0%} of "
        f"the text under the fit), {len(columns):,} topics and the mixtures of {len(rows):,} of "
        f"{len(topics.document_topics):,} documents; documents have {low:,} to {high:,} words."
    ]
    if lost.size:
        notes.append(f"{lost.size} topics have none of these words and are left out: {', '.join(map(str, lost[:10]))}.")
    return TopicWorld(settings, tuple(notes))


def significant(matrix: Float[np.ndarray, "words T"]) -> list[list[float]]:
    """Nine digits, which keep the file small; columns sum to 1 within 1e-9."""
    return [[float(f"{value:.9g}") for value in row] for row in matrix.tolist()]


def rounded(rows: Float[np.ndarray, "D T"]) -> list[list[float]]:
    """Proportions to six decimals; what is missing of 1 goes to the largest."""
    shares = np.round(rows / rows.sum(1, keepdims=True), DECIMALS)
    shares[np.arange(len(shares)), shares.argmax(1)] += 1 - shares.sum(1)
    proportions: list[list[float]] = np.round(shares, DECIMALS).tolist()
    return proportions
