"""Words and topics by their names, where a run's words have names: those of a corpus."""

import numpy as np
from jaxtyping import Int

from topicscope.training import Run

MOST_NAMED = 30  # words along the side of a matrix that have room for their names
TOP = 2  # words that name a topic


def topic_names(run: Run) -> list[str]:
    """The number of each topic, from 1 on; with its most probable words, where words have names."""
    model = run.config.topic_model
    if model.word_names is None:
        return [f"{t + 1}" for t in range(model.topics)]
    tops = np.argsort(-model.word_topics, axis=0, kind="stable")[:TOP].T
    return [f"{t + 1}: {', '.join(model.word_names[w] for w in top)}" for t, top in enumerate(tops)]


def named_words(run: Run) -> tuple[Int[np.ndarray, " n"], list[str]] | None:
    """[MASK] and the most probable words of each main topic, topic by topic, with their names; None without names."""
    model = run.config.topic_model
    if model.word_names is None:
        return None
    main, picked = model.main_topic[1:] - 1, [0]
    each = max(1, MOST_NAMED // model.topics)
    for topic in range(model.topics):
        words = np.flatnonzero(main == topic)
        picked += (1 + words[np.argsort(-model.word_topics[words, topic], kind="stable")][:each]).tolist()
    picked = picked[: 1 + MOST_NAMED]
    return np.array(picked), ["[MASK]", *(model.word_names[word - 1] for word in picked[1:])]
