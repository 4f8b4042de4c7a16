"""The Bayes-optimal loss against the plain way: enumerate everything that is hidden. Least squares against a model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from tests.world.samples import one_batch
from topicscope import Dirichlet, Fixed, Masking, ModelConfig, Objective, TopicModel, Weights
from topicscope.model import loss_and_gradient
from topicscope.theory import bayes_loss, uniform_optimum
from topicscope.world import InfiniteDocuments, MaskedDocuments


def full_bayes(model: TopicModel, tau: int, masking: Masking, shown: list[int], position: int) -> np.ndarray:
    """P(true word at `position` | shown words, position is masked), over all subsets, true words and masks."""
    joint = np.zeros(model.words)
    for subset in itertools.combinations(range(model.topics), tau):
        inside = [w for w in range(1, model.vocabulary) if model.topic_of_word[w] - 1 in subset]
        for truth in itertools.product(inside, repeat=len(shown)):
            p = 1.0
            for n, (true, seen) in enumerate(zip(truth, shown, strict=True)):
                masked = (
                    (masking.p_correct if seen == true else 0)
                    + (masking.p_random / model.words if seen else 0)
                    + (0 if seen else masking.p_mask_word)
                )
                p *= masked if n == position else (seen == true) * (1 - masking.p_mask) + masking.p_mask * masked
            joint[truth[position] - 1] += p
    return joint / joint.sum()


@pytest.mark.parametrize("loss", ["cross-entropy", "squared"])
def test_loss_equals_brute_force_over_everything_hidden(loss: str) -> None:
    model, masking, prior = (
        TopicModel(3, 2),
        Masking(0.3, 0.2, 0.3),
        Fixed(topics_per_document=2, length=3),
    )
    rng = np.random.default_rng(4)
    documents = prior.sample(model, 12, rng).finite()
    masked = masking.draw(documents, model.words, rng)
    words = documents.words
    shown = masked.shown_words(words)
    costs: list[list[float]] = [[] for _ in range(12)]
    for document, flat, true in zip(masked.document, masked.flat, masked.true, strict=True):
        p = full_bayes(model, 2, masking, shown[document].tolist(), flat % 3)
        costs[document].append(-np.log(p[true - 1]) if loss == "cross-entropy" else (p**2).sum() - 2 * p[true - 1] + 1)
    expected = np.mean([np.mean(cost) for cost in costs])
    found = bayes_loss(loss, model, prior, masking, MaskedDocuments(documents, masked))  # type: ignore[arg-type]
    assert found.loss == pytest.approx(expected, rel=1e-10)


def test_infinite_documents_are_the_limit_of_long_ones() -> None:
    model, masking = TopicModel(4, 3), Masking()
    long = Fixed(topics_per_document=2, length=20_000)
    rng = np.random.default_rng(0)
    documents = long.sample(model, 60, rng).finite()
    assert documents.proportions is not None
    for own_word in (True, False):
        masked = documents.masked(masking, model, rng)
        near = bayes_loss("squared", model, long, masking, masked, own_word=own_word)
        infinite = InfiniteDocuments(documents.proportions)
        exact = bayes_loss("squared", model, long, masking, infinite, own_word=own_word)
        assert near.loss == pytest.approx(exact.loss, abs=max(1e-9, 5 * near.standard_error))
        assert near.standard_error < 0.002


def test_looking_at_the_own_word_helps() -> None:
    model, masking, prior = TopicModel(), Masking(), Dirichlet()
    documents = prior.sample(model, 1000, np.random.default_rng(0)).finite()
    masked = documents.masked(masking, model, np.random.default_rng(1))
    seeing, blind = (bayes_loss("cross-entropy", model, prior, masking, masked, own_word=own) for own in (True, False))
    assert seeing.loss < blind.loss - 10 * seeing.standard_error
    assert blind.loss == pytest.approx(3.17, abs=0.04)


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
