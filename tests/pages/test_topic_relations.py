"""Maps over pairs of topics and means by relation, as data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from topicscope.pages import Heat
from topicscope.pages.layout import topic_ticks
from topicscope.pages.topic_relations import relation_figures, relation_tables
from topicscope.training import Run, RunConfig


def run_with(relations: dict[str, Any], topics: int = 2) -> Run:
    results = {"status": "done", "steps": 1, "loss": 1.0, "relations": relations}
    return Run(RunConfig.of({"topic_model": {"topics": topics}}), "done", results, {"step": np.arange(2.0)}, {})


def heats(run: Run) -> list[Heat]:
    return [panel for figure in relation_figures(run) for panel in figure.panels if isinstance(panel, Heat)]


def test_the_map_of_a_run_stands_beside_that_of_the_optimum_on_one_scale() -> None:
    value, best = [[None, 2.0], [3.0, 4.0]], [[0.0, 1.0], [7.0, 5.0]]
    ours, optimal = heats(run_with({"value": {"topics": value}, "optimum": {"topics": best}}))
    assert (ours.title, optimal.title) == ("W_V", "W* (minus the run's bias)")
    assert math.isnan(ours.z[0][0])
    assert (ours.z[1], optimal.z) == ([3.0, 4.0], best)
    assert (ours.low, ours.high) == (optimal.low, optimal.high) == (0.0, 7.0)
    assert ours.labels == ["1", "2"]
    assert (ours.x_label, ours.y_label) == ("topic of the input word", "topic of the output word")


def test_topics_count_from_1_however_many_there_are() -> None:
    (panel,) = heats(run_with({"value": {"topics": np.zeros((70, 70)).tolist()}}, topics=70))
    assert panel.labels == [str(t) for t in range(1, 71)]
    assert panel.x_label == "topic of the input word"
    ticks = topic_ticks(panel, 70)
    assert ticks == ([float(3 * i) for i in range(24)], [str(3 * i + 1) for i in range(24)])  # there is room for 31


def test_a_run_without_biases_has_none_taken_off() -> None:
    maps = {"value": {"topics": [[0.0, 1.0], [1.0, 0.0]]}, "optimum": {"topics": [[0.0, 1.0], [1.0, 0.0]]}}
    run = run_with(maps)
    bare = replace(run, config=run.config.changed({"model.prediction_bias": "none"}))
    assert [panel.title for panel in heats(bare)] == ["W_V", "W*"]
    other = replace(run, config=run.config.changed({"model.prediction_bias": "none", "model.value_bias": "trained"}))
    assert heats(other)[1].title == "W* (minus the run's bias)"


def test_means_by_relation_stand_in_a_table() -> None:
    partners = {"same": 0.5, "partner": 0.25, "other": None}
    (table,) = relation_tables(run_with({"value": {"shared": {"0": 1.0, "2": 3.0}, "partners": partners}}))
    assert table.columns == ["two words have", "W_V"]
    assert table.rows == [
        ["0 topics in common", "1"],
        ["2 topics in common", "3"],
        ["a topic in common", "0.5"],
        ["topics of one group, none in common", "0.25"],
        ["no group in common", "-"],
    ]
    bare = run_with({})
    assert (relation_figures(bare), relation_tables(bare)) == ([], [])
