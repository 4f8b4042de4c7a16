"""Topics: fitted, judged, compared, stored in folders, and refused where they are damaged."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.command import topicscope
from tests.language import tiny
from tests.language.samples import THETA, assert_same, corpus_file, given_topics, model_folder, texts
from topicscope import InputError, read
from topicscope.ground import file_digest, load_settings, silent, write_tensors
from topicscope.language import (
    BACKENDS,
    ProbeConfig,
    TopicQuality,
    Topics,
    TopicsConfig,
    assign,
    best,
    best_of,
    choice,
    fit_corpus,
    fit_topics,
    inputs,
    probe,
    whole_words,
)
from topicscope.language.assignment import Sampler, assignments_of, judged
from topicscope.language.topics import ARRAYS, quality_of
from topicscope.language.vocabulary import STRETCH, top_pairs
from topicscope.measure import coherence, diversity


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


def edited(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no folder": shutil.rmtree,
    "not finished": edited("about.json", lambda about: about.replace(b'"done"', b'"running"')),
    "no head": lambda folder: (folder / "topics.json").unlink(),
    "cut json": edited("topics.json", lambda head: head[:100]),
    "cut arrays": edited("topics.safetensors", lambda arrays: arrays[:-50]),
    # of the same form: only the digest tells
    "other arrays": lambda at: shutil.copy(at.parent / "other" / "topics.safetensors", at / "topics.safetensors"),
    "other format": edited("about.json", lambda about: json.dumps(json.loads(about) | {"format": 99}).encode()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_folders_are_refused(fitted: Topics, tmp_path: Path, damage: str) -> None:
    folder = fitted.save(tmp_path / "topics")
    replace(fitted, probability=fitted.probability[::-1].copy()).save(tmp_path / "other")
    DAMAGES[damage](folder)
    with pytest.raises(InputError, match="topicscope topics"):
        Topics.load(folder)


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "tomotopy"])
def test_other_backends_give_the_same_kind_of_result(backend: str) -> None:
    pytest.importorskip({"sklearn": "sklearn", "gensim": "gensim"}[backend])
    vocabulary = whole_words(tiny.tokenizer("wordpiece"))
    one, two = (
        fit_topics(texts(), vocabulary, 4, backend=backend, iterations=60, seed=1, stability=stability)
        for stability in (True, False)
    )
    assert np.array_equal(one.probability, two.probability)
    np.testing.assert_allclose(one.probability.sum(1), 1, rtol=1e-5)
    assert one.document_topics.shape == (200, 4)
    assert one.quality.warnings() == []
    assert one.quality.perplexity is not None
    assert one.quality.unigram_perplexity is not None
    assert one.quality.perplexity < 0.6 * one.quality.unigram_perplexity
    pure = [max(len(set(one.top_words(k, 6)) & set(tiny.WORDS[6 * j : 6 * j + 6])) for j in range(4)) for k in range(4)]
    assert sum(pure) >= 18


def test_topics_of_another_tokenizer_are_refused(fitted: Topics) -> None:
    assert assignments_of(fitted, whole_words(tiny.tokenizer("wordpiece")), [0.05], ["one"])
    with pytest.raises(InputError, match="another tokenizer"):
        assignments_of(fitted, whole_words(tiny.tokenizer("bpe")), [0.05], ["one"])


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
    fit = {"iterations": 20, "seed": 3, "tokens": 12345, "log_likelihood": [-2.0, -1.0], "coherence": [0.5, 0.25]}
    return given_topics(
        [[0.5, 0.25, 0.25], [0.0, 0.25, 0.75]],
        [[0.75, 0.25], [0.5, 0.5]],
        words=("caf\u00e9", "boat", "sea"),
        token=np.array([5, 6, 7]),
        frequency=np.array([3.0, 2.0, 1.0]),
        document_lengths=np.array([4, 2]),
        vocabulary_size=9,
        fit=fit | {"corpus": corpus},
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
    broken = "3 documents, 2 broken lines (a.jsonl, line 1; a.jsonl, line 5)"
    assert by_hand(broken).summary() == [*said, f"Not all of the text could be read: {broken}"]
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
    wide = replace(by_hand(), document_topics=by_hand().document_topics.astype(float), token=np.array([5, 6, 7], "i2"))
    assert_same(Topics.load(wide.save(tmp_path / "c")), by_hand())  # other types are stored as they are read
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


GOOD = TopicQuality(
    topics=20, coherence=0.1, coherence_error=0.01, incoherent=5, diversity=0.5, stability=0.3, perplexity=900.0,
    unigram_perplexity=1000.0, held_out=9,
)  # fmt: skip


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


@pytest.mark.parametrize("seed", range(2))
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


@pytest.mark.parametrize("seed", range(2))
def test_the_planted_number_of_topics_is_the_best(seed: int) -> None:
    """Five topics of 20 words, one or two of them in a document."""
    rng = np.random.default_rng(seed)
    documents = [
        20 * rng.choice(rng.choice(5, 1 + (rng.random() < 0.5), replace=False), 60) + rng.integers(0, 20, 60)
        for _ in range(200)
    ]
    how, qualities = Sampler("tomotopy", 60, 2, seed), []
    for topics in (2, 5, 12):
        probability, _, _ = how.fit(documents, 100, topics, seed, silent)
        fit = judged(replace(by_hand().fit, topics=topics), probability, documents, how, silent)
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
    assert sorted(path.name for path in (tmp_path / "topics").glob("topics-*")) == ["topics-2", "topics-4", "topics-6"]
    alone = fit_corpus(config.changed({"topics": 4}))
    assert_same(Topics.load(tmp_path / "topics" / "topics-4"), alone)
    lines = (tmp_path / "topics" / "quality.csv").read_text().splitlines()
    assert lines[0] == ",".join(asdict(found.quality))
    assert [line.split(",")[0] for line in lines[1:]] == ["2", "4", "6"]
    assert len((tmp_path / "topics" / "topics.csv").read_text().splitlines()) == 3
    data = found.as_dict()
    assert (data["best"], len(data["compared"]), data["choice"]) == (2, 3, choice(found.compared))
    fit_corpus(config.changed({"topics": 4}), tmp_path / "topics")  # replaced, with what the comparison left
    assert not list((tmp_path / "topics").glob("topics-*"))


@pytest.mark.parametrize(("quality", "poor"), [(0.5, False), (-0.5, True)])
def test_a_probe_says_how_good_its_topics_are(fitted: Topics, tmp_path: Path, quality: float, poor: bool) -> None:
    model, corpus = str(model_folder(tmp_path)), str(corpus_file(tmp_path))
    fit = replace(fitted.fit, coherence=[quality] * 4, stability=None, perplexity=None, unigram_perplexity=None)
    replace(fitted, fit=fit).save(tmp_path / "topics")
    small: dict[str, Any] = {"thresholds": THETA, "documents": 10, "bootstrap": 5, "shuffles": 5, "random": False}
    notes = probe(ProbeConfig(model, corpus, topics_from=str(tmp_path / "topics"), **small)).notes
    (said,) = [note for note in notes if note.startswith("4 topics: ")]
    assert said == f"4 topics: mean coherence (c_npmi) {quality:.3f}, diversity {diversity(fitted.tops()):.2f}"
    assert any(note.startswith("Poor topics: ") for note in notes) is poor


@pytest.mark.process
def test_the_command_compares_and_quick_gives_way_to_what_is_given(tmp_path: Path) -> None:
    model, corpus = str(model_folder(tmp_path)), str(corpus_file(tmp_path))
    out = tmp_path / "quick"
    few = ["topics", corpus, "--tokenizer", model, "--quick", "--iterations", "7", "--no-stability", "--out", str(out)]
    found = json.loads(topicscope(*few, "--topics", "2", "--topics", "3", "--json").stdout)
    assert [one["topics"] for one in found["compared"]] == [2, 3]
    assert (found["iterations"], found["quality"]["stability"], found["perplexity"]) == (7, None, None)
    settings = load_settings(out / "config.yaml", own=True)
    assert (settings["topics"], settings["iterations"], settings["max_documents"]) == ([2, 3], 7, 500)


def test_a_fit_of_more_than_ten_seconds_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = TopicsConfig(str(corpus_file(tmp_path)), str(model_folder(tmp_path)), topics=[4], iterations=5)
    fit_corpus(config)
    assert "estimate" not in capsys.readouterr().err
    monkeypatch.setattr(inputs, "COUNTING", 12 / inputs.text_bytes(config, config.max_documents))
    fit_corpus(config)
    assert capsys.readouterr().err.splitlines()[0].startswith("topicscope: estimate: about 12 s, ")
