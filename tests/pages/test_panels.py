"""Panels as data, what pictures and page share, and who builds the sections of a result."""

import dataclasses
import importlib
import inspect
import itertools
import json
import math
from typing import Any, ClassVar

import pytest

from tests.pages import samples
from topicscope.ground import InputError, Result
from topicscope.pages import Figure, Heat, Judgement, Lines, Map, Points, Section, Series, sections
from topicscope.pages.panels import (
    BUILDERS,
    DASH_COUNT,
    PALETTE,
    Pen,
    PlacedMark,
    banded,
    dodge,
    groups,
    pens,
    placed_bands,
    placed_marks,
    topic_ticks,
)
from topicscope.theory import Setting, theorem1


def test_panels_are_plain_and_sections_stay_as_they_are() -> None:
    heat, chart = Heat("", [[1.0]]), Map("", [[1.0]], ["a"], ["b"])
    assert (heat.log, heat.contours, heat.marks, heat.references, heat.kind) == (False, 0, [], [], "heat")
    assert (chart.log, chart.names, chart.kind) == (False, None, "map")
    series, lines = Series("", [0.0], [0.0]), Lines("", [])
    assert (series.low, series.high, series.group, series.markers, series.thin) == (None, None, None, False, False)
    assert (lines.log_x, lines.log_y, lines.bands, lines.levels, lines.kind) == (False, False, [], [], "lines")
    assert Points("", [], []).levels == []
    assert Figure("f", "", "", []).columns == 2
    assert topic_ticks(Heat("", [], topics=4, words_per_topic=3), 7) is None
    assert topic_ticks(Heat("", []), 13) is None
    for frozen in (Section("x"), Judgement("c", "r", "p", "t", "m", "skipped", "why", 0.0)):
        name = dataclasses.fields(frozen)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(frozen, name, "other")


def test_a_band_is_the_curve_itself_where_there_is_no_interval() -> None:
    series = banded("a", [(1.0, 2.0, (1.5, 2.5)), (3.0, 4.0, None), (5.0, 6.0, (0.0, 0.0))], "group")
    assert (series.name, series.group, series.markers, series.thin) == ("a", "group", True, False)
    assert (series.x, series.y) == ([1.0, 3.0, 5.0], [2.0, 4.0, 6.0])
    assert (series.low, series.high) == ([1.5, 4.0, 0.0], [2.5, 4.0, 0.0])


@pytest.mark.parametrize(
    ("topics", "labels"),
    [(4, ["1", "2", "3", "4"]), (100, [f"{t}" for t in range(1, 101, 10)]), (15, [f"{t}" for t in range(1, 16, 2)])],
)
def test_topic_ticks_stand_in_the_middle_and_are_few(topics: int, labels: list[str]) -> None:
    ticks = topic_ticks(Heat("", [], topics=topics, words_per_topic=3), topics * 3 + 1)
    assert ticks is not None
    assert ticks[1] == labels
    assert ticks[0] == [2 + 3 * (int(label) - 1) for label in labels]


def test_groups_share_a_pen_and_a_place_in_the_legend() -> None:
    series = [
        Series("a", [0], [0], group="one"),
        Series("b", [0], [0], group="one"),
        Series("c", [0], [0]),
        Series("key", [0], [0]),
    ]
    chosen = pens(Figure("x", "", "", [Lines("", series)], colours={"key": "#0072B2", "absent": "#D55E00"}))
    assert chosen == {"one": Pen("#D55E00", 0), "c": Pen("#009E73", 0), "key": Pen("#0072B2", 0)}
    series = [Series("a", [0], [0], group="g"), Series("b", [0], [0]), Series("c", [0], [0], group="g")]
    assert groups(Lines("", series)) == {"g": series[0], "b": series[1]}
    assert groups(Points("", [], series[:1])) == {"g": series[0]}


def test_labels_of_marks_stand_towards_the_middle() -> None:
    z = [[0.0] * 5] * 2
    places = [1.0, 10.0, 100.0, 1000.0, 10000.0]
    marks = [(x, 5.0, f"{x:g}") for x in (1.0, 100.0, 101.0, 10000.0)]
    for log, sides in ((True, ["right", "right", "left", "left"]), (False, ["right", "right", "right", "left"])):
        placed = placed_marks(Heat("", z, x=places, y=[1.0, 9.0], log=log, marks=marks))
        assert [mark.label_at for mark in placed] == sides
        assert [(mark.x, mark.y, mark.label, mark.shape) for mark in placed] == [(*mark, "star") for mark in marks]
    (middle,) = placed_marks(Heat("", z, x=[0.0, 1.0, 2.0, 3.0, 8.0], marks=[(4.5, 0.0, "")]))
    assert middle.label_at == "left"  # of 0 to 8, not of the places
    heat = samples.landscape_figure().panels[0]
    assert isinstance(heat, Heat)
    assert placed_marks(Heat(**json.loads(json.dumps(dataclasses.asdict(heat))))) == placed_marks(heat)


def test_what_lies_outside_moves_to_the_edge_and_its_shape_says_where_it_went() -> None:
    outside = [(-1.0, 1.0, "l"), (3.0, 1.0, "r"), (1.0, -1.0, "d"), (1.0, 3.0, "u"), (-1.0, 9.0, "c")]
    heat = Heat("", [[0.0] * 3] * 3, marks=outside, references=[*outside[1:2], (2.0, 2.0, "edge")])
    assert placed_marks(heat) == [
        PlacedMark(0.0, 1.0, "l (off the edge)", "left", "right"),
        PlacedMark(2.0, 1.0, "r (off the edge)", "right", "left"),
        PlacedMark(1.0, 0.0, "d (off the edge)", "down", "right"),
        PlacedMark(1.0, 2.0, "u (off the edge)", "up", "right"),
        PlacedMark(0.0, 2.0, "c (off the edge)", "left", "right"),
        PlacedMark(2.0, 1.0, "r (off the edge)", "right", "left"),
        PlacedMark(2.0, 2.0, "edge", "ring", "below"),
    ]
    falling = Heat("", [[0.0] * 2] * 2, x=[5.0, 1.0], y=[4.0, 2.0], marks=[(3.0, 3.0, "in"), (6.0, 3.0, "out")])
    assert [(mark.x, mark.shape) for mark in placed_marks(falling)] == [(3.0, "star"), (5.0, "right")]


def test_bands_of_points_and_of_no_curve_are_none() -> None:
    assert placed_bands(Points("", ["a"], [Series("", [0.0], [0.0])])) == []
    curves = [Series("", [2.0, math.inf], [0.0, 0.0]), Series("", [-1.0, 0.0, 7.0], [0.0] * 3)]
    bands = [(-math.inf, math.inf, "all"), (0.0, 3.0, "from zero"), (-2.0, -1.0, "below")]
    assert placed_bands(Lines("", curves, bands=bands)) == [(-1.0, 7.0, "all"), (0.0, 3.0, "from zero"), bands[2]]
    log = placed_bands(Lines("", curves, log_x=True, bands=bands))
    assert log == [(2.0, 7.0, "all"), (2.0, 3.0, "from zero"), (2.0, 7.0, "below")]
    assert placed_bands(Lines("", [Series("", [0.0], [0.0])], log_x=True, bands=bands)) == []


def test_pens_go_through_the_colours_then_through_the_dashes() -> None:
    count = len(PALETTE) * DASH_COUNT + 1
    chosen = pens(Figure("x", "", "", [Lines("", [Series(f"{i}", [0], [0]) for i in range(count)])]))
    expected = [Pen(colour, dash) for dash in range(DASH_COUNT) for colour in PALETTE]
    assert list(chosen.values()) == [*expected, expected[0]]  # then from the start
    taken = dict(zip("abcdefg", PALETTE, strict=True))
    series = [Series(name, [0], [0]) for name in "abcdefgh"]
    full = pens(Figure("x", "", "", [Heat("", [[0.0]]), Map("", [[0.0]], ["a"], ["b"]), Lines("", series)], 2, taken))
    assert full == {name: Pen(colour, 0) for name, colour in taken.items()} | {"h": Pen(PALETTE[0], 0)}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 10])
def test_points_of_one_category_stand_around_its_tick(count: int) -> None:
    places = [dodge(i, count) for i in range(count)]
    assert sum(places) == pytest.approx(0)
    steps = [right - left for left, right in itertools.pairwise(places)]
    assert steps == pytest.approx([min(0.18, 0.7 / count)] * (count - 1))


def test_names_are_ticks_before_topics_are() -> None:
    heat = Heat("", [], topics=1, words_per_topic=1, labels=["a", "b"])
    assert topic_ticks(heat, 2) == ([0.0, 1.0], ["a", "b"])
    assert topic_ticks(Heat("", [], topics=2), 3) is None
    assert topic_ticks(Heat("", [], words_per_topic=2), 3) is None
    assert topic_ticks(Heat("", [], topics=11, words_per_topic=2), 23) == (
        [1.5 + 4 * t for t in range(6)],
        ["1", "3", "5", "7", "9", "11"],
    )


class Unknown(Result):
    """A result of a kind that the registry does not have."""

    kind: ClassVar[str] = "nothing"

    def summary(self) -> list[str]:
        return []

    def table(self) -> Any:
        return None

    def _about(self) -> str:
        return ""


def test_a_kind_without_sections_is_refused_in_one_line() -> None:
    for call in (Unknown().sections, lambda: sections(Unknown())):
        with pytest.raises(InputError, match=r"^no figures for results of kind 'nothing'; expected one of: .*\btrain"):
            call()


def test_sections_are_those_of_the_kind() -> None:
    theorem = theorem1(Setting.of(3, 4, 2))
    assert [section.title for section in sections(theorem)] == ["Theorem 1"]


@pytest.mark.parametrize("kind", BUILDERS)
def test_every_kind_has_a_builder_that_takes_one_result(kind: str) -> None:
    module, _, function = BUILDERS[kind].rpartition(".")
    builder = getattr(importlib.import_module(module, "topicscope.pages"), function)
    assert len(inspect.signature(builder).parameters) == 1
