"""Words of finite documents, drawn from topic proportions without a loop over documents or positions."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from topicscope.world.documents import word_type
from topicscope.world.topics import TopicModel

AT_A_TIME = 50_000
"""Words drawn together, so that the temporaries stay in cache."""

COMPARED = 32
"""Choices up to which one comparison with each threshold is several times faster than bisection."""


def sample_words(
    topic_model: TopicModel, proportions: Float[np.ndarray, "D T"], length: int, rng: np.random.Generator
) -> Int[np.ndarray, "D N"]:
    """Topic by inversion of each document's cumulative proportions, then a word of the topic."""
    dtype = word_type(topic_model)
    words = np.empty((len(proportions), length), dtype=dtype)
    v = topic_model.words_per_topic
    slice_size = max(1, AT_A_TIME // length)
    cumulative = np.cumsum(proportions, axis=1)
    last = topic_model.topics - 1 - np.argmax(proportions[:, ::-1] > 0, axis=1)
    cumulative[np.arange(topic_model.topics) >= last[:, None]] = 1  # rounding may not lead past the last topic present
    within = np.cumsum(topic_model.word_given_topic, axis=1)
    within[:, -1] = 1
    for start in range(0, len(proportions), slice_size):
        rows = slice(start, start + slice_size)
        topic = _invert(cumulative[rows], rng.random((len(proportions[rows]), length)))
        if topic_model.uniform:
            word = rng.integers(1, v + 1, size=topic.shape, dtype=dtype)
        else:
            flat = topic.ravel()
            word = 1 + _invert(within[flat], rng.random((len(flat), 1))).reshape(topic.shape)
        words[rows] = np.multiply(topic, v, dtype=dtype, casting="unsafe") + word
    return words


def _invert(cumulative: Float[np.ndarray, "D K"], uniform: Float[np.ndarray, "D N"]) -> Int[np.ndarray, "D N"]:
    """For each number of a row, how many of the row's cumulative probabilities it has passed."""
    choices = cumulative.shape[1]
    if choices > COMPARED:
        import torch

        return torch.searchsorted(
            torch.from_numpy(cumulative), torch.from_numpy(uniform), right=True, out_int32=True
        ).numpy()
    passed = np.zeros(uniform.shape, dtype=np.int16)
    for choice in range(choices - 1):
        passed += uniform >= cumulative[:, choice, None]
    return passed
