"""Pictures and numbers as files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from tests.report import samples
from topicscope.figures.panels import Figure, Heat, Lines, Series
from topicscope.report.layout import pens, placed_marks, topic_ticks
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


def test_groups_share_a_pen_and_parts_keep_their_colour() -> None:
    series = [
        Series("a", [0], [0], group="one"),
        Series("b", [0], [0], group="one"),
        Series("c", [0], [0]),
        Series("key", [0], [0]),
    ]
    chosen = pens(Figure("x", "", "", [Lines("", series)]))
    assert set(chosen) == {"one", "c", "key"}
    assert len({pen.colour for pen in chosen.values()}) == 3
    assert chosen["key"].colour == "#0072B2"


def test_more_curves_than_colours_differ_in_their_dashes() -> None:
    chosen = pens(Figure("x", "", "", [Lines("", [Series(f"{i}", [0], [0]) for i in range(20)])]))
    assert len(set(chosen.values())) == 20


def test_a_mark_off_the_edge_says_so() -> None:
    heat = Heat("", [[0.0, 1.0], [2.0, 3.0]], x=[1.0, 2.0], y=[1.0, 2.0], marks=[(1.0, 2.0, "in"), (3.0, 0.0, "out")])
    assert placed_marks(heat) == [(1.0, 2.0, "in"), (2.0, 1.0, "out (off the edge)")]
