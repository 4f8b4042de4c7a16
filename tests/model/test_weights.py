"""The numbers of several models side by side."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from topicscope import Masking, ModelConfig, TopicModel, Weights

MODEL, MASKING = TopicModel(3, 2), Masking()


def test_each_member_has_its_own_trained_parts_and_shares_the_frozen_ones() -> None:
    config = ModelConfig(value="diagonal", prediction_bias="theorem1", key_bias="trained")
    values, frozen = [config.initial(7, seed) for seed in (4, 5, 6)], config.frozen(MODEL, MASKING)
    weights = Weights(values, frozen, dtype=torch.float64)
    assert weights.models == 3
    assert weights.trained == ("key", "query", "key_bias")
    assert set(weights.parts) == {*weights.trained, "value", "prediction_bias"}
    for e in range(3):
        member = weights.member(e)
        assert {name: part.tolist() for name, part in member.items()} == {
            name: value.tolist() for name, value in (values[e] | frozen).items()
        }
    weights.member(2)["key"].fill_(9)  # a view
    assert (weights.parts["key"][2] == 9).all()
    assert torch.equal(weights.parts["key"][1], torch.from_numpy(values[1]["key"]))
    assert [part.shape[0] for part in weights.parts.values()] == [3, 3, 3, 1, 1]


def test_parts_and_gradients_are_views_of_the_blocks() -> None:
    rng = np.random.default_rng(0)
    members = [{"key": rng.normal(size=(2, 3)), "query": rng.normal(size=(2, 3)), "value": np.eye(3)} for _ in "ab"]
    weights = Weights(members, {}, [["key", "value"], ["query"]], torch.float64)
    assert [block.shape for block in weights.blocks] == [(2, 15), (2, 6)]
    for e, member in enumerate(members):
        assert weights.blocks[0][e].tolist() == [*member["key"].ravel(), *member["value"].ravel()]
        assert weights.blocks[1][e].tolist() == [*member["query"].ravel()]
    for name, pair in weights.pairs.items():
        assert torch.equal(pair[0].view_as(weights.parts[name]), weights.parts[name])
    assert not any(block.any() for block in weights.gradient_blocks)
    weights.gradients["value"].fill_(2)
    assert weights.gradient_blocks[0].tolist() == [[0] * 6 + [2] * 9] * 2
    assert (weights.pairs["value"][1] == 2).all()
    assert not weights.gradient_blocks[1].any()
    together = Weights(members, {}, dtype=torch.float64)  # without groups all share one block
    assert together.groups == [("key", "query", "value")]
    assert [block.shape for block in together.blocks] == [(2, 21)]


def test_a_model_without_trained_parts_has_no_blocks() -> None:
    config = ModelConfig(key="zero", query="zero", value="diagonal", prediction_bias=0.5)
    weights = Weights.from_config(config, MODEL, MASKING)
    assert (weights.blocks, weights.groups, weights.trained) == ([], [], ())
    assert weights.member(0)["prediction_bias"].tolist() == [0.5] * 7


def test_a_fresh_model_starts_at_seed_0_unless_told() -> None:
    config = ModelConfig()
    for seed, weights in (
        (0, Weights.from_config(config, MODEL, MASKING, dtype=torch.float64)),
        (3, Weights.from_config(config, MODEL, MASKING, 3, dtype=torch.float64)),
    ):
        assert weights.parts["key"][0].tolist() == config.initial(7, seed)["key"].tolist()
    assert Weights.from_config(config, MODEL, MASKING).parts["key"].dtype == torch.float32


def test_usual_scale_is_one_over_the_root_of_the_inputs() -> None:
    """Inputs of W_K, W_Q, W_V and W_pred are the d columns; the embedding of a word has d entries and norm 1."""
    config = ModelConfig(embedding="trained", head="untied", dim=100, attention_dim=400, init_scale="usual")
    values = config.initial(301, seed=0)
    assert {name: value.shape for name, value in values.items() if name != "prediction_bias"} == {
        "embedding": (100, 301),
        "key": (400, 100),
        "query": (400, 100),
        "value": (100, 100),
        "head": (301, 100),
    }
    for name in ("embedding", "key", "query", "value", "head"):
        assert values[name].std() == pytest.approx(0.1, rel=0.04), name
    assert not np.allclose(values["key"], values["query"])  # each part has a stream of its own
