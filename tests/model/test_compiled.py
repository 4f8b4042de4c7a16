"""The compiled pass is the collapsed pass: the same loss and gradients, written in the same places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from tests.model.test_collapsed import LOSSES, compare, configs
from tests.world.samples import keys, one_batch
from topicscope import Dirichlet, Masking, ModelConfig, Objective, TopicModel, Weights
from topicscope.model.passes import CompiledPass
from topicscope.world import Batch, InfiniteDocuments, Rows, stack

ONE_HOT = configs().filter(lambda config: config.one_hot)
TOPIC_MODEL, MASKING = TopicModel(3, 2), Masking(0.4, 0.2, 0.3)


def batches(config: ModelConfig, seeds: range, length: Any = (1, 9), real: str = "float64") -> list[Rows]:
    """One of each seed, of different sizes."""
    rows: list[Rows] = []
    for seed in seeds:
        documents = Dirichlet(length=length).sample(TOPIC_MODEL, 5, np.random.default_rng(seed))
        layout = config.layout._asdict()
        if isinstance(documents, InfiniteDocuments):
            rows += documents.batches(TOPIC_MODEL, MASKING, np.dtype(real), **layout)
        else:
            masked = documents.finite().masked(MASKING, TOPIC_MODEL, keys(seed))
            rows += masked.batches(TOPIC_MODEL, MASKING, np.dtype(real), **layout)
    return rows


def drawn(config: ModelConfig, seeds: range, dtype: torch.dtype = torch.float64) -> Weights:
    """Models whose biases are not zero; what stands in their gradients is to be overwritten."""
    rng = np.random.default_rng(1)
    members = [config.initial(7, seed) for seed in seeds]
    for member in members:
        member |= {name: rng.standard_normal(part.shape) for name, part in member.items() if name.endswith("_bias")}
    weights = Weights(members, config.frozen(TOPIC_MODEL, MASKING), dtype=dtype)
    for gradient in weights.gradients.values():
        gradient.fill_(7)
    return weights


def both(
    config: ModelConfig, objective: Objective, models: range, batch: Batch, wanted: Any = None
) -> list[dict[str, torch.Tensor]]:
    """Losses and gradients of the collapsed and of the compiled pass."""
    plain, ours = (drawn(config, models, batch.context.dtype) for _ in range(2))
    losses = (
        config.loss_and_gradient(plain, objective, batch, wanted),
        CompiledPass(config, ours, objective)(batch, wanted),
    )
    return [{"loss": loss} | weights.gradients for loss, weights in zip(losses, (plain, ours), strict=True)]


@settings(max_examples=200)
@given(
    config=ONE_HOT,
    loss=st.sampled_from(LOSSES),
    l2=st.sampled_from([0.0, 0.1]),
    models=st.sampled_from([1, 3]),
    length=st.sampled_from([1, (1, 9), (20, 30), "infinite"]),
    data=st.data(),
)
def test_equals_the_collapsed_pass_in_float64(
    config: ModelConfig, loss: Any, l2: float, models: int, length: Any, data: st.DataObject
) -> None:
    trained = tuple(config.trained_shapes(7))
    if not trained:
        return
    wanted = data.draw(st.none() | st.lists(st.sampled_from(trained), min_size=1, unique=True))
    rows = batches(config, range(models), length)
    plain, ours = both(config, Objective(loss, l2), range(models), stack(rows, torch.float64), wanted)
    largest = max(part.abs().max().item() for part in plain.values())
    for name, exact in plain.items():
        assert torch.allclose(ours[name], exact, rtol=1e-10, atol=1e-11 * largest), name
    for name in set(trained) - set(trained if wanted is None else wanted):
        assert (ours[name] == 7).all(), name


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [0.02, 0.1, 3.0, 30.0])
def test_equals_the_dense_pass_in_float32_at_the_papers_size(loss: Any, scale: float) -> None:
    """Also where attention is all but hard: the float32 exponential is as good as any."""
    topic_model, masking, objective = TopicModel(10, 10), Masking(), Objective(loss)
    documents = Dirichlet().sample(topic_model, 40, np.random.default_rng(0)).finite()
    masked = documents.masked(masking, topic_model, keys(1))
    config = ModelConfig(key_bias="trained", prediction_bias="trained", init_scale=scale)
    case = (config, objective, topic_model, masking, masked, torch.float32)
    ours = compare(*case, lambda w, b: CompiledPass(config, w, objective)(b))
    plain = compare(*case)
    assert max(ours) < max(1e-5, 2 * max(plain))


def test_the_exponential_of_float32() -> None:
    """To two units in the last place; zero below what float32 holds; NaN stays NaN."""
    from topicscope.model import kernels

    numbers = np.concatenate([np.linspace(-87.2, 0, 100_001), -np.logspace(-9, 1, 1000)]).astype(np.float32)
    found, exact = numbers.copy(), np.exp(numbers.astype(np.float64))
    total = kernels.exponentials(found, np.float32(0), np.ones_like(found))
    assert np.abs(found / exact - 1).max() < 2.5e-7
    assert total == pytest.approx(exact.sum(), rel=1e-5)
    odd = np.array([-np.inf, -1000, -87.4, 0, np.nan], dtype=np.float32)
    assert np.isnan(kernels.exponentials(odd, np.float32(0), np.ones_like(odd)))
    assert odd[:4].tolist() == [0, 0, 0, 1]
    assert np.isnan(odd[4])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_of_a_row_of_any_length(dtype: Any) -> None:
    from topicscope.model import kernels

    rng, lanes = np.random.default_rng(0), np.empty(kernels.LANES, dtype)
    for length in range(1, 40):
        row = rng.standard_normal(length).astype(dtype) - 5
        for place in range(length):
            row[place] += 100
            assert kernels.largest(row, lanes) == row.max() == row[place]
            row[place] = -np.inf


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_model_is_the_same_alone_together_and_again(loss: Any, dtype: torch.dtype) -> None:
    """To the byte, though its batch is filled up to the size of the largest beside it."""
    config, objective = ModelConfig(init_scale=0.7, query_bias="trained"), Objective(loss, 0.01)
    rows = batches(config, range(3), real=str(dtype).removeprefix("torch."))
    weights, batch = drawn(config, range(3), dtype), stack(rows, dtype)
    together = CompiledPass(config, weights, objective)(batch)
    first = {name: gradient.clone() for name, gradient in weights.gradients.items()}
    again = CompiledPass(config, weights, objective)
    assert all(torch.equal(again(batch), together) for _ in range(2))
    assert all(torch.equal(weights.gradients[name], first[name]) for name in first)
    for e in range(3):
        members = {name: part.numpy() for name, part in weights.member(e).items()}
        alone = Weights([members], {}, dtype=dtype)
        assert CompiledPass(config, alone, objective)(stack([rows[e]], dtype)).item() == together[e].item()
        assert all(torch.equal(alone.gradients[name][0], first[name][e]) for name in first)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("part", ["key", "value", "prediction_bias"])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_not_finite_shows_in_the_loss_and_spreads_to_no_other_model(loss: Any, part: str, odd: float) -> None:
    config = ModelConfig(init_scale=0.7)
    batch = stack(batches(config, range(2), real="float32"), torch.float32)
    weights = drawn(config, range(2), torch.float32)
    weights.parts[part][1].fill_(odd)
    found = CompiledPass(ModelConfig(), weights, Objective(loss))(batch)
    assert found.isfinite().tolist() == [True, False]
    assert all(weights.gradients[name][0].isfinite().all() for name in weights.trained)


def test_one_batch_of_the_plain_way() -> None:
    """A batch that is a view into larger arrays is read as it is."""
    config, objective = ModelConfig(init_scale=0.7), Objective()
    documents = Dirichlet(length=(1, 9)).sample(TOPIC_MODEL, 6, np.random.default_rng(0)).finite()
    batch = one_batch(documents.masked(MASKING, TOPIC_MODEL, keys(1)), TOPIC_MODEL, MASKING)
    spread = batch.map(lambda part: torch.stack([part, part], -1)[..., 0])
    assert not spread.context.is_contiguous()
    plain, ours = both(config, objective, range(1), spread)
    assert torch.allclose(plain["value"], ours["value"], rtol=1e-10, atol=1e-13)
