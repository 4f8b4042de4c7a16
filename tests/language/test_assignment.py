"""Words of topics: the share that each keeps, and the files that a user writes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.language import tiny
from topicscope import InputError
from topicscope.language import Assignment, TopicFit, Topics, assign, given_topics, load_topics, whole_words
from topicscope.language.assignment import assignments_of, read_pairs, read_topics, with_pairs
from topicscope.measure import Membership

WORDS = ("ab", "cd", "ef", "gh")


def topics_of(probability: Sequence[Sequence[float]], vocabulary_size: int = 10) -> Topics:
    table = np.array(probability)
    fit = TopicFit(
        backend="tomotopy",
        topics=len(table),
        iterations=1,
        seed=0,
        min_documents=1,
        documents=1,
        tokens=1,
        log_likelihood=[0.0],
        coherence=[0.0] * len(table),
    )
    return Topics(
        words=WORDS,
        token=np.arange(4) + 3,
        probability=table,
        frequency=np.array([7.0, 5.0, 3.0, 1.0]),
        document_topics=np.full((1, len(table)), 1 / len(table)),
        document_lengths=np.array([1]),
        cooccurring=np.zeros((0, 2), dtype=np.int64),
        vocabulary_size=vocabulary_size,
        fingerprint="f",
        fit=fit,
    )


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
    ("threshold", "complaint"),
    [
        (0.0, "not between 0 and 1"),
        (1.0, "not between 0 and 1"),
        (1.2, "not between 0 and 1"),
        (-0.1, "not between 0 and 1"),
        (0.09, "keeps no word"),
        (0.4, "keeps all 4 words"),
        (0.9, "keeps all 4 words"),
    ],
)
def test_thresholds_that_keep_nothing_or_all_are_refused(threshold: float, complaint: str) -> None:
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
        ("a.csv", "word,kind\nx,y\n", "it has 'word', 'kind'"),
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
    shared = Assignment(
        token=np.arange(2),
        words=("bread", "butter"),
        frequency=np.ones(2),
        membership=membership,
        threshold=None,
        topics_per_word="many",
        names=("1", "2"),
    )
    with pytest.raises(InputError, match="every two words of these topics have a topic in common"):
        with_pairs(shared)
    apart = replace(shared, membership=Membership(np.array([0, 1]), np.array([0, 1]), 2, 2))
    assert with_pairs(apart) is apart
