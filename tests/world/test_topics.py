from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from topicscope import InputError, RunConfig, TopicModel


def test_topics_as_in_definition_1() -> None:
    model = TopicModel(3, 4)
    assert [model.topic_of_word[i] for i in range(1, 13)] == [-(-i // 4) for i in range(1, 13)]
    assert model.topic_of_word[0] == 0
    assert (model.words, model.vocabulary) == (12, 13)
    assert TopicModel() == TopicModel(topics=10, words_per_topic=10)  # as in the paper's experiments


def test_relations_of_words() -> None:
    model = TopicModel(2, 2)
    assert model.same_topic.astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [0, 1, 1, 0, 0],
        [0, 1, 1, 0, 0],
        [0, 0, 0, 1, 1],
        [0, 0, 0, 1, 1],
    ]
    assert model.by_topic(np.arange(8).reshape(2, 4)).tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_word_probabilities_inside_topics() -> None:
    assert TopicModel(2, 2).word_in_topic.tolist() == [0, 0.5, 0.5, 0.5, 0.5]
    shared = TopicModel(2, 2, [0.25, 0.75])
    assert shared.word_in_topic.tolist() == [0, 0.25, 0.75, 0.25, 0.75]
    own = TopicModel(2, 2, [[0.25, 0.75], [0.5, 0.5]])
    assert own.word_given_topic.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert own.word_distribution(np.array([[0.5, 0.5]])).tolist() == [[0.125, 0.375, 0.25, 0.25]]
    near = TopicModel(2, 3, [0.25, 0.25, 0.5 + 5e-7])  # 1 to six digits, and made 1
    assert near.word_given_topic.sum(1) == pytest.approx(1, abs=1e-15)
    assert near.word_given_topic[1] == pytest.approx(np.array([0.25, 0.25, 0.5 + 5e-7]) / (1 + 5e-7), rel=1e-15)
    assert not own.uniform
    assert TopicModel(2, 2).uniform


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([0.0, 1.0], "must be positive and sum to 1 in each topic"),
        ([[0.5, 0.5], [0.0, 1.0]], "must be positive"),
        ([-0.5, 1.5], "must be positive"),
        ([0.5, 0.4], "sum to 1"),
        ([0.5, 0.4999], "sum to 1"),
        ([[0.5, 0.5]], "shape"),
        ([0.5, 0.25, 0.25], "shape"),
    ],
)
def test_impossible_word_probabilities_are_refused(probabilities: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RunConfig.of({"topic_model": {"topics": 2, "words_per_topic": 2, "word_probabilities": probabilities}})


def test_words_by_topic() -> None:
    assert TopicModel(2, 2, [0.25, 0.75]).word_topics.tolist() == [[0.25, 0], [0.75, 0], [0, 0.25], [0, 0.75]]
