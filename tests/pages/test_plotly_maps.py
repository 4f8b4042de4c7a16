"""Heat maps and maps on the page, as plotly is told to draw them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.pages import samples
from topicscope.pages import Heat, Map
from topicscope.pages.layout import MARK_COLOUR
from topicscope.pages.plotly_maps import heat_spec, map_spec


def heat(panel: Heat) -> dict[str, Any]:
    found = heat_spec(panel)
    json.dumps(found, allow_nan=False)
    return dict(found)


def chart(panel: Map) -> tuple[dict[str, Any], dict[str, Any]]:
    found = map_spec(panel)
    json.dumps(found, allow_nan=False)
    (trace,) = found["data"]
    return trace, found["layout"]


def test_a_matrix_has_its_first_row_on_top_and_whole_ticks() -> None:
    found = heat(Heat("", [[1.0, 2.0, 3.0], [4.0, math.nan, 0.123456789]], "<x>", "y"))
    (trace,) = found["data"]
    assert (trace["type"], trace["z"]) == ("heatmap", [[1.0, 2.0, 3.0], [4.0, None, 0.123457]])
    assert (trace["x"], trace["y"]) == ([0.0, 1.0, 2.0], [0.0, 1.0])
    assert (trace["zmin"], trace["zmax"], trace["zauto"]) == (0.123456789, 4.0, False)
    assert trace["hovertemplate"] == "y: %{y:.4~g}<br>&lt;x&gt;: %{x:.4~g}<br>%{z:.4~g}<extra></extra>"
    assert "title" not in trace["colorbar"]
    layout = found["layout"]
    assert layout["yaxis"]["autorange"] == "reversed"
    for axis in (layout["xaxis"], layout["yaxis"]):
        assert (axis["tick0"], axis["dtick"], axis["showgrid"], axis["zeroline"]) == (0, 1, False, False)
        assert "range" not in axis
    assert layout["showlegend"] is False
    assert set(found) == {"data", "layout"}  # neither contours nor words


@pytest.mark.parametrize(("rows", "columns", "step"), [(1, 10, 1), (1, 11, 2), (25, 2, 3)])
def test_a_matrix_has_about_ten_ticks(rows: int, columns: int, step: int) -> None:
    layout = heat(Heat("", [[0.0] * columns] * rows))["layout"]
    assert layout["xaxis"]["dtick"] == layout["yaxis"]["dtick"] == step


def test_the_colour_scale_has_the_ends_that_are_asked_for() -> None:
    (trace,) = heat(Heat("", [[1.0, 2.0]], low=-3.0, high=7.0, z_label="<loss>"))["data"]
    assert (trace["zmin"], trace["zmax"]) == (-3.0, 7.0)
    assert trace["colorbar"]["title"] == {"text": "&lt;loss&gt;", "side": "right"}
    (empty,) = heat(Heat("", [[math.nan, math.inf]]))["data"]
    assert (empty["zmin"], empty["zmax"]) == (0.0, 0.0)
    assert empty["hovertemplate"].startswith("row: %{y:.4~g}<br>column: %{x")


def test_a_map_over_places_fills_its_axes() -> None:
    found = heat(Heat("", [[0.0] * 3] * 2, x=[1.0, 2.0, 5.0], y=[10.0, 20.0], contours=4))
    assert found["contours"] == 4
    layout = found["layout"]
    assert layout["xaxis"]["range"] == [0.5, 6.5]
    assert layout["yaxis"]["range"] == [5.0, 25.0]
    assert "autorange" not in layout["yaxis"]  # places go up
    assert layout["xaxis"]["type"] == "linear"
    log = heat(Heat("", [[0.0] * 3] * 3, x=[0.1, 1.0, 100.0], y=[1.0, 10.0, 100.0], log=True))["layout"]
    assert log["xaxis"]["range"] == pytest.approx([-1.5, 3.0])  # powers of ten
    assert log["yaxis"]["range"] == pytest.approx([-0.5, 2.5])
    assert (log["xaxis"]["type"], log["yaxis"]["type"]) == ("log", "log")
    single = heat(Heat("", [[0.0]], x=[3.0], y=[4.0]))["layout"]
    assert "range" not in single["xaxis"]
    assert "dtick" not in single["xaxis"]
    rows = heat(Heat("", [[0.1, 0.2], [0.3, 0.4]], x=[1.0, 4.0]))["layout"]
    assert (rows["xaxis"]["range"], rows["yaxis"]["dtick"]) == ([-0.5, 5.5], 1)
    assert rows["yaxis"]["autorange"] == "reversed"


def test_words_have_their_topics_as_ticks() -> None:
    found = heat(samples.word_heat())
    assert found["words"] == {"perTopic": samples.WORDS_PER_TOPIC, "axes": ["x", "y"]}
    for axis in (found["layout"]["xaxis"], found["layout"]["yaxis"]):
        assert (axis["tickmode"], axis["tickvals"], axis["ticktext"]) == ("array", [2, 5, 8, 11], ["1", "2", "3", "4"])
        assert "dtick" not in axis
    assert found["data"][0]["hovertemplate"] == "%{text}: %{z:.3~g}<extra></extra>"  # the page fills in the text
    rows = [row[:5] for row in samples.word_heat().z]
    narrow = Heat("", rows, topics=samples.TOPICS, words_per_topic=samples.WORDS_PER_TOPIC)
    assert heat(narrow)["words"]["axes"] == ["y"]


def test_named_rows_and_columns_are_named_in_every_cell() -> None:
    found = heat(Heat("", [[1.0, 0.5], [0.25, 1.0]], labels=["<a>", "b"]))
    (trace,) = found["data"]
    assert trace["customdata"] == [[["&lt;a&gt;", "&lt;a&gt;"], ["&lt;a&gt;", "b"]], [["b", "&lt;a&gt;"], ["b", "b"]]]
    assert trace["hovertemplate"].startswith("%{customdata[0]} × %{customdata[1]}: ")
    assert "words" not in found
    assert found["layout"]["xaxis"]["tickvals"] == [0.0, 1.0]


def test_marks_are_stars_and_references_rings() -> None:
    panel = Heat("", [[0.0] * 3] * 3, marks=[(0.0, 1.0, "<best>"), (9.0, 1.0, "far")], references=[(1.0, 1.0, "here")])
    _, marks = heat(panel)["data"]
    assert (marks["x"], marks["y"]) == ([0.0, 2.0, 1.0], [1.0, 1.0, 1.0])
    assert marks["text"] == ["&lt;best&gt;", "far (off the edge)", "here"]
    assert marks["textposition"] == ["middle right", "middle left", "bottom center"]
    look = marks["marker"]
    assert look["symbol"] == ["star", "triangle-right", "circle"]
    assert look["color"] == [MARK_COLOUR, MARK_COLOUR, "white"]
    assert look["line"]["color"] == ["white", "white", "black"]
    assert look["size"][2] < look["size"][0] == look["size"][1]
    assert (marks["mode"], marks["cliponaxis"]) == ("markers+text", False)


def test_a_map_of_numbers_has_its_scale_and_its_gaps() -> None:
    trace, layout = chart(Map("", [[1.0, None], [3.0, 12345.678]], ["<a>", "b"], ["c", "d"], "rate", "depth"))
    assert (trace["x"], trace["y"]) == (["&lt;a&gt;", "b"], ["c", "d"])
    assert trace["z"] == [[1.0, None], [3.0, 12345.678]]
    assert trace["customdata"] == [[["1"], ["-"]], [["3"], ["1.235e+04"]]]
    assert (trace["zmin"], trace["zmax"], trace["zauto"]) == (None, None, True)
    assert "tickprefix" not in trace["colorbar"]
    assert trace["hovertemplate"] == "depth: %{y}<br>rate: %{x}<br>%{customdata[0]}<extra></extra>"
    for axis, label in ((layout["xaxis"], "rate"), (layout["yaxis"], "depth")):
        assert (axis["type"], axis["showgrid"], axis["title"]["text"]) == ("category", False, label)
    assert layout["showlegend"] is False
    assert "annotations" not in layout
    given, _ = chart(Map("", [[1.0]], ["a"], ["b"], low=0.5, high=2.0))
    assert (given["zmin"], given["zmax"], given["zauto"]) == (0.5, 2.0, False)
    assert given["hovertemplate"].startswith("row: %{y}<br>column: %{x}")


def test_a_log_scale_counts_powers_of_ten_where_all_is_positive() -> None:
    log, _ = chart(Map("", [[0.1, 100.0, None]], ["a", "b", "c"], [""], log=True, low=0.1, high=100.0))
    assert (log["z"], log["zmin"], log["zmax"]) == ([[-1.0, 2.0, None]], -1.0, 2.0)
    assert log["customdata"] == [[["0.1"], ["100"], ["-"]]]
    assert (log["colorbar"]["tickprefix"], log["colorbar"]["dtick"]) == ("10^", 1)
    zero, _ = chart(Map("", [[0.0, 100.0]], ["a", "b"], [""], log=True))
    assert zero["z"] == [[0.0, 100.0]]
    plain, _ = chart(Map("", [[0.1, 100.0]], ["a", "b"], [""]))
    assert plain["z"] == [[0.1, 100.0]]


def test_words_have_their_own_colours() -> None:
    (panel,) = samples.map_figure().panels
    assert isinstance(panel, Map)
    trace, _ = chart(panel)
    assert trace["colorscale"] == [[0.0, "#0072B2"], [0.5, "#0072B2"], [0.5, "#D55E00"], [1.0, "#D55E00"]]
    assert (trace["zmin"], trace["zmax"], trace["showscale"]) == (-0.5, 1.5, False)
    assert trace["customdata"] == [[["early"], ["late"], ["-"]], [["late"], ["late"], ["early"]]]
    evil, _ = chart(Map("", [[0.0]], ["a"], ["b"], names={"<b>": "#000000"}))
    assert evil["customdata"] == [[["&lt;b&gt;"]]]


def test_a_map_of_nothing_says_so() -> None:
    trace, layout = chart(Map("", [[None, None]], ["a", "b"], [""], log=True))
    (note,) = layout["annotations"]
    assert (note["text"], note["showarrow"], note["xref"], note["yref"]) == ("nothing to show", False, "paper", "paper")
    assert (note["x"], note["y"]) == (0.5, 0.5)  # in the middle
    assert trace["showscale"] is False


def test_a_map_has_crosses_on_marked_cells() -> None:
    found = map_spec(Map("", [[0.0, 1.0], [1.0, 0.0]], ["<a>", "b"], ["c", "d"], marks=[(0, 1)]))
    json.dumps(found, allow_nan=False)
    _, crosses = found["data"]
    assert (crosses["x"], crosses["y"], crosses["mode"]) == (["&lt;a&gt;"], ["d"], "markers")
