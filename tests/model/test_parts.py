from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from topicscope import InputError, Masking, ModelConfig, TopicModel, Weights
from topicscope.model.weights import initial
from topicscope.theory import Setting, theorem2

MODEL, MASKING = TopicModel(3, 2), Masking()


def test_freezing_one_part_does_not_change_the_others() -> None:
    everything = initial(ModelConfig(), 7, seed=5)
    some = initial(ModelConfig(key="zero"), 7, seed=5)
    assert "key" not in some
    assert np.array_equal(everything["value"], some["value"])
    assert not np.array_equal(everything["value"], initial(ModelConfig(), 7, seed=6)["value"])


def test_initial_weights_are_centred_with_the_scale_asked_for() -> None:
    values = initial(ModelConfig(embedding="trained", init_scale=0.001), 401, seed=0)
    for name in ("embedding", "key", "query", "value"):
        assert values[name].std() == pytest.approx(0.001, rel=0.02)
        assert abs(values[name].mean()) < 5 * 0.001 / 401
    usual = initial(ModelConfig(embedding="trained", dim=100, init_scale="usual"), 401, seed=0)
    assert np.linalg.norm(usual["embedding"], axis=0).mean() == pytest.approx(1, abs=0.02)
    assert usual["value"].std() == pytest.approx(0.1, rel=0.05)
    assert not values["prediction_bias"].any()


def test_frozen_values_are_what_they_are_called(tmp_path: Path) -> None:
    assert np.array_equal(
        ModelConfig(value="blocks").frozen(MODEL, MASKING)["value"], theorem2(Setting(MODEL, 1, MASKING)).matrix()
    )
    given = np.arange(49.0).reshape(7, 7)
    np.save(tmp_path / "w.npy", given)
    np.savetxt(tmp_path / "w.csv", given, delimiter=",")
    for path in ("w.npy", "w.csv"):
        assert np.array_equal(
            ModelConfig(value="given", value_matrix=str(tmp_path / path)).frozen(MODEL, MASKING)["value"], given
        )
    assert ModelConfig(key_bias=0.5, attention_dim=3).frozen(MODEL, MASKING)["key_bias"].tolist() == [0.5] * 3


def test_frozen_parts_are_no_parameters() -> None:
    weights = Weights.from_config(ModelConfig(value="diagonal", key="zero", query="zero"), MODEL, MASKING)
    assert weights.trained == ("prediction_bias",)
    assert weights.blocks[0].shape == (1, 7)
    weights.blocks[0].fill_(9)
    assert torch.equal(
        weights.parts["value"][0],
        torch.tensor(ModelConfig(value="diagonal").frozen(MODEL, MASKING)["value"], dtype=torch.float32),
    )


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"dim": 5}, "one-hot embedding needs dim = topics \\* words_per_topic \\+ 1 = 7"),
        ({"dim": 5, "embedding": "trained", "head": "identity"}, "identity head needs dim"),
        ({"dim": 5, "embedding": "trained", "value": "blocks"}, "value matrix 'blocks' needs dim"),
        ({"value": "given"}, "value_matrix"),
        ({"value": "given", "value_matrix": [[1.0]]}, "shape \\(1, 1\\); expected \\(7, 7\\)"),
        ({"value": "given", "value_matrix": "nowhere.npy"}, "cannot read a matrix from nowhere.npy"),
        ({"init_scale": -1.0}, "init_scale"),
    ],
)
def test_impossible_models_are_refused(bad: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ModelConfig(**bad).check(MODEL, MASKING)  # type: ignore[arg-type]
