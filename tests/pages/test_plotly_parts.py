"""Text, numbers and axes as plotly takes them."""

from __future__ import annotations

import base64
import math

import numpy as np
import pytest

from topicscope.pages import plotly_parts as plotly


def test_text_has_no_tags_and_no_templates() -> None:
    assert plotly.text("<b>a & \"b\"</b> %{y} 'c' 5%") == "&lt;b&gt;a &amp; \"b\"&lt;/b&gt; &#37;{y} 'c' 5%"
    assert plotly.broken("one <two> three", 9) == "one &lt;two&gt;<br>three"


def test_colours_can_be_seen_through() -> None:
    assert plotly.see_through("#1002FF", 0.5) == "rgba(16,2,255,0.50)"
    assert plotly.see_through("#808080").startswith("rgba(128,128,128,0.")


def test_numbers_that_json_has_not_are_none() -> None:
    assert plotly.numbers([1, 0.123456789, math.nan, -math.inf]) == [1.0, 0.123456789, None, None]
    assert plotly.rounded([0.123456789, 1234567.0, math.nan, math.inf]) == [0.123457, 1234570.0, None, None]


@pytest.mark.parametrize("log", [True, False])
def test_an_axis_has_its_label_and_scale(log: bool) -> None:
    axis = plotly.axis("a <label>", log=log)
    assert axis["title"]["text"] == "a &lt;label&gt;"
    assert (axis["type"], axis["automargin"]) == ("log" if log else "linear", True)
    assert ("nticks" in axis, axis.get("tickangle")) == ((True, 0) if log else (False, None))
    assert plotly.axis("")["type"] == "linear"


def test_a_layout_is_transparent_and_names_are_shown_whole() -> None:
    x_axis, y_axis = plotly.axis("x"), plotly.axis("y")
    layout = plotly.layout(x_axis, y_axis)
    assert (layout["xaxis"], layout["yaxis"]) == (x_axis, y_axis)
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"
    assert layout["hoverlabel"]["namelength"] == -1
    assert layout["autosize"] is True
    legend = layout["legend"]
    assert (legend["orientation"], legend["x"], legend["yanchor"]) == ("h", 0, "bottom")
    assert 1 < legend["y"] < 1.1  # above the axes, near them


def test_a_large_matrix_is_packed() -> None:
    few = np.array([[1.0, np.nan], [np.inf, 1 / 3]])
    assert plotly.cells(few) == [[1.0, None], [None, 0.333333]]
    many = np.random.default_rng(0).normal(size=(21, 20))
    many[3, 4] = -np.inf
    packed = plotly.cells(many)
    assert isinstance(packed, dict)
    assert packed["columns"] == 20
    numbers = np.frombuffer(base64.b64decode(packed["float32"]), "<f4").reshape(21, 20)
    assert np.isnan(numbers[3, 4])
    many[3, 4] = np.nan
    np.testing.assert_array_equal(numbers, many.astype(np.float32))
