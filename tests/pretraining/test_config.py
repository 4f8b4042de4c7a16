"""The settings of a pretraining run, what they cost, and the refusal of what does not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.pretraining import small
from tests.refusals import refused
from topicscope import InputError
from topicscope.ground import log_steps
from topicscope.pretraining import PretrainConfig, Text, cost_of, pretrain, settings_that_cost
from topicscope.pretraining.data import Rows
from topicscope.pretraining.loop import Masker, attention_layers, build_model


def test_snapshots_are_at_log_steps_at_none_or_at_given_ones() -> None:
    assert small.config(steps=60).snapshot_steps == log_steps(60)
    assert small.config(steps=60, snapshots="none").snapshot_steps == []
    assert small.config(steps=60, snapshots=[60, 3, 0, 3]).snapshot_steps == [0, 3, 60]


def test_one_config_from_settings_keywords_and_classes() -> None:
    one = PretrainConfig.of({"text": {"corpus": ["a.txt"]}, "optimizer": {"lr": 0.1}}, steps=5, optimizer={"warmup": 2})
    assert (one.steps, one.optimizer.lr, one.optimizer.warmup) == (5, 0.1, 2)
    assert PretrainConfig.of(one.as_dict()) == one
    assert PretrainConfig(text=Text(["a.txt"])) == PretrainConfig.of(text={"corpus": ["a.txt"]})
    assert [config.seed for config in one.with_seeds(3)] == [0, 1, 2]
    refused("config version 2: this topicscope reads version 1", PretrainConfig.of, one.as_dict(), version=2)
    assert PretrainConfig.of({"text": Text(["a.txt"])}).text.corpus == ["a.txt"]
    missing: list[dict[str, Any]] = [{}, {"text": None}, {"text": {}}, {"text": {"corpus": []}}, {"text": []}]
    for settings in missing:
        refused("no text is given", PretrainConfig.of, settings)
    refused("text", PretrainConfig.of, {"text": "a.txt"})


def test_defaults_are_part_of_every_result() -> None:
    """What a run with no settings is. A change here changes the results of commands that were given before."""
    assert PretrainConfig(text=Text(["a.txt"])).as_dict() == {
        "text": {"corpus": ["a.txt"], "text_field": "text", "split": "auto"},
        "version": 1,
        "seed": 0,
        "steps": 400,
        "batch_size": 32,
        "micro_batch": None,
        "length": 64,
        "snapshots": "log",
        "checkpoint_every": 100,
        "device": "auto",
        "bf16": False,
        "tokenizer": {"existing": None, "train": "wordpiece", "vocab_size": 8000, "documents": 10_000},
        "model": {
            "architecture": "bert", "layers": 4, "heads": 4, "dim": 128, "feedforward": None, "init_scale": 0.0001,
            "dropout": "usual",
        },
        "masking": {"p_mask": 0.15, "p_correct": 0.1, "p_random": 0.1},
        "held_out": {"share": 0.02, "every": 50, "rows": 64},
        "optimizer": {
            "name": "adamw",
            "lr": 0.001,
            "betas": [0.9, 0.999],
            "eps": 1e-8,
            "weight_decay": 0.01,
            "momentum": 0.0,
            "warmup": 0,
            "decay": "constant",
            "clip": 1.0,
        },
    }  # fmt: skip


def test_values_at_the_border_are_taken() -> None:
    config = small.config(
        steps=5,
        batch_size=7,
        length=8,
        snapshots=[5, 0],
        model={"dropout": 1, "init_scale": [0, 0.5]},
        masking={"p_mask": 1, "p_correct": 1, "p_random": 0},
        optimizer={"warmup": 5, "betas": (0, 0), "momentum": 0},
    )
    assert (config.batch_size, config.masking.p_mask, config.masking.p_correct) == (7, 1, 1)
    assert small.config(masking={"p_correct": 0.25, "p_random": 0.75}).masking.p_random == 0.75
    assert small.config(snapshots=[]).snapshot_steps == []
    assert small.config(device="cuda", bf16=True).bf16
    for wrong in (
        {"length": 7},
        {"snapshots": [3, 61]},
        {"snapshots": [-1]},
        {"masking": {"p_mask": 0}},
        {"masking": {"p_mask": 1.01}},
        {"masking": {"p_correct": -0.01}},
        {"model": {"dropout": 1.01}},
        {"optimizer": {"betas": (0.9, 1.0)}},
        {"optimizer": {"momentum": 1.0}},
        {"optimizer": {"momentum": -0.1}},
        {"model": {"init_scale": {"key": [0.1]}}},
        {"model": {"init_scale": {"key": 0.1, "value": [0.1, 0.2, 0.3]}}},
    ):
        with pytest.raises(InputError):
            small.config(**wrong)


def test_the_scale_of_every_part_and_layer() -> None:
    shape = small.config(model={"init_scale": {"key": [0.1, "usual"], "value": 0.2}}).model
    found = {part: [shape.init_scale_of(part, layer) for layer in range(2)] for part in ("key", "query", "value")}
    assert found == {"key": [0.1, "usual"], "query": ["usual", "usual"], "value": [0.2, 0.2]}
    shape = small.config(model={"init_scale": [0.1, 0.3]}).model
    assert [shape.init_scale_of("query", layer) for layer in range(2)] == [0.1, 0.3]
    assert small.config(model={"init_scale": 0.4}).model.init_scale_of("value", 1) == 0.4


@pytest.mark.parametrize("warmup", [0, 1, 3, 6, 7])
def test_rates_rise_to_lr_and_fall_to_a_step_above_zero(warmup: int) -> None:
    linear, constant = (
        small.config(steps=7, optimizer={"lr": 0.6, "warmup": warmup, "decay": decay}).optimizer
        for decay in ("linear", "constant")
    )
    rising = [0.6 * number / warmup for number in range(1, warmup + 1)]
    falling = [0.6 * left / (7 - warmup) for left in range(7 - warmup, 0, -1)]
    assert [linear.lr_at(step, 7) for step in range(7)] == pytest.approx([*rising, *falling])
    assert [constant.lr_at(step, 7) for step in range(7)] == pytest.approx([*rising, *[0.6] * (7 - warmup)])


def test_files_are_named_in_full_patterns_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("x")
    config = PretrainConfig.of(text={"corpus": ["a.txt", "*.txt", "hf:wikipedia"]}, tokenizer={"existing": "bert-base"})
    whole = config.absolute()
    assert whole.text.corpus == [str(tmp_path / "a.txt"), str(tmp_path / "*.txt"), "hf:wikipedia"]
    assert whole.tokenizer.existing == "bert-base"


def test_streams_give_the_numbers_that_they_always_gave() -> None:
    """A stream's number is part of every result: these were the constants of the first edition."""
    rows = Rows(small.texts(), small.tokenizer(), small.LENGTH, 7)
    rows.epoch = 2
    order = np.random.default_rng([7, 0x0D0C, 2]).permutation(300)
    assert list(rows._shuffled()) == [small.texts()[i] for i in order]
    rows = Rows(small.texts(), small.tokenizer(), small.LENGTH, 7)
    store = rows.take(0, 1), rows.store.copy()
    drawn = np.random.default_rng([7, 0x0DAA, 5]).choice(len(rows.store), 8, replace=False)
    assert np.array_equal(rows.take(5, 8), store[1][drawn])
    masker = Masker(small.tokenizer(), small.config().masking, 7)
    masker(store[1][:8], 3, 1)
    seed = int(np.random.SeedSequence([7, 0x3A5C, 3, 1]).generate_state(1, np.uint64)[0] >> 1)
    assert masker.collator.generator.initial_seed() == seed
    key = attention_layers(build_model(small.config(seed=7), small.tokenizer()))[1].key.detach()
    seed = int(np.random.SeedSequence([7, 0x3E16, 2, 0]).generate_state(1, np.uint64)[0] >> 1)
    expected = 1e-3 * torch.randn(key.shape, generator=torch.Generator().manual_seed(seed))
    assert torch.equal(key, expected)


@pytest.mark.parametrize(
    ("settings", "driver"),
    [
        ({"model": {"dim": 65536}}, "model.dim 65536"),
        ({"model": {"layers": 1000, "dim": 4096}}, "model.layers 1000"),
        ({"batch_size": 10**6}, "batch_size 1000000"),
        ({"length": 65536}, "length 65536"),
        ({"steps": 10**9}, "steps 1000000000"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_opened(
    settings: dict[str, Any], driver: str, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a b c")
    config = PretrainConfig.of(text={"corpus": [str(text)]}, **settings)
    with pytest.raises(InputError, match=r"would take about .* of memory") as error:
        pretrain(config, tmp_path / "run")
    assert driver in str(error.value)
    assert not (tmp_path / "run").exists()


def test_snapshots_cost_disk() -> None:
    without, with_ = (
        PretrainConfig.of(text={"corpus": ["x"]}, snapshots=which) for which in ("none", list(range(0, 400, 4)))
    )
    assert cost_of([with_]).disk > 50 * cost_of([without]).disk / 10
    assert cost_of([with_]).memory == cost_of([without]).memory
    two = cost_of([without, without])
    assert (two.memory, two.seconds) == (cost_of([without]).memory, 2 * cost_of([without]).seconds)
    assert settings_that_cost([without]) == "sizes"
    refused("no folder is given: it needs out", pretrain, without, force=True)
    refused(r"\(--resume\) needs out \(--out\)", pretrain, without, resume=True)
