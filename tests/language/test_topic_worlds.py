"""Fitted topics as a world: what is kept, that it is the fitted law of the kept words, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from topicscope import InputError, RunConfig, Topics, topic_world, train
from topicscope.language import TopicFit, topic_fits
from topicscope.theory import optimum


def fitted(topics: int = 3, words: int = 12, documents: int = 40, seed: int = 0) -> Topics:
    """Topics with random probabilities, without a corpus."""
    rng = np.random.default_rng(seed)
    fit = TopicFit(
        backend="tomotopy",
        topics=topics,
        iterations=1,
        seed=0,
        min_documents=1,
        documents=documents,
        tokens=100,
        log_likelihood=[-1.0],
        coherence=[0.5] * topics,
    )
    return Topics(
        words=tuple(f"word{w}" for w in range(words)),
        token=np.arange(words),
        probability=rng.dirichlet(np.full(words, 0.3), size=topics),
        frequency=np.ones(words),
        document_topics=rng.dirichlet(np.full(topics, 0.5), size=documents).astype(np.float32),
        document_lengths=rng.integers(5, 50, size=documents),
        cooccurring=np.array([[0, 1]]),
        vocabulary_size=words,
        fingerprint="f",
        fit=fit,
    )


def test_the_world_is_the_law_of_the_kept_words_of_each_document() -> None:
    """P(word | document, the word is kept), word by word from the whole fit; columns alone renormalised miss it."""
    topics = fitted()
    config = RunConfig.of(topic_world(topics, 5).settings)
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
    monkeypatch.setattr(topic_fits, "MOST_MIXTURES", 4)
    whole = topic_world(fitted(), 99).settings["documents"]["proportions"]
    np.testing.assert_allclose(whole, fitted().document_topics[[0, 13, 26, 39]], atol=1e-6)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = replace(fitted(), document_topics=np.zeros((0, 3), np.float32), document_lengths=np.zeros(0, int))
    with pytest.raises(InputError, match="no document mixtures"):
        topic_world(empty)
    with pytest.raises(InputError, match="words = 0"):
        topic_world(fitted(), 0)
    monkeypatch.setattr(topic_fits, "MOST_NUMBERS", 100)
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
