"""Distances between topics, their neighbours and their map, against plain loops in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from topicscope.measure import hellinger, nearest_topics, topic_map, topic_maps


def topics_of(seed: int, count: int = 7, words: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(words, 0.3), count)


def distance(p: np.ndarray, q: np.ndarray) -> float:
    return math.sqrt(max(0.0, 1 - sum(math.sqrt(a * b) for a, b in zip(p, q, strict=True))))


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 4))
def test_distances_and_neighbours_are_those_of_a_loop(seed: int, rows: int) -> None:
    probability = topics_of(seed)
    by_hand = [[distance(p, q) for q in probability] for p in probability]
    np.testing.assert_allclose(hellinger(probability, probability) ** 2, np.square(by_hand), atol=1e-10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topic_maps, "ROWS", rows)
        nearest, far = nearest_topics(probability)
    for k, row in enumerate(by_hand):
        others = {j: one for j, one in enumerate(row) if j != k}
        assert others[int(nearest[k])] == pytest.approx(min(others.values()), abs=1e-10)
        assert far[k] == pytest.approx(min(others.values()), abs=1e-10)


def test_topics_without_a_common_word_are_at_distance_one() -> None:
    assert hellinger(np.eye(3), np.eye(3)).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert nearest_topics(np.eye(3))[0].tolist() == [1, 0, 0]  # ties: the first


@given(seed=st.integers(0, 10**6))
def test_three_topics_lie_in_the_plane_at_their_distances(seed: int) -> None:
    probability = topics_of(seed, count=3)
    found = topic_map(probability)
    assert found.shown == pytest.approx(1.0, abs=1e-10)
    for i in range(3):
        for j in range(3):
            apart = math.dist(found.places[i], found.places[j])
            assert apart**2 == pytest.approx(distance(probability[i], probability[j]) ** 2, abs=1e-10)


@given(seed=st.integers(0, 10**6))
def test_the_map_is_classical_scaling_of_the_distances(seed: int) -> None:
    probability = topics_of(seed)
    squares = np.array([[distance(p, q) ** 2 for q in probability] for p in probability])
    centre = np.eye(7) - 1 / 7
    values = np.linalg.eigvalsh(-centre @ squares @ centre / 2)[::-1]
    found = topic_map(probability)
    np.testing.assert_allclose((found.places**2).sum(0), values[:2], atol=1e-10)
    np.testing.assert_allclose(found.places.sum(0), 0, atol=1e-10)
    assert found.shown == pytest.approx(values[:2].sum() / values.sum(), abs=1e-10)
    largest = np.abs(found.places).argmax(0)
    assert (found.places[largest, [0, 1]] > 0).all(), "signs are fixed"


def test_a_map_of_topics_that_differ_in_one_way_is_a_line() -> None:
    two = topic_map(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert two.places[:, 1].tolist() == [0.0, 0.0]
    assert two.places[:, 0].tolist() == pytest.approx([0.5, -0.5])  # of equal ones the first is positive
    same = topic_map(np.full((3, 4), 0.25))
    assert (same.places.tolist(), same.shown) == ([[0.0, 0.0]] * 3, 1.0)
