from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from topicscope.measure import gram_block_means, matrix_block_means, relation_masks


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
