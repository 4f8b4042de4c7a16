"""Timelines as figures and tables, from effects built by hand."""

from __future__ import annotations

import pytest

from topicscope.measure import Effect, Moment, Timeline, TimelineRow
from topicscope.pages import Lines, moment_table, timeline_figures
from topicscope.pages.timelines import timeline_sections


def course(measure: str, *heights: float) -> list[TimelineRow]:
    """At steps 0, 1, 10, ...: an interval of .1 to either side, and none at the first step."""
    steps = [0, 1, 10, 100][: len(heights)]
    return [
        TimelineRow(
            measure,
            step,
            Effect(same=y + 1, different=1, difference=y, ratio=None, interval=(y - 0.1, y + 0.1) if step else None),
        )
        for step, y in zip(steps, heights, strict=True)
    ]


def timeline(*courses: list[TimelineRow]) -> Timeline:
    return Timeline([row for rows in courses for row in rows], [], None)


def panels(given: Timeline) -> list[list[Lines]]:
    return [
        [panel for panel in figure.panels if isinstance(panel, Lines)] for figure in timeline_figures(given, "course")
    ]


def test_a_measure_is_drawn_with_its_interval_and_with_equal_frequencies() -> None:
    given = timeline(course("cosine", 0.0, 2.0, 4.0), course("cosine_matched", 0.0, 1.0, 3.0))
    (figure,) = timeline_figures(given, "course")
    assert figure.name == "course"
    ((panel,),) = panels(given)
    assert panel.title == "embeddings: cosine"
    assert (panel.log_x, panel.log_y, panel.levels) == (True, False, [(0.0, "no effect")])
    everything, matched = panel.series
    assert (everything.name, matched.name) == ("all pairs", "equal frequencies")
    assert (everything.x, everything.y) == ([0.5, 1.0, 10.0], [0.0, 2.0, 4.0])  # step 0 stands at 1/2
    assert everything.low == [0.0, 1.9, 3.9]
    assert everything.high == [0.0, 2.1, 4.1]
    assert matched.y == [0.0, 1.0, 3.0]
    assert everything.markers


def test_layers_share_a_panel() -> None:
    ((cosine, layers),) = panels(
        timeline(course("cosine", 0.0, 1.0), course("attention.0", 0.1, 0.2), course("attention.1", 0.3, 0.4))
    )
    assert (cosine.title, layers.title) == ("embeddings: cosine", "attention, layer by layer")
    assert [(series.name, series.y) for series in layers.series] == [("layer 0", [0.1, 0.2]), ("layer 1", [0.3, 0.4])]


def test_measures_that_end_above_zero_are_compared_as_shares_of_their_end() -> None:
    rising = course("cosine", 0.0, 2.0, 0.5), course("attention", 0.25, 0.5, 0.75, 1.0)
    others = course("dot", 1.0, 0.0), course("cosine_matched", 0.0, 1.0), course("attention.0", 0.0, 1.0)
    main, (both,) = panels(timeline(*rising, *others))
    assert len(main) == 4
    assert [series.name for series in both.series] == ["embeddings: cosine", "attention"]
    words, attention = both.series
    assert words.y == [0.0, 4.0, 1.0]
    assert words.low == pytest.approx([0.0, 3.8, 0.8])
    assert words.high == pytest.approx([0.0, 4.2, 1.2])
    assert (attention.x, attention.y) == ([0.5, 1.0, 10.0, 100.0], [0.25, 0.5, 0.75, 1.0])
    assert words.markers
    assert both.log_x
    order = timeline_figures(timeline(*rising), "course")[1]
    assert (order.name, order.columns) == ("course-order", 1)
    assert len(timeline_figures(timeline(rising[0], *others))) == 1  # one alone has nothing to be compared with


def test_moments_stand_in_a_table() -> None:
    moments = [
        Moment("cosine", 10, 12.4, (9.6, 20.4), 0.001234, 0.56789, (0.5, 0.625)),
        Moment("attention.1", 0, 7.0, None, 0.0, -0.25, None),
        Moment("dot", None, None, None, 0.1, 0.2, (0.1, 0.3)),
    ]
    given = Timeline(course("cosine", 0.0, 1.0), moments, None)
    assert moment_table(given).rows == [
        ["embeddings: cosine", "10", "12 [10, 20]", "0.00123", "0.568", "[0.5, 0.625]"],
        ["attention, layer 1", "0", "7", "0", "-0.25", "-"],
        ["embeddings: dot product", "never", "-", "0.1", "0.2", "[0.1, 0.3]"],
    ]
    (section,) = timeline_sections(given)
    assert [figure.name for figure in section.figures] == ["timeline"]
    assert section.tables == [moment_table(given)]
