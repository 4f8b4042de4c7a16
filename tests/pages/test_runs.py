"""The figures of a training run, finished or not."""

import dataclasses
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pages import samples
from topicscope import InputError, model
from topicscope.laws import predicted_norms, world_optimum
from topicscope.measure import Course
from topicscope.pages import (
    MATRIX_COLOURS,
    NORM_CURVES,
    Heat,
    Lines,
    PointMap,
    Section,
    happening,
    live_curves,
    map_html,
    run_figure,
)
from topicscope.pages.panels import pens, topic_ticks
from topicscope.pages.runs import (
    HOW_TO_READ,
    attention_figures,
    brief,
    cell,
    matrix_panels,
    named_words,
    relation_figures,
    relation_tables,
    run_sections,
    topic_names,
    word_figures,
    word_heat,
)
from topicscope.pages.theory import dynamics_sections
from topicscope.reading import read
from topicscope.theory import Setting, dynamics
from topicscope.training import Run, RunConfig, RunData, WatchedRun, train
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


def test_of_many_words_or_topics_some_are_shown(runs: list[Run]) -> None:
    model = TopicModel(topics=100, words_per_topic=9)
    run = dataclasses.replace(runs[0], config=dataclasses.replace(SMALL, topic_model=model))
    words = np.arange(901.0)
    (heat,) = word_heat("W", words[:, None] + words / 1000, run, "", "")
    assert heat.title == "W, 4 words per topic"
    assert (heat.topics, heat.words_per_topic, len(heat.z), len(heat.z[0])) == (100, 4, 401, 401)
    assert [row[0] for row in heat.z[:6]] == [0, 1, 2, 3, 4, 10]  # the tenth word is the first of the second topic
    assert word_heat("W", np.full((901, 901), np.nan), run, "", "") == []
    for topics, title in ((400, "W"), (401, "W, 1 words per topic, 400 topics")):
        model = TopicModel(topics=topics, words_per_topic=1)
        run = dataclasses.replace(runs[0], config=dataclasses.replace(SMALL, topic_model=model))
        words = np.arange(topics + 1.0)
        (heat,) = word_heat("W", words[:, None] + words / 1000, run, "", "")
        assert (heat.title, heat.topics, heat.words_per_topic, len(heat.z)) == (title, 400, 1, 401)
        assert [row[0] for row in heat.z[-2:]] == [399, 400]


def test_the_report_of_a_run_and_of_several(runs: list[Run]) -> None:
    (section,) = runs[0].sections()
    assert isinstance(section, Section)
    assert (section.title, section.note, section.verdict) == ("One training run", HOW_TO_READ, None)
    assert [figure.name for figure in section.figures] == ["figure", "scores", "attention"]
    rows = dict(section.tables[0].rows)
    assert rows["dev loss"] == f"{runs[0].results['dev_loss']:.6g}"
    assert rows["phase"] == runs[0].results["course"]["phase"]
    assert section.config == SMALL.as_dict()
    (section,) = runs.sections()  # type: ignore[attr-defined]
    losses, norms = section.figures[0].panels
    assert [series.name for series in losses.series] == ["seed 0", "seed 1"]
    assert losses.series[1].y == [value for value in runs[1].metrics["dev_loss"] if np.isfinite(value)]
    assert all(series.markers and series.group == "dev" for series in losses.series)
    assert [(series.name, series.group) for series in norms.series] == [
        (f"{name}, seed {seed}", name) for name in ("W_K (key)", "W_Q (query)", "W_V (value)") for seed in (0, 1)
    ]
    assert [row[0] for row in section.tables[0].rows] == ["0", "1"]
    assert dict(zip(section.tables[0].columns, section.tables[0].rows[1], strict=True)) == {
        "seed": "1",
        **{name: cell(value) for name, value in runs[1].facts().items()},
    }


def test_a_stored_run_tells_its_command(runs: list[Run], tmp_path: Path) -> None:
    assert run_sections(runs[0])[0].command == ""
    (section,) = run_sections(dataclasses.replace(runs[0], folder=tmp_path))
    assert section.command == f"topicscope train --config {tmp_path / 'config.yaml'}"
    unstaged = dataclasses.replace(runs[0])
    unstaged.__dict__["course"] = None
    (section,) = run_sections(unstaged)
    assert section.note == ""
    assert lines(section.figures[0].panels[1]).bands == []


def test_attention_of_documents_is_a_softmax_of_scores_and_words_stand_in_order(runs: list[Run]) -> None:
    rng = np.random.default_rng(0)
    weights = runs[0].weights | {part: rng.normal(size=(13, 13)) for part in ("key", "query")}
    run = dataclasses.replace(runs[0], weights=weights)
    scores, attention = attention_figures(run)
    (heat,) = samples.panels(scores, Heat)
    table = model.word_scores(weights)
    np.testing.assert_allclose(heat.z, table, rtol=1e-4)
    assert (heat.title, heat.x_label, heat.y_label) == ("", "topic of the key's word", "topic of the query's word")
    assert len(attention.panels) == 2
    for number, panel in enumerate(attention.panels):
        assert isinstance(panel, Heat)
        document = sorted(word for word in RunData(SMALL).dev.finite().words[number] if word > 0)
        shown = [int(place) for place in np.linspace(0, len(document) - 1, 40)]
        assert len(document) > 40
        sums = {i: sum(np.exp(table[document[i], word]) for word in document) for i in shown}
        z = [[np.exp(table[document[i], document[j]]) / sums[i] for j in shown] for i in shown]
        np.testing.assert_allclose(panel.z, z, rtol=1e-4)
        assert panel.title == f"dev document {number + 1}, 40 of {len(document)} positions, ordered by word"
        assert (panel.x_label, panel.y_label) == ("key position", "query position")


def test_without_key_or_query_or_documents_less_attention_is_drawn(runs: list[Run]) -> None:
    for part in ("key", "query"):
        weights = {name: matrix for name, matrix in runs[0].weights.items() if name != part}
        assert attention_figures(dataclasses.replace(runs[0], weights=weights)) == []
    infinite = RunConfig.of(SMALL.as_dict() | {"documents": {"length": "infinite"}})
    (scores,) = attention_figures(dataclasses.replace(runs[0], config=infinite, folder=None, beside=None))
    assert scores.name == "scores"
    large = {part: 1e3 * np.eye(13) for part in ("key", "query")}
    _, attention = attention_figures(dataclasses.replace(runs[0], weights=runs[0].weights | large))
    assert all(np.isfinite(panel.z).all() for panel in attention.panels if isinstance(panel, Heat))


def test_the_matrix_is_that_from_words_to_words(runs: list[Run]) -> None:
    rng = np.random.default_rng(1)
    value, head = rng.normal(size=(5, 13)), rng.normal(size=(13, 5))

    def shown(**weights: Any) -> list[tuple[str, Any]]:
        return [(heat.title, heat.z) for heat in matrix_panels(dataclasses.replace(runs[0], weights=weights))]

    square = rng.normal(size=(13, 13))
    five = [[float(f"{entry:.5g}") for entry in row] for row in square]
    assert shown(value=square) == [("W_V at the end", five)]
    assert shown(head=square) == [("W_pred W_V at the end", five)]
    ((title, z),) = shown(value=value, head=head)
    assert title == "W_pred W_V at the end"
    np.testing.assert_allclose(z, head @ value, rtol=1e-4)
    assert shown() == []


def test_gaps_do_not_set_the_scale_and_words_stand_by_main_topic(runs: list[Run]) -> None:
    matrix = np.linspace(0, 1, 169).reshape(13, 13)
    matrix[0, 0], matrix[0, 1] = np.inf, np.nan
    (heat,) = word_heat("W", matrix, runs[0], "x", "y")
    assert (heat.low, heat.high) == tuple(np.quantile(matrix[np.isfinite(matrix)], [0.002, 0.998]))
    assert (heat.x_label, heat.y_label) == ("topic of the x", "topic of the y")
    topics = {"matrix": [[0.6, 0.0], [0.1, 0.5], [0.3, 0.0], [0.0, 0.5]]}
    config = runs[0].config.changed({"topic_model": topics, "documents": {"alpha": 1.0}})
    words = np.arange(5.0)
    (heat,) = word_heat("W", words[:, None] * 10 + words, dataclasses.replace(runs[0], config=config), "x", "y")
    assert heat.z[0] == [0, 1, 3, 2, 4]  # [MASK], topic 1, topic 2
    assert [row[0] for row in heat.z] == [0, 10, 30, 20, 40]
    assert (heat.topics, heat.x_label) == (None, "x, by main topic")


def test_long_curves_are_thinned(runs: list[Run]) -> None:
    steps = np.arange(1600.0)
    long = {"step": steps, "loss": steps / 7, "dev_loss": np.where(steps % 3 == 1, steps, np.nan)}
    run = dataclasses.replace(runs[0], metrics=runs[0].metrics | {"norm_key": steps[:1]} | long)
    training, dev = lines(run_figure(run).panels[0]).series
    assert 400 < len(training.x) <= 500
    assert (training.x[0], training.x[-1]) == (0, 1599)
    assert training.y == [x / 7 for x in training.x]
    assert set(dev.x) <= set(range(1, 1600, 3))  # steps at which it was measured
    assert (dev.x[0], dev.x[-1], dev.y) == (1, 1597, dev.x)
    bare = {name: values for name, values in runs[0].metrics.items() if not name.startswith("value_")}
    missing = dataclasses.replace(runs[0], metrics=bare | {"dev_loss": np.full(len(bare["step"]), np.nan)})
    figure = run_figure(missing)
    assert [panel.title for panel in figure.panels] == [
        "Loss and its floors",
        "Norms: which part moves first?",
        "W_V at the end",
    ]
    assert [series.name for series in lines(figure.panels[0]).series] == ["training, each batch"]


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (0.12345678, "0.123457"), (12, "12"), ("done", "done")])
def test_cells(value: Any, text: str) -> None:
    assert cell(value) == text


A = [[0.7, 0.0], [0.1, 0.5], [0.2, 0.1], [0.0, 0.4]]


def named_run(names: list[str] | None) -> Run:
    model = {"matrix": A} | ({} if names is None else {"word_names": names})
    uniform = {"model": {"key": "zero", "query": "zero"}, "objective": {"loss": "squared"}}
    results = {"status": "done", "value": {}, "distance_to_optimum": 1.0}
    weights = {"value": np.arange(25.0).reshape(5, 5), "prediction_bias": np.arange(5.0)}
    return Run(RunConfig.of({"topic_model": model} | uniform), "done", results, {"step": np.arange(2.0)}, weights)


def test_words_stand_topic_by_topic_the_most_probable_first() -> None:
    run = named_run(["oil", "<b>sea</b>", "gas", "fish"])
    named = named_words(run)
    assert named is not None
    assert named[0].tolist() == [0, 1, 3, 2, 4]
    assert named[1] == ["[MASK]", "oil", "gas", "<b>sea</b>", "fish"]
    assert topic_names(run) == ["1 oil", "2 <b>sea</b>"]
    (figure,) = word_figures(run)
    assert figure.title == "The most probable words of each main topic (4 of 4)"
    value, best = samples.panels(figure, Heat)
    assert (value.labels, value.x_label, value.y_label) == (named[1], "input word", "output word")
    assert value.z[2] == [15.0, 16.0, 18.0, 17.0, 19.0]
    optimal = world_optimum(run.config).matrix() - run.weights["prediction_bias"][:, None]
    order = named[0]
    np.testing.assert_allclose(best.z, optimal[np.ix_(order, order)], atol=1e-6)
    assert named_words(named_run(None)) is None
    assert word_figures(named_run(None)) == []
    assert topic_names(named_run(None)) == ["1", "2"]
    with pytest.raises(InputError, match=r"word_names has 3 names; expected one per word \(4\)"):
        named_run(["a", "b", "c"])


def test_the_page_does_not_list_long_settings() -> None:
    settings = {"topic_model": {"matrix": [[0.5] * 10] * 101, "sizes": [[1, 2], [3]]}, "steps": 3}
    assert brief(settings) == {
        "topic_model": {"matrix": "101 entries, in config.yaml", "sizes": [[1, 2], [3]]},
        "steps": 3,
    }


def related_run(relations: dict[str, Any], topics: int = 2) -> Run:
    results = {"status": "done", "steps": 1, "loss": 1.0, "relations": relations}
    return Run(RunConfig.of({"topic_model": {"topics": topics}}), "done", results, {"step": np.arange(2.0)}, {})


def heats(run: Run) -> list[Heat]:
    return [panel for figure in relation_figures(run) for panel in figure.panels if isinstance(panel, Heat)]


def test_the_map_of_a_run_stands_beside_that_of_the_optimum_on_one_scale() -> None:
    value, best = [[None, 2.0], [3.0, 4.0]], [[0.0, 1.0], [7.0, 5.0]]
    ours, optimal = heats(related_run({"value": {"topics": value}, "optimum": {"topics": best}}))
    assert (ours.title, optimal.title) == ("W_V", "W* (minus the run's bias)")
    assert math.isnan(ours.z[0][0])
    assert (ours.z[1], optimal.z) == ([3.0, 4.0], best)
    assert (ours.low, ours.high) == (optimal.low, optimal.high) == (0.0, 7.0)
    assert ours.labels == ["1", "2"]
    assert (ours.x_label, ours.y_label) == ("topic of the input word", "topic of the output word")
    (panel,) = heats(related_run({"value": {"topics": np.zeros((70, 70)).tolist()}}, topics=70))
    assert panel.labels == [str(t) for t in range(1, 71)]
    assert panel.x_label == "topic of the input word"
    ticks = topic_ticks(panel, 70)
    assert ticks == ([float(3 * i) for i in range(24)], [str(3 * i + 1) for i in range(24)])  # there is room for 31
    maps = {"value": {"topics": [[0.0, 1.0], [1.0, 0.0]]}, "optimum": {"topics": [[0.0, 1.0], [1.0, 0.0]]}}
    run = related_run(maps)
    bare = replace(run, config=run.config.changed({"model.prediction_bias": "none"}))
    assert [panel.title for panel in heats(bare)] == ["W_V", "W*"]
    other = replace(run, config=run.config.changed({"model.prediction_bias": "none", "model.value_bias": "trained"}))
    assert heats(other)[1].title == "W* (minus the run's bias)"


def test_means_by_relation_stand_in_a_table() -> None:
    partners = {"same": 0.5, "partner": 0.25, "other": None}
    (table,) = relation_tables(related_run({"value": {"shared": {"0": 1.0, "2": 3.0}, "partners": partners}}))
    assert table.columns == ["two words have", "W_V"]
    assert table.rows == [
        ["0 topics in common", "1"],
        ["2 topics in common", "3"],
        ["a topic in common", "0.5"],
        ["topics of one group, none in common", "0.25"],
        ["no group in common", "-"],
    ]
    bare = related_run({})
    assert (relation_figures(bare), relation_tables(bare)) == ([], [])


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


def test_a_run_that_has_ended_has_its_sentence_and_its_stages(folder: Path) -> None:
    watched = WatchedRun(folder)
    watched.update()
    run, shown = watched.run(), read(folder)
    assert happening(run).startswith(f"Over all 1,000 steps. {shown.course.sentence}")
    assert shown.course.sentence in shown.summary()
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


KEY, QUERY, VALUE = "#0072B2", "#56B4E9", "#D55E00"


def test_figures_theory_and_maps_have_the_same_colours() -> None:
    small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
    measured = pens(run_figure(train(RunConfig.of(small, steps=10))))
    assert [measured[name].colour for name in ("W_K (key)", "W_Q (query)", "W_V (value)")] == [KEY, QUERY, VALUE]
    (figure,) = dynamics_sections(dynamics(Setting.of(4, 3, 2), optimizer="sgd", lr=0.1))[0].figures
    predicted = pens(figure)
    assert predicted["W_V (value)"].colour == VALUE
    assert predicted["W_K, W_Q (key, query)"].colour == KEY
    assert predicted["half-way"].colour not in (KEY, QUERY, VALUE)
    html = map_html(PointMap({"seed": [0]}, [{"point": "a", "seed": 0, "state": "done"}], {"norms": "norm_"}))
    data = json.loads(re.search(r'"curveNames":\s*(\{.*?\})', html)[1])  # type: ignore[index]
    assert data["norm_value"] == ["W_V (value)", VALUE]
    assert data == {metric: [name, MATRIX_COLOURS[name]] for metric, name in NORM_CURVES.items()}
