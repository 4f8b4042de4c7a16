"""The batches of an ensemble: epochs, masks, data sets that models share."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.training.test_data import SMALL
from topicscope import RunConfig
from topicscope.training import BLOCK, Feed, RunData, config, feed
from topicscope.world import Batch, InfiniteDocuments


def made(seeds: tuple[int, ...] = (0,), of: tuple[int, ...] | None = None, **more: Any) -> Feed:
    data = [RunData(RunConfig.of(SMALL | more, seed=seed)) for seed in seeds]
    return Feed(data, of or range(len(seeds)), torch.device("cpu"), torch.float64)


def batches(found: Feed, first: int, count: int) -> list[Batch]:
    return [place.batch() for place in found.steps(first, count)]


def queries(batch: Batch) -> torch.Tensor:
    """The query word of every row."""
    return batch.row_query % 7 if batch.queries is None else batch.queries.reshape(-1)[batch.row_query]


def equal(a: Batch, b: Batch) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.parts(), b.parts(), strict=True))


def test_every_epoch_shows_every_document_once() -> None:
    """Blocks of 50 steps of 4 documents, epochs of 90: epochs begin and end within blocks, and within steps."""
    seen = torch.cat([made().rows(BLOCK * block, BLOCK)[:, 0].flatten() for block in range(9)])
    assert len(seen) == 9 * BLOCK * 4 == 20 * 90
    epochs = seen.reshape(20, 90)
    assert (epochs.sort(1).values == torch.arange(90)).all()
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 20
    alone = made().rows(7 * BLOCK, BLOCK)  # whatever ran before
    assert torch.equal(alone.flatten(), seen[7 * BLOCK * 4 : 8 * BLOCK * 4])
    both = made((0, 5)).rows(7 * BLOCK, BLOCK)
    assert torch.equal(both[:, 0], alone[:, 0])
    assert not torch.equal(both[:, 1], alone[:, 0])


def test_a_step_is_the_same_in_whatever_company_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its seed and its number say what it shows: not the steps beside it, not the data sets beside it."""
    whole = batches(made((3,)), 0, 40)
    assert all(equal(a, b) for a, b in zip(whole[17:29], batches(made((3,)), 17, 12), strict=True))
    monkeypatch.setitem(config.AT_ONCE, "cpu", 6 * 4 * (16 + 7))  # positions are filled up to a multiple of eight
    assert made((3,)).at_once == 5
    assert made((3,)).pieces(50, 12) == [(50, 5), (55, 5), (60, 2)]
    assert all(equal(a, b) for a, b in zip(whole, batches(made((3,)), 0, 40), strict=True))
    for step, (alone, both) in enumerate(zip(whole, batches(made((2, 3)), 0, 40), strict=True)):
        rows = alone.row_weight.shape[1]
        assert torch.equal(both.context[1], alone.context[0]), step
        assert torch.equal(both.row_weight[1, :rows], alone.row_weight[0]), step
        assert torch.equal(both.row_document.view(2, -1)[1, :rows] - 4, alone.row_document), step
        assert torch.equal(queries(both).view(2, -1)[1, :rows], queries(alone)), step


def test_models_with_the_same_data_share_them() -> None:
    """Five models, two data sets: the words are there twice, and every model reads those of its own."""
    of = (0, 1, 1, 0, 1)
    shared, alone = made((0, 1), of), [made((seed,)) for seed in (0, 1)]
    for step in (0, 1, 70):
        (batch,) = batches(shared, step, 1)
        assert batch.context.shape == (2, 4, 7)
        assert batch.row_weight.shape[0] == 5
        for model, data in enumerate(of):
            (own,) = batches(alone[data], step, 1)
            rows = own.row_weight.shape[1]
            at = slice(model * batch.row_weight.shape[1], model * batch.row_weight.shape[1] + rows)
            shown = batch.context.view(-1, 7)[batch.row_document[at]]
            assert torch.equal(shown, own.context.view(-1, 7)[own.row_document])
            assert torch.equal(queries(batch)[at], queries(own))
            count = len(own.target)
            targets = batch.target.view(5, -1)[model, :count] - model * batch.row_weight.shape[1] * 7
            assert torch.equal(targets, own.target)
            assert torch.equal(batch.target_weight.view(5, -1)[model, :count], own.target_weight)


@pytest.mark.parametrize("fresh", [True, False])
def test_masks_are_drawn_anew_or_once(fresh: bool) -> None:
    """Ten documents, of which every step sees all: what they show, in any order."""
    found = made(batch_size=10, data={"documents": 10, "dev_documents": 30}, masking={"fresh": fresh})
    kinds = {tuple(sorted(map(tuple, batch.context[0].tolist()))) for batch in batches(found, 0, 2 * BLOCK)}
    assert (len(kinds) > 2) == fresh
    assert len(kinds) == 1 or fresh


def test_infinite_batches_are_of_the_size_asked_for() -> None:
    found = made(documents={"kind": "infinite", "topics_per_document": 2}, batch_size=3, data={"documents": 7})
    steps = batches(found, 50, BLOCK)
    assert [batch.context.shape for batch in steps] == [(1, 3, 7)] * BLOCK
    train = found.data[0].train
    assert isinstance(train, InfiniteDocuments)
    seen = train.take(found.rows(50, 1)[0, 0].numpy())
    (rows,) = seen.batches(found.config.topic_model, found.config.masking, size=3)
    assert np.array_equal(steps[0].context[0].numpy(), rows.context)
    assert np.array_equal(steps[0].target.numpy(), rows.target)


def test_query_words_are_listed_where_they_are_few() -> None:
    """Decided from the settings alone: 1 + 4 documents x .15 x .2 x 16 positions is less than half of 7, not of 4."""
    assert batches(made(), 0, 1)[0].queries is not None
    assert batches(made(topic_model={"topics": 3, "words_per_topic": 1}), 0, 1)[0].queries is None
    assert batches(made(model={"key": "zero"}), 0, 1)[0].queries is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"model": {"hide_masked": True}},
        {"model": {"key": "zero"}},
        {"model": {"key": "zero", "hide_masked": True}, "masking": {"p_mask": 0.9}},
        {"masking": {"fresh": False}},
        {"masking": {"fresh": False, "p_mask": 0.03}, "model": {"hide_masked": True}},
        {"masking": {"p_mask": 1.0, "p_random": 1.0, "p_correct": 0.0}},
        {"masking": {"p_mask": 0.01, "p_random": 0.0, "p_correct": 0.0}},
        {"masking": {"p_mask": 0.5, "p_random": 0.0, "p_correct": 0.7}, "model": {"hide_masked": True}},
        {"masking": {"p_mask": 63 / 256, "p_random": 0.5, "p_correct": 0.5}},
        {"documents": {"length": 1}, "masking": {"p_mask": 0.4}},
        {"documents": {"length": 40}, "batch_size": 7},
        {"documents": {"kind": "fixed", "topics_per_document": 2, "length": [1, 30]}, "batch_size": 90},
        {"topic_model": {"topics": 3, "words_per_topic": 1}},
    ],
    ids=str,
)
def test_compiled_batches_are_the_same_to_the_bit(
    more: dict[str, Any], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one data set, of two, and of five models that share two; in different epochs."""
    monkeypatch.setattr(feed, "FEW", 1000)  # nothing is listed: the vocabulary is small enough for that
    for seeds, of in (((0,), None), ((3, 4), None), ((0, 7), (0, 1, 1, 0, 1))):
        data = [RunData(RunConfig.of(SMALL | more, seed=seed)) for seed in seeds]
        plain, compiled = (
            Feed(data, of or range(len(seeds)), torch.device("cpu"), dtype, compiled=way) for way in (False, True)
        )
        for first, count in ((0, 3), (137, 20)):
            for theirs, ours in zip(batches(plain, first, count), batches(compiled, first, count), strict=True):
                assert [part.dtype for part in ours.parts()] == [part.dtype for part in theirs.parts()]
                assert [part.shape for part in ours.parts()] == [part.shape for part in theirs.parts()]
                assert equal(ours, theirs)


def test_compiled_batches_at_the_papers_size_are_the_same_to_the_bit() -> None:
    """Here one byte in 256 leaves it to another number whether a position is masked."""
    data = [RunData(RunConfig.of({"data": {"documents": 400, "dev_documents": 1}}, seed=seed)) for seed in (0, 1)]
    plain, compiled = (Feed(data, (0, 1), torch.device("cpu"), torch.float32, compiled=way) for way in (False, True))
    assert all(equal(a, b) for a, b in zip(batches(plain, 0, 50), batches(compiled, 0, 50), strict=True))


def test_listed_query_words_are_made_in_the_plain_way() -> None:
    data = [RunData(RunConfig.of(SMALL, seed=0))]
    compiled = Feed(data, (0,), torch.device("cpu"), torch.float64, compiled=True)
    assert all(equal(a, b) for a, b in zip(batches(made(), 0, 5), batches(compiled, 0, 5), strict=True))
    assert batches(compiled, 0, 1)[0].queries is not None
