from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.world.samples import one_batch
from topicscope import Dirichlet, Masking, ModelConfig, Objective, TopicModel, Weights
from topicscope.model import loss_and_gradient
from topicscope.theory import uniform_optimum
from topicscope.world import MaskedDocuments


@pytest.mark.parametrize("bias", ["none", "trained", 0.01])
@pytest.mark.parametrize("ridge", [0.0, 1e-3])
def test_gradient_of_the_model_vanishes_there_and_the_loss_agrees(bias: float | str, ridge: float) -> None:
    """Put the optimum into the model: its loss is the one reported, and no direction is downhill."""
    topic_model, masking, rng = TopicModel(3, 2), Masking(0.3), np.random.default_rng(0)
    documents = Dirichlet(length=(5, 30)).sample(topic_model, 400, rng).finite()
    masked = MaskedDocuments(documents, masking.draw(documents, topic_model.words, rng))
    rows = masked.batches(topic_model, masking, np.dtype("float64"), uniform=True, size=100)
    fixed = np.full(7, bias) if isinstance(bias, float) else None
    found = uniform_optimum(rows, ridge=ridge, bias=fixed, free_bias=bias == "trained")
    config = ModelConfig(key="zero", query="zero", prediction_bias=bias)  # type: ignore[arg-type]
    weights = Weights.from_config(config, topic_model, masking, dtype=torch.float64)
    weights.parts["value"].copy_(torch.from_numpy(found.matrix))
    if bias == "trained":
        weights.parts["prediction_bias"].copy_(torch.from_numpy(found.bias))
    batch = one_batch(masked, topic_model, masking, uniform=True)
    loss = loss_and_gradient(config, weights, Objective("squared", {"value": ridge}), batch).item()
    assert loss == pytest.approx(found.loss, rel=1e-12)
    assert found.objective == pytest.approx(found.loss + ridge * (found.matrix**2).sum(), rel=1e-12)
    for gradient in weights.gradients.values():
        assert gradient.abs().max().item() < 1e-12
