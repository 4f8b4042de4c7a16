from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from tests.theory.settings import settings_of_the_theory
from tests.world.samples import one_batch
from topicscope import ModelConfig, Objective, Weights
from topicscope.theory import Setting, enumerated_loss, population_loss, theorem2
from topicscope.world import every_document


@settings(max_examples=200)
@given(
    s=settings_of_the_theory(),
    alpha=st.floats(0.01, 100),
    beta=st.floats(0.01, 100),
    seed=st.integers(0, 999),
    biased=st.booleans(),
)
def test_symmetry_equals_enumeration_for_any_matrix(
    s: Setting, alpha: float, beta: float, seed: int, biased: bool
) -> None:
    rng = np.random.default_rng(seed)
    size = s.topic_model.vocabulary
    matrix = torch.from_numpy(rng.standard_normal((size, size)))
    bias = torch.from_numpy(rng.standard_normal(size)) if biased else None
    found = population_loss(s, matrix if bias is None else matrix + bias[:, None], alpha, beta).item()
    exact = enumerated_loss(s, matrix, alpha, beta, bias).item()
    terms = (
        1 + (matrix.square().sum() + (0 if bias is None else size * bias.square().sum())).item()
    )  # the size of what is added up
    assert abs(found - exact) < 1e-12 * terms


def test_it_is_the_loss_of_the_transformer_itself() -> None:
    """The same number from the model's own forward pass, uniform attention, all documents."""
    s = Setting.of(5, 3, 2)
    weights = Weights.from_config(
        ModelConfig(key="zero", query="zero", value="blocks"), s.topic_model, s.masking, dtype=torch.float64
    )
    batch = one_batch(every_document(s.topic_model, 2), s.topic_model, s.masking, uniform=True)
    found = ModelConfig(key="zero", query="zero", value="blocks").loss(weights, Objective("squared"), batch).item()
    assert found == pytest.approx(population_loss(s, torch.from_numpy(theorem2(s).matrix())).item(), rel=1e-13)
    assert found == pytest.approx(1 - 1 / 6, rel=1e-13)
