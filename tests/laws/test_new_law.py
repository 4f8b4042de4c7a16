"""A law from outside: one row of the table, which is then listed, covers runs and refuses others with its reasons."""

import json
from typing import Any

import pytest

from topicscope import InputError, RunConfig
from topicscope.cli.results import list_
from topicscope.laws import LAWS, TABLE, Law

TOY = Law(
    "toy",
    "the loss of a model that predicts nothing",
    optimizers=("sgd",),
    priors=("fixed", "dirichlet"),
    reasons={"cross-entropy": "it costs 1 under squared loss alone", "momentum": lambda run: f"lr {run.optimizer.lr}"},
    status="exact",
    error="rounding",
    derived="optimum.md#the-formula",
)
SQUARED: dict[str, Any] = {"objective": {"loss": "squared"}, "optimizer": {"name": "sgd", "lr": 0.5}}


def test_a_row_is_listed_covers_and_refuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(LAWS, TOY.name, TOY)
    monkeypatch.setattr("topicscope.laws.TABLE", (*TABLE, TOY))
    assert list_("laws", as_json=True) == 0
    row = json.loads(capsys.readouterr().out)[-1]
    assert (row["law"], row["status"], row["derived"]) == ("toy", "exact", "optimum.md#the-formula")
    assert row["covers"] == ["the one-layer model", "SGD", "priors fixed, dirichlet", "squared loss", "no momentum"]
    assert row["codes"] == ["architecture", "prior", "optimizer", "cross-entropy", "momentum"]
    law, covered = LAWS["toy"], RunConfig.of(SQUARED)
    law.require(covered)
    assert law.refusal(covered) is None
    refused: dict[str, dict[str, Any]] = {
        "cross-entropy": {"objective": {"loss": "cross-entropy"}},
        "momentum": {"optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.9}},
        "optimizer": {"optimizer": {"name": "adam"}},
        "prior": {"documents": {"kind": "groups", "groups": 2}},
    }
    for code, settings in refused.items():
        with pytest.raises(InputError) as error:
            law.require(RunConfig.of(SQUARED | settings))
        assert error.value.code == code
    with pytest.raises(InputError, match=r"lr 0\.5"):
        law.require(RunConfig.of(SQUARED | refused["momentum"]))
