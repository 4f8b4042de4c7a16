"""Which words stand for topics: fitted, given in a file, or the labels of a corpus."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from tests.language import samples, tiny
from tests.language.samples import THETA
from topicscope import InputError
from topicscope.language import (
    Assignment,
    Corpus,
    ProbeConfig,
    TimelineConfig,
    Topics,
    assign,
    given_topics,
    label_words,
    load_topics,
    probe_model,
    whole_words,
)
from topicscope.language.assignment import assignments_of, read_pairs, read_topics, with_pairs
from topicscope.language.corpora import usable_labels
from topicscope.language.states import targets_of
from topicscope.measure import Membership, log_odds_z

WORDS = ("ab", "cd", "ef", "gh")


def topics_of(probability: Sequence[Sequence[float]]) -> Topics:
    frequency = np.array([7.0, 5.0, 3.0, 1.0])
    parts: dict[str, Any] = {"words": WORDS, "token": np.arange(4) + 3, "frequency": frequency, "vocabulary_size": 10}
    return samples.given_topics(probability, [[0.5, 0.5]], **parts)


TWO = topics_of([[0.4, 0.3, 0.2, 0.1], [0.1, 0.35, 0.15, 0.4]])


def listed(found: Assignment) -> list[tuple[str, int]]:
    return [(found.words[w], int(k)) for w, k in zip(found.membership.word, found.membership.topic, strict=True)]


def test_a_share_of_the_vocabulary_is_kept() -> None:
    one = assign(TWO, 0.1)
    assert listed(one) == [("ab", 0), ("gh", 1)]
    assert one.token.tolist() == [3, 6]
    assert one.frequency.tolist() == [7.0, 1.0]
    assert (one.threshold, one.topics_per_word, one.remark) == (0.1, "one", "")
    assert one.names == ("ab cd ef", "gh cd ef")
    assert assign(TWO, 0.1, names=("a", "b")).names == ("a", "b")
    # cd is in the upper half of both topics, and likeliest in the second
    assert listed(assign(TWO, 0.2)) == [("ab", 0), ("cd", 1), ("gh", 1)]
    assert listed(assign(TWO, 0.2, "many")) == [("ab", 0), ("cd", 0), ("cd", 1), ("gh", 1)]
    assert len(listed(assign(TWO, 0.35, "many"))) == 6
    kinds = [(a.topics_per_word, a.threshold) for a in assignments_of(one, whole_words(tiny.tokenizer("bpe")), [9], [])]
    assert kinds == [("one", 0.1)]  # given: as it is


@pytest.mark.parametrize(
    ("thresholds", "complaint"),
    [((0.0, 1.0, 1.2, -0.1), "not between 0 and 1"), ((0.09,), "keeps no word"), ((0.4, 0.9), "keeps all 4 words")],
)
def test_thresholds_that_keep_nothing_or_all_are_refused(thresholds: Sequence[float], complaint: str) -> None:
    for threshold in thresholds:
        with pytest.raises(InputError, match=complaint):
            assign(TWO, threshold)


@pytest.mark.parametrize(
    ("name", "content", "pairs"),
    [
        ("a.csv", "word,topic\nbread,food\n boat , sea \n", [("bread", "food"), ("boat", "sea")]),
        ("a.csv", "note,topic,word\nx,food,bread\n", [("bread", "food")]),
        ("a.csv", "word,topic\nbread,\n,food\nboat\nboat,sea\n", [("boat", "sea")]),
        ("a.tsv", "word\ttopic\na,b\tc\n", [("a,b", "c")]),
        ("a.TSV", "word\ttopic\na\tc\n", [("a", "c")]),
        ("a.JSON", '{"bread": 1, "boat": "sea"}', [("bread", "1"), ("boat", "sea")]),
        ("a.json", '{"food": ["bread", "cheese"], "sea": ["boat"]}', [("bread", "food"), ("cheese", "food")]),
        ("a.csv", "\ufeffword,topic\nbread,food\n", [("bread", "food")]),
    ],
)
def test_words_and_topics_of_a_file(tmp_path: Path, name: str, content: str, pairs: list[tuple[str, str]]) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert read_pairs(tmp_path / name)[: len(pairs)] == pairs
    assert read_topics(tmp_path / name) == read_pairs(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.json", "[1]", r"expected {word: topic} or {topic: \[words\]}"),
        ("a.json", "{}", r"expected {word: topic} or {topic: \[words\]}"),
        ("a.json", '{"a": ["x"], "b": "y"}', "throughout"),
        ("a.json", '{"a": ["x", 1]}', "throughout"),
        ("a.json", '{"a": "x", "b": 1.5}', "throughout"),
        ("a.json", '{"a": []}', "names no words"),
        ("a.csv", "word,topic\n", "names no words"),
        ("a.csv", "word,kind\nx,y\n", "columns word and topic; it has 'word', 'kind'$"),
        ("a.csv", "word;topic\nx;y\n", "it has 'word;topic' .its columns seem to be separated by semicolons; expected"),
        ("a.csv", "\nword,topic\n", "columns word and topic"),
        ("a.csv", "word,topic\nx\0,y\n", "not valid text"),
        ("a.json", '{"a": "x\\u0000"}', "not valid text"),
        ("a.json", '{"a\\ud800": "x"}', "not valid text"),
        ("a.json", '{"a": NaN}', "nan is not a number"),
        ("a.json", '{"a": true}', "throughout"),
        ("a.json", '{"a": [["x"]]}', "throughout"),
        ("a.json", "[" * 100_000, "is not JSON"),
        ("a.json", '{"a": ' + "9" * 30 + "}", "64 bits"),
    ],
)
def test_files_without_words_and_topics_are_refused(tmp_path: Path, name: str, content: str, complaint: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=complaint):
        read_topics(tmp_path / name)


def test_what_is_no_text_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"is not text: .* expected UTF-8"):
        read_topics(tmp_path / "a.csv")
    with pytest.raises(InputError, match="does not exist"):
        read_topics(tmp_path / "b.csv")
    with pytest.raises(InputError, match="fit the topics again"):
        read_topics(tmp_path)  # a folder, but not of topics


def test_given_words_are_counted_in_the_texts(tmp_path: Path) -> None:
    vocabulary = whole_words(tiny.tokenizer("wordpiece"))
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"sea": ["boat", "coral"], "food": ["honey"]}))
    found = load_topics(path, vocabulary, ["boat honey boat", "", "honey boat"])
    assert isinstance(found, Assignment)
    assert dict(zip(found.words, found.frequency.tolist(), strict=True)) == {"boat": 3, "coral": 0, "honey": 2}
    assert found.names == ("sea", "food")
    assert sorted(listed(found)) == [("boat", 0), ("coral", 0), ("honey", 1)]
    assert (found.threshold, found.topics_per_word, found.remark) == (None, "one", "")
    assert load_topics(path, vocabulary, []).frequency.tolist() == [0, 0, 0]
    assert given_topics(path, vocabulary).frequency.tolist() == [1, 1, 1]
    assert [vocabulary.words[vocabulary.index[token]] for token in found.token] == list(found.words)
    (tmp_path / "b.csv").write_text("word,topic\nhoney,food\nboat,sea\nhoney,sea\nzzz,food\n")
    several = given_topics(tmp_path / "b.csv", vocabulary)
    assert sorted(listed(several)) == [("boat", 1), ("honey", 0), ("honey", 1)]
    assert several.topics_per_word == "many"


@pytest.mark.parametrize(("unknown", "more"), [(1, False), (5, False), (6, True)])
def test_words_that_cannot_be_used_are_named(tmp_path: Path, unknown: int, more: bool) -> None:
    names = [f"q{i}" for i in range(unknown)]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"sea": ["boat", "coral"], "food": ["honey", *names]}))
    remark = given_topics(path, whole_words(tiny.tokenizer("wordpiece"))).remark
    some = ", ".join(repr(name) for name in names[:5]) + (", ..." if more else "")
    assert remark == (
        f"{unknown} of {3 + unknown} given words are not one token of this model, or are stop words: {some}"
    )


@pytest.mark.parametrize(
    "given", [{"sea": ["boat", "coral"]}, {"sea": ["boat"], "food": ["honey"]}, {"sea": ["boat", "coral"], "x": ["q"]}]
)
def test_two_topics_and_one_of_two_words_are_needed(tmp_path: Path, given: dict[str, list[str]]) -> None:
    (tmp_path / "a.json").write_text(json.dumps(given))
    with pytest.raises(InputError, match="at least two topics, one of them with two words or more"):
        given_topics(tmp_path / "a.json", whole_words(tiny.tokenizer("wordpiece")))


def test_given_topics_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"sea": ["boat", "coral"], "food": ["honey"], "law": ["judge"]}))
    vocabulary = whole_words(tiny.tokenizer("wordpiece"))
    monkeypatch.setattr("topicscope.language.assignment.MOST_TOPICS", 2)
    with pytest.raises(InputError, match="has 3 topics; at most 2 are compared"):
        given_topics(path, vocabulary)
    monkeypatch.setattr("topicscope.language.assignment.MOST_PAIRS", 3)
    with pytest.raises(InputError, match="more than 3 words"):
        read_pairs(path)
    monkeypatch.setattr("topicscope.language.assignment.MOST_BYTES", 10)
    with pytest.raises(InputError, match="has 0 MB; at most 0 MB are read"):
        read_pairs(path)
    os.mkfifo(tmp_path / "b.csv")
    with pytest.raises(InputError, match="it is not an ordinary file"):
        read_topics(tmp_path / "b.csv")


def test_topics_that_share_every_pair_of_words_are_refused() -> None:
    """bread is in both topics, and each of the others stands with it: no pair is between different topics."""
    membership = Membership(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), 2, 2)
    shared = replace(assign(TWO, 0.1), membership=membership)
    with pytest.raises(InputError, match="every two words of these topics have a topic in common"):
        with_pairs(shared)
    apart = replace(shared, membership=Membership(np.array([0, 1]), np.array([0, 1]), 2, 2))
    assert with_pairs(apart) is apart


VOCABULARY = whole_words(tiny.tokenizer("wordpiece"))
LABEL_WORDS = np.array(tiny.WORDS).reshape(4, 6)
NAMES = ("kitchen", "sea", "music", "law")


def labelled(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts of one topic, nine words of ten, and its name."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(4, size=count)
    texts = [
        " ".join(rng.choice(LABEL_WORDS[k]) if rng.random() < 0.9 else rng.choice(tiny.WORDS) for _ in range(30))
        for k in topics
    ]
    return texts, [NAMES[k] for k in topics]


def lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


RECORDS: list[dict[str, Any]] = [
    {"text": ""} if label == "without text" else {"text": f"text {number}", "subject": label}
    for number, label in enumerate(
        ["law", 3, 3.0, True, None, " ", " sea\n life ", "without text", 0.5, 1e30, float("inf")]
    )
]
LABELS = ["law", "3", "3", "true", None, None, "sea life", "0.5", str(10**30 + 19884624838656), "inf", None]


def test_labels_come_with_their_texts(tmp_path: Path) -> None:
    records = [*RECORDS, {"text": "without a subject"}]
    corpus = Corpus([lines(tmp_path / "a.jsonl", records)], label_field="subject")
    texts = [record["text"] for record in records if record["text"]]
    assert [tuple(document) for document in corpus.documents()] == list(zip(texts, LABELS, strict=True))
    assert corpus.summary() == "11 documents, 3 without a label, 1 empty"
    assert list(corpus) == list(Corpus([tmp_path / "a.jsonl"]))
    (tmp_path / "a.csv").write_text('text,subject\none,law\ntwo,"3"\nthree,\nfour\n')
    table = Corpus([tmp_path / "a.csv"], label_field="subject").documents()
    assert [document.label for document in table] == ["law", "3", None, None]
    columns = {"subject": [1, None, 2], "other": [0, 0, 0], "text": ["one", "two", "three"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    found = list(Corpus([tmp_path / "a.parquet"], label_field="subject").documents())
    assert [tuple(document) for document in found] == [("one", "1"), ("two", None), ("three", "2")]
    kinds = pyarrow.array(["x", None, "y"]).dictionary_encode()
    broken = pyarrow.array([b"x", b"\xff", b"y"]).view(pyarrow.string())
    for values, labels in ((kinds, ["x", None, "y"]), (broken, ["x", "\ufffd", "y"]), (["one"] * 3, ["one"] * 3)):
        name = "text" if labels == ["one"] * 3 else "subject"
        parquet.write_table(pyarrow.table({"text": ["one"] * 3, name: values}), tmp_path / "b.parquet")
        corpus = Corpus([tmp_path / "b.parquet"], label_field=name)
        assert [document.label for document in corpus.documents()] == labels


def test_a_sample_is_the_same_with_and_without_labels(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [{"text": f"text {i}", "n": i % 3} for i in range(200)])
    for count in (None, 20):
        documents = [document for _, document in Corpus([path], label_field="n").numbered_sample(count, 5)]
        assert [document.text for document in documents] == Corpus([path]).sample(count, 5)
        assert all(int(d.text.split()[1]) % 3 == int(d.label or -1) for d in documents)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([{"text": "a", "b": 1}] * 3, "no document has a label in the field 'subject'; the corpus has 'text', 'b'"),
        ([{"text": "a", "subject": "x"}] * 9, "fewer than two different labels ('x')"),
        ([{"text": "a", "subject": ["x", "y"]}] * 9, "line 1: the field 'subject' holds a list; expected one label"),
        ([{"text": "a", "subject": {"x": 1}}] * 9, "holds a dict"),
        ([{"text": "a", "subject": i} for i in range(40)], "40 different labels in 40 documents"),
        ([{"text": "a", "subject": i % 1001} for i in range(2002)], "1,001 different labels in 2,002 documents"),
    ],
)
def test_labels_that_cannot_be_topics_are_refused_before_work_starts(
    tmp_path: Path, records: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(InputError) as error:
        Corpus([lines(tmp_path / "a.jsonl", records)], label_field="subject").check()
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_texts_in_order_of_their_labels_are_read_on(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [{"text": "a", "subject": "xy"[i >= 3000]} for i in range(3002)])
    Corpus([path], label_field="subject").check()


def test_plain_text_has_no_labels(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    with pytest.raises(InputError, match="is plain text, which has no field 'subject'"):
        Corpus([tmp_path / "a.txt"], label_field="subject")


@pytest.mark.parametrize("config", [ProbeConfig, TimelineConfig])
def test_topics_have_one_source(config: Any) -> None:
    with pytest.raises(InputError, match="label_field and topics_from both say what the topics are"):
        config("m", "x", label_field="subject", topics_from="t")


def test_labels_are_counted_the_most_common_first() -> None:
    assert list(usable_labels(["b", None, "a", "a", "b", "c", "c", "c"], "x").items()) == [("c", 3), ("a", 2), ("b", 2)]


def test_words_of_labels_are_those_of_the_highest_score() -> None:
    texts, labels = labelled(120)
    given: list[str | None] = [*labels, None, "chess", "chess"]
    words = label_words([*texts, "bread boat", "judge court", "judge"], given, VOCABULARY, name="subject")
    assert set(words.names) == set(NAMES)
    assert words.documents == tuple(sorted((labels.count(name) for name in NAMES), reverse=True))
    counts = np.zeros((4, len(words.words)))
    for text, label in zip(texts, labels, strict=True):
        for word in text.split():
            counts[words.names.index(label), words.words.index(word)] += 1
    np.testing.assert_allclose(words.scores, log_odds_z(counts), atol=1e-10)
    np.testing.assert_allclose(words.frequency, counts.sum(0))
    for k, name in enumerate(words.names):
        assert set(words.top_words(k, 6)) == set(LABEL_WORDS[NAMES.index(name)])
    assert "left out: 1 with fewer than 5 documents (chess); 1 of the documents have no label" in words.remark
    a = assign(words, THETA)
    members = zip(a.membership.word, a.membership.topic, strict=True)
    assert {a.words[word]: words.names[topic] for word, topic in members} == tiny.TOPICS
    assert a.names[0].startswith(f"{words.names[0]}: ")
    assert a.remark == words.remark
    many = assign(words, 15 / VOCABULARY.size, "many")  # more than are likelier in a label
    assert (
        words.scores[many.membership.topic, [words.words.index(many.words[w]) for w in many.membership.word]] > 0
    ).all()
    assert many.membership.sizes.max() < 15


def test_a_long_label_is_cut_with_a_mark() -> None:
    texts, labels = labelled(60)
    exact, long = "x" * 40, "mechanics of materials and of continuous media"
    renamed = {labels[0]: long, next(name for name in NAMES if name != labels[0]): exact}
    given: list[str | None] = [*(renamed.get(label, label) for label in labels), "r" * 41]
    words = label_words([*texts, "bread"], given, VOCABULARY)
    titles = dict(zip(words.names, words.titles, strict=True))
    assert titles[long].startswith("mechanics of materials and of continuou…: ")
    assert titles[exact].startswith(f"{exact}: ")
    assert f"{exact} {given.count(exact)}" in words.remark
    assert f"mechanics of materials and of continuou… {given.count(long)}" in words.remark
    assert f"fewer than 5 documents ({'r' * 39}…)" in words.remark


def test_labels_with_too_few_documents_are_refused() -> None:
    with pytest.raises(InputError, match="fewer than two labels of 'label' have 5 documents in the sample of 8"):
        label_words(["bread"] * 8, ["a"] * 6 + ["b"] * 2, VOCABULARY)
    with pytest.raises(InputError, match="no two words occur in 5 documents"):
        label_words(["bread"] * 10, ["a", "b"] * 5, VOCABULARY)
    loaded: Any = None
    texts, labels = labelled(60)
    words = label_words(texts, labels, VOCABULARY)
    with pytest.raises(InputError, match="0 labels of 2 texts"):
        probe_model(loaded, ["a", "b"], words)


def test_the_mixture_of_a_document_is_its_label() -> None:
    texts, labels = labelled(60)
    words = label_words(texts, labels, VOCABULARY)
    documents = {n: VOCABULARY.token[[VOCABULARY.number[w] for w in texts[n].split()]] for n in range(20)}
    given: list[str | None] = [*labels[:18], None, "chess"]
    targets = targets_of(words, documents, 0, given)
    assert targets is not None
    assert targets.documents == list(range(18))
    assert targets.shares.tolist() == [[float(name == labels[n]) for name in words.names] for n in range(18)]
    assert targets.half_document is None
    assert (words.mixture(None), words.mixture("chess")) == (None, None)
    assert (targets.bag_of_words.r2 or 0) > 0.3
