"""The pairs of the co-occurrence control, by hand."""

from __future__ import annotations

import numpy as np

from topicscope.language.assignment import Assignment
from topicscope.language.attention import PairRelation
from topicscope.language.probing import of_one_topic
from topicscope.measure import Membership


def test_pairs_of_one_topic_are_counted() -> None:
    """Tokens 3 and 5 are in topic 0, token 7 in topic 1; tokens 2 and 9 are in none, and share nothing."""
    assignment = Assignment(
        token=np.array([5, 7, 3]),
        words=("b", "c", "a"),
        frequency=np.ones(3),
        membership=Membership(np.array([0, 2, 1]), np.array([0, 0, 1]), words=3, topics=2),
        threshold=0.001,
        topics_per_word="one",
        names=("first", "second"),
    )
    token = np.array([2, 3, 5, 7, 9])
    for pairs, expected in (
        ([[1, 2]], 1),  # 3 and 5
        ([[2, 3], [0, 4], [0, 1]], 0),  # two topics; no topic; one of them without
        ([[2, 1], [1, 3], [3, 4]], 1),
    ):
        assert of_one_topic(PairRelation(token, np.array(pairs), 10), assignment) == expected
