"""Masks, and the batches made from them."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from hypothesis import example, given, strategies as st

from tests.world.samples import keys, one_batch
from topicscope import Dirichlet, InputError, Masking, TopicModel
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
    members: list[Rows] = []
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


MODEL = TopicModel(4, 5)


def test_frequencies_are_those_of_section_3_2() -> None:
    masking = Masking(0.2, 0.3, 0.25)
    documents = Dirichlet(length=500).sample(MODEL, 2000, np.random.default_rng(0)).finite()
    masked = masking.draw(documents, MODEL.words, keys(1))
    positions, n = 10**6, len(masked.true)
    assert n / positions == pytest.approx(0.2, abs=0.002)
    shown, true = masked.shown, masked.true
    same, mask = (shown == true).mean(), (shown == MASK).mean()
    assert mask == pytest.approx(0.45, abs=5 * np.sqrt(0.25 / n))
    assert same == pytest.approx(0.3 + 0.25 / MODEL.words, abs=5 * np.sqrt(0.25 / n))
    # a replacement is uniform over all words, the true one included, and does not depend on it
    other = shown[(shown != MASK) & (shown != true)]
    assert np.bincount(other, minlength=21)[1:] / len(other) == pytest.approx(1 / 20, abs=0.005)


@pytest.mark.parametrize("p", [0.001, 1 / 256, 0.15, 0.5, 0.9985])
def test_a_byte_and_a_tie_break_give_the_probability_exactly(p: float) -> None:
    """In documents so long that none is without a masked position."""
    documents = Documents(np.ones((4, 1_000_003), dtype=np.int16), np.full(4, 1_000_003))
    share = len(Masking(p).draw(documents, MODEL.words, keys(3)).flat) / 4_000_012
    assert share == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 4_000_012))


@given(p=st.floats(0.001, 1), seed=st.integers(0, 10_000))
@example(p=1.0, seed=0)
def test_every_document_has_a_masked_position_and_the_rest_is_left_alone(p: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    documents = Dirichlet(length=(1, 6)).sample(MODEL, 25, rng).finite()
    masked = Masking(p, 0.2, 0.2).draw(documents, MODEL.words, keys(seed))
    words = documents.words
    selected, shown = masked.selected(words), masked.shown_words(words)
    assert selected.any(1).all()
    assert not selected[words < 0].any()
    assert np.array_equal(shown[~selected], words[~selected])
    assert np.array_equal(words[selected], masked.true)
    assert np.array_equal(shown[selected], masked.shown)
    if p == 1:
        assert selected[words > 0].all()


def test_take_gives_the_documents_asked_for() -> None:
    documents = Dirichlet(length=(2, 6)).sample(MODEL, 10, np.random.default_rng(0)).finite()
    masked = Masking(0.5).draw(documents, MODEL.words, keys(0))
    words = documents.words
    rows = np.array([7, 2, 2, 0])
    assert np.array_equal(masked.take(rows).shown_words(words[rows]), masked.shown_words(words)[rows])
    assert np.array_equal(masked.take(rows).true, words[rows][masked.selected(words)[rows]])


def test_a_document_of_which_no_position_was_drawn_gets_one_uniformly() -> None:
    n, lengths = 40_000, np.tile([4, 2], 20_000)
    words = np.where(np.arange(4) < lengths[:, None], 1, -1)
    masked = Masking(1e-9).draw(Documents(words, lengths), MODEL.words, keys(0))
    assert masked.document.tolist() == list(range(n))
    place = masked.flat % 4
    assert np.bincount(place[::2], minlength=4) / 20_000 == pytest.approx([1 / 4] * 4, abs=0.02)
    assert np.bincount(place[1::2], minlength=4) / 20_000 == pytest.approx([1 / 2, 1 / 2, 0, 0], abs=0.02)


def test_what_a_masked_position_shows_unless_told() -> None:
    """15% of the positions are masked; of these 80% show [MASK], 10% a random word, 10% their own."""
    assert Masking() == Masking(p_mask=0.15, p_correct=0.1, p_random=0.1, fresh=True)
    assert Masking().p_mask_word == pytest.approx(0.8)
    assert Masking(0.2, 0.25, 0.5).p_mask_word == 0.25
    assert Masking(0.2, 0.25, 0.5).k == pytest.approx(0.8 + 0.2 * 0.25)  # not masked, or masked and left as it is


@pytest.mark.parametrize(("p_correct", "p_random"), [(0.9, 0.1), (0.5, 0.5), (1, 0), (0, 1)])
def test_shares_that_sum_to_one_leave_nothing_for_the_mask(p_correct: float, p_random: float) -> None:
    masking = Masking(0.5, p_correct, p_random)
    assert masking.p_mask_word == 0  # exactly, though 1 - 0.9 - 0.1 is below 0
    documents = Dirichlet(length=20).sample(MODEL, 200, np.random.default_rng(0)).finite()
    masked = masking.draw(documents, MODEL.words, keys(0))
    assert masked.shown.min() >= 1
    assert masked.shown.max() <= MODEL.words
    assert (masked.shown == masked.true).all() == (p_correct == 1)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"p_mask": 0}, "p_mask = 0: input should be greater than or equal to 0.000000001"),
        ({"p_mask": 1.1}, "p_mask = 1.1: input should be less than or equal to 1"),
        ({"p_correct": 1.5}, "p_correct = 1.5: input should be less than or equal to 1"),
        ({"p_random": -0.1}, "p_random = -0.1: input should be greater than or equal to 0"),
        ({"p_correct": 0.6, "p_random": 0.6}, r"p_correct \+ p_random = 1.2 is more than 1"),
    ],
)
def test_impossible_probabilities_are_refused(bad: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Masking(**bad)  # type: ignore[arg-type]
