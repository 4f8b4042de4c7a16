"""What is refused in the description of a topic model. Errors are ValueErrors, of which a section makes InputErrors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from topicscope.world.topics import TopicModel

USUAL_SIZE = 10  # v of the paper's experiments


def check(model: TopicModel) -> None:
    """Settings that contradict each other, and numbers that do not fit."""
    sizes, several = model.words_per_topic, isinstance(model.words_per_topic, list)
    described = {name: getattr(model, name) for name in ("word_probabilities", "zipf", "overlap", "common_words")}
    others = [name for name, value in described.items() if value is not None]
    others += ["words_per_topic"] if sizes != USUAL_SIZE else []
    for wrong, message in (
        (
            model.matrix is not None and others,
            f"topic_model.matrix says everything about the words; leave topic_model.{(others or [''])[0]} out",
        ),
        (
            model.zipf is not None and model.word_probabilities is not None,
            "topic_model.zipf and topic_model.word_probabilities both give the words of a topic their probability; "
            "give one of them",
        ),
        (
            (model.common_words is None) != (model.common_share is None),
            "topic_model.common_words and topic_model.common_share belong together; give both or neither",
        ),
        (
            isinstance(sizes, list) and len(sizes) != model.topics,
            f"topic_model.words_per_topic has {len(sizes) if isinstance(sizes, list) else 1} numbers, "
            f"but there are {model.topics} topics; give one number per topic",
        ),
        (model.overlap is not None and model.topics < 3, "topic_model.overlap needs at least 3 topics on its ring"),
    ):
        if wrong:
            raise ValueError(message)
    if model.matrix is not None and (columns := model.word_topics.shape[1]) != model.topics:
        raise ValueError(
            f"topic_model.matrix has {columns} columns, but there are {model.topics} topics; "
            "give one column per topic, or leave topic_model.topics out"
        )
    if model.word_names is not None and (count := len(model.word_names)) != model.words:
        raise ValueError(f"topic_model.word_names has {count} names; expected one per word ({model.words})")
    if model.overlap is not None:
        check_overlap(model)
    if model.word_probabilities is not None:
        (check_each if several else check_probabilities)(model)


def check_overlap(model: TopicModel) -> None:
    """Topics have enough words to share with their neighbours."""
    sizes = model.words_per_topic if isinstance(model.words_per_topic, list) else [model.words_per_topic]
    shared = [model.shared_of(size) for size in sizes]
    for t, size in enumerate(sizes):
        if not shared[t] or shared[t] + shared[t - 1] > size:
            raise ValueError(
                f"topic_model.overlap = {model.overlap:g}: topic {t + 1} has too few words ({size}) to have "
                f"{shared[t]} in common with the next topic and {shared[t - 1]} with the one before; "
                "each number has to be 1 or more, and both together no more than its words"
            )


def check_probabilities(model: TopicModel) -> None:
    """Of topics of equal size."""
    p = np.asarray(model.word_probabilities, dtype=float)
    topics, v = model.topics, model.words_per_topic
    if p.shape not in {(v,), (topics, v)}:
        raise ValueError(f"word_probabilities has shape {p.shape}; expected ({v},) for all topics, or ({topics}, {v})")
    if not (p > 0).all() or not np.allclose(p.sum(-1), 1, atol=1e-6):
        raise ValueError("word_probabilities must be positive and sum to 1 in each topic")


def check_each(model: TopicModel) -> None:
    """Of topics of unequal sizes."""
    rows = model.word_probabilities or []
    lengths = [len(row) if isinstance(row, list) else 0 for row in rows]
    if lengths != model.sizes.tolist():
        raise ValueError("word_probabilities: expected one list per topic, each as long as its words_per_topic")
    if not all(min(row) > 0 and abs(sum(row) - 1) <= 1e-6 for row in rows if isinstance(row, list)):
        raise ValueError("word_probabilities must be positive and sum to 1 in each topic")
