"""The sentence of a run: of the moment while it goes on, and the course of the whole once it has ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from topicscope.laws import predicted_norms
from topicscope.pages import Lines, happening, live_curves
from topicscope.reading import read
from topicscope.training import Run, RunConfig, WatchedRun, train

CONFIG = RunConfig.of(
    topic_model={"topics": 5, "words_per_topic": 4},
    documents={"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
    model={"init_scale": 0.01, "prediction_bias": "none"},
    objective={"loss": "squared"},
    optimizer={"name": "sgd", "lr": 4.0},
    data={"dev_documents": 20},
    steps=1000,
    floors=False,
    device="cpu",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live") / "run"
    train(CONFIG, folder)
    return folder


def going_on(whole: Run, steps: int, total: int) -> Run:
    """A run up to a step, as it was when it went on."""
    metrics = {name: column[: steps + 1] for name, column in whole.metrics.items()}
    results = {"status": "running", "steps": steps, "seed": 0, "loss": 1.0}
    return replace(whole, status="running", results=results, metrics=metrics, config=CONFIG.changed({"steps": total}))


@pytest.mark.parametrize("steps", [100, 749, 760, 949])
def test_nothing_is_said_to_have_ended_before_attention_has_formed(folder: Path, steps: int) -> None:
    whole = read(folder)
    near = f"near step {predicted_norms(CONFIG).half_way['key']:,.0f}"
    grown = whole.metrics["norm_key"][steps] / whole.metrics["norm_key"][0]
    said = happening(going_on(whole, steps, 10_000))
    assert said.startswith("Between the stages: the value matrix has settled, and attention has not formed yet: ")
    assert f"key and query are {grown:.3g} times their start" in said
    assert said.endswith(f"half-way {near}.")
    assert happening(going_on(whole, steps, 1000)).endswith(f"half-way {near}, after the end of this run.")


def test_the_sentence_of_a_run_that_has_ended_is_that_of_show(folder: Path) -> None:
    watched = WatchedRun(folder)
    watched.update()
    run, shown = watched.run(), read(folder)
    assert happening(run).startswith(f"Over all 1,000 steps. {shown.course.sentence}")
    assert shown.course.sentence in shown.summary()


def test_the_stages_of_a_staggered_run_stay_shaded(folder: Path) -> None:
    """Value rises again and is half-way after key and query."""
    steps = np.arange(1001.0)
    value = 1 + np.minimum(steps / 10, 1) + 5 * np.clip((steps - 800) / 50, 0, 1)
    attention = 1 + np.clip((steps - 400) / 100, 0, 1)
    whole = read(folder)
    metrics = whole.metrics | {"norm_value": value, "norm_key": attention, "norm_query": attention}
    run = replace(whole, metrics=metrics)
    assert run.course is not None
    assert (run.course.phase, run.course.halves) == ("staggered", type(run.course.halves)(820.0, 450.0, 450.0))
    (figure,) = live_curves(run)[0].figures
    norms = next(panel for panel in figure.panels if panel.title.startswith("Norms"))
    assert isinstance(norms, Lines)
    assert norms.bands == [(0.0, 410.0, "stage 1: value"), (410.0, 1000.0, "stage 2: key and query")]
