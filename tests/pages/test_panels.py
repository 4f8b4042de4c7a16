"""The data of figures: what is left out has its default, and results cannot be changed."""

from __future__ import annotations

import dataclasses

import pytest

from topicscope.pages import Figure, Heat, Judgement, Lines, Map, Points, Section, Series
from topicscope.pages.panels import banded


def test_a_panel_is_plain_unless_something_is_asked_for() -> None:
    heat, chart = Heat("", [[1.0]]), Map("", [[1.0]], ["a"], ["b"])
    assert (heat.log, heat.contours, heat.marks, heat.references, heat.kind) == (False, 0, [], [], "heat")
    assert (chart.log, chart.names, chart.kind) == (False, None, "map")
    series, lines = Series("", [0.0], [0.0]), Lines("", [])
    assert (series.low, series.high, series.group, series.markers, series.thin) == (None, None, None, False, False)
    assert (lines.log_x, lines.log_y, lines.bands, lines.levels, lines.kind) == (False, False, [], [], "lines")
    assert Points("", [], []).levels == []
    assert Figure("f", "", "", []).columns == 2


def test_a_band_is_the_curve_itself_where_there_is_no_interval() -> None:
    series = banded("a", [(1.0, 2.0, (1.5, 2.5)), (3.0, 4.0, None), (5.0, 6.0, (0.0, 0.0))], "group")
    assert (series.name, series.group, series.markers, series.thin) == ("a", "group", True, False)
    assert (series.x, series.y) == ([1.0, 3.0, 5.0], [2.0, 4.0, 6.0])
    assert (series.low, series.high) == ([1.5, 4.0, 0.0], [2.5, 4.0, 0.0])


def test_sections_and_judgements_stay_as_they_are() -> None:
    for frozen in (Section("x"), Judgement("c", "r", "p", "t", "m", "skipped", "why", 0.0)):
        name = dataclasses.fields(frozen)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(frozen, name, "other")
