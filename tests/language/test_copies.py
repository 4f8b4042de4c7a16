"""Copies of a document are on one side of every comparison between documents, and so is no order of the corpus."""

from __future__ import annotations

import numpy as np
import pytest

from tests.language import tiny
from tests.language.samples import THETA, assignment
from tests.language.test_label_probing import BARE, TOKENIZER, VOCABULARY
from tests.language.test_labels import NAMES, labelled
from topicscope.language import LoadedModel, checked, label_words, probe_model
from topicscope.language.probe_rows import DocumentRow
from topicscope.language.state_probing import copies_note, drawn_halves, large_text_note, once, originals


def test_originals_have_the_same_words() -> None:
    texts = ["a  boat\n", "Bread", "a boat", " bread", "Bread", ""]
    assert originals(texts).tolist() == [0, 1, 0, 3, 1, 5]
    assert once([4, 2, 3, 0], originals(texts)) == [2, 3, 4]
    assert copies_note(originals(texts)).startswith("2 of the 6 documents have the text of another")
    assert copies_note(originals(texts[:2])) == ""


@pytest.mark.parametrize("seed", range(5))
def test_halves_hold_as_many_texts_and_all_copies_of_each(seed: int) -> None:
    of = originals([f"text {number % 31}" for number in range(80)])
    halves = drawn_halves(of, seed)
    assert all(len(set(halves[of == text])) == 1 for text in of)
    assert abs(int(drawn_halves(np.arange(31), seed).sum()) - 15.5) == 0.5
    assert halves.tolist() == drawn_halves(of, seed).tolist() != drawn_halves(of, seed + 1).tolist()


def loaded_model() -> LoadedModel:
    return checked("encoder", tiny.model("encoder", len(TOKENIZER)), TOKENIZER)


def test_topics_in_turn_leave_words_to_compare() -> None:
    """Documents of even number hold the words of two topics, the others those of the other two."""
    a = assignment(VOCABULARY, several=False)
    topics = [[a.words[w] for w in a.membership.word[a.membership.topic == k]] for k in range(2)]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(topics[number % 2], 12)) for number in range(40)]
    rows = probe_model(loaded_model(), texts, a, BARE, vocabulary=VOCABULARY).states
    assert {row.words for row in rows} == {sum(map(len, topics))}


def test_copies_do_not_tell_the_label() -> None:
    """Labels by chance, each document twice: with copies in both, four folds know most of the fifth."""
    texts, _ = labelled(60)
    drawn = np.random.default_rng(17).integers(len(NAMES), size=60)
    labels: list[str | None] = [NAMES[k] for k in drawn]
    words = label_words(texts, labels, VOCABULARY)
    one = probe_model(loaded_model(), texts, words, BARE, labels=labels, vocabulary=VOCABULARY)
    two = probe_model(loaded_model(), texts * 2, words, BARE, labels=labels * 2, vocabulary=VOCABULARY)
    assert [row.documents for row in two.labels] == [60] * 3
    assert [row.accuracy for row in two.labels] == pytest.approx([row.accuracy for row in one.labels])
    assert max(row.accuracy for row in two.labels) < 0.5
    for row, alone in zip(two.states, one.states, strict=True):
        assert row.mixture is not None
        assert alone.mixture is not None
        assert row.mixture.documents == 60
        assert row.mixture.mixture_r2 == pytest.approx(alone.mixture.mixture_r2)
    assert any(note.startswith("60 of the 120 documents have the text of another") for note in two.notes)
    assert not any("text of another" in note for note in one.notes)


def test_a_text_has_the_label_of_a_copy_that_has_one() -> None:
    texts, labels = labelled(60)
    words = label_words(texts, labels, VOCABULARY)
    given: list[str | None] = [*[None] * 60, *labels]
    probe = probe_model(loaded_model(), texts * 2, words, BARE, labels=given, vocabulary=VOCABULARY)
    assert {row.documents for row in probe.labels} == {60}
    assert BARE.thresholds == (THETA,)


def measured_rows(pairs: list[tuple[int, int, int]], place: int | None = None) -> list[DocumentRow]:
    """Documents with so many pairs of one topic, pairs of different topics and topic words."""
    return [
        DocumentRow(
            model="m",
            document=number,
            place=None if place is None else place + number,
            words=9,
            tokens=9,
            topic_words=topic_words,
            topics=[],
            threshold=None,
            part="encoder",
            same=None,
            different=None,
            contrast=None,
            same_pairs=same,
            different_pairs=different,
        )
        for number, (same, different, topic_words) in enumerate(pairs)
    ]


@pytest.mark.parametrize(
    ("large", "said"),
    [
        ((20, 20, 20), ""),  # exactly a fifth of all
        ((21, 20, 20), "21% of the pairs of positions of one topic"),
        ((20, 80, 20), "50% of the pairs of positions of different topics"),
        ((20, 20, 80), "50% of the positions of topic words"),
    ],
)
def test_a_text_with_more_than_a_fifth_is_named(large: tuple[int, int, int], said: str) -> None:
    rows = measured_rows([(10, 10, 10)] * 8 + [large], place=101)
    note = large_text_note(rows, np.arange(9))
    assert (said in note) if said else not note
    assert not said or note.startswith("warning: document 109 of the corpus has ")


def test_copies_count_as_one_text() -> None:
    rows, texts = measured_rows([(10, 10, 10)] * 10), [*map(str, range(7)), "same", "same", "same"]
    assert large_text_note(rows, np.arange(10)) == large_text_note([], np.arange(0)) == ""
    note = large_text_note(rows, originals(texts))
    assert note.startswith("warning: document 7 with 2 of its copies has 30% of the pairs of positions of one topic")


def test_a_probe_warns_of_a_long_document() -> None:
    """Some documents may lack a row, as the empty one does."""
    a = assignment(VOCABULARY, several=False)
    short, long = "honey garlic boat anchor", " ".join(["honey garlic boat anchor"] * 6)
    for texts, named in (
        ([short + f" {n}" for n in range(8)], ""),
        (["", *[short + f" {n}" for n in range(8)], long], "9"),
    ):
        probe = probe_model(loaded_model(), texts, a, BARE, vocabulary=VOCABULARY)
        said = [line for line in probe.summary() if line.startswith("warning: document ")]
        assert [line.split()[2] for line in said] == ([named] if named else [])
        assert set(said) <= set(probe.as_dict()["notes"])
