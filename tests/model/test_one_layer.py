"""The parts of the one-layer transformer, and the numbers of several models side by side."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from topicscope import InputError, Masking, ModelConfig, Objective, TopicModel, Weights
from topicscope.theory import Setting, theorem2

MODEL, MASKING = TopicModel(3, 2), Masking()


def test_freezing_one_part_does_not_change_the_others() -> None:
    everything = ModelConfig().initial(7, seed=5)
    some = ModelConfig(key="zero").initial(7, seed=5)
    assert "key" not in some
    assert np.array_equal(everything["value"], some["value"])
    assert not np.array_equal(everything["value"], ModelConfig().initial(7, seed=6)["value"])
    assert Weights.from_config(ModelConfig(), MODEL, MASKING).parts["key"].dtype == torch.float32


@pytest.mark.parametrize(("init_scale", "deviation"), [(0.001, 0.001), ("usual", 0.1)])
def test_initial_weights_are_centred_with_the_scale_asked_for(init_scale: Any, deviation: float) -> None:
    """'usual': W_K, W_Q, W_V and W_pred have d = 100 inputs; a word's embedding has d entries, and norm 1."""
    config = ModelConfig(embedding="trained", head="untied", dim=100, attention_dim=400, init_scale=init_scale)
    values = config.initial(301, seed=0)
    assert {name: value.shape for name, value in values.items()} == config.trained_shapes(301)
    for name in ("embedding", "key", "query", "value", "head"):
        assert values[name].std() == pytest.approx(deviation, rel=0.04), name
        assert abs(values[name].mean()) < 5 * deviation / np.sqrt(values[name].size)
    assert not np.allclose(values["key"], values["query"])  # each part has a stream of its own
    assert not values["prediction_bias"].any()
    for seed, weights in (
        (0, Weights.from_config(config, TopicModel(100, 3), MASKING, dtype=torch.float64)),
        (3, Weights.from_config(config, TopicModel(100, 3), MASKING, 3, dtype=torch.float64)),
    ):
        assert np.array_equal(weights.parts["key"][0].numpy(), config.initial(301, seed)["key"])


def test_frozen_values_are_what_they_are_called(tmp_path: Path) -> None:
    blocks = ModelConfig(value="blocks").frozen(MODEL, MASKING)["value"]
    assert np.array_equal(blocks, theorem2(Setting(MODEL, 1, MASKING)).matrix())
    given = np.arange(49.0).reshape(7, 7)
    np.save(tmp_path / "w.npy", given)
    np.savetxt(tmp_path / "w.csv", given, delimiter=",")
    for path in ("w.npy", "w.csv"):
        config = ModelConfig(value="given", value_matrix=str(tmp_path / path))
        assert np.array_equal(config.frozen(MODEL, MASKING)["value"], given)
    assert ModelConfig(key_bias=0.5, attention_dim=3).frozen(MODEL, MASKING)["key_bias"].tolist() == [0.5] * 3
    # Theorem 1: b_0 = 0 and b_i = -p_m p_r / (k T v), here with k = 1 - 0.9 * 0.15 and T v = 6
    bias = ModelConfig(prediction_bias="theorem1").frozen(MODEL, MASKING)["prediction_bias"]
    assert bias == pytest.approx([0] + [-0.15 * 0.1 / ((1 - 0.9 * 0.15) * 6)] * 6, rel=1e-14)
    diagonal = ModelConfig(value="diagonal").frozen(MODEL, MASKING)["value"]
    assert set(zip(*np.nonzero(diagonal), strict=True)) == {(i, j) for i in range(1, 7) for j in (0, i)}


@pytest.mark.parametrize(
    ("settings", "frozen"),
    [
        ({}, set()),
        ({"value": "identity", "prediction_bias": "none"}, set()),
        ({"value": "blocks", "key": "zero"}, {"value"}),
        ({"prediction_bias": "theorem1", "query_bias": 0}, {"query_bias", "prediction_bias"}),
        ({"prediction_bias": -1.5, "value_bias": "trained"}, {"prediction_bias"}),
    ],
)
def test_only_what_is_frozen_at_numbers_is_listed(settings: dict[str, Any], frozen: set[str]) -> None:
    """An identity, a zero and an absent bias are not; nor is what is trained."""
    config = ModelConfig(**settings)
    parts = config.frozen(MODEL, MASKING)
    assert set(parts) == frozen
    assert not frozen & set(config.trained_shapes(7))
    assert all(part.shape == config.shapes(7)[name] for name, part in parts.items())


def test_trained_parts_and_their_shapes() -> None:
    """Without anything said: W_K, W_Q, W_V and b_pred over one-hot words, W_pred the identity that W_E is."""
    assert ModelConfig().trained_shapes(7) == {"key": (7, 7), "query": (7, 7), "value": (7, 7), "prediction_bias": (7,)}
    every = dict.fromkeys(("embedding", "key_bias", "query_bias", "value_bias", "prediction_bias"), "trained")
    config = ModelConfig(**every, head="untied", dim=5, attention_dim=2)  # type: ignore[arg-type]
    config.check(MODEL, MASKING)
    assert config.trained_shapes(7) == config.shapes(7)
    assert config.shapes(7) == {
        "embedding": (5, 7), "key": (2, 5), "query": (2, 5), "value": (5, 5), "head": (7, 5),
        "key_bias": (2,), "query_bias": (2,), "value_bias": (5,), "prediction_bias": (7,),
    }  # fmt: skip
    assert [(ModelConfig(key=key).uniform_attention) for key in ("zero", "trained")] == [True, False]


def test_models_at_the_edge_of_what_is_possible_are_taken() -> None:
    for settings in (
        {"dim": 7},
        {"dim": 5, "embedding": "trained"},
        {"init_scale": 0.0},
        {"init_scale": "usual"},
        {"value": "given", "value_matrix": np.eye(7).tolist()},
        {"value": "given", "value_matrix": np.eye(5).tolist(), "dim": 5, "embedding": "trained"},
    ):
        ModelConfig(**settings).check(MODEL, MASKING)


def test_penalties_are_lambda_by_trained_part() -> None:
    trained = ("key", "value")
    assert Objective().penalties(trained) == {}
    assert Objective(l2=0.5).penalties(trained) == {"key": 0.5, "value": 0.5}
    assert Objective(l2={"key": 0.0, "value": 2.0}).penalties(trained) == {"value": 2.0}
    assert Objective(l2={}).penalties(trained) == {}


def test_scales_of_loss_and_start() -> None:
    """Worked out here alone: an averaged loss is 1 / V of the sum; each trained matrix has d inputs, the width."""
    assert [Objective(loss=loss).scale(20) for loss in ("cross-entropy", "squared", "squared-mean")] == [1, 1, 0.05]
    narrow = ModelConfig(embedding="trained", init_scale="usual", dim=16, attention_dim=9)
    assert (narrow.start_scale(101), narrow.attention_width(101)) == (0.25, 9)
    assert ModelConfig(init_scale="usual").start_scale(25) == 0.2
    assert ModelConfig(init_scale=0.5).start_scale(25) == 0.5
    assert ModelConfig(embedding="trained", dim=16).attention_width(101) == 16


def test_frozen_parts_are_no_parameters() -> None:
    weights = Weights.from_config(ModelConfig(value="diagonal", key="zero", query="zero"), MODEL, MASKING)
    assert weights.trained == ("prediction_bias",)
    assert weights.blocks[0].shape == (1, 7)
    weights.blocks[0].fill_(9)
    frozen = ModelConfig(value="diagonal").frozen(MODEL, MASKING)["value"]
    assert np.array_equal(weights.parts["value"][0].numpy(), frozen.astype(np.float32))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"dim": 5}, "one-hot embedding needs dim = topics \\* words_per_topic \\+ 1 = 7"),
        ({"dim": 5, "embedding": "trained", "head": "identity"}, "identity head needs dim"),
        ({"dim": 5, "embedding": "trained", "value": "blocks"}, "value matrix 'blocks' needs dim"),
        ({"dim": 5, "embedding": "trained", "value": "diagonal"}, "value matrix 'diagonal' needs dim"),
        ({"value": "given"}, "model.value = 'given' needs model.value_matrix"),
        ({"value_matrix": [[1.0]]}, "value_matrix is given, but model.value is 'trained'"),
        ({"value": "given", "value_matrix": [[1.0] * 7] * 6}, "shape \\(6, 7\\); expected \\(7, 7\\)"),
        ({"value": "given", "value_matrix": [[1.0]]}, "shape \\(1, 1\\); expected \\(7, 7\\)"),
        ({"value": "given", "value_matrix": "nowhere.npy"}, "nowhere.npy cannot be read: No such file"),
        ({"init_scale": -1.0}, "init_scale = -1.0: input should be 'usual', or greater than or equal"),
        ({"init_scale": float("nan")}, "init_scale = nan"),
    ],
)
def test_impossible_models_are_refused(bad: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ModelConfig(**bad).check(MODEL, MASKING)  # type: ignore[arg-type]


def test_each_member_has_its_own_trained_parts_and_shares_the_frozen_ones() -> None:
    config = ModelConfig(value="diagonal", prediction_bias="theorem1", key_bias="trained")
    values, frozen = [config.initial(7, seed) for seed in (4, 5, 6)], config.frozen(MODEL, MASKING)
    weights = Weights(values, frozen, dtype=torch.float64)
    assert weights.models == 3
    assert weights.trained == ("key", "query", "key_bias")
    assert set(weights.parts) == {*weights.trained, "value", "prediction_bias"}
    for e in range(3):
        member = weights.member(e)
        exact = {name: value.tolist() for name, value in (values[e] | frozen).items()}
        assert {name: part.tolist() for name, part in member.items()} == exact
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
