"""Means of a matrix by the relation of two words, against a double loop over words."""

from collections import defaultdict
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from topicscope.measure import (
    WordKinds,
    gram_block_means,
    gram_relation_means,
    matrix_block_means,
    partner_means,
    relation_masks,
    shared_topic_means,
    topic_pair_means,
)


def block_means_by_loop(same: np.ndarray, matrix: np.ndarray) -> list[float]:
    groups: dict[str, list[float]] = {"same": [], "different": [], "diagonal": []}
    for i in range(1, len(same)):
        for j in range(1, len(same)):
            groups["diagonal" if i == j else "same" if same[i, j] else "different"].append(matrix[i, j])
    return [float(np.mean(group)) if group else np.nan for group in groups.values()]


@settings(max_examples=30)
@given(topics=st.integers(1, 4), v=st.integers(1, 4), d=st.integers(1, 5), seed=st.integers(0, 99))
def test_block_means_equal_a_double_loop(topics: int, v: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    topic = -(-np.arange(topics * v + 1) // v)
    embedding = rng.standard_normal((2, d, topics * v + 1))
    gram = np.einsum("edi,edj->eij", embedding, embedding)
    expected = [block_means_by_loop(topic[:, None] == topic, matrix) for matrix in gram]
    masks = relation_masks(topic, torch.float64)
    assert matrix_block_means(masks, torch.from_numpy(gram).view(2, -1)).numpy() == pytest.approx(
        np.array(expected), abs=1e-12, nan_ok=True
    )
    assert gram_block_means(topics, torch.from_numpy(embedding)).numpy() == pytest.approx(
        np.array(expected), abs=1e-10, nan_ok=True
    )


@settings(max_examples=30)
@given(n=st.integers(1, 6), topics=st.integers(1, 3), d=st.integers(1, 4), seed=st.integers(0, 99))
def test_means_of_words_with_several_topics_equal_a_double_loop(n: int, topics: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    has = rng.random((n, topics)) < 0.5
    embedding = rng.standard_normal((2, d, n + 1))
    gram = np.einsum("edi,edj->eij", embedding, embedding)
    same = np.zeros((n + 1, n + 1), dtype=bool)
    same[1:, 1:] = (has[:, None] & has).any(2) | np.eye(n, dtype=bool)
    expected = [block_means_by_loop(same, matrix) for matrix in gram]
    masks = relation_masks(same, torch.float64)
    assert matrix_block_means(masks, torch.from_numpy(gram).view(2, -1)).numpy() == pytest.approx(
        np.array(expected), abs=1e-12, nan_ok=True
    )
    if has.any(1).all():  # a word has a topic
        patterns, kind = np.unique(has, axis=0, return_inverse=True)
        related = patterns.astype(float) @ patterns.T.astype(float) > 0
        vectors = torch.from_numpy(embedding)
        means = gram_relation_means(WordKinds.of(kind.reshape(-1), related, vectors), vectors)
        assert means.numpy() == pytest.approx(np.array(expected), abs=1e-10, nan_ok=True)


def drawn(n: int, topics: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix with [MASK] first, and words that have one topic or more, each with its weight."""
    rng = np.random.default_rng(seed)
    has = rng.random((n, topics)) < 0.4
    has[np.arange(n), rng.integers(topics, size=n)] = True
    weight = has * rng.uniform(0.1, 1, (n, topics))
    return rng.standard_normal((n + 1, n + 1)), weight


@settings(max_examples=30)
@given(n=st.integers(1, 9), topics=st.integers(1, 4), seed=st.integers(0, 999))
def test_means_by_pair_of_topics_equal_a_double_loop(n: int, topics: int, seed: int) -> None:
    matrix, weight = drawn(n, topics, seed)
    expected = np.full((topics, topics), np.nan)
    for t, u in np.ndindex(topics, topics):
        total = pairs = 0.0
        for i, j in np.ndindex(n, n):
            if i != j and weight[i, t] > 0 and weight[j, u] > 0:
                total += weight[i, t] * weight[j, u] * matrix[i + 1, j + 1]
                pairs += weight[i, t] * weight[j, u]
        if pairs:
            expected[t, u] = total / pairs
    np.testing.assert_allclose(topic_pair_means(matrix, weight), expected, rtol=1e-10, atol=1e-10)


@settings(max_examples=30)
@given(n=st.integers(1, 9), topics=st.integers(1, 6), seed=st.integers(0, 999))
def test_means_by_topics_in_common_and_by_group_equal_a_double_loop(n: int, topics: int, seed: int) -> None:
    matrix, weight = drawn(n, topics, seed)
    has, group = weight > 0, np.arange(topics) // 2
    shared: dict[int, list[float]] = defaultdict(list)
    related: dict[str, list[float]] = {"same": [], "partner": [], "other": []}
    for i, j in permutations(range(n), 2):
        common = int((has[i] & has[j]).sum())
        partners = bool(set(group[has[i]]) & set(group[has[j]]))
        shared[common].append(matrix[i + 1, j + 1])
        related["same" if common else "partner" if partners else "other"].append(matrix[i + 1, j + 1])
    assert shared_topic_means(matrix, has) == {
        count: pytest.approx(np.mean(values), abs=1e-10) for count, values in sorted(shared.items())
    }
    assert partner_means(matrix, has, group) == {
        name: pytest.approx(np.mean(values), abs=1e-10) if values else None for name, values in related.items()
    }


def test_the_diagonal_and_the_mask_count_for_nothing() -> None:
    """A mean over all entries of a block, its diagonal among them, would be seen."""
    topics = np.repeat(np.eye(2), 3, axis=0)
    matrix = np.zeros((7, 7))
    matrix[0], matrix[:, 0] = 5, 5
    np.fill_diagonal(matrix, 7)
    matrix[1:4, 4:] = 2.0
    np.testing.assert_allclose(topic_pair_means(matrix, topics), [[0, 2], [0, 0]], atol=1e-12)
    assert shared_topic_means(matrix, topics > 0) == {0: pytest.approx(1.0), 1: pytest.approx(0.0)}
    means = partner_means(matrix, topics > 0, np.array([0, 1]))
    assert means == {"same": pytest.approx(0.0), "partner": None, "other": pytest.approx(1.0)}
