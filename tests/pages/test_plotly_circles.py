"""Circles on the page and in pictures."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.pages.samples import EVIL
from topicscope.pages import Circles, Figure
from topicscope.pages.layout import LARGEST_CIRCLE, SMALLEST_CIRCLE, diameters, largest_first, pens
from topicscope.pages.pictures import canvas, csv_rows
from topicscope.pages.plotly_circles import circles_spec

THREE = Circles(
    "map",
    [0.0, 1.0, 2.0],
    [3.0, 1.0, 0.0],
    [0.1, 0.4, 0.0],
    [0.2, 0.1, -0.1],
    ["0", "1", "2"],
    [["a"], [EVIL, "b"], ["c"]],
)


def test_areas_are_in_proportion_and_small_ones_can_be_seen() -> None:
    assert diameters(THREE) == [LARGEST_CIRCLE / 2, LARGEST_CIRCLE, SMALLEST_CIRCLE]
    assert math.isclose((diameters(THREE)[1] / diameters(THREE)[0]) ** 2, 0.4 / 0.1)
    assert largest_first(THREE) == [1, 0, 2]


def test_the_page_has_texts_escaped_and_small_circles_on_top() -> None:
    (trace,) = circles_spec(THREE)["data"]
    assert (trace["x"], trace["y"], trace["text"]) == ([1.0, 0.0, 2.0], [1.0, 3.0, 0.0], ["1", "0", "2"])
    assert trace["marker"]["color"] == [0.1, 0.2, -0.1]
    assert "<script" not in str(trace)
    assert "%{y}" not in trace["customdata"][0][0]
    assert trace["customdata"][2] == ["c"]


def test_the_picture_and_the_numbers() -> None:
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
