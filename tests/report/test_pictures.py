"""Pictures and numbers as files."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.report import samples
from topicscope.figures.panels import Figure, Heat, Lines, Series
from topicscope.report.layout import Pen, PlacedMark, pens, placed_bands, placed_marks, topic_ticks
from topicscope.report.pictures import draw_figure, write_csv


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


@pytest.mark.parametrize(
    ("topics", "labels"),
    [(4, ["1", "2", "3", "4"]), (100, [f"{t}" for t in range(1, 101, 10)]), (15, [f"{t}" for t in range(1, 16, 2)])],
)
def test_topic_ticks_stand_in_the_middle_and_are_few(topics: int, labels: list[str]) -> None:
    ticks = topic_ticks(Heat("", [], topics=topics, words_per_topic=3), topics * 3 + 1)
    assert ticks is not None
    assert ticks[1] == labels
    assert ticks[0] == [2 + 3 * (int(label) - 1) for label in labels]


def test_an_axis_that_is_not_of_words_has_no_topic_ticks() -> None:
    assert topic_ticks(Heat("", [], topics=4, words_per_topic=3), 7) is None
    assert topic_ticks(Heat("", []), 13) is None


def test_groups_share_a_pen_and_given_colours_are_kept() -> None:
    series = [
        Series("a", [0], [0], group="one"),
        Series("b", [0], [0], group="one"),
        Series("c", [0], [0]),
        Series("key", [0], [0]),
    ]
    chosen = pens(Figure("x", "", "", [Lines("", series)], colours={"key": "#0072B2", "absent": "#D55E00"}))
    assert chosen == {"one": Pen("#D55E00", 0), "c": Pen("#009E73", 0), "key": Pen("#0072B2", 0)}


def test_more_curves_than_colours_differ_in_their_dashes() -> None:
    chosen = pens(Figure("x", "", "", [Lines("", [Series(f"{i}", [0], [0]) for i in range(20)])]))
    assert len(set(chosen.values())) == 20


def test_a_mark_off_the_edge_says_so() -> None:
    heat = Heat(
        "",
        [[0.0, 1.0], [2.0, 3.0]],
        x=[1.0, 2.0],
        y=[1.0, 2.0],
        marks=[(1.0, 2.0, "in"), (3.0, 0.0, "out"), (1.5, 9.0, "high")],
        references=[(2.0, 1.0, "here")],
    )
    assert placed_marks(heat) == [
        PlacedMark(1.0, 2.0, "in", "star", "right"),
        PlacedMark(2.0, 1.0, "out (off the edge)", "right", "left"),
        PlacedMark(1.5, 2.0, "high (off the edge)", "up", "right"),
        PlacedMark(2.0, 1.0, "here", "ring", "below"),
    ]


def test_marks_read_from_json_are_drawn_alike() -> None:
    heat = samples.landscape_figure().panels[0]
    assert isinstance(heat, Heat)
    assert placed_marks(Heat(**json.loads(json.dumps(dataclasses.asdict(heat))))) == placed_marks(heat)


def test_a_band_ends_where_the_axis_does() -> None:
    curve = [Series("", [1.0, 10.0], [0.0, 1.0])]
    bands = [(0.0, 5.0, "a"), (5.0, math.inf, "b")]
    assert placed_bands(Lines("", curve, log_x=True, bands=bands)) == [(1.0, 5.0, "a"), (5.0, 10.0, "b")]
    assert placed_bands(Lines("", curve, bands=bands)) == [(0.0, 5.0, "a"), (5.0, 10.0, "b")]
    assert placed_bands(Lines("", [], bands=bands)) == []


def test_map_csv_has_words_and_gaps(tmp_path: Path) -> None:
    (path,) = write_csv(samples.map_figure(), tmp_path)
    assert path.read_text() == "x,y,value\n0.1,2,early\n1,2,late\n10,2,\n0.1,4,late\n1,4,late\n10,4,early\n"
