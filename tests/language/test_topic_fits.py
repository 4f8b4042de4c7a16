"""Fits of topics: which words and documents take part, which fit is taken, how long it runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.language import tiny
from tests.language.samples import texts
from topicscope import InputError
from topicscope.language import fit_topics, topic_fits, whole_words
from topicscope.language.topic_fits import shared_words

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
        fit_topics(two, vocabulary, 3, min_documents=1)
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

    monkeypatch.setattr(topic_fits, "needed", lambda *_: SimpleNamespace(LDAModel=Sampler))
    probability, mixture, trace = topic_fits.fit_tomotopy([np.array([2, 0, 2])], 3, 2, 25, 5, watch)
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
    monkeypatch.setattr(topic_fits, "needed", lambda *_: fake)
    for fit in (topic_fits.fit_sklearn, topic_fits.fit_gensim):
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

    monkeypatch.setitem(topic_fits.BACKENDS, "tomotopy", fit)
    two, vocabulary = ["bread boat", "boat bread"], whole_words(tiny.tokenizer("wordpiece"))
    found = fit_topics(two, vocabulary, 2, restarts=3, seed=3, min_documents=1)
    assert seeds == [3, 1003, 2003, 4, 1004, 2004]  # the second fit has the next seed
    assert found.probability[0, 0] == 2.5  # the second fit ends likeliest
    assert found.document_topics.tolist() == [[0.75, 0.25]] * 2
