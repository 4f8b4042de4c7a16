"""Pictures and numbers as files."""

from __future__ import annotations

import csv
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pages import samples
from topicscope.pages.panels import Heat, Lines, Map, Panel, Points, Series
from topicscope.pages.parts import Figure
from topicscope.pages.pictures import (
    ALONE,
    CATEGORY_WIDTH,
    LINE,
    PANEL_HEIGHT,
    PANEL_WIDTH,
    canvas,
    draw_figure,
    legend_columns,
    write_csv,
)


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("figure", samples.figures(), ids=lambda figure: figure.name)
def test_pictures_are_written_and_the_same_twice(figure: Figure, tmp_path: Path) -> None:
    once, again = draw_figure(figure, tmp_path / "once"), draw_figure(figure, tmp_path / "again")
    assert [path.name for path in once] == [f"{figure.name}.png", f"{figure.name}.svg"]
    assert once[0].read_bytes().startswith(b"\x89PNG")
    assert b"</svg>" in once[1].read_bytes()
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]
    assert sorted(path.name for path in (tmp_path / "once").iterdir()) == [f"{figure.name}.png", f"{figure.name}.svg"]


def test_heat_csv_is_the_matrix(tmp_path: Path) -> None:
    paths = write_csv(samples.word_figure(), tmp_path)
    assert [path.name for path in paths] == [f"words-{i}.csv" for i in (1, 2, 3, 4)]
    read = {(int(row["y"]), int(row["x"])): float(row["value"]) for row in rows(paths[0])}
    assert read == {(i, j): samples.value(i, j) for i in range(samples.SIZE) for j in range(samples.SIZE)}


def test_heat_csv_has_the_positions(tmp_path: Path) -> None:
    figure = samples.plain_figure()
    read = rows(write_csv(figure, tmp_path)[1])
    assert [(float(row["x"]), int(row["y"]), float(row["value"])) for row in read] == [
        (1.0, 0, 0.1),
        (4.0, 0, 0.2),
        (1.0, 1, 0.3),
        (4.0, 1, 0.4),
        (1.0, 2, 0.5),
        (4.0, 2, 0.6),
    ]


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


def test_points_csv_names_the_categories(tmp_path: Path) -> None:
    (path,) = write_csv(samples.points_figure(), tmp_path)
    assert len(rows(path)) == 8
    assert rows(path)[1] == {"series": "same topic", "x": "Adam & friends", "y": "0.12", "low": "0.1", "high": "0.15"}


def test_map_csv_has_words_and_gaps(tmp_path: Path) -> None:
    (path,) = write_csv(samples.map_figure(), tmp_path)
    assert path.read_text() == "x,y,value\n0.1,2,early\n1,2,late\n10,2,\n0.1,4,late\n1,4,late\n10,4,early\n"


def test_a_csv_has_places_as_rows_and_columns_and_all_numbers_of_a_map(tmp_path: Path) -> None:
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


def test_panels_of_two_kinds_have_their_own_legends() -> None:
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
    assert legend_columns([(name, None) for name in names]) == count
