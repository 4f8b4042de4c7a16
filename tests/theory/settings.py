"""Random settings for the theory's tests."""

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from topicscope.ground import merged
from topicscope.theory import Population, Setting
from topicscope.training import RunConfig
from topicscope.world import Masking, TopicModel, every_document


@st.composite
def settings_of_the_theory(draw: st.DrawFn, most_topics: int = 6, most_words: int = 4, least_words: int = 1) -> Setting:
    topics = draw(st.integers(1, most_topics))
    correct = draw(st.floats(0.02, 0.6))
    return Setting.of(
        topics,
        draw(st.integers(least_words, most_words)),
        draw(st.integers(1, topics)),
        p_mask=draw(st.floats(0.02, 0.95)),
        p_correct=correct,
        p_random=draw(st.floats(0.02, 0.95 - correct)),
    )


def full_batches(loss: str, rate: float, steps: int, **more: Any) -> RunConfig:
    """SGD in float64 over all documents at once: two of three topics of two words, infinite documents."""
    proportions = every_document(TopicModel(3, 2), 2).proportions.tolist()
    settings: dict[str, Any] = {
        "device": "cpu",
        "dtype": "float64",
        "evaluate_every": None,
        "steps": steps,
        "batch_size": 3,
        "topic_model": {"topics": 3, "words_per_topic": 2},
        "documents": {"kind": "given", "proportions": proportions, "length": "infinite"},
        "data": {"documents": 3, "dev_documents": 3},
        "model": {"attention_dim": 4, "init_scale": 0.3, "prediction_bias": "none"},
        "objective": {"loss": loss},
        "optimizer": {"name": "sgd", "lr": rate},
    }
    return RunConfig.of(merged(settings, more))


def instead_of(masking: Masking, size: int) -> np.ndarray:
    return np.array([masking.p_mask_word, *[masking.p_random / (size - 1)] * (size - 1)])


def loss_by_loop(world: Population, votes: np.ndarray, scores: np.ndarray) -> float:
    """Documents, words shown and true words one by one."""
    size, total = len(votes), 0.0
    for true, shown, probability in zip(world.true, world.shown, world.probability, strict=True):
        for query in range(size):
            weight = [shown[key] * math.exp(scores[key, query]) for key in range(size)]
            predicted = votes @ np.array(weight) / sum(weight)
            for word in range(1, size):
                chance = true[word] * (world.instead[query] + world.p_correct * (word == query))
                error = predicted - np.eye(size)[word]
                squared = world.objective == "squared"
                cost = error @ error if squared else math.log(np.exp(predicted).sum()) - predicted[word]
                total += probability * chance * float(cost)
    return total
