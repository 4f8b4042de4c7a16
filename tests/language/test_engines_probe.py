"""The same figures on every engine: words, co-occurrence and attention in shards, and the probe as data."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.command import error_line, topicscope
from tests.language import tiny
from tests.language.samples import THETA, assignment, corpus_file, model_folder, texts
from topicscope import InputError
from topicscope.ground import Engine, open_engine, serial
from topicscope.language import (
    Corpus,
    Measurement,
    ProbeConfig,
    attention as attention_module,
    checked,
    find_snapshots,
    fit_topics,
    load_model,
    probe,
    probe_model,
    probe_point,
    timeline_of,
    vocabulary as counting_module,
    whole_words,
)
from topicscope.language.vocabulary import STRETCH, top_pairs, word_documents

MEASUREMENT = Measurement(thresholds=[THETA], topics_per_word=["one", "many"], bootstrap=20, shuffles=50)


def backwards(work: Any, common: Any, items: Any) -> Iterator[tuple[int, Any]]:
    """An engine in this process that packs everything as a real one does, and answers in the wrong order."""
    items = list(items)
    for number in reversed(range(len(items))):
        yield number, shipped(work(*shipped((common, items[number]))))


def shipped(thing: Any) -> Any:
    """As a pool of processes sends it."""
    return ForkingPickler.loads(bytes(ForkingPickler.dumps(thing)))


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    with mock.patch.dict(os.environ):  # a worker sets what is meant for itself
        yield


def numbers(found: Any) -> Iterator[float]:
    """All numbers of a nested result, in order."""
    if isinstance(found, dict | list | tuple):
        for value in found.values() if isinstance(found, dict) else found:
            yield from numbers(value)
    elif isinstance(found, int | float):
        yield float(found)


def assert_equal(found: Any, plain: Any) -> None:
    np.testing.assert_allclose(list(numbers(found)), list(numbers(plain)), rtol=1e-9, atol=0)
    assert found == plain  # not only near: the same shards, added up in the same order


@given(seed=st.integers(0, 10**6), documents=st.integers(0, 9), shard=st.integers(1, 10), count=st.integers(1, 30))
def test_top_pairs_do_not_depend_on_the_shards(seed: int, documents: int, shard: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    corpus = [rng.integers(0, 7, rng.integers(0, 3 * STRETCH)) for _ in range(documents)]
    expected: dict[tuple[int, int], int] = {}
    for document in corpus:
        for start in range(0, len(document), STRETCH):
            there = sorted(set(document[start : start + STRETCH].tolist()))
            for place, i in enumerate(there):
                for j in there[place + 1 :]:
                    expected[i, j] = expected.get((i, j), 0) + 1
    best = sorted(expected.items(), key=lambda item: (-item[1], item[0]))[:count]
    engines: list[Engine] = [serial, backwards]
    with mock.patch.object(counting_module, "DOCUMENTS", shard):
        for engine in engines:
            pairs, counts = top_pairs(corpus, 7, count, engine)
            assert [(tuple(pair), n) for pair, n in zip(pairs.tolist(), counts.tolist(), strict=True)] == best
            assert counts.dtype == np.int64


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_words_of_documents_do_not_depend_on_the_shards(kind: str) -> None:
    vocabulary = whole_words(tiny.tokenizer(kind), ())
    plain = word_documents(tiny.TEXTS, vocabulary)
    assert sum(map(len, plain)) > 100
    with mock.patch.object(counting_module, "DOCUMENTS", 2):
        shards = word_documents(tiny.TEXTS, vocabulary, backwards)
    assert [document.tolist() for document in shards] == [document.tolist() for document in plain]


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_a_probe_in_shards_is_the_plain_one(tmp_path: Path, kind: str) -> None:
    """With several parts and several topics a word; fresh weights drawn anew where the work is done."""
    # named by the folder around it: random weights are drawn by that name
    loaded = load_model(model_folder(tmp_path, kind).parent)
    topics = fit_topics(texts(), whole_words(loaded.tokenizer), 4, iterations=20)
    plain = probe_model(loaded, texts(150, 1), topics, MEASUREMENT).as_dict()
    assert [row["topics_per_word"] for row in plain["rows"]] == ["one", "many", "one", "many"]
    assert len(list(numbers(plain))) > 300
    seen: list[tuple[str, float]] = []

    def watch(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        seen.append((phase.partition(" ")[0], done))

    found = probe_model(loaded, texts(150, 1), topics, MEASUREMENT, engine=backwards, progress=watch)
    assert_equal(found.as_dict(), plain)
    # whole chunks, as the plain pass has them, then the two assignments; of trained and of random weights
    others = [one for one in seen if one[0] not in ("hidden", "documents", "loss")]
    assert others == [("probing", 0), ("probing", 128), ("probing", 150), ("statistics", 0), ("statistics", 1)] * 2
    layers = len({(row["part"], row["layer"]) for row in plain["states"]})
    assert [done for phase, done in seen if phase == "hidden"] == [*range(layers + 1), *range(layers, 2 * layers)] * 2
    other = probe_model(loaded, texts(150, 2), topics, MEASUREMENT, engine=backwards).as_dict()
    assert other["rows"][0]["attention"]["same"] != plain["rows"][0]["attention"]["same"]


def test_sums_over_chunks_are_those_of_the_chunks_together(tmp_path: Path) -> None:
    """Windows of one length are one batch or many: the figures agree as far as single precision goes."""
    loaded = load_model(model_folder(tmp_path))
    topics = fit_topics(texts(), whole_words(loaded.tokenizer), 4, iterations=20)
    whole = probe_model(loaded, texts(20, 1), topics, MEASUREMENT).as_dict()
    with mock.patch.object(attention_module, "CHUNK", 3):
        parts = probe_model(loaded, texts(20, 1), topics, MEASUREMENT, engine=backwards).as_dict()
    np.testing.assert_allclose(list(numbers(parts)), list(numbers(whole)), rtol=1e-3, atol=1e-7)
    for one, two in zip(parts["rows"], whole["rows"], strict=True):
        assert one["attention"]["same"] == pytest.approx(two["attention"]["same"], rel=1e-6)
        assert one["attention"]["interval"] == pytest.approx(two["attention"]["interval"], rel=1e-4)


def test_another_model_at_the_same_place_is_loaded_anew(tmp_path: Path) -> None:
    place = model_folder(tmp_path)
    topics = fit_topics(texts(), whole_words(load_model(place).tokenizer), 4, iterations=5)
    probed = partial(probe_model, texts=texts(20, 1), topics=topics, measurement=MEASUREMENT)
    before = probed(load_model(place), engine=backwards).as_dict()
    load_model(place).random(7).model.save_pretrained(place)
    after = probed(load_model(place), engine=backwards).as_dict()
    assert_equal(after, probed(load_model(place)).as_dict())
    assert after["rows"][0]["attention"]["same"] != before["rows"][0]["attention"]["same"]


def test_a_model_that_the_caller_made_stays_with_the_caller() -> None:
    tokenizer = tiny.tokenizer("wordpiece")
    mine = checked("mine", tiny.model("encoder", len(tokenizer)), tokenizer)
    topics = fit_topics(texts(), whole_words(tokenizer), 4, iterations=5)
    assert probe_model(mine, texts(9), topics, MEASUREMENT).rows
    with pytest.raises(InputError, match="cannot be sent to other processes"):
        probe_model(mine, texts(9), topics, MEASUREMENT, engine=backwards)


def test_a_timeline_in_shards_is_the_plain_one(tmp_path: Path) -> None:
    loaded = load_model(model_folder(tmp_path))
    vocabulary = whole_words(loaded.tokenizer)
    for step, model in ((1, loaded), (2, loaded.random(2))):
        model.model.save_pretrained(tmp_path / f"step-{step}")
        loaded.tokenizer.save_pretrained(tmp_path / f"step-{step}")
    snapshots, given_ = find_snapshots([str(tmp_path)]), assignment(vocabulary, several=False)
    with mock.patch.object(attention_module, "CHUNK", 3):
        plain, found = (
            timeline_of(snapshots, tiny.TEXTS, given_, vocabulary, MEASUREMENT, engine=engine)
            for engine in (serial, backwards)
        )
    assert found == plain
    first, second = (row.effect for row in found.rows if row.measure == "attention.1")
    assert first != second


SIZES: dict[str, Any] = {"topics": 4, "iterations": 20, "documents": 20, "bootstrap": 20, "shuffles": 20}
CONFIG = ProbeConfig("model", "corpus.jsonl", thresholds=[THETA], device="cpu", **SIZES)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model and the corpus of CONFIG."""
    home = tmp_path_factory.mktemp("engines")
    model_folder(home)
    corpus_file(home)
    return home


@pytest.fixture(scope="module")
def plain(home: Path) -> tuple[dict[str, Any], list[str]]:
    """What the plain engine makes of CONFIG, in small chunks, and the phases that it reported."""
    phases: list[str] = []
    with pytest.MonkeyPatch.context() as patch, small_chunks():
        patch.chdir(home)
        found = probe(CONFIG, progress=lambda phase, *_: phases.append(phase)).as_dict()
    return found, phases


@contextmanager
def small_chunks() -> Iterator[None]:
    with mock.patch.object(attention_module, "CHUNK", 6), mock.patch.object(counting_module, "DOCUMENTS", 30):
        yield


@pytest.mark.parametrize("name", ["local", "ray"])
def test_real_workers_give_the_same(plain: Any, home: Path, monkeypatch: pytest.MonkeyPatch, name: Any) -> None:
    """The whole run from a config with relative paths, on two processes."""
    if name == "ray":
        pytest.importorskip("ray", reason="ray is not installed (the extra 'cluster')")
    monkeypatch.chdir(home)
    with small_chunks(), open_engine(name, workers=2) as engine:
        found = probe(CONFIG, engine=engine).as_dict()
    assert_equal(found, plain[0])
    assert {row["model"] for row in found["rows"]} == {"model"}
    assert found["cooccurrence"][0]["pairs"] == 15


def test_the_command_is_the_config(plain: Any, home: Path, tmp_path: Path) -> None:
    engine = ["--engine", "local", "--workers", "1"]
    flags = [part for name, value in SIZES.items() for part in (f"--{name}", str(value))]
    flags += ["--threshold", str(THETA), "--device", "cpu", *engine, "--json"]
    printed = json.loads(topicscope("probe", "model", "--corpus", "corpus.jsonl", *flags, cwd=home).stdout)
    assert ProbeConfig.of(CONFIG.as_dict()) == CONFIG
    found, phases = plain
    # chunks of other sizes are added up in another order
    np.testing.assert_allclose(list(numbers(found)), list(numbers(printed)), rtol=1e-3, atol=1e-6)
    both = [f"{what} model ({which})" for which in ("trained", "random") for what in ("probing", "statistics of")]
    named = [phase for phase in dict.fromkeys(phases) if phase == "fitting topics" or phase in both]
    assert named == ["fitting topics", *both]
    stored, settings = str(tmp_path / "topics"), tmp_path / "probe.yaml"
    fit = ["topics", "corpus.jsonl", "--tokenizer", "model", "--topics", "4", "--iterations", "20", "--out", stored]
    assert "mean coherence" in topicscope(*fit, *engine, cwd=home).stdout
    settings.write_text(json.dumps(CONFIG.as_dict()))
    given = ["--set", f"topics_from={stored}", "--set", "topics=100"]
    from_file = topicscope("probe", "--config", str(settings), *given, "--json", cwd=home)
    assert json.loads(from_file.stdout) == printed


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("treshold", 0.1, "did you mean 'thresholds'"),
        ("thresholds", [], r"thresholds = \[\]"),
        ("topics", 1, "topics = 1"),
        ("topics_per_word", "both", "topics_per_word.0 = 'both'"),
        ("windows", 0, "windows = 0"),
    ],
)
def test_a_wrong_config_is_one_line(name: str, value: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        ProbeConfig.of({"models": "m", "corpus": ["x"], name: value})
    assert "\n" not in str(caught.value)


def test_attention_and_topics_have_samples_of_their_own(tmp_path: Path) -> None:
    """Documents of the attention pass are drawn with the next seed: numbers of earlier versions depend on it."""
    sizes: dict[str, Any] = {"topics": 4, "iterations": 5, "documents": 20, "max_documents": 90, "seed": 7}
    config = ProbeConfig(str(model_folder(tmp_path)), str(corpus_file(tmp_path)), thresholds=[THETA], **sizes)
    with mock.patch.object(Corpus, "numbered_sample", autospec=True, side_effect=Corpus.numbered_sample) as sample:
        probe(config.changed({"bootstrap": 2, "shuffles": 0, "random": False}))
    assert [call.args[1:] for call in sample.call_args_list] == [(20, 8), (90, 7)]


def test_single_values_are_taken_as_lists() -> None:
    one = ProbeConfig.of(models="m", corpus=Path("x"), thresholds=0.01, topics_per_word="many")
    two = ProbeConfig.of(models=["m"], corpus=["x"], thresholds=[0.01], topics_per_word=["many"])
    assert one == two
    assert ProbeConfig("m", "x").thresholds == (0.0005, 0.001, 0.002)


def test_a_point_of_a_sweep_has_one_of_each() -> None:
    assert probe_point({"models": "m", "corpus": "x"}).thresholds == (0.002,)
    for name, values in (("models", ["m", "n"]), ("thresholds", [0.1, 0.2]), ("topics_per_word", ["one", "many"])):
        with pytest.raises(InputError, match=f"make {name} an axis"):
            probe_point({"models": "m", "corpus": "x", name: values})


def test_bad_options_are_one_line(tmp_path: Path) -> None:
    model, corpus = str(model_folder(tmp_path)), str(corpus_file(tmp_path))
    for command, complaint in (
        (["topics", corpus, "--tokenizer", model, "--engine", "spark"], "engine 'spark'; expected serial, local, ray"),
        (["probe", model, "--corpus", corpus, "--engine", "local", "--workers", "0"], "--workers"),
    ):
        result = topicscope(*command, code=2)
        assert complaint in error_line(result.stderr)
        assert result.stdout == ""
