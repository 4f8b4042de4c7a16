from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.world.samples import keys
from topicscope import Dirichlet, Fixed, Given, InputError, Masking, TopicModel, read_documents, write_documents
from topicscope.world import MASK, Documents, InfiniteDocuments, every_document
from topicscope.world.documents import sample_words


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def within(observed: np.ndarray, expected: np.ndarray, n: int, sigmas: float = 5) -> bool:
    """Frequencies of n draws lie within `sigmas` standard deviations of their probabilities."""
    return bool((np.abs(observed - expected) <= sigmas * np.sqrt(expected * (1 - expected) / n) + 1e-12).all())


@given(
    topics=st.integers(1, 6),
    v=st.integers(1, 4),
    tau=st.integers(1, 6),
    low=st.integers(1, 5),
    more=st.integers(0, 5),
    seed=st.integers(0, 99),
)
def test_fixed_documents_hold_only_their_topics(topics: int, v: int, tau: int, low: int, more: int, seed: int) -> None:
    tau = min(tau, topics)
    model = TopicModel(topics, v)
    documents = Fixed(topics_per_document=tau, length=(low, low + more)).sample(model, 30, rng(seed)).finite()
    assert documents.proportions is not None
    assert ((documents.proportions > 0).sum(1) == tau).all()
    assert np.allclose(documents.proportions.sum(1), 1)
    for row, length, share in zip(documents.words, documents.lengths, documents.proportions, strict=True):
        assert low <= length <= low + more
        assert (row[length:] == -1).all()
        assert (row[:length] >= 1).all()
        assert (share[model.topic_of_word[row[:length]] - 1] > 0).all()


@pytest.mark.parametrize("topics", [10, 40])  # one path up to 32 topics, another above
def test_words_follow_the_proportions(topics: int) -> None:
    model = TopicModel(topics, 2, [0.3, 0.7])
    share = np.random.default_rng(5).dirichlet(np.full(topics, 0.3))
    share[3] = 0
    share /= share.sum()
    n = 200_000
    documents = Given(proportions=[share.tolist()], length=n).sample(model, 1, rng()).finite()
    frequency = np.bincount(documents.words[0], minlength=model.vocabulary)[1:] / n
    assert within(frequency, model.word_distribution(share[None])[0], n)
    assert frequency[6] == frequency[7] == 0


def test_lengths_are_uniform_in_the_range() -> None:
    lengths = Dirichlet(length=(3, 6)).sample(TopicModel(2, 2), 40_000, rng()).finite().lengths
    assert within(np.bincount(lengths, minlength=7)[3:] / 40_000, np.full(4, 0.25), 40_000)


def test_a_seed_means_the_same_documents_in_every_version() -> None:
    """Stored runs are drawn again from their seed."""
    equal = Fixed(topics_per_document=2, length=(3, 5)).sample(TopicModel(3, 4), 3, rng()).finite()
    assert equal.words.tolist() == [[8, 12, 8, 10, -1], [8, 8, 4, 1, 4], [2, 10, 11, -1, -1]]
    unequal = Dirichlet(alpha=1.0, length=4).sample(TopicModel(2, 2, [0.3, 0.7]), 3, rng()).finite()
    assert unequal.words.tolist() == [[3, 4, 3, 3], [2, 2, 2, 2], [4, 2, 4, 4]]


@pytest.mark.parametrize("topics", [4, 40])  # one path up to 32 topics, another above
def test_rounding_leads_to_no_topic_that_is_not_there(topics: int) -> None:
    """Shares that sum to less than 1, by far more than rounding: the last topic present takes what is missing."""
    share = np.zeros((3, topics))
    share[0, :2], share[1, 3], share[2, [0, 2]] = 0.25, 0.5, 0.1
    words = sample_words(TopicModel(topics, 1), share, 5000, rng())
    shares = [np.bincount(row, minlength=topics + 1)[1:] / 5000 for row in words]
    for found, last, expected in zip(shares, (1, 3, 2), (0.75, 1.0, 0.9), strict=True):
        assert found[last + 1 :].sum() == 0
        assert within(found[last], np.array(expected), 5000)


@pytest.mark.parametrize("choices", [2, 40])
def test_a_number_on_a_threshold_has_passed_it(choices: int) -> None:
    """Shares of 0: the first topic's threshold is 0, and a drawn 0.0 belongs to the next topic."""

    class Zeros(np.random.Generator):
        def random(self, size: tuple[int, ...]) -> np.ndarray:  # type: ignore[override]
            return np.zeros(size)

    share = np.zeros((1, choices))
    share[0, 1] = 1
    assert (sample_words(TopicModel(choices, 1), share, 6, Zeros(np.random.PCG64(0))) == 2).all()


@pytest.mark.parametrize(("topics", "dtype"), [(3276, np.int16), (4000, np.int32)])
def test_every_word_of_a_large_vocabulary_has_its_number(topics: int, dtype: type, tmp_path: Path) -> None:
    model = TopicModel(topics, 10)
    share = np.zeros((1, topics))
    share[0, -1] = 1
    words = sample_words(model, share, 300, rng())
    assert set(words[0].tolist()) == set(range(10 * topics - 9, 10 * topics + 1))
    (tmp_path / "d").write_text(f"0 {model.words - 1} END\n")
    read = read_documents(tmp_path / "d", model).words
    assert read.tolist() == [[1, model.words]]
    assert words.dtype == read.dtype == dtype


def test_documents_are_not_changed() -> None:
    documents = Fixed(length=3).sample(TopicModel(4, 3), 2, rng()).finite()
    masked = documents.masked(Masking(), TopicModel(4, 3), keys())
    for record in (documents, masked, masked.masks, every_document(TopicModel(2, 2), 1)):
        with pytest.raises(FrozenInstanceError):
            setattr(record, next(iter(vars(record))), None)


def test_take_gives_the_documents_asked_for() -> None:
    documents = Fixed(topics_per_document=2, length=(2, 6)).sample(TopicModel(4, 3), 8, rng()).finite()
    rows = np.array([5, 0, 5])
    taken = documents.take(rows)
    assert documents.proportions is not None
    assert taken.proportions is not None
    assert np.array_equal(taken.words, documents.words[rows])
    assert np.array_equal(taken.lengths, documents.lengths[rows])
    assert np.array_equal(taken.proportions, documents.proportions[rows])
    assert len(documents.take(slice(3))) == 3
    unknown = Documents(documents.words, documents.lengths).take(rows)
    assert unknown.proportions is None
    assert np.array_equal(unknown.words, taken.words)


def test_the_first_documents_keep_their_masks() -> None:
    model, masking = TopicModel(4, 3), Masking(0.5)
    masked = Fixed(length=(2, 6)).sample(model, 8, rng()).finite().masked(masking, model, keys(1))
    first = masked.first(3)
    assert len(first) == 3
    shown = masked.masks.shown_words(masked.documents.words)
    assert np.array_equal(first.masks.shown_words(first.documents.words), shown[:3])
    assert np.array_equal(first.shown_counts(13), masked.shown_counts(13)[:3])
    assert masked.shown_counts(13).tolist() == [np.bincount(row[row >= 0], minlength=13).tolist() for row in shown]
    assert masked.shown_counts(13)[:, MASK].any()
    assert len(masked.first(99)) == 8


def test_infinite_documents_have_proportions_and_no_words(tmp_path: Path) -> None:
    model, masking = TopicModel(4, 3), Masking()
    documents = Fixed(topics_per_document=2, length="infinite").sample(model, 7, rng())
    assert isinstance(documents, InfiniteDocuments)
    assert ((documents.proportions > 0).sum(1) == 2).all()
    assert documents.masked(masking, model, keys()) is documents
    assert np.array_equal(documents.take(slice(2)).proportions, documents.proportions[:2])
    assert np.array_equal(documents.take(np.array([6, 1])).proportions, documents.proportions[[6, 1]])
    sizes = [len(rows.context) for rows in documents.batches(model, masking, size=3)]
    assert sizes == [3, 3, 1]
    many = documents.take(np.arange(120) % 7)
    assert [len(rows.context) for rows in many.batches(model, masking)] == [50, 50, 20]
    for act in (documents.finite, lambda: write_documents(documents, tmp_path / "d")):
        with pytest.raises(InputError, match=r"infinite documents have no words; give documents.length a number"):
            act()


def test_batches_hold_every_document_once() -> None:
    model, masking = TopicModel(4, 3), Masking()
    masked = Dirichlet(length=(2, 6)).sample(model, 1003, rng()).finite().masked(masking, model, keys(1))
    batches = [*masked.batches(model, masking, np.dtype("float64"))]
    assert [len(rows.context) for rows in batches] == [500, 500, 3]
    assert [rows.weight.sum() for rows in batches] == pytest.approx([1, 1, 1])


def test_every_document_is_there_once() -> None:
    share = every_document(TopicModel(5, 2), 2).proportions
    assert len(np.unique(share, axis=0)) == len(share) == 10
    assert set(np.unique(share)) == {0, 0.5}
    assert share.sum(1).tolist() == [1.0] * 10
    assert every_document(TopicModel(4, 2), 3).proportions.max() == 1 / 3


@given(seed=st.integers(0, 1000))
def test_text_format_round_trip(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("data") / "d.train"
    model = TopicModel(3, 4)
    documents = Dirichlet(length=(1, 9)).sample(model, 20, rng(seed)).finite()
    write_documents(documents, path)
    back = read_documents(path, model)
    for a, b, n in zip(documents.words, back.words, documents.lengths, strict=True):
        assert np.array_equal(a[:n], b[:n])
    assert np.array_equal(back.lengths, documents.lengths)


def test_the_authors_ids_start_at_zero(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("0 9 99 END\n5 END\n")
    documents = read_documents(tmp_path / "d", TopicModel())
    assert documents.words.tolist() == [[1, 10, 100], [6, -1, -1]]
    write_documents(documents, tmp_path / "e")
    assert (tmp_path / "e").read_text() == "0 9 99 END\n5 END\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 END\n3 100 END\n", "line 2: word '100' is outside the vocabulary"),
        ("1 x END\n", "line 1: word 'x' is outside the vocabulary"), ("1 -2 END\n", "word '-2' is outside"),
        ("1 ² END\n", "word '²' is outside"), ("1 2 END\n\nEND\n", "line 3: the document has no words"),
        ("1 2\n", "line 1: ends with '2'; expected 'END' last"), ("END\n", "line 1: the document has no words"),
        ("", "holds no documents"),
    ],
)  # fmt: skip
def test_bad_data_files_are_refused_with_line_and_word(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "d").write_text(text)
    with pytest.raises(InputError, match=message):
        read_documents(tmp_path / "d", TopicModel())
