"""The five small models: trained once on made-up texts, each as its architecture has it, and probed at known topics."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from topicscope.paper import EXPERIMENTS, Context, made_up
from topicscope.paper.made_up import ARCHITECTURES


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(made_up, "TRAINING_STEPS", {"quick": 2, "full": 3})
    made_up._trained.cache_clear()
    yield
    made_up._trained.cache_clear()


@pytest.mark.model
def test_five_architectures_are_trained_once_and_repeat(few_steps: None) -> None:
    found = made_up.small_models(Context("quick", 1))
    assert [model.name for model in found.models] == [f"small-{name}" for name in ARCHITECTURES]
    assert [model.model.config.model_type for model in found.models] == list(ARCHITECTURES)
    assert made_up.small_models(Context("quick", 1)) is found
    losses = dict(found.losses)
    assert all(4.9 < first < 5.2 for first, _ in losses.values())  # log 150 = 5.01
    assert losses["small-bert"] != losses["small-electra"]  # another seed: else they were the same model
    made_up._trained.cache_clear()
    again = made_up.small_models(Context("quick", 1))
    assert again is not found
    assert again.losses == losses
    for one, other in zip(found.models, again.models, strict=True):
        for name, weight in one.model.state_dict().items():
            assert weight.equal(other.model.state_dict()[name]), (one.name, name)


@pytest.mark.model
def test_the_four_experiments_are_judged_without_models_of_the_user(few_steps: None) -> None:
    """After two steps nothing is learnt, and the verdicts say so."""
    outcomes = {name: EXPERIMENTS[name].run(Context()) for name in ("table1", "table2", "table5", "figure3")}
    assert {name: outcome.verdict for name, outcome in outcomes.items()} == dict.fromkeys(outcomes, "not reproduced")
    for name, outcome in outcomes.items():
        assert outcome.config["models"] == [f"small-{model}" for model in ARCHITECTURES]
        assert EXPERIMENTS[name].judged(Context())
        assert json.dumps(asdict(outcome))
    rows = outcomes["table1"].numbers["rows"]
    assert [(row["variant"], row["words"]) for row in rows] == [("trained", 144), ("random", 144)] * 5
    assert {row["topics_per_word"] for row in outcomes["table5"].numbers["rows"]} == {"many"}
    assert [row["pairs"] for row in outcomes["table2"].numbers["rows"]] == [21] * 5
    assert len(outcomes["figure3"].figures[0].panels) == 10
