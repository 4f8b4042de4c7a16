"""Snapshots of the sandbox, and topic structure against step with the true topics."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.command import topicscope
from topicscope import RunConfig, train
from topicscope.ground.errors import InputError
from topicscope.measure import read_timeline
from topicscope.model import ModelConfig
from topicscope.model.dense import attention
from topicscope.training.timeline import read_snapshots, sandbox_effects, sandbox_timeline, word_scores

SETTINGS = {
    "steps": 120,
    "data": {"documents": 400, "dev_documents": 60},
    "topic_model": {"topics": 4, "words_per_topic": 5},
    "documents": {"length": 30},
    "optimizer": {"lr": 0.02},
    "snapshots": [0, 3, 50, 120],
    "evaluate_every": None,
    "floors": False,
    "checkpoint_every": 50,
    "device": "cpu",
}


def test_snapshots_are_the_weights_at_those_steps(tmp_path: Path) -> None:
    config = RunConfig.of(SETTINGS)
    run = train(config)
    assert list(run.snapshots) == [0, 3, 50, 120]
    short = train(RunConfig.of(SETTINGS | {"steps": 50, "snapshots": "none"}))
    for name, weights in short.weights.items():
        np.testing.assert_array_equal(run.snapshots[50][name], weights)
        np.testing.assert_array_equal(run.snapshots[120][name], run.weights[name])
    assert short.snapshots == {}
    train(config, tmp_path / "run")
    _, stored = read_snapshots(tmp_path / "run")
    assert list(stored) == list(run.snapshots)
    for step, parts in stored.items():
        for name, weights in parts.items():
            np.testing.assert_array_equal(weights, run.snapshots[step][name])
    train(RunConfig.of(SETTINGS | {"snapshots": "none"}), tmp_path / "run", force=True)
    with pytest.raises(InputError, match="step 121 is after the last of 120 steps"):
        RunConfig.of(SETTINGS | {"snapshots": [0, 121]})
    with pytest.raises(InputError, match="has no snapshots; train with --snapshots log"):
        read_snapshots(tmp_path / "run")


def test_word_scores_are_those_of_the_dense_pass() -> None:
    """Embedding and biases included."""
    config = RunConfig.of(
        SETTINGS
        | {"model": {"embedding": "trained", "key_bias": "trained", "query_bias": "trained"}, "dtype": "float64"}
    )
    weights = train(config).weights
    words = np.array([[3, 7, 7, 12, 20, 1]])
    z = torch.from_numpy(weights["embedding"][:, words[0]])[None]
    parts = {name: torch.from_numpy(value) for name, value in weights.items()}
    dense = attention(ModelConfig(embedding="trained"), parts, z, torch.ones(1, 6, dtype=torch.bool))[0]  # keys in rows
    table = word_scores(weights)[np.ix_(words[0], words[0])]
    ours = np.exp(table) / np.exp(table).sum(1, keepdims=True)
    np.testing.assert_allclose(ours, dense.numpy().T, rtol=1e-10)


def test_effects_are_means_over_the_true_topics() -> None:
    config = RunConfig.of(SETTINGS)
    run = train(config)
    found = sandbox_effects(run.config, run.snapshots, 100)
    assert set(found) == {"value", "attention"}  # words are one-hot
    value, topic = run.weights["value"].astype(float), config.topic_model.topic_of_word
    pairs = [(i, j) for i in range(1, 21) for j in range(1, 21) if i != j]
    same = np.mean([value[i, j] for i, j in pairs if topic[i] == topic[j]])
    different = np.mean([value[i, j] for i, j in pairs if topic[i] != topic[j]])
    end, start = found["value"][120], found["value"][0]
    assert end is not None
    assert start is not None
    assert end.same == pytest.approx(same, rel=1e-9)
    assert end.different == pytest.approx(different, rel=1e-9)
    assert end.same == pytest.approx(run.results["value"]["same"], rel=1e-4)
    assert end.interval is not None
    assert end.interval[0] > 0  # it has learnt
    assert abs(start.difference) < 0.1 * end.difference
    trained = train(RunConfig.of(SETTINGS | {"model": {"embedding": "trained"}, "snapshots": [0, 120]}))
    assert set(sandbox_effects(trained.config, trained.snapshots, 20)) == {"embedding", "attention"}


def test_the_command_draws_a_sandbox_timeline(tmp_path: Path) -> None:
    train(RunConfig.of(SETTINGS), tmp_path / "run")
    out = str(tmp_path / "timeline")
    done = topicscope("timeline", str(tmp_path / "run"), "--json", "--bootstrap", "50", "--out", out)
    found = json.loads(done.stdout)
    assert {row["measure"] for row in found["timeline"]} == {"value", "attention"}
    assert [row["step"] for row in found["timeline"] if row["measure"] == "value"] == [0, 3, 50, 120]
    assert found["moments"][0]["appears"] is not None
    header = (tmp_path / "timeline" / "timeline.csv").read_text().splitlines()[0]
    assert header.startswith("measure,step,same,different,difference,ratio,interval_low,interval_high")
    assert "When does topic structure appear?" in (tmp_path / "timeline" / "report.html").read_text()
    assert (tmp_path / "timeline" / "figures" / "timeline.png").exists()
    assert (
        "topics and texts of its own"
        in topicscope("timeline", str(tmp_path / "run"), "--corpus", "x.txt", code=2).stderr
    )
    assert read_timeline(out) == sandbox_timeline(tmp_path / "run", bootstrap=50)
    assert json.loads(json.dumps(read_timeline(out).as_dict())) == found
