"""A matrix has one name and one colour, in whichever figure or page it stands."""

from __future__ import annotations

import json
import re

from topicscope.pages import MATRIX_COLOURS, NORM_CURVES, PointMap, map_html, run_figure
from topicscope.pages.layout import pens
from topicscope.pages.theory import dynamics_sections
from topicscope.theory import Setting, dynamics
from topicscope.training import RunConfig, train

KEY, QUERY, VALUE = "#0072B2", "#56B4E9", "#D55E00"


def test_measured_and_predicted_norms_have_the_same_colours() -> None:
    small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
    measured = pens(run_figure(train(RunConfig.of(small, steps=10))))
    assert [measured[name].colour for name in ("W_K (key)", "W_Q (query)", "W_V (value)")] == [KEY, QUERY, VALUE]
    (figure,) = dynamics_sections(dynamics(Setting.of(4, 3, 2), optimizer="sgd", lr=0.1))[0].figures
    predicted = pens(figure)
    assert predicted["W_V (value)"].colour == VALUE
    assert predicted["W_K, W_Q (key, query)"].colour == KEY
    assert predicted["half-way"].colour not in (KEY, QUERY, VALUE)


def test_a_map_names_and_colours_its_curves_as_figures_do() -> None:
    html = map_html(PointMap({"seed": [0]}, [{"point": "a", "seed": 0, "state": "done"}], {"norms": "norm_"}))
    data = json.loads(re.search(r'"curveNames":\s*(\{.*?\})', html)[1])  # type: ignore[index]
    assert data["norm_value"] == ["W_V (value)", VALUE]
    assert data == {metric: [name, MATRIX_COLOURS[name]] for metric, name in NORM_CURVES.items()}
