"""Vectors that hold word frequency, smoothly, and no topics: no control may take what is left of it for topics."""

from __future__ import annotations

import numpy as np
import pytest

from topicscope.language.verdicts import Measured, frequency
from topicscope.measure import Membership, embedding_effect, frequency_bins, pair_sums

TOPICS, WORDS = 60, 20


@pytest.mark.parametrize("seed", range(10))
def test_what_classes_of_frequency_leave_over_is_not_taken_for_topics(seed: int) -> None:
    """A topic's words are of similar frequency, and so are their vectors. Classes hold most of that, not all."""
    rng = np.random.default_rng(seed)
    topic = np.repeat(np.arange(TOPICS), WORDS)
    log_frequency = rng.normal(size=TOPICS)[topic] + rng.normal(scale=0.5, size=len(topic))
    angle = log_frequency
    vectors = np.stack([np.cos(angle), np.sin(angle)], 1)
    members = Membership(np.arange(len(topic)), topic, len(topic), TOPICS)
    sums = pair_sums(vectors, members, frequency_bins(np.exp(log_frequency)))
    found = embedding_effect([sums], resamples=200, seed=seed, matched=True)
    assert found is not None
    assert found.matched is not None
    assert found.matched.interval is not None
    assert found.difference > 0.2
    assert found.matched.interval[0] > 0  # so the interval alone would say yes
    assert frequency(Measured(effect=found, worth=0.02, shuffles=100)).answer in ("no", "unsure")
