"""Fits of topics, and fitted topics as a world for `train`."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.language import tiny
from tests.language.samples import given_topics, texts
from topicscope import InputError, RunConfig, Topics, topic_world, train
from topicscope.language import assignment, fit_topics, topics, whole_words
from topicscope.language.assignment import shared_words
from topicscope.theory import optimum

FEW = [" ".join(text.split()[:8]) for text in texts(12)]


@given(st.lists(st.lists(st.integers(0, 4), max_size=6), max_size=6), st.integers(1, 4))
def test_words_that_enough_documents_have(documents: list[list[int]], least: int) -> None:
    used = [word for word in range(5) if sum(word in document for document in documents) >= least]
    kept = [[used.index(word) for word in document if word in used] for document in documents]
    found, words = shared_words([np.array(document, dtype=np.int64) for document in documents], 5, least)
    assert words.tolist() == used
    assert [document.tolist() for document in found] == [document for document in kept if document]


def test_the_likeliest_of_several_fits_is_taken() -> None:
    vocabulary = whole_words(tiny.tokenizer("wordpiece"))
    alone = [fit_topics(texts(40), vocabulary, 4, iterations=10, seed=seed) for seed in (3, 1003, 2003)]
    assert len({one.fit.log_likelihood[-1] for one in alone}) > 1
    likeliest = max(alone, key=lambda one: one.fit.log_likelihood[-1])
    found = fit_topics(texts(40), vocabulary, 4, iterations=10, seed=3, restarts=3)
    assert np.array_equal(found.probability, likeliest.probability)
    assert found.fit.seed == 3
    shares = found.document_topics.sum(0)
    assert (np.diff(shares) <= 0).all(), "the most common topic comes first"
    np.testing.assert_allclose(found.document_topics.sum(1), 1, rtol=1e-5)
    assert found.document_lengths.tolist() == [30] * 40


def test_as_many_documents_and_words_as_topics_are_enough() -> None:
    vocabulary = whole_words(tiny.tokenizer("wordpiece"))
    two = ["bread boat", "boat bread"]
    found = fit_topics(two, vocabulary, 2, iterations=1, min_documents=2)
    assert sorted(found.words) == ["boat", "bread"]
    assert len(found) == 2
    with pytest.raises(InputError, match=r"2 documents .* 3 topics need as many such documents"):
        fit_topics([*two, "", "!!!"], vocabulary, 3, min_documents=1)
    with pytest.raises(InputError, match="no topic backend 'lda2vec'"):
        fit_topics(two, vocabulary, 2, backend="lda2vec")
    with pytest.raises(InputError, match="2 words that occur in at least 2 documents are fewer than 3 topics"):
        fit_topics([*two, "boat bread honey"], vocabulary, 3, min_documents=2)


def test_the_sampler_runs_as_many_sweeps_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[tuple[int, int]] = []
    shown: list[tuple[float, float | None]] = []

    class Sampler:
        ll_per_word = -1.23456789
        used_vocabs = ("2", "0")
        docs = (SimpleNamespace(get_topic_dist=lambda: [0.25, 0.75]),)

        def __init__(self, k: int, seed: int, rm_top: int) -> None:
            assert (k, seed, rm_top) == (2, 5, 0)

        def add_doc(self, words: list[str]) -> None:
            assert words == ["2", "0", "2"]

        def train(self, sweeps: int, workers: int) -> None:
            trained.append((sweeps, workers))

        def get_topic_word_dist(self, k: int) -> list[float]:
            return [0.6 + k / 10, 0.4 - k / 10]

    def watch(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        shown.append((done, total))

    monkeypatch.setattr(assignment, "needed", lambda *_: SimpleNamespace(LDAModel=Sampler))
    probability, mixture, trace = assignment.fit_tomotopy([np.array([2, 0, 2])], 3, 2, 25, 5, watch)
    assert trained == [(10, 1), (10, 1), (5, 1)]
    assert shown == [(0, 25), (10, 25), (20, 25), (25, 25)]
    np.testing.assert_allclose(probability, [[0.4, 0, 0.6], [0.3, 0, 0.7]])
    assert (mixture.tolist(), trace) == ([[0.25, 0.75]], [-1.234568] * 3)


@pytest.mark.parametrize(("iterations", "passes"), [(5, (1, 1)), (120, (12, 4))])
def test_other_backends_make_fewer_passes(monkeypatch: pytest.MonkeyPatch, iterations: int, passes: Any) -> None:
    """A pass of theirs is worth several sweeps of the sampler: a tenth, a thirtieth, and at least one."""
    asked: list[int] = []

    def other(*_: Any, max_iter: int = 0, passes: int = 0, **__: Any) -> None:
        asked.append(max_iter or passes)
        raise StopIteration

    fake = SimpleNamespace(LatentDirichletAllocation=other, LdaModel=other)
    monkeypatch.setattr(assignment, "needed", lambda *_: fake)
    for fit in (assignment.fit_sklearn, assignment.fit_gensim):
        with pytest.raises(StopIteration):
            fit([np.array([0, 1, 1])], 2, 2, iterations, 0, lambda *_, **__: None)
    assert tuple(asked) == passes


def test_every_restart_has_a_seed_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def fit(documents: list[np.ndarray], words: int, topics: int, iterations: int, seed: int, progress: Any) -> Any:
        seeds.append(seed)
        probability = np.full((topics, words), 1 / words)
        probability[:, 0] += len(seeds)
        return probability, np.tile([0.25, 0.75], (len(documents), 1)), [9.0, -abs(seed - 1003.0)]

    monkeypatch.setitem(assignment.BACKENDS, "tomotopy", fit)
    two, vocabulary = ["bread boat", "boat bread"], whole_words(tiny.tokenizer("wordpiece"))
    found = fit_topics(two, vocabulary, 2, restarts=3, seed=3, min_documents=1)
    assert seeds == [3, 1003, 2003, 4, 1004, 2004]  # the second fit has the next seed
    assert found.probability[0, 0] == 2.5  # the second fit ends likeliest
    assert found.document_topics.tolist() == [[0.75, 0.25]] * 2


def fitted(topics: int = 3, words: int = 12, documents: int = 40, seed: int = 0) -> Topics:
    """Topics with random probabilities, without a corpus."""
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.full(words, 0.3), size=topics)
    mixtures = rng.dirichlet(np.full(topics, 0.5), size=documents)
    return given_topics(probability, mixtures, document_lengths=rng.integers(5, 50, size=documents))


def test_the_world_is_the_law_of_the_kept_words_of_each_document() -> None:
    """P(word | document, the word is kept), word by word from the whole fit; columns alone renormalised miss it."""
    topics = fitted()
    config = RunConfig.of(topic_world(topics, 5).settings)
    assert topic_world(topics, 5).world == config.world
    world = config.topic_model.word_distribution(config.documents.sample_proportions(3, 40, np.random.default_rng(0)))
    names = config.topic_model.word_names
    assert names is not None
    kept = [topics.words.index(name) for name in names]
    plain = np.zeros((40, 5))
    for d in range(40):
        for i, word in enumerate(kept):
            whole = [
                sum(float(topics.document_topics[d, t]) * topics.probability[t, w] for t in range(3)) for w in kept
            ]
            plain[d, i] = whole[kept.index(word)] / sum(whole)
    np.testing.assert_allclose(world, plain, atol=3e-6)  # mixtures have six decimals
    columns = topics.probability[:, kept] / topics.probability[:, kept].sum(1, keepdims=True)
    assert np.abs(topics.document_topics @ columns - plain).max() > 0.01


def test_the_most_probable_words_are_kept_and_lengths_are_those_of_kept_words() -> None:
    topics = fitted()
    share = topics.document_lengths / topics.document_lengths.sum()
    probability = share @ topics.document_topics.astype(float) @ topics.probability
    expected = {topics.words[w] for w in np.argsort(-probability)[:5]}
    world = topic_world(topics, 5)
    assert set(world.settings["topic_model"]["word_names"]) == expected
    kept = [topics.words.index(name) for name in world.settings["topic_model"]["word_names"]]
    left = topics.document_lengths * (topics.document_topics @ topics.probability[:, kept].sum(1))
    assert world.settings["documents"]["length"] == [round(np.quantile(left, 0.25)), round(np.quantile(left, 0.75))]
    assert world.notes[0].startswith(f"The world is that of 5 of 12 words ({np.sort(probability)[-5:].sum():.0%} of ")
    assert topic_world(topics, 99).settings["documents"]["length"] == [
        round(np.quantile(topics.document_lengths, q)) for q in (0.25, 0.75)
    ]


def test_topics_without_kept_words_are_left_out_and_said() -> None:
    probability = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.4, 0.6], [0.9, 0.1, 0, 0]])
    mixtures = np.array([[0.6, 0.1, 0.3], [0, 1, 0]] * 20, dtype=np.float32)
    few = replace(fitted(words=4), probability=probability, document_topics=mixtures)
    few = replace(few, document_lengths=np.array([50, 1] * 20))
    world = topic_world(few, 2)
    assert world.settings["topic_model"]["word_names"] == ["word0", "word1"]
    assert world.settings["topic_model"]["matrix"] == [[0.5, 0.9], [0.5, 0.1]]
    rows = world.settings["documents"]["proportions"]
    assert len(rows) == 20  # a document without any of the words has no mixture
    np.testing.assert_allclose(rows[0], [2 / 3, 1 / 3], atol=1e-6)
    assert world.notes[1] == "1 topics have none of these words and are left out: 1."


def test_documents_are_spread_over_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "MOST_MIXTURES", 4)
    whole = topic_world(fitted(), 99).settings["documents"]["proportions"]
    np.testing.assert_allclose(whole, fitted().document_topics[[0, 13, 26, 39]], atol=1e-6)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = replace(fitted(), document_topics=np.zeros((0, 3), np.float32), document_lengths=np.zeros(0, int))
    with pytest.raises(InputError, match="no document mixtures"):
        topic_world(empty)
    with pytest.raises(InputError, match="words = 0"):
        topic_world(fitted(), 0)
    monkeypatch.setattr(topics, "MOST_NUMBERS", 100)
    with pytest.raises(InputError, match="keep fewer words"):
        topic_world(fitted())


def test_a_run_on_it_is_whole_without_the_topics(tmp_path: Path) -> None:
    settings = topic_world(fitted(), 6).settings
    uniform = {"model": {"key": "zero", "query": "zero"}, "objective": {"loss": "squared"}, "device": "cpu"}
    small = {"steps": 3, "batch_size": 4, "data": {"documents": 20, "dev_documents": 10}}
    config = RunConfig.of(settings | uniform | small)
    run = train(config, tmp_path / "run")
    again = RunConfig.of(run.config.as_dict())
    assert again == config
    best = optimum(again)
    assert best.matrix().shape == (7, 7)
    assert run.results["distance_to_optimum"] > 0
    assert "numerical_error" not in run.results["floors"]["bayes"]  # exact
    assert np.shape(run.results["relations"]["value"]["topics"]) == (3, 3)
    named = config.changed({"topic_model.word_names": None})
    assert named.topic_model.word_names is None
    other = train(named)
    assert other.results == run.results  # names are for figures alone
