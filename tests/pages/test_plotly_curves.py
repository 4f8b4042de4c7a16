"""Curves and points on the page, as plotly is told to draw them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.pages import samples
from topicscope.pages import Figure, Lines, Points, Series
from topicscope.pages.layout import GREY, PALETTE, pens
from topicscope.pages.plotly_curves import LEGEND_ROW, PLOT_HEIGHT, lines_spec, points_spec


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


def test_more_curves_than_colours_have_other_dashes() -> None:
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
    (panel,) = samples.points_figure().panels
    assert isinstance(panel, Points)
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


def test_an_interval_beside_its_mean_has_no_negative_length() -> None:
    series = Series("a", [0.0, 1.0], [1.0, 1.0], [2.0, 0.5], [3.0, 0.75])
    error = spec(Points("", ["x", "y"], [series]))["data"][0]["error_y"]
    assert (error["array"], error["arrayminus"]) == ([2.0, 0.0], [0.0, 0.5])
