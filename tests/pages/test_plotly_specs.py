"""Panels on the page, as plotly is told to draw them."""

import base64
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.pages import samples
from tests.pages.samples import EVIL
from topicscope.pages import Circles, Figure, Heat, Lines, Map, Points, Series, plotly_specs as plotly
from topicscope.pages.drawing import canvas, csv_rows
from topicscope.pages.panels import (
    GREY,
    MARK_COLOUR,
    PALETTE,
    SMALLEST_CIRCLE,
    in_order,
    pens,
)
from topicscope.pages.plotly_specs import (
    LEGEND_ROW,
    PLOT_HEIGHT,
    circles_spec,
    heat_spec,
    lines_spec,
    map_spec,
    points_spec,
)


def test_texts_colours_and_numbers_as_plotly_takes_them() -> None:
    assert plotly.escaped("<b>a & \"b\"</b> %{y} 'c' 5%") == "&lt;b&gt;a &amp; \"b\"&lt;/b&gt; &#37;{y} 'c' 5%"
    assert plotly.broken("one <two> three", 9) == "one &lt;two&gt;<br>three"
    assert plotly.see_through("#1002FF", 0.5) == "rgba(16,2,255,0.50)"
    assert plotly.see_through("#808080").startswith("rgba(128,128,128,0.")
    assert plotly.json_numbers([1, 0.123456789, math.nan, -math.inf]) == [1.0, 0.123456789, None, None]
    assert plotly.rounded([0.123456789, 1234567.0, math.nan, math.inf]) == [0.123457, 1234570.0, None, None]


@pytest.mark.parametrize("log", [True, False])
def test_an_axis_has_its_label_and_scale(log: bool) -> None:
    axis = plotly.axis_spec("a <label>", log=log)
    assert axis["title"]["text"] == "a &lt;label&gt;"
    assert (axis["type"], axis["automargin"]) == ("log" if log else "linear", True)
    assert ("nticks" in axis, axis.get("tickangle")) == ((True, 0) if log else (False, None))
    assert plotly.axis_spec("")["type"] == "linear"


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
    trace, layout = chart(Map("", [[None, None]], ["a", "b"], [""], log=True))
    (note,) = layout["annotations"]
    assert (note["text"], note["showarrow"], note["xref"], note["yref"]) == ("nothing to show", False, "paper", "paper")
    assert (note["x"], note["y"]) == (0.5, 0.5)  # in the middle
    assert trace["showscale"] is False


def test_a_log_scale_counts_powers_of_ten_where_all_is_positive() -> None:
    log, _ = chart(Map("", [[0.1, 100.0, None]], ["a", "b", "c"], [""], log=True, low=0.1, high=100.0))
    assert (log["z"], log["zmin"], log["zmax"]) == ([[-1.0, 2.0, None]], -1.0, 2.0)
    assert log["customdata"] == [[["0.1"], ["100"], ["-"]]]
    assert (log["colorbar"]["tickprefix"], log["colorbar"]["dtick"]) == ("10^", 1)
    zero, _ = chart(Map("", [[0.0, 100.0]], ["a", "b"], [""], log=True))
    assert zero["z"] == [[0.0, 100.0]]
    plain, _ = chart(Map("", [[0.1, 100.0]], ["a", "b"], [""]))
    assert plain["z"] == [[0.1, 100.0]]


def test_words_of_a_map_have_their_own_colours_and_cells_crosses() -> None:
    (panel,) = samples.panels(samples.map_figure(), Map)
    trace, _ = chart(panel)
    assert trace["colorscale"] == [[0.0, "#0072B2"], [0.5, "#0072B2"], [0.5, "#D55E00"], [1.0, "#D55E00"]]
    assert (trace["zmin"], trace["zmax"], trace["showscale"]) == (-0.5, 1.5, False)
    assert trace["customdata"] == [[["early"], ["late"], ["-"]], [["late"], ["late"], ["early"]]]
    evil, _ = chart(Map("", [[0.0]], ["a"], ["b"], names={"<b>": "#000000"}))
    assert evil["customdata"] == [[["&lt;b&gt;"]]]
    found = map_spec(Map("", [[0.0, 1.0], [1.0, 0.0]], ["<a>", "b"], ["c", "d"], marks=[(0, 1)]))
    json.dumps(found, allow_nan=False)
    _, crosses = found["data"]
    assert (crosses["x"], crosses["y"], crosses["mode"]) == (["&lt;a&gt;"], ["d"], "markers")


def spec(panel: Lines | Points, *, legend: bool = True, **colours: str) -> dict[str, Any]:
    pens_of = pens(Figure("f", "", "", [panel], colours=colours))
    if isinstance(panel, Lines):
        drawn = lines_spec(panel, pens_of, legend=legend)
    else:
        drawn = points_spec(panel, pens_of, legend=legend)
    json.dumps(drawn, allow_nan=False)
    return dict(drawn)


def test_a_curve_has_its_numbers_its_colour_and_its_name() -> None:
    thin = Series("a <b>", [0.0, 1.0], [0.1234567, math.nan], group="<g>", thin=True)
    marked = Series("c", [0.0, 1.0], [2.0, 3.0], group="<g>", markers=True)
    alone = Series("d", [5.0], [6.0])
    found = spec(Lines("", [thin, marked, alone], "step <x>", "loss", log_x=True), d="#123456")
    first, second, third = found["data"]
    assert (first["type"], first["x"], first["y"]) == ("scatter", [0.0, 1.0], [0.123457, None])
    assert [trace["mode"] for trace in found["data"]] == ["lines", "lines+markers", "lines"]
    assert [trace["name"] for trace in found["data"]] == ["&lt;g&gt;", "&lt;g&gt;", "d"]
    assert [trace["legendgroup"] for trace in found["data"]] == ["<g>", "<g>", "d"]
    assert [trace["showlegend"] for trace in found["data"]] == [True, False, True]  # a group once
    assert [trace["line"]["color"] for trace in found["data"]] == [PALETTE[0], PALETTE[0], "#123456"]
    assert [trace["marker"]["color"] for trace in found["data"]] == [PALETTE[0], PALETTE[0], "#123456"]
    assert first["line"]["width"] < second["line"]["width"] == third["line"]["width"]
    where = "step &lt;x&gt;: %{x:.6~g}"
    assert first["hovertemplate"] == f"<b>a &lt;b&gt;</b><br>{where}<br>%{{y:.4~g}}<extra></extra>"
    layout = found["layout"]
    assert (layout["xaxis"]["type"], layout["yaxis"]["type"]) == ("log", "linear")
    assert layout["xaxis"]["title"]["text"] == "step &lt;x&gt;"
    assert (layout["showlegend"], layout["shapes"]) == (True, [])
    assert spec(Lines("", [alone], log_y=True))["layout"]["yaxis"]["type"] == "log"
    assert "<br>x: %{x" in spec(Lines("", [alone]))["data"][0]["hovertemplate"]
    found = spec(Lines("", [Series(f"{i}", [0.0], [0.0]) for i in range(len(PALETTE) + 1)]))
    dashes = [trace["line"]["dash"] for trace in found["data"]]
    assert dashes == ["solid"] * len(PALETTE) + ["dash"]


def test_an_interval_is_filled_between_two_edges_without_a_name() -> None:
    curve = Series("a", [0.0, 1.0], [1.0, 2.0], [0.5, 1.5], [1.25, 2.1234567])
    low, high, middle = spec(Lines("", [curve]))["data"]
    assert (low["y"], high["y"], middle["y"]) == ([0.5, 1.5], [1.25, 2.12346], [1.0, 2.0])
    assert "fill" not in low
    assert (high["fill"], high["fillcolor"][:16]) == ("tonexty", "rgba(0,114,178,0")
    for edge in (low, high):
        assert (edge["mode"], edge["line"]["width"], edge["hoverinfo"]) == ("lines", 0, "skip")
        assert (edge["showlegend"], edge["legendgroup"]) == (False, "a")
    assert middle["customdata"] == [[0.5, 1.25], [1.5, 2.12346]]
    assert middle["hovertemplate"].endswith("%{y:.4~g} (%{customdata[0]:.4~g} to %{customdata[1]:.4~g})<extra></extra>")
    for half in (Series("a", [0.0], [1.0], low=[0.5]), Series("a", [0.0], [1.0], high=[1.5])):
        (trace,) = spec(Lines("", [half]))["data"]
        assert "customdata" not in trace
        (trace,) = spec(Points("", ["x"], [half]))["data"]
        assert "error_y" not in trace


def test_levels_and_bands_are_shapes_with_names() -> None:
    curve = Series("a", [3.0, 9.0], [1.0, 2.0])
    bands = [(0.0, 5.0, "early"), (5.0, math.inf, "late <l>"), (1.0, 2.0, "again")]
    levels = [(float(i), f"level {i}") for i in range(5)]
    found = spec(Lines("", [curve], bands=bands, levels=levels))
    shapes = found["layout"]["shapes"]
    rects, lines = shapes[:3], shapes[3:]
    assert [(one["type"], one["x0"], one["x1"], one["name"]) for one in rects] == [
        ("rect", 0.0, 5.0, "early"),
        ("rect", 5.0, 9.0, "late &lt;l&gt;"),  # to the last point
        ("rect", 1.0, 2.0, "again"),
    ]
    for one in rects:
        assert (one["xref"], one["yref"], one["y0"], one["y1"], one["layer"]) == ("x", "paper", 0, 1, "below")
        assert (one["line"]["width"], one["showlegend"]) == (0, True)
    assert rects[0]["fillcolor"] == rects[2]["fillcolor"] != rects[1]["fillcolor"]
    assert [(one["type"], one["y0"], one["y1"], one["name"]) for one in lines] == [
        ("line", y, y, label) for y, label in levels
    ]
    for one in lines:
        assert (one["xref"], one["yref"], one["x0"], one["x1"], one["showlegend"]) == ("paper", "y", 0, 1, True)
        assert one["line"]["color"] == GREY
    dashes = [one["line"]["dash"] for one in lines]
    assert len(set(dashes[:4])) == 4
    assert "solid" not in dashes
    assert dashes[4] == dashes[0]
    unseen = found["data"][-1]  # so that levels have a margin
    assert (unseen["x"], unseen["y"], unseen["mode"]) == ([3.0] * 5, [0.0, 1.0, 2.0, 3.0, 4.0], "markers")
    assert (unseen["marker"]["opacity"], unseen["hoverinfo"], unseen["showlegend"]) == (0, "skip", False)
    assert found["height"] == PLOT_HEIGHT + 5 * LEGEND_ROW  # nine names in two columns
    assert found["layout"]["showlegend"] is True


def test_a_legend_is_there_where_there_is_something_to_tell_apart() -> None:
    one, two = Series("a", [0.0], [0.0]), Series("b", [0.0], [0.0])
    panels = {
        "one": Lines("", [one]),
        "two": Lines("", [one, two]),
        "level": Lines("", [one], levels=[(0.0, "zero")]),
        "band": Lines("", [one], bands=[(0.0, 1.0, "early")]),
        "same": Lines("", [Series("a", [0.0], [0.0], group="g"), Series("b", [0.0], [0.0], group="g")]),
    }
    shown = {name: spec(panel)["layout"]["showlegend"] for name, panel in panels.items()}
    assert shown == {"one": False, "two": True, "level": True, "band": True, "same": False}
    without = spec(panels["two"], legend=False)
    assert (without["layout"]["showlegend"], without["height"]) == (False, PLOT_HEIGHT)
    assert spec(panels["two"])["height"] == PLOT_HEIGHT + LEGEND_ROW
    assert len(spec(Lines("", [Series("a", [], [])], levels=[(0.0, "zero")]))["data"]) == 1  # no points, no margin
    assert len(spec(panels["two"])["data"]) == 2


def test_points_stand_beside_their_category_with_their_interval() -> None:
    (panel,) = samples.panels(samples.points_figure(), Points)
    found = spec(panel)
    first, second, third, _ = found["data"]
    assert first["x"] == pytest.approx([-0.18, 0.82, 1.82])
    assert second["x"] == pytest.approx([0.0, 1.0, 2.0])
    assert third["x"] == pytest.approx([0.18, 2.18])
    assert third["text"] == ["SGD", "a rather long name of a method"]
    assert first["text"][1] == "Adam &amp; friends"
    assert [trace["mode"] for trace in (first, second, third)] == ["markers"] * 3
    assert [trace["marker"]["color"] for trace in (first, second, third)] == list(PALETTE[:3])
    assert [trace["legendgroup"] for trace in (first, third)] == ["same topic", "without interval"]
    error = first["error_y"]
    assert (error["array"], error["arrayminus"]) == ([0.01, 0.03, 0.12], [0.01, 0.02, 0.1])
    assert (error["type"], error["symmetric"]) == ("data", False)
    assert "error_y" not in third
    assert first["hovertemplate"].startswith("<b>same topic</b><br>%{text}<br>%{y:.4~g} (")
    axis = found["layout"]["xaxis"]
    assert (axis["tickmode"], axis["tickvals"], axis["range"]) == ("array", [0, 1, 2], [-0.5, 2.5])
    assert axis["ticktext"][:2] == ["SGD", "Adam &amp; friends"]
    assert (axis["showgrid"], axis["zeroline"], axis["tickangle"]) == (False, False, 0)
    assert found["layout"]["yaxis"]["title"]["text"] == "mean entry"
    series = Series("a", [0.0, 1.0], [1.0, 1.0], [2.0, 0.5], [3.0, 0.75])
    error = spec(Points("", ["x", "y"], [series]))["data"][0]["error_y"]
    assert (error["array"], error["arrayminus"]) == ([2.0, 0.0], [0.0, 0.5])


THREE = Circles(
    "map",
    [0.0, 1.0, 2.0],
    [3.0, 1.0, 0.0],
    [0.1, 0.4, 0.0],
    [0.2, 0.1, -0.1],
    ["0", "1", "2"],
    [["a"], [EVIL, "b"], ["c"]],
)


def test_circles_are_in_proportion_escaped_and_small_ones_on_top() -> None:
    shown = in_order(THREE)
    assert (shown.sizes, shown.names) == ([56.0, 28.0, SMALLEST_CIRCLE], ["1", "0", "2"])
    (trace,) = circles_spec(THREE)["data"]
    assert (trace["x"], trace["y"], trace["text"]) == ([1.0, 0.0, 2.0], [1.0, 3.0, 0.0], ["1", "0", "2"])
    assert trace["marker"]["color"] == [0.1, 0.2, -0.1]
    assert "<script" not in str(trace)
    assert "%{y}" not in trace["customdata"][0][0]
    assert trace["customdata"][2] == ["c"]
    figure = Figure("map", "Map", "A map.", [THREE])
    assert pens(figure) == {}
    assert canvas(figure).as_bytes("png") == canvas(figure).as_bytes("png")
    assert csv_rows(THREE)[:2] == [["name", "x", "y", "size", "value", "text"], ["0", 0.0, 3.0, 0.1, 0.2, "a"]]


def test_given_colours_axes_and_details() -> None:
    given = replace(
        THREE,
        colours=["#000001", "#000002", "#000003"],
        ends=(-1.0, 3.0, -2.0, 4.0),
        diameter=20.0,
        details=[[("x", "1%")], [(EVIL, "2%")], []],
    )
    spec = circles_spec(given)
    (trace,) = spec["data"]
    assert trace["marker"]["color"] == ["#000002", "#000001", "#000003"]
    assert "colorbar" not in trace["marker"]
    assert trace["marker"]["size"] == [20.0, 10.0, SMALLEST_CIRCLE]
    assert [spec["layout"][axis]["range"] for axis in ("xaxis", "yaxis")] == [[-1.0, 3.0], [-2.0, 4.0]]
    assert [name for name, _, _ in spec["details"]] == ["0", "1", "2"]  # in their own order, and as plain text
    assert spec["details"][1][2] == [(EVIL, "2%")]
    axes = canvas(Figure("map", "Map", "A map.", [given])).axes
    assert len(axes) == 1  # no colour bar
    assert axes[0].axis() == (-1.0, 3.0, -2.0, 4.0)


def test_a_layout_is_transparent_and_names_are_shown_whole() -> None:
    _, layout = chart(Map("", [[1.0, 2.0]], ["a", "b"], [""]))
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"
    assert (layout["hoverlabel"]["namelength"], layout["autosize"]) == (-1, True)
    assert (layout["legend"]["orientation"], layout["legend"]["yanchor"]) == ("h", "bottom")
    assert 1 < layout["legend"]["y"] < 1.1
