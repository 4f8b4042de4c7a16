from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.world.samples import keys
from topicscope import Dirichlet, InputError, Masking, TopicModel
from topicscope.world import MASK, Documents

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


def test_p_mask_one_masks_everything() -> None:
    documents = Dirichlet(length=(3, 6)).sample(MODEL, 200, np.random.default_rng(0)).finite()
    masked = Masking(1, 0, 0).draw(documents, MODEL.words, keys(0))
    assert len(masked.true) == documents.lengths.sum()
    assert (masked.shown == MASK).all()


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
