"""An architecture from outside works everywhere: training, resuming, sweeps, laws, pages. It is one file, bigram.py."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.calling import topicscope
from tests.training.bigram import Bigram
from tests.training.settings import SMALL, paused
from topicscope import InputError, ModelConfig, Objective, RunConfig, read, sandbox_timeline, sweep, train
from topicscope.laws import LAWS
from topicscope.model import Weights
from topicscope.pages import Lines, sections
from topicscope.training import RunData
from topicscope.world import stack

SETTINGS: dict[str, Any] = SMALL | {
    "steps": 120,
    "evaluate_every": 40,
    "checkpoint_every": 50,
    "model": {"architecture": "bigram", "scale": 0.1},
    "optimizer": {"lr": 0.05},
    "snapshots": [0, 60, 120],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bigram") / "run"
    train(RunConfig.of(SETTINGS), path)
    return path


def test_settings_name_the_architecture_and_files_hold_it() -> None:
    config = RunConfig.of(SETTINGS)
    assert config.model == Bigram(scale=0.1)
    assert config.as_dict()["model"] == {"architecture": "bigram", "scale": 0.1, "with_bias": True}
    assert RunConfig.of(config.as_dict()) == config
    assert config.changed({"model.scale": 0.3}).model == Bigram(scale=0.3)
    assert "architecture" not in RunConfig().as_dict()["model"]
    assert RunConfig.of(model={"architecture": "one-layer", "key": "zero"}).model == ModelConfig(key="zero")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": {"architecture": "bigrams"}}, "model.architecture = 'bigrams': did you mean 'bigram'"),
        ({"model": {"architecture": 3}}, "model.architecture = 3"),
        ({"model": {"architecture": "bigram", "scales": 1}}, "did you mean 'scale'"),
        ({"topic_model": {"words_per_topic": 500}}, "at most 1000 words"),
        ({"schedule": {"phases": [{"parts": ["value"]}]}}, "unknown part 'value'"),
        ({"schedule": "two-stage"}, "trained here: table, bias"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        RunConfig.of(SETTINGS | settings)
    assert "\n" not in str(error.value)


def test_the_gradient_by_autograd_is_that_of_differences() -> None:
    config = RunConfig.of(SETTINGS, dtype="float64", objective={"loss": "squared", "l2": 0.1})
    data = RunData(config)
    batch = stack([next(iter(data.task.rows(data.task.dev, "float64")))], torch.float64)
    weights = Weights.from_config(config.model, config.topic_model, config.masking, dtype=torch.float64)

    def objective() -> float:
        penalty = sum(0.1 * part.square().sum().item() for part in weights.parts.values())
        return config.model.loss(weights, config.objective, batch).item() + penalty

    config.model.loss_and_gradient(weights, config.objective, batch)
    for name, gradient in weights.gradients.items():
        place, before = weights.parts[name].view(-1), objective()
        place[3] += 1e-6
        assert (objective() - before) / 1e-6 == pytest.approx(gradient.view(-1)[3].item(), rel=1e-4)
        place[3] -= 1e-6
    only = config.model.loss_and_gradient(weights, Objective("squared"), batch, ["bias"])
    assert only == config.model.loss(weights, Objective("squared"), batch)


def test_it_trains_alone_and_together_to_the_same_bytes(folder: Path) -> None:
    run = read(folder)
    assert run.results["dev_loss"] < run.metrics["loss"][0] - 0.2
    assert set(run.results["table"]) == {"same", "different", "diagonal"}
    assert {"norm_table", "grad_bias", "rotation", "table_same"} <= set(run.metrics)
    assert set(run.results["floors"]) == {"bayes", "bayes_topics"}
    alone, _ = train([run.config, run.config.changed({"seed": 5})])
    for name, part in run.weights.items():
        assert np.array_equal(alone.weights[name], part)


def test_it_resumes_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    config = RunConfig.of(SETTINGS)

    paused(config, tmp_path / "run", 50)
    train(config, tmp_path / "run", resume=True)
    for name in ("weights.safetensors", "results.json", "metrics.jsonl", "config.yaml"):
        assert (tmp_path / "run" / name).read_bytes() == (folder / name).read_bytes()


def test_a_sweep_has_an_axis_over_its_own_setting(tmp_path: Path) -> None:
    base = {name: value for name, value in SETTINGS.items() if name != "snapshots"} | {"steps": 20}
    result = sweep({"base": base, "axes": {"model.scale": [0.1, 0.5], "seed": [0, 1]}}, tmp_path / "sweep")
    losses = result.table()["dev_loss"].to_pylist()
    assert len(set(losses)) == 4


def test_pages_show_what_there_is_and_laws_do_not_cover_it(folder: Path) -> None:
    run = read(folder)
    [section] = sections(run)
    titles = [panel.title for figure in section.figures for panel in figure.panels]
    assert "W at the end" in titles
    assert "W: means by word relation" in titles
    norms = section.figures[0].panels[1]
    assert isinstance(norms, Lines)
    assert [series.name for series in norms.series] == ["W (table)"]
    for law in LAWS.values():
        refusal = law.refusal(run.config)
        assert refusal is not None
        assert refusal.code == "architecture"
    timeline = sandbox_timeline(folder, bootstrap=20)
    assert {(row.measure, row.step) for row in timeline.rows} == {("table", 0), ("table", 60), ("table", 120)}


def test_the_commands_show_and_draw_it(folder: Path) -> None:
    shown = topicscope("show", str(folder)).stdout
    assert "dev loss" in shown
    assert f"{read(folder).results['dev_loss']:.5g} after 120 steps" in shown
    [entry] = json.loads(topicscope("show", str(folder), "--json").stdout)
    assert entry["config"]["model"] == {"architecture": "bigram", "scale": 0.1, "with_bias": True}
    assert "report.html" in topicscope("report", str(folder)).stdout
    page = (folder / "report.html").read_text()
    assert "W at the end" in page
    assert {".png", ".svg", ".csv"} <= {path.suffix for path in (folder / "figures").iterdir()}
