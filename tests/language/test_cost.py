"""Estimates of topics, probes and timelines, and the refusal of what does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from topicscope import InputError
from topicscope.ground import FLOPS
from topicscope.language import (
    ProbeConfig,
    TopicsConfig,
    attention,
    cost,
    cost_of,
    fit_corpus,
    losses,
    probe,
    vocabulary,
)
from topicscope.language.cost import ModelSize, size_of


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
    ("settings", "driver"),
    [({"bootstrap": 10**6}, "bootstrap 1000000"), ({"shuffles": 10**6}, "shuffles 1000000")],
)
def test_a_probe_that_does_not_fit_is_refused(
    settings: dict[str, Any], driver: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topicscope.ground.budget.machine_memory", lambda: 4 * 10**9)
    config = ProbeConfig.of({"models": ["bert-base-uncased"], "corpus": [str(text)], **settings})
    with pytest.raises(InputError, match=r"would take about .* of memory") as error:
        probe(config, tmp_path / "probe")
    assert driver in str(error.value)
    assert not (tmp_path / "probe").exists()


def test_topics_that_do_not_fit_are_refused(model: Path, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topicscope.ground.budget.machine_memory", lambda: 4 * 10**9)
    (model / "tokenizer.json").write_text("{}")
    config = TopicsConfig.of(corpus=[str(text)], tokenizer=str(model), topics=100_000)
    with pytest.raises(InputError, match="topics 100000"):
        fit_corpus(config)


def test_more_text_and_more_sweeps_cost_more(model: Path, text: Path, tmp_path: Path) -> None:
    config = TopicsConfig.of(corpus=[str(text)], tokenizer=str(model))
    base = cost_of(config)
    read = cost.READ * text.stat().st_size
    assert cost_of(config.changed({"iterations": 1200})).seconds == pytest.approx(read + 10 * (base.seconds - read))
    once = cost_of(config.changed({"stability": False})).seconds
    assert base.seconds == pytest.approx(read + 2 * (once - read)), "the second fit is counted"
    each = [cost_of(config.changed({"topics": count})) for count in (50, 100)]
    both = cost_of(config.changed({"topics": [50, 100]}))
    assert both.seconds == pytest.approx(sum(one.seconds for one in each) - read)
    assert both.memory > max(one.memory for one in each)
    assert both.disk == pytest.approx(each[0].disk + 2 * each[1].disk), "the best is kept twice"
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
    assert (attention.CHUNK, attention.FEW) == (cost.CHUNK, cost.FEW)
    assert (attention.TOGETHER["cpu"], vocabulary.TOKENS) == (cost.SLAB, cost.TOKENS)


def test_ablation_costs_passes_over_a_bounded_number_of_documents(model: Path, text: Path) -> None:
    assert cost.LOGITS == losses.LOGITS
    config = ProbeConfig.of(models=[str(model)], corpus=[str(text)], topics_from="topics.csv")
    bare, none = (config.changed({"ablation": False, "shuffles": n}) for n in (1000, 0))
    assert cost_of(bare).seconds < cost_of(config).seconds
    assert cost_of(none) == cost_of(none.changed({"ablation": True}))
    size = ModelSize()
    few, many, most = (cost.ablation_cost(config.changed({"documents": n}), size) for n in (250, 5000, 10**6))
    assert few.seconds == pytest.approx(21 * 50 * 128 * 2.2e8 / FLOPS)
    assert many.seconds == most.seconds == pytest.approx(20 * few.seconds)
    assert 4.4e8 < few.memory < most.memory < 4.4e8 + 12 * 2**26 + 3e7


def test_hidden_states_cost_memory_and_time_that_do_not_grow_without_bound(model: Path, text: Path) -> None:
    config = ProbeConfig.of(models=[str(model)], corpus=[str(text)], topics_from="topics.csv")
    bare = cost_of(config.changed({"states": False}))
    both = cost_of(config)
    assert bare.memory < both.memory
    assert bare.seconds < both.seconds
    size = ModelSize()
    most = [cost.state_cost(config.changed({"documents": n}), size, assignments=3, share=0.002) for n in (10**4, 10**6)]
    assert most[0] == most[1]  # neither words nor documents are kept beyond a number
    assert most[0].memory < 2.1 * (2**29 + 2**28) + 4 * 13 * 768 * 8192


def test_losses_and_rows_of_documents_and_labels_cost(model: Path, text: Path) -> None:
    """Two documents in three are beyond those whose loss is taken; every one has a row."""
    config = ProbeConfig.of(models=[str(model)], corpus=[str(text)], topics_from="topics.csv")
    size = ModelSize()
    few, most, more = (cost.document_cost(config.changed({"documents": n}), size) for n in (250, 1000, 3000))
    assert few.seconds == pytest.approx(250 * 128 * 2.2e8 / FLOPS)
    assert more.seconds == most.seconds == pytest.approx(4 * few.seconds)
    assert more.disk == pytest.approx(3 * most.disk) == pytest.approx(3000 * cost.ROW)
    assert few.memory == pytest.approx(size.bytes + 12 * text.stat().st_size / 4 * size.vocabulary + 250 * cost.ROW)
    bare = cost_of(config.changed({"ablation": False, "show_documents": 0}))
    assert bare.disk == pytest.approx(5e6 + 250 * cost.ROW)
    labelled = ProbeConfig.of(models=[str(model)], corpus=[str(text)], label_field="subject")
    plain, known = (cost.state_cost(one, size, assignments=3, share=0.002).seconds for one in (config, labelled))
    ridges = 13 * (10 * 250**3 + 100 * 250**2 * 100) / FLOPS
    assert known - plain == pytest.approx(5 * ridges)
