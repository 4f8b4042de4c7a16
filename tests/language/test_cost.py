"""Estimates of topics, probes and timelines, and the refusal of what does not fit."""

import json
from pathlib import Path
from typing import Any

import pytest

from topicscope import InputError
from topicscope.language import (
    ProbeConfig,
    TopicsConfig,
    attention,
    cost_of,
    fit_corpus,
    inputs,
    losses,
    probe,
)
from topicscope.language.inputs import ModelSize, size_of


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    settings = {"num_hidden_layers": 2, "num_attention_heads": 3, "max_position_embeddings": 64, "vocab_size": 500}
    (folder / "config.json").write_text(json.dumps({**settings, "hidden_size": 12}))
    (folder / "model.safetensors").write_bytes(b"0" * 1000)
    return folder


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("some words of a text\n" * 100)
    return path


def test_sizes_of_models_come_from_their_folders(model: Path, tmp_path: Path) -> None:
    assert size_of(str(model)) == ModelSize(bytes=1000, layers=2, heads=3, window=64, dim=12, vocabulary=500)
    assert size_of("bert-base-uncased") == ModelSize()
    (model / "config.json").write_text('{"num_hidden_layers": "many", "hidden_size": 10000000000}')
    assert size_of(str(model)) == ModelSize(bytes=1000)
    (model / "config.json").write_text("[")
    assert size_of(str(model)) == ModelSize()


@pytest.mark.parametrize(
    ("settings", "driver"), [({"bootstrap": 10**6}, "bootstrap 1000000"), ({"shuffles": 10**6}, "shuffles 1000000")]
)
def test_a_probe_that_does_not_fit_is_refused(
    settings: dict[str, Any], driver: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topicscope.ground.machine.machine_memory", lambda: 4 * 10**9)
    config = ProbeConfig.of({"models": ["bert-base-uncased"], "corpus": [str(text)], **settings})
    with pytest.raises(InputError, match=r"would take about .* of memory") as error:
        probe(config, tmp_path / "probe")
    assert driver in str(error.value)
    assert not (tmp_path / "probe").exists()


def test_topics_that_do_not_fit_are_refused(model: Path, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topicscope.ground.machine.machine_memory", lambda: 4 * 10**9)
    (model / "tokenizer.json").write_text("{}")
    config = TopicsConfig.of(corpus=[str(text)], tokenizer=str(model), topics=100_000)
    with pytest.raises(InputError, match="topics 100000"):
        fit_corpus(config)


def test_more_text_and_more_sweeps_cost_more(model: Path, text: Path, tmp_path: Path) -> None:
    config = TopicsConfig.of(corpus=[str(text)], tokenizer=str(model))
    base = cost_of(config)
    read = inputs.COUNTING * text.stat().st_size
    assert cost_of(config.changed({"iterations": 1200})).seconds == pytest.approx(read + 10 * (base.seconds - read))
    once = cost_of(config.changed({"stability": False})).seconds
    assert base.seconds == pytest.approx(read + 2 * (once - read)), "the second fit is counted"
    each = [cost_of(config.changed({"topics": count})) for count in (50, 100)]
    both = cost_of(config.changed({"topics": [50, 100]}))
    assert both.seconds == pytest.approx(sum(one.seconds for one in each) - read)
    assert both.memory > max(one.memory for one in each)
    assert both.disk >= each[0].disk + each[1].disk, "every fit is kept"
    assert cost_of(config.changed({"topics": 200})).memory > base.memory
    larger = tmp_path / "larger.txt"
    larger.write_bytes(b"words\n" * 10**6)
    assert cost_of(config.changed({"corpus": [str(larger)]})).memory > base.memory


def test_probed_text_is_held_without_its_windows(model: Path, tmp_path: Path) -> None:
    """Three bytes per byte of text: the windows of all of it would take six more."""
    memory = []
    for name, size in (("one", 10**9), ("two", 2 * 10**9)):
        path = tmp_path / f"{name}.txt"
        with path.open("wb") as file:
            file.truncate(size)  # a hole: it takes no room on the disk
        sizes: dict[str, Any] = {"documents": 10**6, "max_documents": 10}
        config = ProbeConfig.of({"models": [str(model)], "corpus": [str(path)], **sizes})
        memory.append(cost_of(config).memory)
    assert memory[1] - memory[0] == pytest.approx(3 * 10**9)


def test_the_sizes_of_an_estimate_are_those_of_the_work() -> None:
    assert (attention.CHUNK, losses.LOGITS) == (inputs.CHUNK, inputs.LOGITS)


def test_what_is_not_measured_costs_nothing(model: Path, text: Path) -> None:
    config = ProbeConfig.of(models=[str(model)], corpus=[str(text)], topics_from="topics.csv")
    whole = cost_of(config)
    for off in ("states", "ablation", "random"):
        assert cost_of(config.changed({off: False})).seconds < whole.seconds, off
    assert cost_of(config.changed({"states": False, "random": False})).memory < whole.memory
    assert cost_of(config.changed({"show_documents": 0})).disk == whole.disk - 8e6
    none = config.changed({"shuffles": 0})
    assert cost_of(none) == cost_of(none.changed({"ablation": False})), "without shuffles no head is topical"


@pytest.mark.parametrize(
    ("more", "grows"),
    [
        ({"bootstrap": 10**5}, "memory seconds"),
        ({"shuffles": 10**5}, "memory seconds"),
        ({"documents": 10**4}, "memory seconds disk"),
        ({"thresholds": [0.1]}, "memory"),
        ({"topics_per_word": ["one", "many"]}, "seconds"),
        ({"models": ["bert-base-uncased", "bert-large-uncased"]}, "memory seconds disk"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_more_costs_more(more: dict[str, Any], grows: str) -> None:
    config = ProbeConfig.of(models=["bert-base-uncased"], corpus=["hf:any/text"], topics_from="topics.csv")
    before, after = cost_of(config), cost_of(config.changed(more))
    for part in grows.split():
        assert getattr(after, part) > getattr(before, part), part


def test_memory_does_not_grow_with_the_states_of_documents_beyond_a_number() -> None:
    config = ProbeConfig.of(models=["bert-base-uncased"], corpus=["hf:any/text"], topics_from="topics.csv")
    bare = config.changed({"states": False})
    added = [
        cost_of(config.changed({"documents": n})).memory - cost_of(bare.changed({"documents": n})).memory
        for n in (10**4, 10**5)
    ]
    assert added[0] == pytest.approx(added[1])
    assert added[0] < 2.1 * (2**29 + 2**28)
