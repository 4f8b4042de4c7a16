"""The optimisers are torch.optim's: the same numbers as its classes, also where parts pause."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tests.training.sign_sgd  # noqa: F401  (registers an optimiser)
from tests.training.settings import SMALL, paused
from topicscope import InputError, RunConfig, Weights, train
from topicscope.laws import LAWS
from topicscope.training import Optimizer, cost_of
from topicscope.training.optimiser import EnsembleOptimiser

SETTINGS = [
    Optimizer("adam", 0.01),
    Optimizer("adam", 0.3, betas=(0.5, 0.9), eps=1e-3),
    Optimizer("sgd", 0.1),
    Optimizer("sgd", 0.1, momentum=0.9),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_equals_the_torch_class(settings: Optimizer, compiled: bool) -> None:
    rng = np.random.default_rng(0)
    members = [{"key": rng.standard_normal((2, 3)), "value": rng.standard_normal((3, 3))} for _ in range(3)]
    weights = Weights(members, {}, [["key"], ["value"]], torch.float64)
    ours = EnsembleOptimiser(weights, [settings] * 3, compiled=compiled)
    theirs = {name: torch.tensor(np.stack([m[name] for m in members])) for name in ("key", "value")}
    if settings.name == "adam":
        optimiser: torch.optim.Optimizer = torch.optim.Adam(
            theirs.values(), lr=settings.lr, betas=settings.betas, eps=settings.eps
        )
    else:
        optimiser = torch.optim.SGD(theirs.values(), lr=settings.lr, momentum=settings.momentum)
    for step in range(12):
        active = ("key", "value") if step % 3 else ("value",)  # W_K pauses at every third step
        for name in ("key", "value"):
            gradient = torch.from_numpy(rng.standard_normal(weights.parts[name].shape))
            weights.gradients[name].copy_(gradient)
            theirs[name].grad = gradient if name in active else None
        ours.step(active)
        optimiser.step()
    for name in ("key", "value"):
        assert torch.allclose(weights.parts[name], theirs[name], rtol=1e-13, atol=1e-15)


SIGN: dict[str, Any] = SMALL | {"steps": 120, "checkpoint_every": 50, "optimizer": {"name": "sign", "lr": 0.01}}


def test_an_optimiser_from_outside_trains_and_resumes(tmp_path: Path) -> None:
    config = RunConfig.of(SIGN)
    whole = train(config, tmp_path / "whole")
    assert whole.results["dev_loss"] < whole.metrics["loss"][0] - 0.1
    change = whole.weights["value"] - config.model.initial(7, config.seed)["value"]
    assert np.allclose(change / 0.01, np.round(change / 0.01), atol=1e-3)  # whole numbers of steps of one size

    paused(config, tmp_path / "run", 50)
    train(config, tmp_path / "run", resume=True)
    for name in ("weights.safetensors", "results.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_optimiser_from_outside_is_listed_and_no_law_of_training_covers_it() -> None:
    command = (
        "import sys, tests.training.sign_sgd; from topicscope.__main__ import run; sys.argv[1:] = ['train', '--help']"
    )
    done = subprocess.run([sys.executable, "-c", f"{command}; run()"], capture_output=True, text=True, check=True)
    assert "adam, sgd or sign" in done.stdout
    with pytest.raises(InputError, match="input should be 'adam', 'sgd' or 'sign'"):
        Optimizer("signs")
    with pytest.raises(InputError, match=r"optimizer\.momentum belongs to sgd"):
        Optimizer("sign", momentum=0.5)
    model = {"prediction_bias": "none"}
    config = RunConfig.of(SIGN, model=model, documents={"length": "infinite"}, objective={"loss": "squared"})
    assert LAWS["norms"].refusal(config).code == "optimizer"  # type: ignore[union-attr]
    assert cost_of([config]).memory > cost_of([config.changed({"optimizer.name": "sgd"})]).memory
