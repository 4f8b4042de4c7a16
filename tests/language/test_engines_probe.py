"""The same figures on every engine: words, co-occurrence and attention in shards, and the probe as data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.command import topicscope
from tests.language import tiny
from tests.language.test_attention import assignment
from tests.language.test_models import folder
from tests.language.test_probe import make_corpus
from tests.language.test_topics import texts
from topicscope import InputError
from topicscope.cli import engine_options
from topicscope.ground.engines import Engine, open_engine, serial
from topicscope.language import (
    ProbeConfig,
    Settings,
    attention as attention_module,
    fit_topics,
    load_model,
    probe,
    probe_model,
    run_probe,
    sharding as sharding_module,
    whole_words,
)
from topicscope.language.cooccurrence import STRETCH, top_pairs
from topicscope.language.models import checked
from topicscope.language.probe_run import build_config
from topicscope.language.timelines import find_checkpoints, timeline
from topicscope.language.topics import word_documents

THETA = 6.5 / len(tiny.tokenizer("wordpiece"))
SETTINGS = Settings(
    thresholds=(THETA,), topics_per_word=("one", "many"), bootstrap=20, shuffles=10, attention_shuffles=5
)


def backwards(work: Any, common: Any, items: Any) -> Iterator[tuple[int, Any]]:
    """An engine in this process that packs everything as a real one does, and answers in the wrong order."""
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
    engines: list[Engine | None] = [None, serial, backwards]
    with mock.patch.object(sharding_module, "DOCUMENTS", shard):
        for engine in engines:
            pairs, counts = top_pairs(corpus, 7, count, engine)
            assert [(tuple(pair), n) for pair, n in zip(pairs.tolist(), counts.tolist(), strict=True)] == best
            assert counts.dtype == np.int64


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_words_of_documents_do_not_depend_on_the_shards(kind: str) -> None:
    vocabulary = whole_words(tiny.tokenizer(kind), ())
    plain = word_documents(tiny.TEXTS, vocabulary)
    assert sum(map(len, plain)) > 100
    with mock.patch.object(sharding_module, "DOCUMENTS", 2):
        shards = word_documents(tiny.TEXTS, vocabulary, backwards)
    assert [document.tolist() for document in shards] == [document.tolist() for document in plain]


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_a_probe_in_shards_is_the_plain_one(tmp_path: Path, kind: str) -> None:
    """With several parts and several topics a word; fresh weights drawn anew where the work is done."""
    loaded = load_model(
        folder(tmp_path, kind).parent
    )  # named by the folder around it: fresh weights are drawn by that name
    vocabulary = whole_words(loaded.tokenizer)
    topics = fit_topics(texts(), vocabulary, 4, iterations=20)
    plain = probe_model(loaded, vocabulary, texts(150, 1), topics, SETTINGS).as_dict()
    assert len(plain["rows"]) == 4
    assert len(list(numbers(plain))) > 300
    seen: list[int] = []
    found = probe_model(
        loaded, vocabulary, texts(150, 1), topics, SETTINGS, lambda _what, done, _of: seen.append(done), backwards
    )
    assert_equal(found.as_dict(), plain)
    assert seen == [128, 150, 128, 150]  # whole chunks, as the plain pass has them; trained and fresh
    other = probe_model(loaded, vocabulary, texts(150, 2), topics, SETTINGS, engine=backwards).as_dict()
    assert other["rows"][0]["attention"]["same"] != plain["rows"][0]["attention"]["same"]


def test_sums_over_chunks_are_those_of_the_chunks_together(tmp_path: Path) -> None:
    """Windows of one length are one batch or many: the figures agree as far as single precision goes."""
    loaded = load_model(folder(tmp_path))
    vocabulary = whole_words(loaded.tokenizer)
    topics = fit_topics(texts(), vocabulary, 4, iterations=20)
    whole = probe_model(loaded, vocabulary, texts(20, 1), topics, SETTINGS).as_dict()
    with mock.patch.object(attention_module, "CHUNK", 3):
        parts = probe_model(loaded, vocabulary, texts(20, 1), topics, SETTINGS, engine=backwards).as_dict()
    np.testing.assert_allclose(list(numbers(parts)), list(numbers(whole)), rtol=1e-3, atol=1e-7)
    for one, two in zip(parts["rows"], whole["rows"], strict=True):
        assert one["attention"]["same"] == pytest.approx(two["attention"]["same"], rel=1e-6)
        assert one["attention"]["interval"] == pytest.approx(two["attention"]["interval"], rel=1e-4)


def test_another_model_at_the_same_place_is_loaded_anew(tmp_path: Path) -> None:
    place = folder(tmp_path)
    vocabulary = whole_words(load_model(place).tokenizer)
    topics = fit_topics(texts(), vocabulary, 4, iterations=5)
    probed = partial(probe_model, vocabulary=vocabulary, texts=texts(20, 1), topics=topics, settings=SETTINGS)
    before = probed(load_model(place), engine=backwards).as_dict()
    load_model(place).random(7).model.save_pretrained(place)
    after = probed(load_model(place), engine=backwards).as_dict()
    assert_equal(after, probed(load_model(place)).as_dict())
    assert after["rows"][0]["attention"]["same"] != before["rows"][0]["attention"]["same"]


def test_a_model_that_the_caller_made_stays_with_the_caller() -> None:
    tokenizer = tiny.tokenizer("wordpiece")
    model, vocabulary = tiny.model("encoder", len(tokenizer)), whole_words(tokenizer)
    topics = fit_topics(texts(), vocabulary, 4, iterations=5)
    assert probe(model, tokenizer, texts(9), topics, settings=SETTINGS).rows
    with pytest.raises(InputError, match="cannot be sent to other processes"):
        probe_model(checked("mine", model, tokenizer), vocabulary, texts(9), topics, SETTINGS, engine=backwards)


def test_a_timeline_in_shards_is_the_plain_one(tmp_path: Path) -> None:
    loaded = load_model(folder(tmp_path))
    vocabulary = whole_words(loaded.tokenizer)
    for step, model in ((1, loaded), (2, loaded.random(2))):
        model.model.save_pretrained(tmp_path / f"step-{step}")
        loaded.tokenizer.save_pretrained(tmp_path / f"step-{step}")
    checkpoints, given_ = find_checkpoints([str(tmp_path)]), assignment(vocabulary, several=False)
    with mock.patch.object(attention_module, "CHUNK", 3):
        plain, found = (
            timeline(checkpoints, tiny.TEXTS, given_, vocabulary, SETTINGS, engine=engine)
            for engine in (None, backwards)
        )
    assert found["attention"] == plain["attention"]
    assert found["attention.1"] == plain["attention.1"]
    assert found["attention"][1] != found["attention"][2]


@pytest.mark.parametrize("name", ["local", "ray"])
def test_real_workers_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: Any) -> None:
    """The whole run from a config with relative paths, on two processes."""
    if name == "ray":
        pytest.importorskip("ray", reason="ray is not installed (the extra 'cluster')")
    monkeypatch.chdir(folder(tmp_path).parent)
    corpus = make_corpus(tmp_path).name
    config = build_config(
        {
            "model": "model",
            "corpus": [corpus],
            "number": 4,
            "iterations": 20,
            "documents": 20,
            "threshold": THETA,
            "bootstrap": 20,
            "shuffles": 20,
            "device": "cpu",
        }
    )
    with mock.patch.object(attention_module, "CHUNK", 6), mock.patch.object(sharding_module, "DOCUMENTS", 30):
        plain = run_probe(config).as_dict()
        with open_engine(name, workers=2) as engine:
            found = run_probe(config, engine=engine).as_dict()
    assert_equal(found, plain)
    assert {row["model"] for row in found["rows"]} == {"model"}
    assert found["cooccurrence"][0]["pairs"] == 15


def test_the_command_is_the_config(tmp_path: Path) -> None:
    model, corpus, engine = str(folder(tmp_path)), str(make_corpus(tmp_path)), ["--engine", "local", "--workers", "1"]
    flags = [
        "--number",
        "4",
        "--iterations",
        "20",
        "--documents",
        "20",
        "--bootstrap",
        "20",
        "--shuffles",
        "20",
        "--threshold",
        str(THETA),
        "--device",
        "cpu",
    ]
    printed = json.loads(topicscope("probe", model, "--corpus", corpus, *flags, *engine, "--json").stdout)
    config = ProbeConfig(
        model, [corpus], number=4, iterations=20, documents=20, bootstrap=20, shuffles=20, threshold=THETA, device="cpu"
    )
    assert build_config(config.as_dict()) == config
    steps: list[str] = []
    found = run_probe(config, progress=lambda what, _done, _of: steps.append(what)).as_dict()
    assert json.loads(json.dumps(found)) == printed
    assert list(dict.fromkeys(steps)) == ["fitting topics", f"{model} (trained)", f"{model} (random)"]
    kept = str(tmp_path / "topics")
    assert (
        "mean coherence"
        in topicscope(
            "topics", corpus, "--tokenizer", model, "--topics", "4", "--iterations", "20", "--out", kept, *engine
        ).stdout
    )
    again = run_probe(build_config(config.as_dict() | {"topics": kept})).as_dict()
    assert json.loads(json.dumps(again)) == printed


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"corpus": ["x"]}, "no model is given"),
        ({"model": "m"}, "no text is given"),
        ({"model": "m", "corpus": ["x"], "treshold": 0.1}, "did you mean 'threshold'"),
        ({"model": "m", "corpus": ["x"], "threshold": 1.5}, "threshold = 1.5"),
        ({"model": "m", "corpus": ["x"], "number": 1}, "number = 1"),
        ({"model": "m", "corpus": ["x"], "topics_per_word": "both"}, "topics_per_word = 'both'"),
        ({"model": "m", "corpus": ["x"], "windows": 0}, "windows = 0"),
    ],
)
def test_a_wrong_config_is_one_line(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        build_config(settings)
    assert "\n" not in str(caught.value)


def test_what_is_missing_is_said_by_the_run(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path)
    with pytest.raises(InputError, match="no such corpus"):
        run_probe(build_config({"model": "m", "corpus": [str(tmp_path / "nothing")]}))
    with pytest.raises(InputError, match="no such model"):
        run_probe(build_config({"model": str(tmp_path / "nothing"), "corpus": [str(corpus)]}))
    with pytest.raises(InputError, match="is not there"):
        run_probe(
            build_config({"model": str(folder(tmp_path)), "corpus": [str(corpus)], "topics": str(tmp_path / "nothing")})
        )


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--engine", "spark"], "--engine spark: expected serial, local, ray"),
        (["--address", "auto"], "--address auto is for --engine ray"),
        (["--engine", "local", "--workers", "0"], "--workers"),
        (["--engine", "ray", "--address", "127.0.0.1:1"], "nothing answers at 127.0.0.1:1"),
    ],
)
def test_bad_options_are_one_line(tmp_path: Path, flags: list[str], complaint: str) -> None:
    if "ray" in flags:
        pytest.importorskip("ray", reason="ray is not installed (the extra 'cluster')")
    model, corpus = str(folder(tmp_path)), str(make_corpus(tmp_path))
    command = (
        ["topics", corpus, "--tokenizer", model, "--topics", "4"]
        if "spark" in flags
        else ["probe", model, "--corpus", corpus]
    )
    result = topicscope(*command, *flags, code=2)
    assert complaint in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


def test_ray_that_is_not_installed_is_said_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_options, "find_spec", lambda _name: None)
    engine_options.check_engine("local", None)
    with pytest.raises(InputError, match=r"pip install 'topicscope\[cluster\]'"):
        engine_options.check_engine("ray", None)
