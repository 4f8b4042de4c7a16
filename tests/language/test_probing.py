"""The parts of a probe by hand: random models, topics near and far, pairs that stand together, layers of a timeline."""

import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.language import tiny
from tests.language.samples import THETA, assignment, corpus_file, model_folder, texts
from tests.measure.samples import there
from topicscope import InputError
from topicscope.language import (
    LoadedModel,
    Measurement,
    ModelPass,
    ProbeConfig,
    TimelineConfig,
    Topics,
    TopicsConfig,
    WordsConfig,
    checked,
    fit_corpus,
    fit_topics,
    map_words,
    probe,
    probe_model,
    read_words,
    timeline,
    unit,
    whole_words,
    word_vectors,
)
from topicscope.language.assignment import Assignment
from topicscope.language.attention import PairRelation
from topicscope.language.probing import effects_of, of_one_topic
from topicscope.measure import Membership

TOKENIZER = tiny.tokenizer("wordpiece")
BARE = Measurement(bootstrap=2, shuffles=0, random=False, matched=False, cooccurrence=False)


def encoder(kind: str = "encoder") -> LoadedModel:
    return checked("tiny", tiny.model(kind, len(TOKENIZER)).float(), TOKENIZER)


def same_topic(a: Assignment) -> np.ndarray:
    """Which pairs of different words are in one topic, where a word has one."""
    matrix = a.membership.matrix().toarray()
    return (matrix @ matrix.T > 0) & ~np.eye(len(matrix), dtype=bool)


def test_unit_vectors_and_the_one_that_has_no_length() -> None:
    np.testing.assert_allclose(unit(np.array([[3.0, 4.0], [0.0, 0.0]])), [[0.6, 0.8], [0.0, 0.0]])


def test_random_weights_are_five_models() -> None:
    """Their mean is the figure, and the shuffles are shared out among them."""
    loaded, a = encoder(), assignment(whole_words(TOKENIZER), several=False)
    found = probe_model(loaded, tiny.TEXTS, a, replace(BARE, random=True, shuffles=10, seed=4))
    trained, fresh = found.rows
    same = same_topic(a)
    each = [word_vectors(loaded.random(4 + i).model, a.token) for i in range(5)]
    for measure, change in (("dot", lambda u: u), ("cosine_centred", lambda u: unit(u - u.mean(0)))):
        products = [change(u) @ change(u).T for u in each]
        effect = there(fresh.embeddings[measure])
        assert effect.same == pytest.approx(np.mean([product[same].mean() for product in products]), rel=1e-9)
        assert effect.p_value in [pytest.approx((1 + k) / 3) for k in range(3)]
    assert there(trained.cosine).p_value in [pytest.approx((1 + k) / 11) for k in range(11)]
    for row in found.rows:
        assert there(row.attention).p_value in [k / 11 for k in range(1, 12)]  # as few as ten are all taken
    assert {head.model for head in found.heads} == {"tiny"}
    assert len(found.heads) == 8
    assert len(found.topics) == 3  # the fourth topic has one word
    assert (trained.words, trained.topics, trained.window, trained.embedding) == (19, 4, 40, "matrix")


def test_topics_near_and_far() -> None:
    loaded, a = encoder(), assignment(whole_words(TOKENIZER), several=False)
    rows = {row.name: row for row in probe_model(loaded, tiny.TEXTS, a, BARE).topics}
    u = unit(word_vectors(loaded.model, a.token))
    words = {name: a.membership.word[a.membership.topic == k] for k, name in enumerate(a.names)}
    assert list(rows) == ["kitchen", "sea", "music"]
    for name, row in rows.items():
        mine = u[words[name]]
        count = len(mine)
        assert (row.words, a.names[row.topic]) == (count, name)
        assert row.cosine == pytest.approx(((mine @ mine.T).sum() - count) / count / (count - 1))
        others = {other: (mine @ u[words[other]].T).mean() for other in a.names if other != name}
        assert row.nearest == max(others, key=others.__getitem__)
        assert row.farthest == min(others, key=others.__getitem__)
        assert (row.nearest_cosine, row.farthest_cosine) == pytest.approx((max(others.values()), min(others.values())))


def test_pairs_that_stand_together() -> None:
    loaded = encoder()
    topics = fit_topics(texts(60), whole_words(TOKENIZER), 4, iterations=10)
    measurement = replace(BARE, thresholds=(THETA,), topics_per_word=("many", "one"), cooccurrence=True)
    found = probe_model(loaded, texts(10, 1), topics, measurement)
    (row,) = found.cooccurrence
    assert (row.topics_per_word, row.pairs, row.variant) == ("one", 15, "trained")
    u = unit(word_vectors(loaded.model, topics.token))
    left, right = topics.cooccurring[:15].T
    assert row.commonest == [[topics.words[i], topics.words[j]] for i, j in topics.cooccurring[:10]]
    cosines = (u[left] * u[right]).sum(1)
    assert row.cosine.cooccurring == pytest.approx(cosines.mean())
    assert cosines.min() <= there(row.cosine.interval)[0] <= there(row.cosine.interval)[1] <= cosines.max()
    first = found.rows[1]
    assert (row.cosine.same_topic, row.attention.same_topic) == (there(first.cosine).same, there(first.attention).same)
    assert 0 < there(row.attention.cooccurring) < 1
    without = probe_model(loaded, texts(10, 1), topics, replace(measurement, cooccurrence=False))
    assert without.cooccurrence == []


def test_pairs_that_stand_together_are_counted_in_the_texts_where_topics_are_given() -> None:
    loaded, vocabulary = encoder(), whole_words(TOKENIZER)
    a = assignment(vocabulary, several=False)  # nineteen words in four topics: five words, ten pairs
    shown = [*["bread boat"] * 3, *["judge piano"] * 2, *texts(10, 1)]
    found = probe_model(loaded, shown, a, replace(BARE, cooccurrence=True))
    (row,) = found.cooccurrence
    assert row.pairs == len(row.commonest) == 10
    number = vocabulary.number
    known = (sorted({w for w in text.split() if w in number}, key=number.__getitem__) for text in shown)
    counts = Counter(pair for words in known for pair in itertools.combinations(words, 2))
    listed = sorted(counts, key=lambda pair: (-counts[pair], number[pair[0]], number[pair[1]]))[:10]
    assert row.commonest == [list(pair) for pair in listed]
    u = unit(word_vectors(loaded.model, vocabulary.token))
    expected = np.mean([u[number[one]] @ u[number[two]] for one, two in listed])
    assert row.cosine.cooccurring == pytest.approx(expected)


def test_texts_without_words_are_refused() -> None:
    with pytest.raises(InputError, match="the texts hold no whole words"):
        probe_model(encoder(), ["?!", ""], assignment(whole_words(TOKENIZER), several=False), BARE)


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_what_a_timeline_measures(kind: str) -> None:
    loaded, vocabulary = encoder(kind), whole_words(TOKENIZER)
    a = assignment(vocabulary, several=False)
    measured = ModelPass(bootstrap=2, matched=False, embedding="layer")
    found = dict(effects_of(loaded, tiny.TEXTS, a, vocabulary, measured))
    names = ["cosine", "dot", "attention", "attention.0", "attention.1"]
    parts = [f"attention ({part}){layer}" for part in ("decoder", "cross") for layer in ("", ".0")]
    assert list(found) == names + (parts if kind == "encoder-decoder" else [])
    equal = dict(effects_of(loaded, tiny.TEXTS, a, vocabulary, ModelPass(bootstrap=2)))
    assert set(equal) - set(found) == {"cosine_matched", "attention_matched"}
    for effects, layer in ((found, True), (equal, False)):
        raw = word_vectors(loaded.model, a.token, layer=layer)
        assert there(effects["dot"]).same == pytest.approx((raw @ raw.T)[same_topic(a)].mean(), rel=1e-9)


def test_the_commands_from_python(tmp_path: Path) -> None:
    """With a folder and without one; two models of one tokenizer share their topics."""
    model, corpus = str(model_folder(tmp_path)), str(corpus_file(tmp_path))
    fit: dict[str, Any] = {"topics": 4, "iterations": 5}
    topics = fit_corpus(TopicsConfig(corpus, model, **fit), tmp_path / "topics")
    assert topics.fit.corpus == "120 documents"
    assert Topics.load(tmp_path / "topics").fit == topics.fit == fit_corpus(TopicsConfig(corpus, model, **fit)).fit
    words = map_words(WordsConfig(model, [["bread", "butter"]]), tmp_path / "words")
    assert read_words(tmp_path / "words").cosine == pytest.approx(words.cosine)
    layer = map_words(WordsConfig(model, [["bread", "butter"]], embedding="layer"))
    assert layer.cosine[0, 1] != pytest.approx(words.cosine[0, 1])
    small: dict[str, Any] = fit | {"documents": 3, "bootstrap": 2, "device": "cpu"}
    both = ProbeConfig([model, model], corpus, thresholds=[THETA], shuffles=0, random=False, **small)
    found = probe(both, tmp_path / "probe")
    assert len(found.rows) == 2
    assert [path.name for path in (tmp_path / "probe").glob("topics-*")] == ["topics-1"]
    assert Topics.load(tmp_path / "probe" / "topics-1").words == topics.words


def test_a_timeline_says_what_it_was_made_of(tmp_path: Path) -> None:
    corpus = str(corpus_file(tmp_path))
    (tmp_path / "run").mkdir()
    for step in (1, 2):
        model_folder(tmp_path).rename(tmp_path / "run" / f"step-{step}")
    about = {"kind": "pretrain", "format": 1, "version": "1", "command": "", "status": "diverged"}
    given = tmp_path / "t.json"
    given.write_text(json.dumps({"food": ["bread", "butter"], "sea": ["boat"], "none": ["zzz"]}))
    config = TimelineConfig(str(tmp_path / "run"), corpus, topics_from=str(given), documents=3, bootstrap=2)
    calm = timeline(config)
    assert [note.partition(":")[0] for note in calm.notes] == [
        "1 of 4 given words are not one token of this model, or are stop words",
        "2 snapshots, 3 words of 2 topics, 3 documents; 95%",
        "corpus",
    ]
    (tmp_path / "run" / "about.json").write_text(json.dumps(about))
    found = timeline(config, tmp_path / "out")
    assert found.notes == [f"{tmp_path / 'run'}: its run diverged, so its last snapshots may be unusable", *calm.notes]
    assert not list((tmp_path / "out").glob("topics-*"))


def test_pairs_of_one_topic_are_counted() -> None:
    """Tokens 3 and 5 are in topic 0, token 7 in topic 1; tokens 2 and 9 are in none, and share nothing."""
    members = Membership(np.array([0, 2, 1]), np.array([0, 0, 1]), words=3, topics=2)
    named: dict[str, Any] = {"words": ("b", "c", "a"), "names": ("first", "second"), "topics_per_word": "one"}
    of = Assignment(token=np.array([5, 7, 3]), frequency=np.ones(3), membership=members, threshold=0.001, **named)
    token = np.array([2, 3, 5, 7, 9])
    # 3 and 5; then two topics, no topic, one of them without
    for pairs, expected in (([[1, 2]], 1), ([[2, 3], [0, 4], [0, 1]], 0), ([[2, 1], [1, 3], [3, 4]], 1)):
        assert of_one_topic(PairRelation(token, np.array(pairs), 10), of) == expected
