"""Topic models of every kind: the word-by-topic matrix, from files too, and what is made of it."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from safetensors.numpy import save_file

from tests.model.test_passes import compare
from tests.refusals import refused
from tests.world.samples import keys, one_batch
from topicscope import InputError, RunConfig
from topicscope.ground import write_tensors
from topicscope.model import ModelConfig, Objective
from topicscope.world import (
    Dirichlet,
    Fixed,
    InfiniteDocuments,
    Masking,
    TopicModel,
    matrix_of,
    read_matrix,
    sample_words,
)


def test_topics_as_in_definition_1() -> None:
    model = TopicModel(3, 4)
    assert [model.topic_of_word[i] for i in range(1, 13)] == [-(-i // 4) for i in range(1, 13)]
    assert model.topic_of_word[0] == 0
    assert (model.words, model.vocabulary) == (12, 13)
    assert TopicModel() == TopicModel(topics=10, words_per_topic=10)  # as in the paper's experiments


def test_relations_of_words() -> None:
    model = TopicModel(2, 2)
    assert model.same_topic.astype(int).tolist() == [
        [1, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 1, 1],
    ]  # fmt: skip
    assert model.by_topic(np.arange(8).reshape(2, 4)).tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_word_probabilities_inside_topics() -> None:
    assert TopicModel(2, 2).word_in_topic.tolist() == [0, 0.5, 0.5, 0.5, 0.5]
    shared = TopicModel(2, 2, [0.25, 0.75])
    assert shared.word_in_topic.tolist() == [0, 0.25, 0.75, 0.25, 0.75]
    assert shared.word_topics.tolist() == [[0.25, 0], [0.75, 0], [0, 0.25], [0, 0.75]]
    own = TopicModel(2, 2, [[0.25, 0.75], [0.5, 0.5]])
    assert own.word_given_topic.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert own.word_distribution(np.array([[0.5, 0.5]])).tolist() == [[0.125, 0.375, 0.25, 0.25]]
    near = TopicModel(2, 3, [0.25, 0.25, 0.5 + 5e-7])  # 1 to six digits, and made 1
    assert near.word_given_topic.sum(1) == pytest.approx(1, abs=1e-15)
    assert near.word_given_topic[1] == pytest.approx(np.array([0.25, 0.25, 0.5 + 5e-7]) / (1 + 5e-7), rel=1e-15)
    assert not own.uniform
    assert TopicModel(2, 2).uniform


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([0.0, 1.0], "must be positive and sum to 1 in each topic"), ([[0.5, 0.5], [0.0, 1.0]], "must be positive"),
        ([-0.5, 1.5], "must be positive"), ([0.5, 0.4], "sum to 1"), ([0.5, 0.4999], "sum to 1"),
        ([[0.5, 0.5]], "shape"), ([0.5, 0.25, 0.25], "shape"),
    ],
)  # fmt: skip
def test_impossible_word_probabilities_are_refused(probabilities: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RunConfig.of({"topic_model": {"topics": 2, "words_per_topic": 2, "word_probabilities": probabilities}})


@st.composite
def worlds(draw: st.DrawFn) -> TopicModel:
    """Any topic model of few words."""
    topics = draw(st.integers(1, 5))
    if draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 999)))
        matrix = rng.random((draw(st.integers(topics, 9)), topics))
        matrix[rng.random(matrix.shape) < draw(st.sampled_from([0.0, 0.5]))] = 0
        matrix[np.arange(topics), np.arange(topics)] += 0.1  # no topic and no word without any
        matrix = matrix[matrix.sum(1) > 0]
        return TopicModel(matrix=(matrix / matrix.sum(0)).tolist())
    settings: dict[str, Any] = {"topics": topics}
    settings["words_per_topic"] = draw(
        st.one_of(st.integers(2, 4), st.lists(st.integers(4, 6), min_size=topics, max_size=topics))
    )
    if topics >= 3 and draw(st.booleans()):
        settings["overlap"] = 0.5 if isinstance(settings["words_per_topic"], int) else 0.34
    if draw(st.booleans()):
        settings["zipf"] = draw(st.sampled_from([0.0, 0.7, 1.0]))
    if draw(st.booleans()):
        settings |= {"common_words": draw(st.integers(1, 3)), "common_share": draw(st.sampled_from([0.1, 0.6]))}
    return TopicModel(**settings)


@settings(max_examples=100, deadline=None)
@given(model=worlds(), seed=st.integers(0, 999))
def test_a_world_is_its_matrix(model: TopicModel, seed: int) -> None:
    a = model.word_topics
    assert a.shape == (model.words, model.topics)
    assert (a >= 0).all()
    assert (a.sum(1) > 0).all()
    assert a.sum(0) == pytest.approx(1, abs=1e-14)
    assert model.disjoint == ((a > 0).sum(1) == 1).all()
    assert model.main_topic.tolist() == [0, *(a.argmax(1) + 1).tolist()]
    same = model.same_topic
    for i in range(1, model.vocabulary):
        for j in range(1, model.vocabulary):
            assert same[i, j] == ((a[i - 1] > 0) & (a[j - 1] > 0)).any()
    assert same[0].tolist() == [True] + [False] * model.words
    theta = np.random.default_rng(seed).dirichlet(np.ones(model.topics), size=3)
    assert model.word_distribution(theta) == pytest.approx(theta @ a.T, abs=1e-14)
    if model.disjoint:
        assert model.topic_of_word.tolist() == model.main_topic.tolist()
        assert model.word_in_topic[1:] == pytest.approx(a.max(1), abs=1e-15)
        numbers = model.by_topic(np.arange(1.0, model.vocabulary))
        for t in range(model.topics):
            assert numbers[t][numbers[t] > 0].tolist() == (1 + np.flatnonzero(a[:, t])).tolist()
    else:
        with pytest.raises(InputError, match="needs disjoint topics"):
            assert model.topic_of_word is None
    settings = RunConfig(topic_model=model, documents=Fixed(topics_per_document=1)).as_dict()
    assert RunConfig.of(settings).topic_model == model  # written and read again


@settings(max_examples=30, deadline=None)
@given(model=worlds(), seed=st.integers(0, 999))
def test_words_are_drawn_as_the_matrix_says(model: TopicModel, seed: int) -> None:
    """Frequencies in 40,000 words against A theta, within five standard errors."""
    rng = np.random.default_rng(seed)
    theta = np.repeat(rng.dirichlet(np.ones(model.topics), size=1), 200, axis=0)
    theta[:, 0] *= theta.shape[1] > 1  # a topic that no document has
    theta /= np.maximum(theta.sum(1, keepdims=True), 1e-12)
    theta = theta if theta.sum() else np.ones_like(theta)
    words, p = sample_words(model, theta, 200, rng), model.word_topics @ theta[0]
    found = np.bincount(words.ravel(), minlength=model.vocabulary)[1:] / words.size
    assert (np.abs(found - p) <= 5 * np.sqrt(p * (1 - p) / words.size) + 1e-12).all()
    assert not found[p == 0].any()


def test_unequal_sizes_and_zipf() -> None:
    model = TopicModel(words_per_topic=[1, 3], zipf=1.0)
    assert model.topics == 2
    assert model.word_topics == pytest.approx(np.array([[1, 0], [0, 6 / 11], [0, 3 / 11], [0, 2 / 11]]))
    assert (model.disjoint, model.blocks, model.uniform) == (True, False, False)
    same = TopicModel(2, 3, zipf=1.0)
    assert same.word_given_topic == pytest.approx(np.array([[6, 3, 2], [6, 3, 2]]) / 11)
    assert (same.blocks, same.uniform) == (True, False)
    equal = TopicModel(words_per_topic=[3, 3])
    assert (equal.blocks, equal.uniform, equal.block_size) == (True, True, 3)


def test_overlap_is_a_ring_of_windows() -> None:
    model = TopicModel(3, 4, overlap=0.25)
    words = [np.flatnonzero(column).tolist() for column in model.word_topics.T]
    assert words == [[0, 1, 2, 3], [3, 4, 5, 6], [0, 6, 7, 8]]
    assert model.words == 9
    assert set(model.word_topics[model.word_topics > 0]) == {0.25}
    assert TopicModel(3, 10, overlap=0.3).words == 21  # .3 * 10 is a little below 3


def test_common_words_lie_behind_and_have_their_share_of_every_topic() -> None:
    model = TopicModel(2, 2, common_words=3, common_share=0.6)
    assert model.word_topics == pytest.approx(
        np.array([[0.2, 0], [0.2, 0], [0, 0.2], [0, 0.2], [0.2, 0.2], [0.2, 0.2], [0.2, 0.2]])
    )
    assert model.main_topic.tolist() == [0, 1, 1, 2, 2, 1, 1, 1]
    by_rank = TopicModel(2, 1, common_words=2, common_share=0.3, zipf=1.0)
    assert by_rank.word_topics == pytest.approx(np.array([[0.7, 0], [0, 0.7], [0.2, 0.2], [0.1, 0.1]]))


def test_a_matrix_comes_from_an_array_or_a_file(tmp_path: Path) -> None:
    matrix = np.array([[0.5, 0.0], [0.25, 0.25], [0.25, 0.75]])
    np.save(tmp_path / "a.npy", matrix)
    np.savetxt(tmp_path / "a.csv", matrix, delimiter=",")
    save_file({"anything": matrix}, tmp_path / "a.safetensors")
    for given_matrix in (
        matrix,
        matrix.tolist(),
        *(str(tmp_path / f"a.{end}") for end in ("npy", "csv", "safetensors")),
    ):
        model = TopicModel(matrix=given_matrix)
        assert (model.topics, model.words) == (2, 3)
        assert model.word_topics == pytest.approx(matrix, abs=1e-15)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"matrix": [[0.5, 0.5], [0.5, 0.4]]}, "topic_model.matrix: column 2 of 2 sums to 0.9; expected 1"),
        ({"matrix": [[1.5, 0.5], [-0.5, 0.5]]}, "row 2, column 1 is -0.5; expected a probability"),
        ({"matrix": [[0.5, 0.5], [0.5, 0.5], [0, 0]]}, "word 3 has probability 0 in every topic"),
        ({"matrix": [[0.5, 0.5], [0.5]]}, "expected rows of equal length"),
        ({"matrix": [], "topics": 1}, "got no row"),
        ({"matrix": 3}, "topic_model.matrix = 3: input should be a list"),
        ({"matrix": "nowhere.csv"}, "nowhere.csv cannot be read"),
        ({"matrix": [[1.0]], "zipf": 1}, "topic_model.matrix says everything about the words; leave"),
        ({"matrix": [[1.0]], "words_per_topic": 4}, "leave topic_model.words_per_topic out"),
        ({"matrix": [[1.0]], "topics": 2}, "topic_model.matrix has 1 columns, but there are 2 topics"),
        ({"words_per_topic": [3, 4], "topics": 3}, "has 2 numbers, but there are 3 topics"),
        ({"words_per_topic": [3, 0]}, "topic_model.words_per_topic.1 = 0: input should be greater than or equal to 1"),
        ({"overlap": 0.3, "topics": 2}, "topic_model.overlap needs at least 3 topics"),
        ({"overlap": 0.05}, "topic 1 has too few words (10) to have 0 in common with the next topic"),
        ({"overlap": 0.5, "words_per_topic": [10, 2, 10]}, "topic 2 has too few words (2) to have 1 in common"),
        ({"overlap": 0.6}, "topic_model.overlap = 0.6: input should be less than or equal to 0.5"),
        ({"common_words": 3}, "topic_model.common_words and topic_model.common_share belong together"),
        ({"common_words": 3, "common_share": 1}, "topic_model.common_share = 1: input should be less than"),
        ({"zipf": 1, "word_probabilities": [0.1] * 10}, "give one of them"),
        ({"words_per_topic": [2, 3], "word_probabilities": [0.5, 0.5]}, "expected one list per topic"),
        ({"words_per_topic": [1, 2], "word_probabilities": [[1.0], [0.5, 0.4]]}, "sum to 1 in each topic"),
    ],
)
def test_impossible_topics_are_refused_in_one_line(wrong: dict[str, Any], message: str) -> None:
    assert message in refused("", RunConfig.of, {"topic_model": wrong})


def test_what_needs_equal_blocks_says_so() -> None:
    with pytest.raises(InputError, match="disjoint topics of equally many words"):
        assert TopicModel(words_per_topic=[2, 3]).block_size
    with pytest.raises(InputError, match="closed forms assume disjoint topics of equally many"):
        RunConfig.of({"topic_model": {"overlap": 0.3}, "model": {"value": "blocks"}})


MASKING = Masking(0.3, 0.2, 0.3)


@settings(max_examples=40, deadline=None)
@given(model=worlds(), uniform=st.booleans(), seed=st.integers(0, 99))
def test_infinite_rows_equal_enumeration(model: TopicModel, uniform: bool, seed: int) -> None:
    """What a masked position shows and wants, over all true words and all ways to show them."""
    theta = np.random.default_rng(seed).dirichlet(np.ones(model.topics), size=2)
    (rows,) = InfiniteDocuments(theta).batches(model, MASKING, uniform=uniform)
    v, words = model.vocabulary, model.words
    joint, seen = np.zeros((2, v, v)), np.zeros((2, v))
    for b in range(2):
        for true in range(1, v):
            p = sum(theta[b, t] * model.word_topics[true - 1, t] for t in range(model.topics))
            seen[b, true] += (1 - MASKING.p_mask) * p
            for shown in range(v):
                chance = MASKING.p_random / words if shown else MASKING.p_mask_word
                chance += MASKING.p_correct if shown == true else 0
                joint[b, 0 if uniform else shown, true] += p * chance / 2
                seen[b, shown] += MASKING.p_mask * p * chance
    wanted = np.zeros((len(rows.query), v))
    wanted.ravel()[rows.target] = rows.target_weight
    assert wanted == pytest.approx(joint[rows.document, rows.query], abs=1e-12)
    assert rows.weight == pytest.approx(joint.sum(2)[rows.document, rows.query], abs=1e-12)
    assert (rows.context if uniform else np.exp(rows.context)) == pytest.approx(seen, abs=1e-12)
    assert one_batch(InfiniteDocuments(theta), model, MASKING).context.shape == (1, 2, v)
    (hidden,) = InfiniteDocuments(theta).batches(model, MASKING, uniform=uniform, hide_masked=True)
    own = np.insert(theta @ model.word_topics.T, 0, 0, axis=1)
    assert (hidden.context if uniform else np.exp(hidden.context)) == pytest.approx(own, abs=1e-12)
    for name in ("document", "query", "weight", "target", "target_weight"):
        assert np.array_equal(getattr(hidden, name), getattr(rows, name))


@settings(max_examples=25, deadline=None)
@given(model=worlds(), loss=st.sampled_from(["cross-entropy", "squared"]), trained=st.booleans())
def test_collapsed_equals_dense_in_any_world(model: TopicModel, loss: Any, trained: bool) -> None:
    config = ModelConfig(embedding="trained" if trained else "one-hot", init_scale=0.7)
    documents = Dirichlet(alpha=0.5, length=(3, 12)).sample(model, 6, np.random.default_rng(0)).finite()
    masked = documents.masked(MASKING, model, keys(1))
    errors = compare(config, Objective(loss=loss), model, MASKING, masked, torch.float64)
    assert max(errors) < 1e-10


MATRIX = np.array([[1.5, -2.0, 0.25], [0.0, 4.0, 1e-3]])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    np.save(tmp_path / "m.npy", MATRIX)
    np.savetxt(tmp_path / "m.csv", MATRIX, delimiter=",")
    write_tensors(tmp_path / "one.safetensors", {"whatever": MATRIX})
    write_tensors(tmp_path / "two.safetensors", {"embedding": 2 * MATRIX, "value": MATRIX.astype(np.float32)})
    (tmp_path / "run").mkdir()
    write_tensors(tmp_path / "run" / "weights.safetensors", {"embedding": 2 * MATRIX, "value": MATRIX})
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "two.safetensors").read_bytes()[:40])
    write_tensors(tmp_path / "vector.safetensors", {"value": MATRIX[0]})
    write_tensors(tmp_path / "nan.safetensors", {"value": MATRIX * np.nan})
    np.save(tmp_path / "complex.npy", MATRIX * 1j)
    np.savez(tmp_path / "archive.npz", MATRIX)
    (tmp_path / "archive.npz").rename(tmp_path / "archive.npy")
    np.save(tmp_path / "none.npy", MATRIX[:0])
    write_tensors(tmp_path / "other.safetensors", {"key": MATRIX, "query": MATRIX})
    (tmp_path / "lone").mkdir()
    write_tensors(tmp_path / "lone" / "weights.safetensors", {"key": MATRIX})
    return tmp_path


@pytest.mark.parametrize("name", ["m.npy", "m.csv", "one.safetensors", "two.safetensors", "run"])
def test_a_matrix_is_read_from_every_kind_of_file(files: Path, name: str) -> None:
    matrix = read_matrix(str(files / name), "matrix")
    assert matrix.dtype == float
    assert matrix == pytest.approx(MATRIX)
    assert matrix_of(str(files / name), "matrix") == pytest.approx(MATRIX)
    if name in ("two.safetensors", "run"):  # the tensor asked for is taken
        assert read_matrix(str(files / name), "embedding", "embedding") == pytest.approx(2 * MATRIX)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.npy", "matrix .*nowhere.npy cannot be read: No such file"),
        ("nowhere.safetensors", "nowhere.safetensors cannot be read: No such file"),
        ("cut.safetensors", "cut.safetensors is damaged or cut off"),
        ("vector.safetensors", r"has shape \(3,\); expected a matrix with rows and columns"),
        ("nan.safetensors", "not finite"),
        ("none.npy", r"has shape \(0, 3\); expected a matrix with rows and columns"),
        ("other.safetensors", "other.safetensors holds key, query; expected a matrix named 'value'"),
        ("complex.npy", "it holds no array of real numbers"),
        ("archive.npy", "it holds no array of real numbers"),
        ("empty", "empty has no weights.safetensors; give the folder of one finished training run"),
        ("lone", "lone holds key; expected a matrix named 'value'"),
    ],
)
def test_what_holds_no_such_matrix_is_refused(files: Path, name: str, message: str) -> None:
    refused(message, read_matrix, str(files / name), "matrix")


@pytest.mark.parametrize("name", ["run.npy", "run.safetensors", "run.csv"])
def test_a_run_folder_is_one_whatever_its_name(files: Path, name: str) -> None:
    (files / "run").rename(files / name)
    assert read_matrix(str(files / name), "matrix") == pytest.approx(MATRIX)


@pytest.mark.parametrize("matrix", [np.array([[3]]), np.array([[True, False]]), np.array([[1e100, -1e100]])])
def test_whole_numbers_truth_values_and_large_numbers_are_read(tmp_path: Path, matrix: np.ndarray) -> None:
    np.save(tmp_path / "m.npy", matrix)
    assert read_matrix(str(tmp_path / "m.npy"), "matrix").tolist() == matrix.astype(float).tolist()


@pytest.mark.parametrize("entry", [1.2e100, -1.2e100, np.inf, np.nan])
def test_one_entry_that_is_too_large_or_not_finite_is_refused(tmp_path: Path, entry: float) -> None:
    np.save(tmp_path / "m.npy", np.array([[1.0, entry]]))
    with pytest.raises(InputError, match=r"m.npy: holds numbers that are not finite, or beyond 1e\+100"):
        read_matrix(str(tmp_path / "m.npy"), "matrix")


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    class Executed:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "made"),)

    np.save(tmp_path / "m.npy", np.array([[Executed()]], dtype=object), allow_pickle=True)
    refused("cannot read a matrix", read_matrix, str(tmp_path / "m.npy"), "matrix")
    assert not (tmp_path / "made").exists()


def test_rows_become_a_matrix() -> None:
    assert matrix_of([[1, 2], [3, 4]], "m").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    refused(r"m: expected rows of equal length, at least one; got rows of \[1, 2\]", matrix_of, [[1], [2, 3]], "m")


def test_types_that_numpy_has_not_are_named(tmp_path: Path) -> None:
    header = b'{"w":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]}}'
    (tmp_path / "m.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 4)
    refused(r"m\.safetensors .*(BF16|bfloat16).*float32", read_matrix, str(tmp_path / "m.safetensors"), "matrix")
