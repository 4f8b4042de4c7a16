from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch

from tests.world.samples import keys, one_batch
from topicscope import Dirichlet, Masking, TopicModel
from topicscope.world import (
    MASK,
    Batch,
    Documents,
    InfiniteDocuments,
    Masked,
    MaskedDocuments,
    Rows,
    masked_batches,
    stack,
    word_counts,
)


def weights_by_pair(batch: Batch, vocabulary: int) -> np.ndarray:
    """The weight of every (document, word shown, true word) of a batch of one model."""
    found = np.zeros((batch.context.shape[1], vocabulary, vocabulary))
    for target, weight in zip(batch.target.tolist(), batch.target_weight.tolist(), strict=True):
        row, word = divmod(target, vocabulary)
        found[batch.row_document[row], batch.row_query[row], word] += weight
    return found


def test_words_are_counted_and_padding_is_not() -> None:
    words = np.array([[1, 1, 3, -1], [0, 2, 0, 3], [3, -1, -1, -1]])
    counts = word_counts(words, 4)
    assert counts.tolist() == [[0, 2, 0, 1], [2, 0, 1, 1], [0, 0, 0, 1]]
    assert counts.dtype == np.float32


def test_documents_too_many_to_count_at_once_are_counted_in_parts() -> None:
    words = np.random.default_rng(0).integers(0, 3, (7, 300_000)).astype(np.int16)
    assert word_counts(words, 3).tolist() == [np.bincount(row).tolist() for row in words]


def test_weights_are_means_over_documents_of_means_over_masked_positions() -> None:
    model = TopicModel(3, 2)
    documents = Dirichlet(length=(1, 9)).sample(model, 12, np.random.default_rng(0)).finite()
    masked = Masking(0.4).draw(documents, model.words, keys(1))
    batch = one_batch(MaskedDocuments(documents, masked), model, Masking(0.4))
    expected = np.zeros((12, model.vocabulary, model.vocabulary))
    for document, shown, true in zip(masked.document, masked.shown, masked.true, strict=True):
        expected[document, shown, true] += 1 / 12 / (masked.document == document).sum()
    assert weights_by_pair(batch, model.vocabulary) == pytest.approx(expected, abs=1e-15)
    assert batch.row_weight[0, :, 0].numpy() == pytest.approx(
        expected.sum(2)[batch.row_document, batch.row_query], abs=1e-15
    )


@pytest.mark.parametrize("hide_masked", [False, True])
def test_attention_sees_what_a_document_shows(hide_masked: bool) -> None:
    """Masked positions are hidden on demand, except in a document (here the second) that has no other."""
    words = np.array([[1, 1, 2, 4], [3, 4, 3, -1], [2, 2, 2, 2]])
    flat = np.array([1, 3, 4, 5, 6, 8])
    masks = Masked(4, flat, words.ravel()[flat], np.array([MASK, 4, MASK, MASK, 1, 2]))
    documents = MaskedDocuments(Documents(words, np.array([4, 3, 4])), masks)
    shown = [[1, MASK, 2, 4], [MASK, MASK, 1], [2, 2, 2, 2]]
    seen = [[1, 2], [MASK, MASK, 1], [2, 2, 2]] if hide_masked else shown
    expected = np.array([np.bincount(row, minlength=5) for row in seen], dtype=float)
    batch = one_batch(documents, TopicModel(2, 2), Masking(), hide_masked=hide_masked)
    assert batch.context[0].exp().numpy() == pytest.approx(expected)
    uniform = one_batch(documents, TopicModel(2, 2), Masking(), uniform=True, hide_masked=hide_masked)
    assert uniform.context[0].numpy() == pytest.approx(expected / expected.sum(1, keepdims=True))


def test_uniform_attention_needs_one_row_for_each_document() -> None:
    model = TopicModel(3, 2)
    documents = Dirichlet(length=(2, 9)).sample(model, 12, np.random.default_rng(0)).finite()
    masked = documents.masked(Masking(0.5), model, keys(1))
    single = one_batch(masked, model, Masking(), uniform=True)
    assert single.row_document.tolist() == list(range(12))
    assert (single.row_query == MASK).all()
    assert single.row_weight[0, :, 0].tolist() == pytest.approx([1 / 12] * 12)
    by_word = weights_by_pair(one_batch(masked, model, Masking()), 7).sum(1)
    assert weights_by_pair(single, 7)[:, MASK] == pytest.approx(by_word)


def test_batches_side_by_side_are_those_of_each_alone() -> None:
    """Three steps of two data sets, four documents each: every batch is what its documents give by themselves."""
    model, masking, real = TopicModel(3, 2), Masking(0.4), np.dtype("float64")
    words = Dirichlet(length=(2, 9)).sample(model, 24, np.random.default_rng(0)).finite().words.reshape(3, 2, 4, -1)
    text, lengths = torch.from_numpy(words), torch.from_numpy((words > 0).sum(-1))
    mask = torch.cat([keys(5), keys(6)], 1)[:, None, :, None]
    place = 4 * torch.arange(3)[:, None, None] + torch.arange(4)
    counts = torch.from_numpy(word_counts(words.reshape(24, -1), 7)).int().view(3, 2, 4, 7)
    together = masked_batches(counts, masking.draw_at(text, lengths, model.words, mask, place), torch.float64)
    for step in range(3):
        for one, seed in enumerate((5, 6)):
            drawn = masking.draw_at(text[step, one], lengths[step, one], model.words, keys(seed), place[step, 0])
            masks = Masked(words.shape[-1], *(part.numpy() for part in (drawn.flat, drawn.true, drawn.shown)))
            documents = MaskedDocuments(Documents(words[step, one], lengths[step, one].numpy()), masks)
            (alone,) = documents.batches(model, masking, real)
            rows, targets, _ = together.sizes[step, one]
            assert (rows, targets) == (len(alone.document), len(alone.target))
            ends = {"document": rows, "query": rows, "weight": rows, "target": targets, "target_weight": targets}
            assert np.array_equal(together.context[step, one].numpy(), alone.context)
            for name, end in ends.items():
                found = getattr(together, name)[step, one]
                assert np.array_equal(found[:end].numpy(), getattr(alone, name)), name
                assert (found[end:] == 0).all(), name


def test_an_infinite_document_is_a_finite_one_with_exact_frequencies() -> None:
    """T=2, v=1, one topic, p_m = 1/2, p_c = p_r = 1/4: 32 positions realise every probability exactly."""
    model, masking = TopicModel(2, 1), Masking(0.5, 0.25, 0.25)
    infinite = one_batch(InfiniteDocuments(np.array([[1.0, 0.0]])), model, masking)
    # word 1 always; 16 unmasked, 16 masked: 4 correct, 2 shown as word 1, 2 as word 2, 8 as [MASK]
    assert infinite.context[0, 0].exp().tolist() == pytest.approx([8 / 32, 22 / 32, 2 / 32])
    weights = dict(zip(infinite.row_query.tolist(), infinite.row_weight[0, :, 0].tolist(), strict=True))
    assert weights == pytest.approx({0: 8 / 16, 1: 6 / 16, 2: 2 / 16})
    assert (infinite.target % 3 == 1).all()


@pytest.mark.parametrize("share", [[[0.5, 0.25, 0.25]], [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.2, 0.3, 0.5]]])
def test_batches_of_infinite_documents_are_expectations(share: list[list[float]]) -> None:
    """Probabilities of (true word, word shown) at a position, over all cases of the masking scheme."""
    model, masking = TopicModel(3, 2, [0.25, 0.75]), Masking(0.3, 0.2, 0.1)
    context, weight = np.zeros((len(share), 7)), np.zeros((len(share), 7, 7))
    for b, row in enumerate(share):
        for true in range(1, 7):
            p = row[model.topic_of_word[true] - 1] * model.word_in_topic[true]
            context[b, true] += p * 0.7
            cases = [(true, 0.2), (MASK, 0.7), *((word, 0.1 / 6) for word in range(1, 7))]
            for word, q in cases:
                context[b, word] += p * 0.3 * q
                weight[b, word, true] += p * q / len(share)
    documents = InfiniteDocuments(np.array(share))
    plain = one_batch(documents, model, masking)
    assert plain.context[0].exp().numpy() == pytest.approx(context)
    assert weights_by_pair(plain, 7) == pytest.approx(weight)
    assert plain.row_weight[0, :, 0].numpy() == pytest.approx(
        weight.sum(2)[plain.row_document, plain.row_query], abs=1e-15
    )
    uniform = one_batch(documents, model, masking, uniform=True)
    assert uniform.context[0].numpy() == pytest.approx(context)
    assert uniform.row_query.tolist() == [MASK] * len(share)
    assert weights_by_pair(uniform, 7)[:, MASK] == pytest.approx(weight.sum(1))
    hidden = one_batch(documents, model, masking, hide_masked=True)
    own = np.insert(model.word_distribution(np.array(share)), MASK, 0, axis=1)
    assert hidden.context[0].exp().numpy() == pytest.approx(own)
    assert weights_by_pair(hidden, 7) == pytest.approx(weight)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_batch_has_the_type_asked_for(dtype: torch.dtype) -> None:
    rows = [np.array([[0.5, 0.5]]), np.array([0]), np.array([1]), np.array([1.0]), np.array([1]), np.array([1.0])]
    for models in (1, 2):
        batch = stack([Rows(*rows)] * models, dtype)
        assert batch.context.dtype == batch.row_weight.dtype == batch.target_weight.dtype == dtype
        assert batch.row_document.dtype == batch.row_query.dtype == batch.target.dtype == torch.int64
        assert batch.row_document.tolist() == [0, 1][:models]
        assert batch.row_query.tolist() == [1, 3][:models]
        assert batch.target.tolist() == [1, 3][:models]


def test_a_batch_moves_as_a_whole_and_is_not_changed() -> None:
    batch = one_batch(InfiniteDocuments(np.array([[1.0, 0.0]])), TopicModel(2, 1), Masking())
    moved = batch.to(torch.device("meta"))
    assert {part.device.type for part in moved.parts()} == {"meta"}
    with pytest.raises(FrozenInstanceError):
        batch.context = moved.context  # type: ignore[misc]


@pytest.mark.parametrize("count", [2, 3])
def test_stacked_models_keep_their_rows_apart(count: int) -> None:
    model = TopicModel(2, 3)
    members = []
    for seed in range(count):
        documents = Dirichlet(length=(1, 8)).sample(model, 5, np.random.default_rng(seed)).finite()
        masked = documents.masked(Masking(0.5), model, keys(seed))
        members += masked.batches(model, Masking(), np.dtype("float64"), size=5)
    batch = stack(members, torch.float64)
    rows = max(len(member.document) for member in members)
    assert batch.row_weight.shape == (count, rows, 1)
    assert batch.context.shape == (count, 5, 7)
    targets = batch.target.view(count, -1)
    for e, member in enumerate(members):
        assert batch.row_weight[e].sum().item() == pytest.approx(1)
        here = slice(e * rows, e * rows + len(member.document))
        assert np.array_equal(batch.row_document[here].numpy() - e * 5, member.document)
        assert np.array_equal(batch.row_query[here].numpy() - e * 7, member.query)
        assert np.array_equal(targets[e, : len(member.target)].numpy() - e * rows * 7, member.target)
        assert batch.row_weight[e, len(member.document) :].abs().sum() == 0
        assert np.array_equal(batch.context[e].numpy(), member.context)
    assert batch.target_weight.view(count, -1).sum(1).tolist() == pytest.approx([1] * count)
