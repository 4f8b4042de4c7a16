"""Labels of a corpus: how they are read, refused and counted, and which words they get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from tests.language import tiny
from tests.language.samples import THETA
from topicscope import InputError
from topicscope.language import Corpus, ProbeConfig, TimelineConfig, assign, label_words, probe_model, whole_words
from topicscope.language.corpora import usable_labels
from topicscope.language.state_probing import targets_of
from topicscope.measure import log_odds_z

VOCABULARY = whole_words(tiny.tokenizer("wordpiece"))
WORDS = np.array(tiny.WORDS).reshape(4, 6)
NAMES = ("kitchen", "sea", "music", "law")


def labelled(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts of one topic, nine words of ten, and its name."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(4, size=count)
    texts = [
        " ".join(rng.choice(WORDS[k]) if rng.random() < 0.9 else rng.choice(tiny.WORDS) for _ in range(30))
        for k in topics
    ]
    return texts, [NAMES[k] for k in topics]


def lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


RECORDS: list[dict[str, Any]] = [
    {"text": "one", "subject": "law"},
    {"text": "two", "subject": 3},
    {"text": "three", "subject": True},
    {"text": "four", "subject": None},
    {"text": "five"},
    {"text": "six", "subject": " "},
    {"text": "seven", "subject": " sea\n life "},
    {"text": "", "subject": "sea"},
    {"text": "eight", "subject": 0.5},
]
LABELS = ["law", "3", "true", None, None, None, "sea life", "0.5"]


def test_labels_come_with_their_texts(tmp_path: Path) -> None:
    corpus = Corpus([lines(tmp_path / "a.jsonl", RECORDS)], label_field="subject")
    texts = [record["text"] for record in RECORDS if record["text"]]
    assert [tuple(document) for document in corpus.documents()] == list(zip(texts, LABELS, strict=True))
    assert corpus.summary() == "8 documents, 3 without a label, 1 empty"
    assert list(corpus) == list(Corpus([tmp_path / "a.jsonl"]))
    (tmp_path / "a.csv").write_text('text,subject\none,law\ntwo,"3"\nthree,\nfour\n')
    assert [d.label for d in Corpus([tmp_path / "a.csv"], label_field="subject").documents()] == [
        "law",
        "3",
        None,
        None,
    ]
    table = pyarrow.table({"subject": [1, None, 2], "other": [0, 0, 0], "text": ["one", "two", "three"]})
    parquet.write_table(table, tmp_path / "a.parquet")
    found = list(Corpus([tmp_path / "a.parquet"], label_field="subject").documents())
    assert [tuple(document) for document in found] == [("one", "1"), ("two", None), ("three", "2")]
    kinds = pyarrow.array(["x", None, "y"]).dictionary_encode()
    broken = pyarrow.array([b"x", b"\xff", b"y"]).view(pyarrow.string())
    for values, labels in ((kinds, ["x", None, "y"]), (broken, ["x", "\ufffd", "y"]), (["one"] * 3, ["one"] * 3)):
        name = "text" if labels == ["one"] * 3 else "subject"
        parquet.write_table(pyarrow.table({"text": ["one"] * 3, name: values}), tmp_path / "b.parquet")
        corpus = Corpus([tmp_path / "b.parquet"], label_field=name)
        assert [document.label for document in corpus.documents()] == labels


def test_whole_numbers_are_one_label_however_a_table_holds_them(tmp_path: Path) -> None:
    records = [{"text": "a", "subject": value} for value in (1, 1.0, 2.5, True, 1e30, float("inf"))]
    found = [d.label for d in Corpus([lines(tmp_path / "a.jsonl", records)], label_field="subject").documents()]
    assert found == ["1", "1", "2.5", "true", str(10**30 + 19884624838656), "inf"]


def test_a_sample_is_the_same_with_and_without_labels(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [{"text": f"text {i}", "n": i % 3} for i in range(200)])
    for count in (None, 20):
        documents = Corpus([path], label_field="n").sample_documents(count, 5)
        assert [document.text for document in documents] == Corpus([path]).sample(count, 5)
        assert all(int(d.text.split()[1]) % 3 == int(d.label or -1) for d in documents)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (
            [{"text": "a", "b": 1, "c": 2}] * 3,
            "no document has a label in the field 'subject'; the corpus has 'text', 'b', 'c'",
        ),
        ([{"text": "a", "subject": "x"}] * 9, "fewer than two different labels ('x')"),
        ([{"text": "a", "subject": ["x", "y"]}] * 9, "line 1: the field 'subject' holds a list; expected one label"),
        ([{"text": "a", "subject": {"x": 1}}] * 9, "holds a dict"),
        (
            [{"text": "a", "subject": i} for i in range(40)],
            "40 different labels in 40 documents; expected at most 1,000",
        ),
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
        assert set(words.top_words(k, 6)) == set(WORDS[NAMES.index(name)])
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
