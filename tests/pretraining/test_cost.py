"""The estimate of a pretraining run, and the refusal of what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pretraining import small
from topicscope import InputError
from topicscope.pretraining import PretrainConfig, build_model, cost_of, pretrain
from topicscope.pretraining.config import Shape, parameters, settings_that_cost


@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert", "electra", "bart"])
def test_parameters_are_counted_as_the_library_does(architecture: str) -> None:
    tokenizer = small.tokenizer()
    shape: dict[str, Any] = {"architecture": architecture, "layers": 3, "heads": 4, "dim": 256}
    config = PretrainConfig.of(text={"corpus": ["made-up"]}, model=shape)
    real = sum(part.numel() for part in build_model(config, tokenizer).parameters())
    assert parameters(Shape(**shape), len(tokenizer), config.length) == pytest.approx(real, rel=0.1)


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
    with pytest.raises(InputError, match="no folder is given: it needs out"):
        pretrain(without, force=True)
    with pytest.raises(InputError, match=r"\(--resume\) needs out \(--out\)"):
        pretrain(without, resume=True)
