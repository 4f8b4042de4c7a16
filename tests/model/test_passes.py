"""The collapsed pass equals the dense pass, loss and every gradient: the claim on which everything fast stands."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from tests.world.samples import keys, listed_batch, one_batch
from topicscope import Dirichlet, Fixed, Masking, ModelConfig, Objective, TopicModel, Weights
from topicscope.model import dense_loss, passes
from topicscope.model.passes import CompiledPass
from topicscope.world import Batch, InfiniteDocuments, MaskedDocuments, Rows, stack

LOSSES = ("cross-entropy", "squared", "squared-mean")
BIAS: st.SearchStrategy[Any] = st.sampled_from(["none", "trained", 0.3])


@st.composite
def configs(draw: st.DrawFn) -> ModelConfig:
    return ModelConfig(
        embedding=draw(st.sampled_from(["trained", "one-hot"])),
        key=draw(st.sampled_from(["trained", "trained", "zero"])),
        query=draw(st.sampled_from(["trained", "trained", "zero"])),
        value=draw(st.sampled_from(["trained", "trained", "identity", "blocks", "diagonal"])),
        head=draw(st.sampled_from(["tied", "untied", "identity"])),
        key_bias=draw(BIAS),
        query_bias=draw(BIAS),
        value_bias=draw(BIAS),
        prediction_bias=draw(st.sampled_from(["none", "trained", "theorem1", 0.2])),
        attention_dim=draw(st.sampled_from([None, 3])),
        hide_masked=draw(st.booleans()),
        init_scale=draw(st.sampled_from([0.01, 0.7, 3.0])),
    )


def compare(
    config: ModelConfig,
    objective: Objective,
    topic_model: TopicModel,
    masking: Masking,
    masked: MaskedDocuments,
    dtype: torch.dtype,
    way: Callable[[Weights, Batch], torch.Tensor] | None = None,
) -> tuple[float, float]:
    """Relative error of the loss, and of the gradient against the largest entry of the whole gradient.

    `way`: another than the collapsed pass.
    """
    weights = Weights.from_config(config, topic_model, masking, seed=3, dtype=dtype)
    for name in weights.trained:
        if name.endswith("_bias"):
            weights.parts[name].copy_(
                torch.randn(weights.parts[name].shape, generator=torch.Generator().manual_seed(1))
            )
    words, masks, vocabulary = masked.documents.words, masked.masks, topic_model.vocabulary
    layout = {"uniform": config.uniform_attention, "hide_masked": config.hide_masked}
    batch = one_batch(masked, topic_model, masking, dtype, **layout)
    loss = config.loss_and_gradient(weights, objective, batch) if way is None else way(weights, batch)
    assert way is not None or torch.equal(loss, config.loss(weights, objective, batch))
    parts = {
        name: part.clone().double().requires_grad_(name in weights.trained) for name, part in weights.member(0).items()
    }
    arrays = (words.astype(np.int64), masks.shown_words(words).astype(np.int64), masks.selected(words))
    positions, shown, selected = map(torch.from_numpy, arrays)
    data_loss = dense_loss(config, parts, objective, positions, shown, selected, vocabulary)
    total = data_loss + sum(
        rate * parts[name].square().sum() for name, rate in objective.penalties(weights.trained).items()
    )
    if not total.requires_grad:  # nothing that is trained has any influence
        return abs(loss.item() - data_loss.item()) / abs(data_loss.item()), 0.0
    exact = torch.autograd.grad(total, [parts[name] for name in weights.trained], allow_unused=True)
    # a gradient of zero is one of differences that round: both passes find some 1e-20 where there is nothing
    largest = max((g.abs().max().item() for g in exact if g is not None), default=0.0) + 1e-6
    error = 0.0
    for name, gradient in zip(weights.trained, exact, strict=True):
        wanted = torch.zeros_like(parts[name]) if gradient is None else gradient
        error = max(error, (weights.gradients[name][0].double() - wanted).abs().max().item() / largest)
    return abs(loss.item() - data_loss.item()) / abs(data_loss.item()), error


@settings(max_examples=300)
@given(
    config=configs(),
    loss=st.sampled_from(LOSSES),
    l2=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 10_000),
    length=st.sampled_from([1, (1, 2), (1, 9), (20, 30)]),
)
def test_equals_dense_in_float64(config: ModelConfig, loss: Any, l2: float, seed: int, length: Any) -> None:
    """Unequal lengths, one-word documents, query words that occur nowhere else (a random replacement is often one)."""
    topic_model, masking = TopicModel(3, 2), Masking(0.4, 0.2, 0.3)
    if not config.trained_shapes(topic_model.vocabulary):
        return
    rng = np.random.default_rng(seed)
    masked = (
        Fixed(topics_per_document=2, length=length)
        .sample(topic_model, 6, rng)
        .finite()
        .masked(masking, topic_model, keys(1))
    )
    errors = compare(config, Objective(loss, l2), topic_model, masking, masked, torch.float64)
    assert max(errors) < 1e-10


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("embedding", ["one-hot", "trained"])
@pytest.mark.parametrize("bias", ["none", "trained"])
def test_equals_dense_in_float32_at_the_papers_size(loss: Any, embedding: Any, bias: Any) -> None:
    topic_model, masking, rng = TopicModel(10, 10), Masking(), np.random.default_rng(0)
    masked = Dirichlet().sample(topic_model, 40, rng).finite().masked(masking, topic_model, keys(1))
    config = ModelConfig(
        embedding=embedding, key_bias=bias, query_bias=bias, value_bias=bias, prediction_bias=bias, init_scale=0.1
    )
    errors = compare(config, Objective(loss), topic_model, masking, masked, torch.float32)
    assert max(errors) < 1e-5


@given(scale=st.sampled_from([1.0, 30.0, 300.0]))
def test_extreme_scores_neither_overflow_nor_differ(scale: float) -> None:
    """Attention that is all but hard: the softmax is over the document's words, so its largest term is there."""
    topic_model, masking, rng = TopicModel(3, 2), Masking(0.4, 0.2, 0.3), np.random.default_rng(2)
    masked = Dirichlet(length=(1, 9)).sample(topic_model, 6, rng).finite().masked(masking, topic_model, keys(1))
    errors = compare(ModelConfig(init_scale=scale), Objective("squared"), topic_model, masking, masked, torch.float64)
    assert max(errors) < 1e-10


@pytest.mark.parametrize(("name", "loss_differs"), [("attend", True), ("product", True), ("scores_slope", False)])
def test_a_pass_that_is_off_by_a_thousandth_is_seen(monkeypatch: Any, name: str, loss_differs: bool) -> None:
    """The comparison above can fail: disturb one function of the collapsed pass, and loss or gradient differ."""
    topic_model, masking, rng = TopicModel(3, 2), Masking(0.4), np.random.default_rng(0)
    masked = Dirichlet(length=(2, 9)).sample(topic_model, 6, rng).finite().masked(masking, topic_model, keys(1))
    case = (ModelConfig(init_scale=1.0), Objective("squared"), topic_model, masking, masked, torch.float64)
    assert max(compare(*case)) < 1e-10
    exact = getattr(passes, name)
    monkeypatch.setattr(passes, name, lambda *arguments: 1.001 * exact(*arguments))
    loss_error, gradient_error = compare(*case)
    assert (loss_error > 1e-6) == loss_differs
    assert gradient_error > 1e-6


@settings(max_examples=40)
@given(config=configs(), l2=st.sampled_from([0.0, 0.1]), data=st.data())
def test_gradients_are_written_where_they_are_wanted_and_nowhere_else(
    config: ModelConfig, l2: float, data: st.DataObject
) -> None:
    """Whatever stood there before, also for a part that has no influence: its gradient is that of the penalty."""
    topic_model, masking, rng = TopicModel(3, 2), Masking(), np.random.default_rng(0)
    masked = Dirichlet(length=9).sample(topic_model, 4, rng).finite().masked(masking, topic_model, keys(1))
    weights = Weights.from_config(config, topic_model, masking, dtype=torch.float64)
    if not weights.trained:
        return
    wanted = data.draw(st.lists(st.sampled_from(weights.trained), min_size=1, unique=True))
    batch = one_batch(masked, topic_model, masking, uniform=config.uniform_attention, hide_masked=config.hide_masked)
    objective = Objective("squared", l2)
    loss = config.loss_and_gradient(weights, objective, batch)
    full = {name: gradient.clone() for name, gradient in weights.gradients.items()}
    for gradient in weights.gradients.values():
        gradient.fill_(7)
    assert torch.equal(config.loss_and_gradient(weights, objective, batch, wanted), loss)
    for name, gradient in weights.gradients.items():
        if name in wanted:
            assert torch.allclose(gradient, full[name], rtol=1e-12, atol=1e-14), name
        else:
            assert (gradient == 7).all(), name


def test_models_side_by_side_are_the_models_alone() -> None:
    """Trained parts of each, and a frozen value matrix that they share; documents of each, of unequal lengths."""
    topic_model, masking, objective = TopicModel(3, 2), Masking(0.4, 0.2, 0.3), Objective("cross-entropy", 0.01)
    for config in (
        ModelConfig(init_scale=0.7),
        ModelConfig(value="diagonal", key_bias="trained", prediction_bias="theorem1", init_scale=0.7),
        ModelConfig(embedding="trained", value="blocks", value_bias=0.3, query_bias="trained", init_scale=0.7),
        ModelConfig(embedding="trained", value="identity", head="untied", query="zero", init_scale=0.7),
        ModelConfig(value="identity", head="untied", init_scale=0.7),
    ):
        values = [config.initial(7, seed) for seed in range(3)]
        frozen = config.frozen(topic_model, masking)
        rows: list[Any] = []
        for seed in range(3):
            rng = np.random.default_rng(seed)
            documents = Dirichlet(length=(3, 9)).sample(topic_model, 5, rng).finite()
            rows += documents.masked(masking, topic_model, keys(1)).batches(topic_model, masking, np.dtype("float64"))
        together = Weights(values, frozen, dtype=torch.float64)
        losses = config.loss_and_gradient(together, objective, stack(rows, torch.float64))
        for e in range(3):
            alone = Weights([values[e]], frozen, dtype=torch.float64)
            loss = config.loss_and_gradient(alone, objective, stack([rows[e]], torch.float64))
            assert losses[e].item() == pytest.approx(loss.item(), rel=1e-13)
            for name in alone.trained:
                assert torch.allclose(together.gradients[name][e], alone.gradients[name][0], rtol=1e-11, atol=1e-14)


@settings(max_examples=40)
@given(config=configs(), l2=st.sampled_from([0.0, 0.1]), models=st.sampled_from([1, 3]))
def test_listed_queries_change_nothing(config: ModelConfig, l2: float, models: int) -> None:
    """Where few words of many are shown at masked positions, only their scores are made: loss and gradient stay."""
    topic_model, masking, rng = TopicModel(6, 5), Masking(0.4, 0.3, 0.3), np.random.default_rng(0)
    if config.uniform_attention or not config.trained_shapes(topic_model.vocabulary):
        return
    text = [Dirichlet(length=(2, 5)).sample(topic_model, 4, rng).finite() for _ in range(models)]
    documents = [one.masked(masking, topic_model, keys(number)) for number, one in enumerate(text)]
    frozen = config.frozen(topic_model, masking)
    members = [config.initial(topic_model.vocabulary, seed) for seed in range(models)]
    found = []
    for list_queries in (False, True):
        batch = listed_batch(documents, topic_model, list_queries=list_queries)
        assert (batch.queries is not None) == list_queries
        weights = Weights(members, frozen, dtype=torch.float64)
        for gradient in weights.gradients.values():
            gradient.fill_(7)
        loss = config.loss_and_gradient(weights, Objective("cross-entropy", l2), batch)
        found.append({"loss": loss, **weights.gradients})
    for name, plain in found[0].items():
        assert torch.allclose(found[1][name], plain, rtol=1e-11, atol=1e-13), name


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
