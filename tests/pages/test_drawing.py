"""What the pictures show: ticks, legends, axes, bands, levels and marks, as matplotlib has them."""

from __future__ import annotations

import math
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from tests.pages import samples
from topicscope.pages.drawing import LEVEL_DASHES, wrapped
from topicscope.pages.layout import GREY, MARK_COLOUR, PALETTE
from topicscope.pages.panels import Heat, Lines, Map, Panel, Points, Series
from topicscope.pages.parts import Figure
from topicscope.pages.pictures import canvas


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


def test_a_matrix_is_square_and_has_whole_ticks_and_no_grid() -> None:
    square, wide, tall = (Heat("", [[0.5] * columns] * rows) for rows, columns in ((3, 3), (2, 30), (30, 2)))
    axes = drawn(Figure("f", "", "", [square, wide, tall]))
    assert [one.get_aspect() for one in axes] == [1, "auto", "auto"]
    for one in axes:
        ticks = [*one.get_xticks(), *one.get_yticks()]
        assert ticks == [round(tick) for tick in ticks]
        assert max(len(one.get_xticks()), len(one.get_yticks())) <= 12
        assert not any(line.get_visible() for line in [*one.get_xgridlines(), *one.get_ygridlines()])
        assert len(one.collections) == 0  # no contours where none are asked for
    assert len(axes[1].get_xticks()) > 4


def test_places_keep_their_own_ticks() -> None:
    places = [0.0, 0.25, 0.5, 0.75, 1.0]
    (axes,) = drawn(Figure("f", "", "", [Heat("", [[0.0] * 5] * 2, x=places)]))
    assert any(tick != round(tick) for tick in axes.get_xticks())
    assert all(tick == round(tick) for tick in axes.get_yticks())
    assert axes.get_xlim() == (-0.125, 1.125)
    (axes,) = drawn(Figure("f", "", "", [Heat("", [[0.0] * 2] * 5, y=places)]))
    assert any(tick != round(tick) for tick in axes.get_yticks())
    assert all(tick == round(tick) for tick in axes.get_xticks())


def test_contours_are_drawn_of_small_differences_too() -> None:
    z = [[0.1 * (i + j) for j in range(4)] for i in range(4)]
    (axes,) = drawn(Figure("f", "", "", [Heat("", z, x=[0.0, 1.0, 2.0, 3.0], contours=3)]))
    assert len(axes.collections) == 2


def test_marks_are_not_cut_off_and_their_labels_stand_inside() -> None:
    marks = [(0.0, 9.0, "up $"), (1.0, -9.0, "down"), (2.0, 1.0, "star")]
    panel = Heat(
        "", [[0.0] * 3] * 3, x=[0.0, 1.0, 2.0], y=[0.0, 1.0, 2.0], marks=marks, references=[(1.0, 1.0, "ring")]
    )
    (axes,) = drawn(Figure("f", "", "", [panel]))
    up, down, star, ring = axes.lines
    assert [line.get_marker() for line in (up, down, star, ring)] == ["^", "v", "*", "o"]
    assert not any(line.get_clip_on() for line in axes.lines)
    assert [to_hex(line.get_color()) for line in (star, ring)] == [MARK_COLOUR.lower(), "#ffffff"]
    assert [to_hex(line.get_markeredgecolor()) for line in (star, ring)] == ["#ffffff", "#000000"]
    assert ring.get_markersize() < star.get_markersize()
    assert [text.get_text() for text in axes.texts] == [r"up \$ (off the edge)", "down (off the edge)", "star", "ring"]
    (up_x, up_y), (down_x, down_y), (star_x, star_y), (ring_x, ring_y) = (text.xyann for text in axes.texts)
    assert up_x > 0 > up_y  # to the right, and down into the map
    assert down_x > 0
    assert down_y > 0
    assert star_x < 0 == star_y  # towards the middle
    assert ring_x == 0 > ring_y  # below


def test_cells_of_a_map_stand_on_whole_numbers() -> None:
    panel = Map("", [[1.0, 2.0, 3.0], [4.0, None, 6.0]], ["a", "b", "c"], ["d", "e"], low=0.5, high=8.0)
    (axes,) = drawn(Figure("f", "", "", [panel]))
    assert (axes.get_xlim(), axes.get_ylim()) == ((-0.5, 2.5), (-0.5, 1.5))
    assert axes.get_xticks().tolist() == [0, 1, 2]
    mesh = axes.collections[0]
    assert mesh.get_clim() == (0.5, 8.0)
    assert mesh.get_array().filled(-1).tolist() == [[1.0, 2.0, 3.0], [4.0, -1.0, 6.0]]
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {0}
    assert not any(line.get_visible() for line in axes.get_xgridlines())


@pytest.mark.parametrize(("smallest", "log"), [(1e-3, True), (0.0, False), (-1.0, False)])
def test_a_log_scale_needs_positive_numbers(smallest: float, log: bool) -> None:
    panel = Map("", [[smallest, 10.0, None]], ["a", "b", "c"], [""], log=True, low=1e-4, high=100.0)
    norm = canvas(Figure("f", "", "", [panel])).axes[0].collections[0].norm
    assert isinstance(norm, mpl.colors.LogNorm) is log
    assert (norm.vmin, norm.vmax) == (1e-4, 100.0)
    plain = Map("", [[1.0, 10.0]], ["a", "b"], [""])
    assert not isinstance(canvas(Figure("f", "", "", [plain])).axes[0].collections[0].norm, mpl.colors.LogNorm)


@pytest.mark.parametrize(("count", "step"), [(8, 1), (9, 2), (17, 3)])
def test_a_map_has_at_most_eight_ticks_along_a_side(count: int, step: int) -> None:
    names = [f"{i}" for i in range(count)]
    (axes,) = drawn(Figure("f", "", "", [Map("", [[0.0] * count] * count, names, names)]))
    assert tick_labels(axes.xaxis) == tick_labels(axes.yaxis) == names[::step]


def test_long_names_of_rows_are_not_turned() -> None:
    names = [f"a long name {i}" for i in range(3)]
    (axes,) = drawn(Figure("f", "", "", [Map("", [[0.0] * 3] * 3, names, names)]))
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {45}
    assert {label.get_rotation() for label in axes.get_yticklabels()} == {0}


def test_half_an_interval_is_none() -> None:
    for half in (Series("a", [0, 1], [0, 1], low=[0, 0]), Series("a", [0, 1], [0, 1], high=[1, 2])):
        lines, points = drawn(Figure("f", "", "", [Lines("", [half]), Points("", ["x", "y"], [half])]))
        assert len(lines.collections) == 0
        assert len(points.containers[0][2]) == 0


def test_an_interval_has_the_colour_of_its_curve() -> None:
    series = [Series("a", [1, 2], [1, 2], [0, 1], [2, 4]), Series("b", [1, 2], [3, 3])]
    (axes,) = drawn(Figure("f", "", "", [Lines("", series, log_y=False)], colours={"a": "#123456"}))
    (interval,) = axes.collections
    assert to_hex(interval.get_facecolor()[0]) == "#123456"
    assert 0 < interval.get_alpha() < 1
    assert sorted({y for _, y in interval.get_paths()[0].vertices}) == [0, 1, 2, 4]
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")


def test_curves_beyond_the_colours_are_dashed_and_levels_always() -> None:
    series = [Series(f"{i}", [0, 1], [0, 1]) for i in range(len(PALETTE) + 1)]
    levels = [(float(i), f"level {i}") for i in range(5)]
    (axes,) = drawn(
        Figure("f", "", "", [Lines("", series, levels=levels, bands=[(0, 1, "a"), (1, 2, "b"), (2, 3, "c")])])
    )
    curves, lines = axes.lines[: len(series)], axes.lines[len(series) :]
    assert [line.get_linestyle() for line in curves] == ["-"] * len(PALETTE) + ["--"]
    assert [line.get_marker() for line in curves] == ["None"] * len(series)
    patterns = [line._dash_pattern[1] for line in lines]
    assert all(pattern is not None for pattern in patterns)
    assert len({tuple(pattern) for pattern in patterns}) == 4
    assert patterns[4] == patterns[0]
    assert {to_hex(line.get_color()) for line in lines} == {GREY}
    alphas = [band.get_alpha() for band in axes.patches]
    assert alphas[0] == alphas[2] != alphas[1]


def test_points_stand_side_by_side() -> None:
    (axes,) = drawn(samples.points_figure())
    first, second, third = (container[0] for container in axes.containers)
    np.testing.assert_allclose(first.get_xdata(), [-0.18, 0.82, 1.82])
    np.testing.assert_allclose(second.get_xdata(), [0, 1, 2])
    np.testing.assert_allclose(third.get_xdata(), [0.18, 2.18])
    assert list(third.get_ydata()) == [0.05, 0.06]
    assert list(axes.lines[-1].get_ydata()) == [0.0, 0.0]  # the level
    beside = Series("a", [0.0], [1.0], [2.0], [3.0])  # an interval that does not hold its mean
    (axes,) = drawn(Figure("f", "", "", [Points("", ["x"], [beside])]))
    assert [y for _, y in axes.containers[0][2][0].get_segments()[0]] == [1.0, 3.0]


@pytest.mark.parametrize(
    ("names", "turned"), [(["x" * 12] * 3, False), (["x" * 37], True), (["x", "y" * 19], True), (["x"] * 36, False)]
)
def test_crowded_categories_are_turned(names: list[str], turned: bool) -> None:
    (axes,) = drawn(Figure("f", "", "", [Points("", names, [Series("a", [0.0], [0.0])])]))
    assert {label.get_rotation() != 0 for label in axes.get_xticklabels()} == {turned}
    assert axes.get_xticks().tolist() == list(range(len(names)))


def test_a_legend_names_two_things_or_more() -> None:
    one, two = Series("a", [0, 1], [0, 1]), Series("b", [0, 1], [0, 1])
    panels: list[Panel] = [
        Lines("", [one]),
        Lines("", [one, two]),
        Lines("", [one], levels=[(0.0, "zero")]),
        Points("", ["x"], []),
    ]
    axes = drawn(Figure("f", "", "", [*panels]))
    assert [box.get_legend() is not None for box in axes] == [False, True, True, False]
    assert legend(axes[2])["zero"].get_linestyle() == "--"
    heat, chart = Heat("", [[0.0]]), Map("", [[0.0]], ["a"], ["b"])
    assert all(box.get_legend() is None for box in drawn(Figure("f", "", "", [heat, chart])))


def test_a_map_has_crosses_on_marked_cells() -> None:
    panel = Map("", [[0.0, 1.0], [1.0, 0.0]], ["a", "b"], ["c", "d"], marks=[(1, 0), (0, 1)])
    (axes,) = drawn(Figure("f", "", "", [panel]))
    (crosses,) = axes.lines
    assert (list(crosses.get_xdata()), list(crosses.get_ydata())) == ([1, 0], [0, 1])
    assert (crosses.get_marker(), crosses.get_linestyle()) == ("x", "None")
