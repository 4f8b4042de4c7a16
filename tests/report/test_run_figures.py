"""The figures of training runs and of landscapes, as data."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from topicscope.figures import Heat, Lines, Section, landscape_figure, run_figure
from topicscope.figures.train_run import HOW_TO_READ, word_heat
from topicscope.measure import Course
from topicscope.theory import Landscape, Setting, attention_landscape
from topicscope.training import Run, RunConfig, train
from topicscope.world import TopicModel

SMALL = RunConfig.of(
    {
        "topic_model": {"topics": 4, "words_per_topic": 3},
        "data": {"documents": 40, "dev_documents": 30},
        "steps": 30,
        "evaluate_every": 10,
    }
)


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return train([SMALL, dataclasses.replace(SMALL, seed=1)])


def lines(panel: object) -> Lines:
    assert isinstance(panel, Lines)
    return panel


def test_the_picture_of_a_run_has_its_four_panels(runs: list[Run]) -> None:
    run = runs[0]
    figure = run_figure(run)
    assert figure.name == "figure"
    assert figure.title == "Training run: seed 0, 30 steps, done"
    loss, norms, means, matrix = figure.panels
    training, dev = lines(loss).series
    assert (training.thin, dev.markers) == (True, True)
    assert training.y == [value for value in run.metrics["loss"] if np.isfinite(value)]
    assert dev.x == [0, 10, 20, 30]
    floors = run.results["floors"]
    assert lines(loss).levels == [
        (floors["bayes"]["loss"], "Bayes-optimal"),
        (floors["bayes_topics"]["loss"], "Bayes, from topics alone"),
    ]
    assert [series.name for series in lines(norms).series] == ["W_K (key)", "W_Q (query)", "W_V (value)"]
    assert [series.y for series in lines(norms).series] == [
        run.metrics[f"norm_{part}"].tolist() for part in ("key", "query", "value")
    ]
    assert lines(means).title == "W_V: means by word relation"
    assert [series.name for series in lines(means).series] == ["same topic", "different topic", "diagonal"]
    assert isinstance(matrix, Heat)
    assert matrix.title == "W_V at the end"
    np.testing.assert_allclose(matrix.z, run.weights["value"], rtol=1e-4)
    assert (matrix.topics, matrix.words_per_topic) == (4, 3)
    assert (matrix.low, matrix.high) == tuple(np.quantile(run.weights["value"].astype(float), [0.002, 0.998]))
    assert set(figure.colours) >= {series.name for panel in (loss, norms, means) for series in lines(panel).series}


@pytest.mark.parametrize("phase", ["two-stage", "staggered", "at once", "never"])
def test_stages_are_shaded_only_where_there_are_two(runs: list[Run], phase: str) -> None:
    steps = np.arange(100.0)
    rise = {"value": 10, "key": 60, "query": 50}
    norms = {f"norm_{part}": 1 + 5 / (1 + np.exp((middle - steps) / 3)) for part, middle in rise.items()}
    run = dataclasses.replace(runs[0], metrics=runs[0].metrics | norms | {"step": steps})
    run.__dict__["course"] = Course(phase)  # type: ignore[arg-type]
    bands = lines(run_figure(run).panels[1]).bands
    assert [name for _, _, name in bands] == (
        ["stage 1: value", "stage 2: key and query"] if phase in ("two-stage", "staggered") else []
    )


def test_an_embedding_that_is_trained_is_shown_by_its_gram_matrix() -> None:
    settings = SMALL.as_dict() | {"model": {"embedding": "trained", "key": "zero", "query": "zero"}, "steps": 5}
    run = train(RunConfig.of(settings))
    _, norms, means, matrix = run_figure(run).panels
    assert [series.name for series in lines(norms).series] == ["W_V (value)", "W_E (embedding)"]
    assert lines(means).title == "W_E'W_E: means by word relation"
    assert isinstance(matrix, Heat)
    np.testing.assert_allclose(matrix.z, run.weights["embedding"].T @ run.weights["embedding"], rtol=1e-3, atol=1e-6)


def test_of_many_words_some_of_each_topic_are_shown(runs: list[Run]) -> None:
    model = TopicModel(topics=100, words_per_topic=9)
    run = dataclasses.replace(runs[0], config=dataclasses.replace(SMALL, topic_model=model))
    words = np.arange(901.0)
    (heat,) = word_heat("W", words[:, None] + words / 1000, run, "", "")
    assert heat.title == "W, 4 words per topic"
    assert (heat.topics, heat.words_per_topic, len(heat.z), len(heat.z[0])) == (100, 4, 401, 401)
    assert [row[0] for row in heat.z[:6]] == [0, 1, 2, 3, 4, 10]  # the tenth word is the first of the second topic
    assert word_heat("W", np.full((901, 901), np.nan), run, "", "") == []


def test_the_report_of_a_run_and_of_several(runs: list[Run]) -> None:
    (section,) = runs[0].sections()
    assert isinstance(section, Section)
    assert (section.title, section.note, section.verdict) == ("One training run", HOW_TO_READ, None)
    assert [figure.name for figure in section.figures] == ["figure", "scores", "attention"]
    rows = dict(section.tables[0].rows)
    assert rows["dev loss"] == f"{runs[0].results['dev_loss']:.6g}"
    assert rows["phase"] == runs[0].results["course"]["phase"]
    assert section.config == SMALL.as_dict()
    attention = section.figures[2].panels[0]
    assert isinstance(attention, Heat)
    assert np.array(attention.z).sum(1).max() <= 1.001
    (section,) = runs.sections()  # type: ignore[attr-defined]
    losses, norms = section.figures[0].panels
    assert [series.name for series in losses.series] == ["seed 0", "seed 1"]
    assert losses.series[1].y == [value for value in runs[1].metrics["dev_loss"] if np.isfinite(value)]
    assert [series.group for series in norms.series] == [name for name in norms_of(norms) for _ in runs]
    assert [row[0] for row in section.tables[0].rows] == ["0", "1"]


def norms_of(panel: Lines) -> list[str]:
    return list(dict.fromkeys(str(series.group) for series in panel.series))


def test_a_landscape_marks_the_lowest_point_and_uniform_attention() -> None:
    axis = np.array([0.1, 1.0, 10.0])
    grid = Landscape(alpha=axis, beta=2 * axis, loss=np.array([[3.0, 2.0, 4.0], [5.0, 1.0, 6.0], [7.0, 8.0, 9.0]]))
    figure = landscape_figure("figure7", "Landscapes", {"τ = 1": grid, "τ = 2": grid}, {"τ = 2": (0.01, 5.0)})
    first, second = figure.panels
    assert isinstance(first, Heat)
    assert isinstance(second, Heat)
    assert (first.title, second.title) == ("τ = 1", "τ = 2")
    assert first.marks == [(2.0, 1.0, "lowest")]  # x is beta
    assert second.marks == [(5.0, 0.01, "lowest")]
    assert first.references == [(1.0, 1.0, "uniform")]
    assert (first.x, first.y, first.z[0]) == ([0.2, 2.0, 20.0], [0.1, 1.0, 10.0], [3.0, 2.0, 4.0])
    assert (first.log, first.contours > 0, first.z_label) == (True, True, "squared loss")


def test_the_report_of_a_landscape_compares_the_best_attention_with_uniform() -> None:
    landscape = attention_landscape(Setting.of(), "blocks")
    (section,) = landscape.sections()
    assert section.figures[0].panels[0].marks == [
        (landscape.stage.optimum.beta, landscape.stage.optimum.alpha, "lowest")
    ]
    rows = {row[0]: row[1:] for row in section.tables[0].rows}
    assert rows["uniform attention"] == ["1", "1", "1", f"{landscape.stage.uniform_loss:.6g}"]
    assert (
        float(rows["best attention"][-1])
        <= float(rows["lowest point of the grid"][-1])
        <= float(rows["uniform attention"][-1])
    )
    assert section.command.startswith(
        "topicscope theory landscape --value-matrix blocks --convention exact --topics 10"
    )
