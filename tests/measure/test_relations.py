from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from topicscope.measure import WordKinds, gram_block_means, gram_relation_means, matrix_block_means, relation_masks


def block_means_by_loop(topic: np.ndarray, matrix: np.ndarray) -> list[float]:
    groups: dict[str, list[float]] = {"same": [], "different": [], "diagonal": []}
    for i in range(1, len(topic)):
        for j in range(1, len(topic)):
            groups["diagonal" if i == j else "same" if topic[i] == topic[j] else "different"].append(matrix[i, j])
    return [float(np.mean(group)) if group else np.nan for group in groups.values()]


@given(topics=st.integers(1, 4), v=st.integers(1, 4), d=st.integers(1, 5), seed=st.integers(0, 99))
def test_block_means_equal_a_double_loop(topics: int, v: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    topic = -(-np.arange(topics * v + 1) // v)
    embedding = rng.standard_normal((2, d, topics * v + 1))
    gram = np.einsum("edi,edj->eij", embedding, embedding)
    expected = [block_means_by_loop(topic, matrix) for matrix in gram]
    masks = relation_masks(topic, torch.float64)
    assert matrix_block_means(masks, torch.from_numpy(gram).view(2, -1)).numpy() == pytest.approx(
        np.array(expected), abs=1e-12, nan_ok=True
    )
    assert gram_block_means(topics, torch.from_numpy(embedding)).numpy() == pytest.approx(
        np.array(expected), abs=1e-10, nan_ok=True
    )


@given(n=st.integers(1, 6), topics=st.integers(1, 3), d=st.integers(1, 4), seed=st.integers(0, 99))
def test_means_of_words_with_several_topics_equal_a_double_loop(n: int, topics: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    has = rng.random((n, topics)) < 0.5
    embedding = rng.standard_normal((2, d, n + 1))
    gram = np.einsum("edi,edj->eij", embedding, embedding)
    same = np.zeros((n + 1, n + 1), dtype=bool)
    expected = []
    for matrix in gram:
        groups: dict[str, list[float]] = {"same": [], "different": [], "diagonal": []}
        for i in range(n):
            for j in range(n):
                same[i + 1, j + 1] = (has[i] & has[j]).any() or i == j
                name = "diagonal" if i == j else "same" if same[i + 1, j + 1] else "different"
                groups[name].append(matrix[i + 1, j + 1])
        expected.append([float(np.mean(group)) if group else np.nan for group in groups.values()])
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
