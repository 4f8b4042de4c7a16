"""What the pictures show: ticks, legends, axes, bands, levels and marks, as matplotlib has them."""

from __future__ import annotations

import math
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from tests.report import samples
from topicscope.figures.panels import Figure, Heat, Lines, Map, Points, Series
from topicscope.report.drawing import LEVEL_DASHES, wrapped
from topicscope.report.pictures import canvas


def drawn(figure: Figure) -> list[Any]:
    """The axes of the panels, with their ticks in place. (Any: matplotlib's types are wide.)"""
    picture = canvas(figure)
    picture.draw_without_rendering()
    return picture.axes[: len(figure.panels)]


def tick_labels(axis: Any) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def legend(axes: Any) -> dict[str, Any]:
    """Handles by name."""
    box: Any = axes.get_legend() if isinstance(axes, Axes) else axes.legends[0]
    return {text.get_text(): handle for text, handle in zip(box.get_texts(), box.legend_handles, strict=True)}


@pytest.mark.parametrize("figure", samples.figures(), ids=lambda figure: figure.name)
def test_every_panel_has_its_axes_titles_and_labels(figure: Figure) -> None:
    picture = canvas(figure)
    assert picture.get_suptitle().replace("\n", " ") == figure.title.replace("$", r"\$")
    for axes, panel in zip(picture.axes, figure.panels, strict=False):
        assert "".join(axes.get_title().split()) == "".join(panel.title.replace("$", r"\$").split())
        assert "".join(axes.get_ylabel().split()) == "".join(panel.y_label.replace("$", r"\$").split())
        if not isinstance(panel, Points):
            assert axes.get_xlabel() == panel.x_label


def test_a_heat_map_of_words_has_ticks_per_topic() -> None:
    axes = drawn(samples.word_figure())[0]
    assert tick_labels(axes.xaxis) == tick_labels(axes.yaxis) == ["1", "2", "3", "4"]
    assert axes.get_xticks().tolist() == axes.get_yticks().tolist() == [2, 5, 8, 11]
    assert axes.get_ylim() == (12.5, -0.5)  # the first row on top
    image = axes.images[0]
    assert image.get_cmap().name == "cividis"
    np.testing.assert_array_equal(image.get_array(), np.array(samples.word_heat().z))


def test_named_rows_and_columns_are_ticks() -> None:
    heat = Heat("", [[1.0, 0.2], [0.2, 1.0]], labels=["frog", "toad"])
    (axes,) = drawn(Figure("f", "", "", [heat]))
    assert tick_labels(axes.xaxis) == tick_labels(axes.yaxis) == ["frog", "toad"]
    assert [label.get_rotation() for label in axes.get_xticklabels()] == [45, 45]
    assert [label.get_rotation() for label in axes.get_yticklabels()] == [0, 0]


def test_a_landscape_has_log_axes_marks_contours_and_a_named_scale() -> None:
    figure = samples.landscape_figure()
    picture = canvas(figure)
    picture.draw_without_rendering()
    axes: Any = picture.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert r"$\mathdefault{10^{0}}$" in tick_labels(axes.xaxis)
    marks = [(line.get_marker(), *line.get_xydata()[0].tolist()) for line in axes.lines]
    assert marks == [("*", 20.0, 0.01), (">", 1e4, 1.0), ("o", 1.0, 1.0)]
    texts = [(text.get_text(), text.get_horizontalalignment()) for text in axes.texts]  # towards the middle
    assert texts == [("lowest", "right"), ("theory (off the edge)", "right"), ("uniform", "center")]
    mesh, contours = axes.collections
    assert mesh.get_clim()[1] == 5.0
    assert 4 <= sum(len(path.vertices) > 0 for path in contours.get_paths()) <= 16
    assert [other.get_ylabel() for other in picture.axes[4:]] == ["loss"] * 4  # the colour bars
    flat = Heat("", [[1.0, 1.0], [1.0, 1.0]], x=[1.0, 2.0], y=[1.0, 2.0], contours=5)
    assert len(drawn(Figure("f", "", "", [flat]))[0].collections) == 1  # no contours where all is level


def test_curves_have_their_groups_levels_and_bands_in_the_legend() -> None:
    first, second = drawn(samples.curves_figure())
    handles = legend(first)
    assert list(handles) == ["key", "query", "value", "theory", "first stage", "second stage"]
    assert [to_hex(handles[name].get_color()).upper() for name in ("key", "query", "value")] == [
        "#0072B2",
        "#56B4E9",
        "#D55E00",
    ]
    assert handles["theory"].get_linestyle() == "--"
    assert [handles[name].get_alpha() for name in ("first stage", "second stage")] == [0.13, 0.28]
    assert list(legend(second)) == [wrapped(samples.EVIL, 32), "plain", "floor", "chance", "few"]
    assert [legend(second)[name].get_marker() for name in ("plain", "floor")] == ["o", "None"]


def test_curves_levels_and_bands_are_where_the_numbers_are() -> None:
    first, second = drawn(samples.curves_figure())
    assert (first.get_xscale(), second.get_xscale(), second.get_yscale()) == ("linear", "log", "log")
    assert len(first.lines) == 9 + 1
    assert list(first.lines[-1].get_ydata()) == [5.0, 5.0]
    assert [band.get_x() for band in first.patches] == [0.0, 300.0]
    assert [band.get_x() + band.get_width() for band in first.patches] == [300.0, 980.0]  # infinite: to the last point
    assert [list(line.get_ydata()) for line in second.lines[-2:]] == [[0.02, 0.02], [0.2, 0.2]]
    patterns = [line._dash_pattern[1] for line in second.lines[-2:]]
    assert [len(pattern) for pattern in patterns] == [len(dashes) for dashes in LEVEL_DASHES[:2]]
    assert patterns[0] != patterns[1]
    (interval,) = second.collections
    assert interval.get_datalim(second.transData).y1 == pytest.approx(1.4)


def test_a_thin_curve_is_thinner() -> None:
    series = [Series("batch", [0, 1], [0, 1], thin=True), Series("dev", [0, 1], [1, 0])]
    (axes,) = drawn(Figure("f", "", "", [Lines("", series)], colours={"batch": "#AAAAAA"}))
    assert [line.get_linewidth() for line in axes.lines] == [0.6, 1.6]
    assert [handle.get_linewidth() for handle in legend(axes).values()] == [0.6, 1.6]
    assert to_hex(axes.lines[0].get_color()) == "#aaaaaa"


def test_points_have_categories_intervals_and_a_legend() -> None:
    (axes,) = drawn(samples.points_figure())
    labels = [label.replace("\n", " ") for label in tick_labels(axes.xaxis)]
    assert labels == ["SGD", "Adam & friends", "a rather long name of a method"]
    assert axes.get_xlim() == (-0.5, 2.5)
    assert list(legend(axes)) == ["same topic", "different topic", "without interval", "zero"]
    assert [handle.get_linestyle() for handle in list(legend(axes).values())[:3]] == ["None"] * 3
    assert len(axes.containers) == 3
    segments = axes.containers[0][2][0].get_segments()
    np.testing.assert_allclose(
        [[y for _, y in segment] for segment in segments], [[0.09, 0.11], [0.1, 0.15], [0.2, 0.42]]
    )


def test_one_curve_needs_no_legend() -> None:
    axes = drawn(samples.plain_figure())
    assert [one.get_legend() for one in axes] == [None] * 3


def test_panels_with_the_same_names_share_a_legend() -> None:
    def figure(second: str) -> Figure:
        panels = [Lines("", [Series("a", [0], [0]), Series(name, [0], [1])]) for name in ("b", second)]
        return Figure("f", "", "", list(panels))

    shared = canvas(figure("b"))
    assert list(legend(shared)) == ["a", "b"]
    assert [axes.get_legend() for axes in shared.axes] == [None, None]
    apart = canvas(figure("c"))
    assert apart.legends == []
    assert [list(legend(axes)) for axes in apart.axes] == [["a", "b"], ["a", "c"]]


def test_a_map_names_its_colours() -> None:
    figure = samples.map_figure()
    picture = canvas(figure)
    handles = legend(picture)
    assert {name: to_hex(handle.get_facecolor()).upper() for name, handle in handles.items()} == {
        "early": "#0072B2",
        "late": "#D55E00",
    }
    (axes,) = drawn(figure)
    assert (tick_labels(axes.xaxis), tick_labels(axes.yaxis)) == (["0.1", "1", "10"], ["2", "4"])
    mesh = axes.collections[0]
    assert mesh.get_clim() == (-0.5, 1.5)
    assert np.ma.getmaskarray(mesh.get_array()).sum() == 1  # the gap
    assert len(picture.axes) == 1  # words have no colour bar


def test_a_map_of_numbers_may_have_a_log_scale_or_nothing() -> None:
    numbers = Map("", [[1.0, 10.0, 1000.0]], ["a", "b", "c"], [""], log=True)
    picture = canvas(Figure("f", "", "", [numbers]))
    norm = picture.axes[0].collections[0].norm
    assert isinstance(norm, mpl.colors.LogNorm)
    assert (norm.vmin, norm.vmax) == (1.0, 1000.0)
    assert len(picture.axes) == 2
    empty = canvas(Figure("f", "", "", [Map("", [[None, None]], ["a", "b"], [""])]))
    assert [text.get_text() for text in empty.axes[0].texts] == ["nothing to show"]
    assert len(empty.axes) == 1


def test_many_ticks_are_thinned_and_crowded_ones_turned() -> None:
    names = [f"value {i}" for i in range(20)]
    (axes,) = drawn(Figure("f", "", "", [Map("", [[float(i) for i in range(20)]], names, [""])]))
    assert tick_labels(axes.xaxis) == names[::3]
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {45}


def test_rows_of_a_matrix_go_down_and_those_at_places_go_up() -> None:
    places = Heat("", [[0.1, 0.2], [0.3, 0.4]], x=[1.0, 4.0], y=[1.0, 2.0])
    axes = drawn(Figure("f", "", "", [*samples.plain_figure().panels[:2], places]))
    assert [one.yaxis_inverted() for one in axes] == [True, True, False]


def test_gaps_are_not_drawn() -> None:
    heat = Heat("", [[math.nan, 1.0], [2.0, 3.0]])
    (axes,) = drawn(Figure("f", "", "", [heat]))
    assert np.ma.getmaskarray(np.ma.masked_invalid(axes.images[0].get_array())).sum() == 1


def test_text_keeps_its_size_outside_of_the_drawing_code() -> None:
    (axes,) = drawn(samples.points_figure())
    assert {label.get_size() for label in [*axes.get_xticklabels(), *axes.get_yticklabels()]} == {10.5}
