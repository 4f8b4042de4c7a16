from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.world.samples import one_batch
from topicscope import Dirichlet, Masking, TopicModel
from topicscope.world import InfiniteDocuments, MaskedDocuments, masked_rows, stack, word_counts


def test_weights_are_means_over_documents_of_means_over_masked_positions() -> None:
    model = TopicModel(3, 2)
    documents = Dirichlet(length=(1, 9)).sample(model, 12, np.random.default_rng(0)).finite()
    masked = Masking(0.4).draw(documents, model.words, np.random.default_rng(1))
    batch = one_batch(MaskedDocuments(documents, masked), model, Masking(0.4))
    expected = np.zeros((12, model.vocabulary, model.vocabulary))
    for document, shown, true in zip(masked.document, masked.shown, masked.true, strict=True):
        expected[document, shown, true] += 1 / 12 / (masked.document == document).sum()
    found = np.zeros_like(expected)
    for target, weight in zip(batch.target.tolist(), batch.target_weight.tolist(), strict=True):
        row, word = divmod(target, model.vocabulary)
        found[batch.row_document[row], batch.row_query[row], word] += weight
    assert found == pytest.approx(expected, abs=1e-15)
    assert batch.row_weight[0, :, 0].numpy() == pytest.approx(
        expected.sum(2)[batch.row_document, batch.row_query], abs=1e-15
    )


def test_batches_of_a_block_are_those_of_its_parts() -> None:
    """Splitting documents into batches, the last of them smaller, changes nothing in any batch."""
    model = TopicModel(3, 2)
    documents = Dirichlet(length=(2, 9)).sample(model, 11, np.random.default_rng(0)).finite()
    masked = Masking(0.4).draw(documents, model.words, np.random.default_rng(1))
    words = documents.words
    real = np.dtype("float64")
    parts = masked_rows(word_counts(words, 7), masked, 4, real, uniform=False, hide_masked=False)
    for i, part in enumerate(parts):
        rows = np.arange(4 * i, min(4 * i + 4, 11))
        (alone,) = masked_rows(
            word_counts(words[rows], 7), masked.take(rows), len(rows), real, uniform=False, hide_masked=False
        )
        for name in ("context", "document", "query", "weight", "target", "target_weight"):
            assert np.array_equal(getattr(part, name), getattr(alone, name)), name


def test_an_infinite_document_is_a_finite_one_with_exact_frequencies() -> None:
    """T=2, v=1, one topic, p_m = 1/2, p_c = p_r = 1/4: 32 positions realise every probability exactly."""
    model, masking = TopicModel(2, 1), Masking(0.5, 0.25, 0.25)
    infinite = one_batch(InfiniteDocuments(np.array([[1.0, 0.0]])), model, masking)
    # word 1 always; 16 unmasked, 16 masked: 4 correct, 2 shown as word 1, 2 as word 2, 8 as [MASK]
    assert infinite.context[0, 0].exp().tolist() == pytest.approx([8 / 32, 22 / 32, 2 / 32])
    weights = dict(zip(infinite.row_query.tolist(), infinite.row_weight[0, :, 0].tolist(), strict=True))
    assert weights == pytest.approx({0: 8 / 16, 1: 6 / 16, 2: 2 / 16})
    assert (infinite.target % 3 == 1).all()


def test_stacked_models_keep_their_rows_apart() -> None:
    model = TopicModel(2, 3)
    members = []
    for seed in range(3):
        documents = Dirichlet(length=(1, 8)).sample(model, 5, np.random.default_rng(seed)).finite()
        masked = Masking(0.5).draw(documents, model.words, np.random.default_rng(seed))
        members += masked_rows(
            word_counts(documents.words, 7), masked, 5, np.dtype("float64"), uniform=False, hide_masked=False
        )
    batch = stack(members, torch.float64)
    rows = max(len(member.document) for member in members)
    assert batch.row_weight.shape == (3, rows, 1)
    assert batch.context.shape == (3, 5, 7)
    for e, member in enumerate(members):
        assert batch.row_weight[e].sum().item() == pytest.approx(1)
        here = slice(e * rows, e * rows + len(member.document))
        assert np.array_equal(batch.row_document[here].numpy() - e * 5, member.document)
        assert np.array_equal(batch.row_query[here].numpy() - e * 7, member.query)
    assert batch.target_weight.view(3, -1).sum(1).tolist() == pytest.approx([1, 1, 1])
