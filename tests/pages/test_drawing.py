"""What the pictures show, as matplotlib has it; pictures and numbers as files."""

import csv
import math
import struct
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from tests.pages import samples
from topicscope.pages import Figure, Heat, Lines, Map, Panel, Points, Series, draw_figure, write_csv
from topicscope.pages.drawing import (
    ALONE,
    CATEGORY_WIDTH,
    LEVEL_DASHES,
    LINE,
    PANEL_HEIGHT,
    PANEL_WIDTH,
    canvas,
    legend_columns,
    wrapped,
)
from topicscope.pages.panels import GREY, MARK_COLOUR, PALETTE

SAMPLES = {figure.name: figure for figure in samples.figures()}


def drawn(figure: Figure) -> list[Any]:
    """The axes of the panels, with their ticks in place. (Any: matplotlib's types are wide.)"""
    picture = canvas(figure)
    picture.draw_without_rendering()
    return picture.axes[: len(figure.panels)]


@cache
def sample(name: str) -> Any:
    """A sample figure as it is drawn; drawing is slow, and no test changes the picture."""
    picture = canvas(SAMPLES[name])
    picture.draw_without_rendering()
    return picture


def panels_of(name: str) -> list[Any]:
    return list(sample(name).axes[: len(SAMPLES[name].panels)])


def tick_labels(axis: Any) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def legend(axes: Any) -> dict[str, Any]:
    """Handles by name."""
    box: Any = axes.get_legend() if isinstance(axes, Axes) else axes.legends[0]
    return {text.get_text(): handle for text, handle in zip(box.get_texts(), box.legend_handles, strict=True)}


@pytest.mark.parametrize("figure", SAMPLES.values(), ids=lambda figure: figure.name)
def test_every_panel_has_its_axes_titles_and_labels(figure: Figure) -> None:
    picture = sample(figure.name)
    assert picture.get_suptitle().replace("\n", " ") == figure.title.replace("$", r"\$")
    for axes, panel in zip(picture.axes, figure.panels, strict=False):
        assert "".join(axes.get_title().split()) == "".join(panel.title.replace("$", r"\$").split())
        assert "".join(axes.get_ylabel().split()) == "".join(panel.y_label.replace("$", r"\$").split())
        if not isinstance(panel, Points):
            assert axes.get_xlabel() == panel.x_label


def test_words_are_ticks() -> None:
    axes = panels_of("words")[0]
    assert tick_labels(axes.xaxis) == tick_labels(axes.yaxis) == ["1", "2", "3", "4"]
    assert axes.get_xticks().tolist() == axes.get_yticks().tolist() == [2, 5, 8, 11]
    assert axes.get_ylim() == (12.5, -0.5)  # the first row on top
    image = axes.images[0]
    assert image.get_cmap().name == "cividis"
    np.testing.assert_array_equal(image.get_array(), np.array(samples.word_heat().z))
    heat = Heat("", [[1.0, 0.2], [0.2, 1.0]], labels=["frog", "toad"])
    (axes,) = drawn(Figure("f", "", "", [heat]))
    assert tick_labels(axes.xaxis) == tick_labels(axes.yaxis) == ["frog", "toad"]
    assert [label.get_rotation() for label in axes.get_xticklabels()] == [45, 45]
    assert [label.get_rotation() for label in axes.get_yticklabels()] == [0, 0]


def test_a_landscape_has_log_axes_marks_contours_and_a_named_scale() -> None:
    picture = sample("landscape")
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


def test_curves_levels_and_bands_are_where_the_numbers_are_and_in_the_legend() -> None:
    first, second = panels_of("curves")
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


def test_points_have_categories_intervals_and_a_legend() -> None:
    (axes,) = panels_of("points")
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
    assert {label.get_size() for label in [*axes.get_xticklabels(), *axes.get_yticklabels()]} == {10.5}


def test_panels_of_one_kind_with_the_same_names_share_a_legend() -> None:
    def figure(second: str) -> Figure:
        panels = [Lines("", [Series("a", [0], [0]), Series(name, [0], [1])]) for name in ("b", second)]
        return Figure("f", "", "", list(panels))

    shared = canvas(figure("b"))
    assert list(legend(shared)) == ["a", "b"]
    assert [axes.get_legend() for axes in shared.axes] == [None, None]
    apart = canvas(figure("c"))
    assert apart.legends == []
    assert [list(legend(axes)) for axes in apart.axes] == [["a", "b"], ["a", "c"]]
    points = Points("", ["x"], [Series(name, [0.0], [0.0]) for name in ("a", "b")])
    mixed = canvas(Figure("f", "", "", [curves("a", "b"), points]))
    assert mixed.legends == []
    legends: list[Any] = [axes.get_legend() for axes in mixed.axes]
    assert [[text.get_text() for text in one.get_texts()] for one in legends] == [["a", "b"], ["a", "b"]]
    assert [one._ncols for one in legends] == [2, 2]
    alone: Any = canvas(Figure("f", "", "", [curves("a", "b")]))
    assert (alone.legends, alone.axes[0].get_legend()._ncols) == ([], 2)
    chart = Map("", [[0.0]], ["a"], ["b"], names={"word": "#000000"})
    assert canvas(Figure("f", "", "", [chart, curves("a")])).legends == []


def test_a_map_names_its_colours_or_has_a_scale() -> None:
    picture = sample("map")
    handles = legend(picture)
    assert {name: to_hex(handle.get_facecolor()).upper() for name, handle in handles.items()} == {
        "early": "#0072B2",
        "late": "#D55E00",
    }
    (axes,) = panels_of("map")
    assert (tick_labels(axes.xaxis), tick_labels(axes.yaxis)) == (["0.1", "1", "10"], ["2", "4"])
    mesh = axes.collections[0]
    assert mesh.get_clim() == (-0.5, 1.5)
    assert np.ma.getmaskarray(mesh.get_array()).sum() == 1  # the gap
    assert len(picture.axes) == 1  # words have no colour bar
    numbers = Map("", [[1.0, 10.0, 1000.0]], ["a", "b", "c"], [""], log=True)
    picture = canvas(Figure("f", "", "", [numbers]))
    norm = picture.axes[0].collections[0].norm
    assert isinstance(norm, mpl.colors.LogNorm)
    assert (norm.vmin, norm.vmax) == (1.0, 1000.0)
    assert len(picture.axes) == 2
    empty = canvas(Figure("f", "", "", [Map("", [[None, None]], ["a", "b"], [""])]))
    assert [text.get_text() for text in empty.axes[0].texts] == ["nothing to show"]
    assert len(empty.axes) == 1


def test_long_names_of_columns_are_turned_and_those_of_rows_are_not() -> None:
    names = [f"a long name {i}" for i in range(3)]
    (axes,) = drawn(Figure("f", "", "", [Map("", [[0.0] * 3] * 3, names, names)]))
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {45}
    assert {label.get_rotation() for label in axes.get_yticklabels()} == {0}


def test_rows_of_a_matrix_go_down_those_at_places_up_and_gaps_are_not_drawn() -> None:
    places = Heat("", [[0.1, 0.2], [0.3, 0.4]], x=[1.0, 4.0], y=[1.0, 2.0])
    axes = drawn(Figure("f", "", "", [*samples.plain_figure().panels[:2], places]))
    assert [one.yaxis_inverted() for one in axes] == [True, True, False]
    heat = Heat("", [[math.nan, 1.0], [2.0, 3.0]])
    (axes,) = drawn(Figure("f", "", "", [heat]))
    assert np.ma.getmaskarray(np.ma.masked_invalid(axes.images[0].get_array())).sum() == 1


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


def test_places_keep_their_own_ticks_and_small_differences_have_contours() -> None:
    places = [0.0, 0.25, 0.5, 0.75, 1.0]
    (axes,) = drawn(Figure("f", "", "", [Heat("", [[0.0] * 5] * 2, x=places)]))
    assert any(tick != round(tick) for tick in axes.get_xticks())
    assert all(tick == round(tick) for tick in axes.get_yticks())
    assert axes.get_xlim() == (-0.125, 1.125)
    (axes,) = drawn(Figure("f", "", "", [Heat("", [[0.0] * 2] * 5, y=places)]))
    assert any(tick != round(tick) for tick in axes.get_yticks())
    assert all(tick == round(tick) for tick in axes.get_xticks())
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


def test_cells_and_crosses_of_a_map_stand_on_whole_numbers() -> None:
    panel = Map("", [[1.0, 2.0, 3.0], [4.0, None, 6.0]], ["a", "b", "c"], ["d", "e"], low=0.5, high=8.0)
    (axes,) = drawn(Figure("f", "", "", [panel]))
    assert (axes.get_xlim(), axes.get_ylim()) == ((-0.5, 2.5), (-0.5, 1.5))
    assert axes.get_xticks().tolist() == [0, 1, 2]
    mesh = axes.collections[0]
    assert mesh.get_clim() == (0.5, 8.0)
    assert mesh.get_array().filled(-1).tolist() == [[1.0, 2.0, 3.0], [4.0, -1.0, 6.0]]
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {0}
    assert not any(line.get_visible() for line in axes.get_xgridlines())
    panel = Map("", [[0.0, 1.0], [1.0, 0.0]], ["a", "b"], ["c", "d"], marks=[(1, 0), (0, 1)])
    (axes,) = drawn(Figure("f", "", "", [panel]))
    (crosses,) = axes.lines
    assert (list(crosses.get_xdata()), list(crosses.get_ydata())) == ([1, 0], [0, 1])
    assert (crosses.get_marker(), crosses.get_linestyle()) == ("x", "None")


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


def test_an_interval_has_the_colour_of_its_curve_and_half_a_one_is_none() -> None:
    for half in (Series("a", [0, 1], [0, 1], low=[0, 0]), Series("a", [0, 1], [0, 1], high=[1, 2])):
        lines, points = drawn(Figure("f", "", "", [Lines("", [half]), Points("", ["x", "y"], [half])]))
        assert len(lines.collections) == 0
        assert len(points.containers[0][2]) == 0
    series = [Series("a", [1, 2], [1, 2], [0, 1], [2, 4]), Series("b", [1, 2], [3, 3])]
    (axes,) = drawn(Figure("f", "", "", [Lines("", series, log_y=False)], colours={"a": "#123456"}))
    (interval,) = axes.collections
    assert to_hex(interval.get_facecolor()[0]) == "#123456"
    assert 0 < interval.get_alpha() < 1
    assert sorted({y for _, y in interval.get_paths()[0].vertices}) == [0, 1, 2, 4]
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")


def test_curves_beyond_the_colours_are_dashed_levels_always_and_thin_ones_thinner() -> None:
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
    series = [Series("batch", [0, 1], [0, 1], thin=True), Series("dev", [0, 1], [1, 0])]
    (axes,) = drawn(Figure("f", "", "", [Lines("", series)], colours={"batch": "#AAAAAA"}))
    assert [line.get_linewidth() for line in axes.lines] == [0.6, 1.6]
    assert [handle.get_linewidth() for handle in legend(axes).values()] == [0.6, 1.6]
    assert to_hex(axes.lines[0].get_color()) == "#aaaaaa"


def test_points_stand_side_by_side() -> None:
    (axes,) = panels_of("points")
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


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("figure", [SAMPLES["plain"], SAMPLES["points"]], ids=lambda figure: figure.name)
def test_pictures_are_written_and_the_same_twice(figure: Figure, tmp_path: Path) -> None:
    once, again = draw_figure(figure, tmp_path / "once"), draw_figure(figure, tmp_path / "again")
    assert [path.name for path in once] == [f"{figure.name}.png", f"{figure.name}.svg"]
    assert once[0].read_bytes().startswith(b"\x89PNG")
    assert b"</svg>" in once[1].read_bytes()
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]
    assert sorted(path.name for path in (tmp_path / "once").iterdir()) == [f"{figure.name}.png", f"{figure.name}.svg"]


def test_heat_csv_is_the_matrix_with_its_positions(tmp_path: Path) -> None:
    paths = write_csv(samples.word_figure(), tmp_path)
    assert [path.name for path in paths] == [f"words-{i}.csv" for i in (1, 2, 3, 4)]
    read = {(int(row["y"]), int(row["x"])): float(row["value"]) for row in rows(paths[0])}
    assert read == {(i, j): samples.value(i, j) for i in range(samples.SIZE) for j in range(samples.SIZE)}
    columns = write_csv(samples.plain_figure(), tmp_path)[1]
    assert columns.read_text() == "x,y,value\n1.0,0,0.1\n4.0,0,0.2\n1.0,1,0.3\n4.0,1,0.4\n1.0,2,0.5\n4.0,2,0.6\n"


def test_lines_csv_has_every_curve_and_interval(tmp_path: Path) -> None:
    figure = samples.curves_figure()
    for path, panel in zip(write_csv(figure, tmp_path), figure.panels, strict=True):
        assert isinstance(panel, Lines)
        expected = []
        for series in panel.series:
            none: list[Any] = [None] * len(series.x)
            low, high = series.low or none, series.high or none
            expected += [(series.name, *numbers) for numbers in zip(series.x, series.y, low, high, strict=True)]
        read = [
            (row["series"], *(float(row[key]) if row[key] else None for key in ("x", "y", "low", "high")))
            for row in rows(path)
        ]
        assert read == expected


def test_csv_names_categories_and_words(tmp_path: Path) -> None:
    (path,) = write_csv(samples.points_figure(), tmp_path)
    assert len(rows(path)) == 8
    assert rows(path)[1] == {"series": "same topic", "x": "Adam & friends", "y": "0.12", "low": "0.1", "high": "0.15"}
    (path,) = write_csv(samples.map_figure(), tmp_path)
    assert path.read_text() == "x,y,value\n0.1,2,early\n1,2,late\n10,2,\n0.1,4,late\n1,4,late\n10,4,early\n"
    heat = Heat("", [[1.0, 2.0], [3.0, 4.0]], x=[0.5, 1.5], y=[10.0, 20.0])
    chart = Map("", [[0.25, None]], ["a", "b"], ["c"])
    first, second = write_csv(Figure("f", "", "", [heat, chart]), tmp_path / "new" / "folder")
    assert first.read_text() == "x,y,value\n0.5,10.0,1.0\n1.5,10.0,2.0\n0.5,20.0,3.0\n1.5,20.0,4.0\n"
    assert second.read_text() == "x,y,value\na,c,0.25\nb,c,\n"
    assert write_csv(Figure("f", "", "", [heat]), tmp_path / "new" / "folder") == [first]  # again


def test_pictures_may_go_into_a_new_folder_and_have_no_date(tmp_path: Path) -> None:
    figure = Figure("f", "", "", [Lines("", [Series("a", [0, 1], [0, 1])])])
    png, svg = draw_figure(figure, tmp_path / "new" / "folder")
    assert b"Software" not in png.read_bytes()
    assert b"dc:date" not in svg.read_bytes()
    assert canvas(figure)._repr_png_().startswith(b"\x89PNG")
    dots = [struct.unpack(">II", canvas(figure).as_bytes("png", dpi=dpi)[16:24]) for dpi in (50, 100)]
    assert dots[1] == (2 * dots[0][0], 2 * dots[0][1])
    assert struct.unpack(">II", canvas(figure)._repr_png_()[16:24]) == dots[1]


def curves(*names: str, title: str = "") -> Lines:
    return Lines(title, [Series(name, [0, 1], [0, 1]) for name in names])


def size(*panels: Panel, columns: int = 2, title: str = "") -> tuple[float, float]:
    width, height = canvas(Figure("f", title, "", list(panels), columns)).get_size_inches()
    return float(width), float(height)


def test_a_picture_has_room_for_its_panels() -> None:
    around = 2 * LINE
    assert size(curves("a"), curves("a")) == pytest.approx((2 * PANEL_WIDTH, PANEL_HEIGHT + around))
    assert size(*[curves("a")] * 3) == pytest.approx((2 * PANEL_WIDTH, 2 * PANEL_HEIGHT + around))
    assert size(*[curves("a")] * 4) == size(*[curves("a")] * 3)
    assert size(*[curves("a")] * 3, columns=5) == pytest.approx((3 * PANEL_WIDTH, PANEL_HEIGHT + around))
    alone = ALONE * PANEL_WIDTH
    assert size(curves("a")) == pytest.approx((alone, PANEL_HEIGHT + around))
    assert size(curves("a"), curves("a"), columns=1) == pytest.approx((alone, 2 * PANEL_HEIGHT + around))
    heat = Heat("", [[0.0, 1.0], [1.0, 0.0]])
    assert size(heat) == pytest.approx((alone, ALONE * PANEL_HEIGHT + around))
    assert size(heat, curves("a")) == pytest.approx((2 * PANEL_WIDTH, PANEL_HEIGHT + around))


def test_a_picture_grows_with_titles_legends_and_categories() -> None:
    plain = size(curves("a"), curves("b"))[1]
    assert size(curves("a"), curves("b"), title="a title " * 15)[1] == pytest.approx(plain + LINE)
    assert size(curves("a", title="a title " * 6), curves("b"))[1] == pytest.approx(plain + LINE)
    both = [curves("a", title="a title " * 6), curves("b", title="a title " * 10)]
    assert size(*both)[1] == pytest.approx(plain + 2 * LINE)  # the higher one of a row
    assert size(*both, columns=1)[1] > size(curves("a"), curves("b"), columns=1)[1]
    short, long = ["a", "b", "c"], ["a long name", "another one", "and a third"]
    assert size(curves(*short), curves("z"))[1] == pytest.approx(plain + 2 * LINE)  # in two columns
    assert size(curves(*long), curves("z"))[1] == pytest.approx(plain + 3 * LINE)
    broken = "a name that is so long that it takes two lines"
    assert size(curves("a", broken), curves("z"))[1] == pytest.approx(plain + 3 * LINE)
    assert size(curves(*short), curves(*short))[1] == pytest.approx(plain + LINE)  # one legend under both

    def points(count: int) -> Points:
        return Points("", [f"{i}" for i in range(count)], [Series("a", [0.0], [0.0])])

    assert size(points(50)) == pytest.approx((50 * CATEGORY_WIDTH, PANEL_HEIGHT + 2 * LINE))
    assert size(points(5))[0] == ALONE * PANEL_WIDTH
    assert size(points(50), points(50))[0] == 2 * PANEL_WIDTH


def test_places_without_a_panel_are_empty() -> None:
    panels = [curves("a") for _ in range(3)]
    axes = canvas(Figure("f", "", "", panels)).axes
    assert [one.axison for one in axes] == [True, True, True, False]
    assert [one.axison for one in canvas(Figure("f", "", "", [])).axes] == [False]
    named = curves("a", "b")
    for high, shown in enumerate(([named, *panels[:2]], [*panels[:2], named])):
        grid = canvas(Figure("f", "", "", [*shown])).axes[0].get_gridspec()
        assert grid is not None
        ratios = np.asarray(grid.get_height_ratios(), dtype=float)
        assert ratios[high] > ratios[1 - high]  # room for the legend of this row alone


def columns(picture: Any) -> int:
    return int(picture.legends[0]._ncols)


def test_a_legend_under_the_figure_has_as_many_columns_as_fit() -> None:
    words = {f"word {i}": f"#00000{i}" for i in range(6)}
    maps: list[Panel] = [Map("", [[0.0]], ["a"], ["b"], names=dict(list(words.items())[:n])) for n in (5, 6)]
    both = canvas(Figure("f", "", "", maps))
    assert [text.get_text() for text in both.legends[0].get_texts()] == list(words)  # each word once
    assert columns(both) == 4
    assert columns(canvas(Figure("f", "", "", maps[1:]))) == 2
    few = Map("", [[0.0]], ["a"], ["b"], names={"word": "#000000"})
    assert columns(canvas(Figure("f", "", "", [few]))) == 1
    short, long = curves("a", "b", "c", "d", "e"), curves("a long name of one", "and of another", "third")
    assert columns(canvas(Figure("f", "", "", [short, short]))) == 4
    assert columns(canvas(Figure("f", "", "", [long, long]))) == 2
    assert columns(canvas(Figure("f", "", "", [short] * 3, columns=3))) == 5  # no more than there are names


def test_a_legend_stands_under_the_axes_and_their_labels() -> None:
    picture = canvas(Figure("f", "", "", [Lines("", curves("a", "b").series, "step"), curves("c", "d")]))
    picture.draw_without_rendering()
    for axes in picture.axes:
        legend, labels = axes.get_legend(), axes.xaxis.get_tightbbox()
        assert legend is not None
        assert labels is not None
        box = legend.get_window_extent()
        assert 0 < labels.y0 - box.y1 < 0.5 * picture.dpi
        assert abs(box.x0 - axes.bbox.x0) < 0.1 * axes.bbox.width


@pytest.mark.parametrize(
    ("names", "count"),
    [
        (["x" * 10, "y" * 10], 2),
        (["x" * 10, "y" * 11], 1),
        (["x", "y" * 15, "z" * 6], 1),  # the first two are one column
        (["x", "y" * 14, "z" * 6], 2),
        (["x", "y", "z", "w" * 20], 1),  # the longest of the second column counts
        (["x" * 20], 2),
        (["x" * 21], 1),
    ],
)
def test_names_stand_in_two_columns_where_they_fit(names: list[str], count: int) -> None:
    assert legend_columns([(name, Artist()) for name in names]) == count
