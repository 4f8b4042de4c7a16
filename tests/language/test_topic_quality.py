"""When topics are called poor, which number of them is best, and what a comparison leaves in its folder."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command import topicscope
from tests.language import tiny
from tests.language.samples import THETA, assert_same, corpus_file, model_folder, texts
from topicscope import InputError, read
from topicscope.ground import load_settings, silent
from topicscope.language import (
    ProbeConfig,
    TopicFit,
    TopicQuality,
    Topics,
    TopicsConfig,
    best,
    best_of,
    choice,
    cost,
    fit_corpus,
    fit_topics,
    probe,
    whole_words,
)
from topicscope.language.topic_fits import Sampler, judged
from topicscope.language.topics import quality_of
from topicscope.measure import coherence, diversity

GOOD = TopicQuality(
    topics=20,
    coherence=0.1,
    coherence_error=0.01,
    incoherent=5,
    diversity=0.5,
    stability=0.3,
    perplexity=900.0,
    unigram_perplexity=1000.0,
    held_out=9,
)


@pytest.mark.parametrize(
    ("setting", "good", "poor", "said"),
    [
        ("coherence", 0.001, 0.0, "no more often than by chance"),
        ("incoherent", 5, 6, "6 of 20 topics have a coherence of 0 or less"),
        ("diversity", 0.5, 0.499, "most top words belong to several topics"),
        ("stability", 0.3, 0.299, "another seed finds other topics"),
        ("perplexity", 949.9, 950.1, "not 5% below that of word frequencies alone (1,000)"),
    ],
)
def test_numbers_on_both_sides_of_every_rule(setting: str, good: Any, poor: Any, said: str) -> None:
    changed: dict[str, Any] = {setting: good}
    assert replace(GOOD, **changed).warnings() == []
    (warning,) = replace(GOOD, **{setting: poor}).warnings()
    assert warning.startswith("Poor topics: ")
    assert said in warning


def test_what_was_not_measured_is_not_judged() -> None:
    alone = replace(GOOD, stability=None, perplexity=None, unigram_perplexity=None)
    assert alone.warnings() == []
    assert alone.sentences()[-1].startswith("stability and held-out perplexity: not measured")
    assert [sentence.split(":")[0] for sentence in GOOD.sentences()] == [
        "mean coherence (c_npmi) 0.100",
        "diversity 0.50",
        "stability 0.30",
        "held-out perplexity 900 (word frequencies alone",
    ]
    assert replace(GOOD, perplexity=None).sentences()[-1].startswith("held-out perplexity: not measured")


def test_the_numbers_of_all_topics_are_made_one() -> None:
    found = quality_of([0.3, 0.1, 0.0, -0.2], 0.75, [1.0, 0.5, 0.5, 0.0], 10.0, 20.0, 3)
    assert (found.topics, found.incoherent, found.stability) == (4, 2, 0.5)
    assert found.coherence == pytest.approx(0.05)
    assert found.coherence_error == pytest.approx(np.sqrt(sum(x**2 for x in (0.25, 0.05, -0.05, -0.25)) / 3 / 4))
    assert found.score == pytest.approx(0.05 * 0.75)
    assert replace(found, coherence=-0.05).score == -0.05


def test_the_best_number_has_the_largest_product_among_those_that_are_not_poor() -> None:
    few, more, poor = (
        replace(GOOD, topics=10, coherence=0.10, diversity=0.9, incoherent=0),
        replace(GOOD, topics=20, coherence=0.12, diversity=0.8),
        replace(GOOD, topics=30, coherence=0.40, diversity=0.9, stability=0.1),
    )
    assert best_of([few, more, poor]) is more
    assert best_of([poor]) is poor
    assert best_of([replace(more, topics=25), more]).topics == 20, "of equal ones the fewer"
    near, rule = choice([few, more, poor]), "largest coherence x diversity, without those that are poor (30)"
    assert near[0] == f"best number of topics: 20 ({rule})"
    assert near[1].startswith("20 cannot be told apart from 10:")
    sure = [replace(one, coherence_error=0.001) for one in (few, more)]
    assert choice(sure) == ["best number of topics: 20 (largest coherence x diversity)"]
    assert "all of them are poor" in choice([poor, replace(poor, topics=40)])[0]


def shuffled(seed: int = 0) -> list[str]:
    """Words of the same texts, without any topic."""
    words = np.random.default_rng(seed).permutation(" ".join(texts()).split())
    return [" ".join(words[i : i + 30]) for i in range(0, len(words), 30)]


@pytest.mark.parametrize("seed", range(4))
def test_text_without_topics_has_poor_topics_and_text_with_topics_has_not(seed: int) -> None:
    vocabulary = whole_words(tiny.tokenizer("wordpiece"))
    good, poor = (
        fit_topics(some, vocabulary, 4, iterations=60, seed=seed, restarts=3).quality for some in (texts(), shuffled())
    )
    assert good.warnings() == []
    assert poor.perplexity is not None
    assert poor.unigram_perplexity is not None
    assert poor.perplexity > 0.99 * poor.unigram_perplexity
    assert poor.coherence < 0.02 < 0.08 < good.coherence
    assert any("not 5% below that of word frequencies" in warning for warning in poor.warnings())


@pytest.mark.parametrize("seed", range(5))
def test_the_planted_number_of_topics_is_the_best(seed: int) -> None:
    """Five topics of 20 words, one or two of them in a document."""
    rng = np.random.default_rng(seed)
    documents = [
        20 * rng.choice(rng.choice(5, 1 + (rng.random() < 0.5), replace=False), 60) + rng.integers(0, 20, 60)
        for _ in range(200)
    ]
    how, qualities = Sampler("tomotopy", 60, 2, seed), []
    for topics in (2, 5, 12):
        probability, _, trace = how.fit(documents, 100, topics, seed, silent)
        fit = TopicFit(
            backend="tomotopy",
            topics=topics,
            iterations=60,
            seed=seed,
            min_documents=1,
            documents=200,
            tokens=12_000,
            log_likelihood=trace,
            coherence=[],
        )
        fit = judged(fit, probability, documents, how, silent)
        tops = [best(row, 10) for row in probability]
        qualities.append(
            quality_of(fit.coherence, diversity(tops), fit.stability, fit.perplexity, fit.unigram_perplexity)
        )
    assert best_of(qualities).topics == 5
    assert qualities[1].warnings() == []
    assert qualities[1].perplexity is not None
    assert 20 < qualities[1].perplexity < 45 < 95 < (qualities[1].unigram_perplexity or 0) < 105


def test_a_second_fit_changes_no_topic() -> None:
    vocabulary = whole_words(tiny.tokenizer("wordpiece"))
    one, two = (fit_topics(texts(), vocabulary, 4, iterations=20, stability=stability) for stability in (False, True))
    assert np.array_equal(one.probability, two.probability)
    assert (one.fit.stability, one.fit.perplexity, one.fit.held_out) == (None, None, 0)
    assert two.fit.stability is not None
    assert (len(two.fit.stability), two.fit.held_out) == (4, 20)
    numbers = {word: i for i, word in enumerate(two.words)}
    documents = [np.array([numbers[word] for word in text.split()]) for text in texts()]
    assert two.fit.coherence == pytest.approx(coherence(documents, two.tops()), abs=1e-6)
    assert two.quality.diversity == diversity(two.tops())


def test_several_numbers_of_topics_are_fitted_compared_and_kept(tmp_path: Path) -> None:
    model, corpus = str(model_folder(tmp_path)), str(corpus_file(tmp_path))
    config = TopicsConfig(corpus, model, topics=(6, 2, 4), iterations=20)
    phases: list[str] = []

    def watch(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        phases.append(phase)

    found = fit_corpus(config, tmp_path / "topics", progress=watch)
    fitting = [f"fitting {count} topics{again}" for count in (2, 4, 6) for again in ("", " again")]
    assert [phase for phase in dict.fromkeys(phases) if phase.startswith("fitting")] == fitting
    assert [one.topics for one in found.compared] == [2, 4, 6]
    assert len(found) == best_of(found.compared).topics == 2  # of 24 words, the top 10 of more topics are the same
    assert found.quality == found.compared[0]
    assert found.summary()[0] == choice(found.compared)[0]
    assert_same(read(tmp_path / "topics"), found)
    for count in (2, 4, 6):
        alone = fit_corpus(config.changed({"topics": count}))
        assert_same(Topics.load(tmp_path / "topics" / f"topics-{count}"), alone)
    lines = (tmp_path / "topics" / "quality.csv").read_text().splitlines()
    assert lines[0] == ",".join(asdict(found.quality))
    assert [line.split(",")[0] for line in lines[1:]] == ["2", "4", "6"]
    assert len((tmp_path / "topics" / "topics.csv").read_text().splitlines()) == 3
    data = found.as_dict()
    assert (data["best"], len(data["compared"]), data["choice"]) == (2, 3, choice(found.compared))
    small: dict[str, Any] = {"thresholds": THETA, "documents": 10, "bootstrap": 5, "shuffles": 5, "random": False}
    probed = probe(ProbeConfig(model, corpus, topics_from=str(tmp_path / "topics" / "topics-6"), **small))
    assert any(note.startswith("6 topics: mean coherence (c_npmi) ") for note in probed.notes)
    fit_corpus(config.changed({"topics": 4}), tmp_path / "topics")  # replaced, with what the comparison left
    assert not list((tmp_path / "topics").glob("topics-*"))


def test_the_largest_number_is_checked_before_the_first_fit() -> None:
    with pytest.raises(InputError, match=r"24 words .* are fewer than 30 topics"):
        fit_topics(texts(), whole_words(tiny.tokenizer("wordpiece")), 30)


@pytest.mark.parametrize(("quality", "poor"), [(0.5, False), (-0.5, True)])
def test_a_probe_says_how_good_its_topics_are(tmp_path: Path, quality: float, poor: bool) -> None:
    model, corpus = str(model_folder(tmp_path)), str(corpus_file(tmp_path))
    topics = fit_topics(texts(), whole_words(tiny.tokenizer("wordpiece")), 4, iterations=20, stability=False)
    replace(topics, fit=replace(topics.fit, coherence=[quality] * 4)).save(tmp_path / "topics")
    small: dict[str, Any] = {"thresholds": THETA, "documents": 10, "bootstrap": 5, "shuffles": 5, "random": False}
    notes = probe(ProbeConfig(model, corpus, topics_from=str(tmp_path / "topics"), **small)).notes
    (said,) = [note for note in notes if note.startswith("4 topics: ")]
    assert said == f"4 topics: mean coherence (c_npmi) {quality:.3f}, diversity {diversity(topics.tops()):.2f}"
    assert any(note.startswith("Poor topics: ") for note in notes) is poor


@pytest.mark.process
def test_the_command_compares_and_quick_gives_way_to_what_is_given(tmp_path: Path) -> None:
    model, corpus = str(model_folder(tmp_path)), str(corpus_file(tmp_path))
    few = ["topics", corpus, "--tokenizer", model, "--quick", "--iterations", "7", "--no-stability"]
    found = json.loads(topicscope(*few, "--topics", "2", "--topics", "3", "--json").stdout)
    assert [one["topics"] for one in found["compared"]] == [2, 3]
    assert (found["iterations"], found["quality"]["stability"], found["perplexity"]) == (7, None, None)
    out = tmp_path / "quick"
    topicscope(*few, "--topics", "4", "--out", str(out))
    settings = load_settings(out / "config.yaml", own=True)
    assert (settings["topics"], settings["iterations"], settings["max_documents"]) == (4, 7, 500)


def test_a_fit_of_more_than_ten_seconds_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = TopicsConfig(str(corpus_file(tmp_path)), str(model_folder(tmp_path)), topics=[4], iterations=5)
    fit_corpus(config)
    assert "estimate" not in capsys.readouterr().err
    monkeypatch.setattr(cost, "READ", 12 / cost.text_bytes(config, config.max_documents))
    fit_corpus(config)
    assert capsys.readouterr().err.splitlines()[0].startswith("topicscope: estimate: about 12 s, ")
