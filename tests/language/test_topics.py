from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.language import tiny
from tests.language.samples import assert_same, texts
from topicscope import InputError
from topicscope.ground import file_digest, write_tensors
from topicscope.language import BACKENDS, TopicFit, Topics, assign, fit_topics, given_topics, whole_words
from topicscope.language.topics import ARRAYS
from topicscope.language.vocabulary import STRETCH, top_pairs


@pytest.fixture(scope="module")
def fitted() -> Topics:
    return fit_topics(texts(), whole_words(tiny.tokenizer("wordpiece")), 4, iterations=60, restarts=6)


def test_the_topics_are_found(fitted: Topics) -> None:
    found = {frozenset(fitted.top_words(k, 6)) for k in range(4)}
    assert found == {frozenset(tiny.WORDS[6 * k : 6 * k + 6]) for k in range(4)}
    np.testing.assert_allclose(fitted.probability.sum(1), 1, rtol=1e-5)
    assert fitted.frequency.sum() == 200 * 30 == fitted.document_lengths.sum()
    assert len(fitted.fit.coherence) == 4
    assert fitted.fit.log_likelihood[-1] > fitted.fit.log_likelihood[0]


def test_the_same_seed_gives_the_same_bytes_and_the_folder_gives_them_back(fitted: Topics, tmp_path: Path) -> None:
    again = fit_topics(texts(), whole_words(tiny.tokenizer("wordpiece")), 4, iterations=60, restarts=6)
    fitted.save(tmp_path / "a")
    again.save(tmp_path / "b")
    for name in ("topics.json", "topics.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert_same(Topics.load(tmp_path / "a"), fitted)


@pytest.mark.parametrize(
    "damage", ["no folder", "not finished", "no head", "cut json", "cut arrays", "other arrays", "other format"]
)
def test_damaged_folders_are_refused(fitted: Topics, tmp_path: Path, damage: str) -> None:
    folder = fitted.save(tmp_path / "topics")
    head, arrays, about = folder / "topics.json", folder / "topics.safetensors", folder / "about.json"
    if damage == "no folder":
        shutil.rmtree(folder)
    elif damage == "not finished":
        about.write_text(about.read_text().replace('"done"', '"running"'))
    elif damage == "no head":
        head.unlink()
    elif damage == "cut json":
        head.write_text(head.read_text()[:100])
    elif damage == "cut arrays":
        arrays.write_bytes(arrays.read_bytes()[:-50])
    elif damage == "other arrays":  # of the same form: only the digest tells
        replace(fitted, probability=fitted.probability[::-1].copy()).save(tmp_path / "other")
        shutil.copy(tmp_path / "other" / "topics.safetensors", arrays)
    else:
        about.write_text(json.dumps(json.loads(about.read_text()) | {"format": 99}))
    with pytest.raises(InputError, match="topicscope topics"):
        Topics.load(folder)


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "tomotopy"])
def test_other_backends_give_the_same_kind_of_result(backend: str) -> None:
    pytest.importorskip({"sklearn": "sklearn", "gensim": "gensim"}[backend])
    vocabulary = whole_words(tiny.tokenizer("wordpiece"))
    one, two = (fit_topics(texts(), vocabulary, 4, backend=backend, iterations=60, seed=1) for _ in range(2))
    assert np.array_equal(one.probability, two.probability)
    np.testing.assert_allclose(one.probability.sum(1), 1, rtol=1e-5)
    assert one.document_topics.shape == (200, 4)
    assert one.quality == two.quality
    assert one.quality.warnings() == []
    assert one.quality.perplexity is not None
    assert one.quality.unigram_perplexity is not None
    assert one.quality.perplexity < 0.6 * one.quality.unigram_perplexity
    pure = [max(len(set(one.top_words(k, 6)) & set(tiny.WORDS[6 * j : 6 * j + 6])) for j in range(4)) for k in range(4)]
    assert sum(pure) >= 18


def test_complaints() -> None:
    vocabulary = whole_words(tiny.tokenizer("wordpiece"))
    with pytest.raises(
        InputError, match="3 documents have words that occur in at least 1 documents; 4 topics need as many"
    ):
        fit_topics([*texts(3), "", "!!!"], vocabulary, 4, min_documents=1)
    with pytest.raises(InputError, match="no topic backend 'lda2vec'"):
        fit_topics(texts(), vocabulary, 4, backend="lda2vec")


def test_topics_of_another_tokenizer_are_refused(fitted: Topics) -> None:
    fitted.check(whole_words(tiny.tokenizer("wordpiece")))
    with pytest.raises(InputError, match="another tokenizer"):
        fitted.check(whole_words(tiny.tokenizer("bpe")))


def test_pyldavis(fitted: Topics) -> None:
    pytest.importorskip("pyLDAvis")
    prepared = fitted.to_pyldavis()
    assert len(prepared.topic_coordinates) == 4


def test_assignment_takes_the_likeliest_words(fitted: Topics) -> None:
    size = fitted.vocabulary_size
    one = assign(fitted, 6.5 / size)
    assert one.membership.sizes.tolist() == [6, 6, 6, 6]
    for k in range(4):
        mine = {one.words[w] for w in one.membership.word[one.membership.topic == k]}
        assert mine == set(fitted.top_words(k, 6))
    many = assign(fitted, 10.5 / size, "many")
    assert many.membership.sizes.tolist() == [10] * 4
    single = assign(fitted, 10.5 / size, "one")
    assert (single.membership.topics_of_word == 1).all()
    for w, k in zip(single.membership.word, single.membership.topic, strict=True):  # a word stays where it is likeliest
        number = fitted.words.index(single.words[w])
        listed = [j for j in range(4) if number in np.argsort(-fitted.probability[j], kind="stable")[:10]]
        assert k == max(listed, key=lambda j: fitted.probability[j, number])
    with pytest.raises(InputError, match="keeps no word"):
        assign(fitted, 0.5 / size)
    with pytest.raises(InputError, match="keeps all 24 words"):
        assign(fitted, 0.9)


def test_topics_given_in_a_file(tmp_path: Path) -> None:
    vocabulary = whole_words(tiny.tokenizer("wordpiece"))
    rows = [("bread", "food"), ("butter", "food"), ("boat", "sea"), ("bread", "sea"), ("zzz", "food")]
    (tmp_path / "a.csv").write_text("word,topic\n" + "".join(f"{w},{t}\n" for w, t in rows))
    (tmp_path / "a.json").write_text(json.dumps({"food": ["bread", "butter", "zzz"], "sea": ["boat", "bread"]}))
    for name in ("a.csv", "a.json"):
        found = given_topics(tmp_path / name, vocabulary)
        assert found.topics_per_word == "many"
        assert {
            (found.words[w], found.names[k]) for w, k in zip(found.membership.word, found.membership.topic, strict=True)
        } == set(rows[:4])
    (tmp_path / "b.json").write_text(json.dumps({"bread": "food", "butter": "food", "boat": "sea"}))
    assert given_topics(tmp_path / "b.json", vocabulary).topics_per_word == "one"
    for name, content, complaint in [
        ("c.csv", "a,b\nx,y\n", "columns word and topic; it has 'a', 'b'$"),
        ("c.csv", "word;topic\nx;y\n", "it has 'word;topic' .its columns seem to be separated by semicolons; expected"),
        ("d.csv", "word,topic\nbread,x\n", "at least two topics"),
        ("e.json", "[", "not JSON"),
    ]:
        (tmp_path / name).write_text(content)
        with pytest.raises(InputError, match=complaint):
            given_topics(tmp_path / name, vocabulary)


@given(seed=st.integers(0, 10**6), count=st.integers(1, 12))
def test_top_pairs_are_those_of_a_count_by_hand(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    documents = [rng.integers(0, 6, rng.integers(1, 130)) for _ in range(4)]
    expected: dict[tuple[int, int], int] = {}
    for document in documents:
        for start in range(0, len(document), STRETCH):
            there = sorted(set(document[start : start + STRETCH].tolist()))
            for i in there:
                for j in there:
                    if i < j:
                        expected[i, j] = expected.get((i, j), 0) + 1
    best = sorted(expected.items(), key=lambda item: (-item[1], item[0]))[:count]
    pairs, counts = top_pairs(documents, 6, count)
    assert [(tuple(pair), n) for pair, n in zip(pairs.tolist(), counts.tolist(), strict=True)] == best


def by_hand(corpus: str = "") -> Topics:
    fit = TopicFit(
        backend="tomotopy",
        topics=2,
        iterations=20,
        seed=3,
        min_documents=1,
        documents=2,
        tokens=12345,
        log_likelihood=[-2.0, -1.0],
        coherence=[0.5, 0.25],
        corpus=corpus,
    )
    return Topics(
        words=("caf\u00e9", "boat", "sea"),
        token=np.array([5, 6, 7]),
        probability=np.array([[0.5, 0.25, 0.25], [0.0, 0.25, 0.75]]),
        frequency=np.array([3.0, 2.0, 1.0]),
        document_topics=np.array([[0.75, 0.25], [0.5, 0.5]], dtype=np.float32),
        document_lengths=np.array([4, 2]),
        cooccurring=np.array([[0, 1]]),
        vocabulary_size=9,
        fingerprint="f",
        fit=fit,
    )


def test_topics_in_words_and_numbers(tmp_path: Path) -> None:
    topics = by_hand()
    said = topics.summary()
    assert said[0] == "2 topics, 2 documents, 12,345 words"
    assert [sentence.split(":")[0] for sentence in said[1:]] == [
        "mean coherence (c_npmi) 0.375",
        "diversity 0.50",
        "stability and held-out perplexity",
    ]
    assert by_hand("2 documents").summary() == [*said, "corpus: 2 documents"]
    assert topics.top_words(0) == ["caf\u00e9", "boat", "sea"]  # ties by place
    assert topics.top_words(1, 2) == ["sea", "boat"]
    apart = {"stability": None, "distance": round((1 - 0.25 - 0.1875**0.5) ** 0.5, 6)}
    assert topics.table().to_pylist() == [
        {"topic": 0, "share": 0.625, "coherence": 0.5, **apart, "nearest": 1, "words": "caf\u00e9 boat sea"},
        {"topic": 1, "share": 0.375, "coherence": 0.25, **apart, "nearest": 0, "words": "sea boat caf\u00e9"},
    ]
    data = topics.as_dict()
    assert data["topics"][1] == topics.table().to_pylist()[1] | {"words": ["sea", "boat", "caf\u00e9"]}
    assert (data["quality"]["diversity"], data["quality"]["stability"], data["warnings"]) == (0.5, None, [])
    fit = {"backend", "iterations", "seed", "min_documents", "documents", "tokens", "log_likelihood"}
    fit |= {"held_out", "perplexity", "unigram_perplexity", "quality", "warnings"}
    assert set(data) == {"topics"} | fit
    assert set(by_hand("x").as_dict()) == {"topics", "corpus"} | fit
    assert repr(topics) == "Topics(2 topics, 3 words, 2 documents)"
    long = replace(topics, words=tuple(f"w{i}" for i in range(12)), probability=np.ones((1, 12)))
    assert long.top_words(0) == [f"w{i}" for i in range(10)]


def test_a_folder_of_topics_is_replaced_and_can_be_read_by_people(tmp_path: Path) -> None:
    by_hand().save(tmp_path / "a")
    assert by_hand("other").save(tmp_path / "a") == tmp_path / "a"
    assert_same(Topics.load(tmp_path / "a"), by_hand("other"))
    text = (tmp_path / "a" / "topics.json").read_text(encoding="utf-8")
    assert '\n  "caf\u00e9"' in text
    assert json.loads((tmp_path / "a" / "about.json").read_text())["format"] == 4
    with pytest.raises(ValueError, match="not JSON compliant"):
        replace(by_hand(), fit=replace(by_hand().fit, coherence=[float("nan"), 0.0])).save(tmp_path / "b")


def rewritten(folder: Path, head: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Other content under seals that are in order: what is checked is the content itself."""
    write_tensors(folder / "topics.safetensors", arrays)
    head = head | {"digest": file_digest(folder / "topics.safetensors")}
    (folder / "topics.json").write_text(json.dumps(head))
    about = json.loads((folder / "about.json").read_text())
    about["digests"] |= {name: file_digest(folder / name) for name in ("topics.json", "topics.safetensors")}
    (folder / "about.json").write_text(json.dumps(about))


def lacking(name: str) -> Callable[[Any, Any], Any]:
    return lambda _, arrays: arrays.pop(name)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda head, _: head.update(words=["a"]), r"frequency is float64 \(3,\), expected float64 \(1,\)"),
        (lambda head, _: head.update(words=[1, 2, 3]), "words.0: Input should be a valid string"),
        (lambda head, _: head.update(vocabulary_size=4), "a token is not one of 4"),
        (lambda head, _: head.update(vocabulary_size="10"), "vocabulary_size: Input should be a valid integer"),
        (lambda head, _: head.update(vocabulary_size=0), "greater than or equal to 1"),
        (lambda head, _: head.update(fit={}), "fit.backend: Field required"),
        (lambda head, _: head["fit"].update(topics=3), r"expected float64 \(3, 3\)|expected float32 \(2, 3\)"),
        (lambda head, _: head["fit"].update(coherence=[0.0]), "the coherence of 1 topics"),
        (lambda head, _: head["fit"].update(stability=[0.0]), "the stability of other topics"),
        (lambda head, _: head.update(compared=[{}]), "compared.0.topics: Field required"),
        (lambda head, _: head.update(more=1), "more: "),
        (lacking("token"), "token is missing"),
        (lacking("cooccurring"), "cooccurring is missing"),
        (lambda _, a: a.update(more=np.zeros(2)), "more is float64"),
        (lambda _, a: a.update(probability=a["probability"].astype(np.float32)), "probability is float32"),
        (lambda _, a: a.update(probability=a["probability"] * 2), "probabilities of a topic do not add up to 1"),
        (lambda _, a: a.update(probability=a["probability"] * np.nan), "probabilities of a topic do not add up to 1"),
        (lambda _, a: a.update(probability=1 - a["probability"] * 2), "probabilities of a topic do not add up to 1"),
        (lambda _, a: a.update(token=a["token"] - 10), "a token is not one of"),
        (lambda _, a: a.update(frequency=-a["frequency"]), "a frequency is not a count"),
        (lambda _, a: a.update(cooccurring=np.array([[0, 3]])), "a word that is not one of 3"),
        (lambda _, a: a.update(cooccurring=np.array([0, 1])), r"cooccurring is int64 \(2,\)"),
        (lambda _, a: a.update(document_topics=a["document_topics"] * 3), "topics of a document do not add up to 1"),
        (lambda _, a: a.update(document_lengths=-a["document_lengths"] - 1), "length of a document is negative"),
    ],
)
def test_topics_that_cannot_be_are_refused(tmp_path: Path, damage: Any, said: str) -> None:
    folder = by_hand().save(tmp_path / "a")
    head = json.loads((folder / "topics.json").read_text())
    arrays = {name: np.array(getattr(by_hand(), name)) for name in ARRAYS}
    rewritten(folder, head, arrays)
    assert_same(Topics.load(folder), by_hand())
    damage(head, arrays)
    rewritten(folder, head, arrays)
    with pytest.raises(InputError, match=said) as caught:
        Topics.load(folder)
    assert "fit the topics again" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_arrays_of_other_types_are_stored_as_they_are_read(tmp_path: Path) -> None:
    wide = replace(by_hand(), document_topics=by_hand().document_topics.astype(float), token=np.array([5, 6, 7], "i2"))
    assert_same(Topics.load(wide.save(tmp_path / "a")), by_hand())


def test_broken_text_is_a_sentence_of_the_summary() -> None:
    assert by_hand("3 documents").summary()[4:] == ["corpus: 3 documents"]
    broken = "3 documents, 2 broken lines (a.jsonl, line 1; a.jsonl, line 5)"
    assert by_hand(broken).summary()[4:] == [f"Not all of the text could be read: {broken}"]
