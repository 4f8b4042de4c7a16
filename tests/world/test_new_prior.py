"""A prior from outside, in one file: it works wherever the project's own priors do."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from topicscope import TopicModel
from topicscope.theory import optimum
from topicscope.world import Moments

USE = """
import json, sys
from tests.world import outside_prior
from topicscope import RunConfig, laws, theory, train
from topicscope.cli.main import application
from topicscope.explorer import theory_room
from typer.testing import CliRunner

small = {"topic_model": {"topics": 4, "words_per_topic": 3}, "documents": {"kind": "pairs", "near": 0.75, "length": 9}}
config = RunConfig.of(small, data={"documents": 40, "dev_documents": 20}, steps=5, device="cpu")
again = RunConfig.of(config.as_dict())
asked = theory_room.question({"prior": "pairs", "near": "0.75", "topics": "4", "words_per_topic": "3", "length": "9"})
control = next(control for control in theory_room.CONTROLS if control.name == "near")
print(json.dumps({
    "again": again == config,
    "floors": sorted(train(config).results["floors"]),
    "optimum": theory.optimum(config).loss,
    "room": theory.optimum(theory_room.World.of(asked.world)).loss,
    "control": [control.label, control.only, theory_room.limits()["near"]["expected"]],
    "offered": "pairs" in next(control for control in theory_room.CONTROLS if control.name == "prior").choices,
    "help": "pairs" in CliRunner().invoke(application(), ["train", "--help"]).output,
    "phase": laws.predicted_phase(config).code,
}))
"""


def test_a_prior_of_one_file_works_everywhere() -> None:
    """In training, with its floors, theory, the explorer's form and the help; but no law of steps is known for it."""
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    near, far = 0.75 / 2, 0.25 / 4  # of pairs of neighbours, of which there are two, and of all others
    second = np.full((4, 4), far / 4) + np.kron(np.eye(2), np.full((2, 2), (near - far) / 4))
    np.fill_diagonal(second, 1 / 8)
    best = optimum(TopicModel(4, 3), Moments(np.full(4, 1 / 4), second), length=9)
    assert found["optimum"] == found["room"] == pytest.approx(best.loss)
    assert found["floors"] == ["bayes", "bayes_topics"]
    assert found["control"] == ["share of neighbours", "prior=pairs", "a number from 0 to 1"]
    assert [found["again"], found["offered"], found["help"]] == [True] * 3
    assert found["phase"] == "prior"
