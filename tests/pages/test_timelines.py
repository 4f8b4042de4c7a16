"""Timelines, and one moment of a run."""

import math

import numpy as np
import pytest

from tests.pages import samples
from topicscope.measure import Effect, Moment, Timeline, TimelineRow
from topicscope.pages import Circles, Lines, Series, moment_table, run_moment, timeline_figures, word_plane
from topicscope.pages.timelines import hue, plane_figure, timeline_sections, until
from topicscope.training import Run, RunConfig, train


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


CONFIG = RunConfig.of(
    steps=20,
    topic_model={"topics": 3, "words_per_topic": 2},
    documents={"kind": "fixed", "topics_per_document": 2, "length": 20},
    data={"documents": 50, "dev_documents": 10},
    snapshots=[0, 5, 20],
    floors=False,
)


def test_a_curve_is_cut_at_the_step_and_goes_on_faintly() -> None:
    whole = Series("loss", [0.0, 5.0, 10.0], [3.0, 2.0, 1.0], [2.0, 1.0, 0.0], [4.0, 3.0, 2.0], markers=True)
    strong, faint = until(Lines("", [whole], bands=[(0.0, 5.0, "stage")]), 5).series
    assert (strong.x, strong.y, strong.low, strong.high) == ([0, 5], [3, 2], [2, 1], [4, 3])
    assert (faint.x, faint.y, faint.low, faint.thin, faint.markers) == (whole.x, whole.y, None, True, False)
    assert strong.group == faint.group == "loss"


def test_the_plane_keeps_the_distances_of_the_last_step_as_far_as_it_says() -> None:
    """By hand: three topics on the corners of a triangle, which a plane holds whole."""
    corners = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])[[0, 0, 1, 1, 2, 2]]
    last = np.zeros((2, 7))
    last[:, 1:] = corners.T
    plane = word_plane(CONFIG, {0: {"embedding": np.zeros((2, 7))}, 20: {"embedding": last}})
    assert plane is not None
    assert plane.shown == 1
    assert plane.words == [1, 2, 3, 4, 5, 6]
    assert plane.topic.tolist() == [1, 1, 2, 2, 3, 3]
    at = plane.places[20]
    assert math.isclose(np.linalg.norm(at[0] - at[2]), 4)
    assert math.isclose(np.linalg.norm(at[2] - at[4]), 5)
    start = plane.places[0]
    assert np.ptp(start, axis=0).max() < 1e-12  # all words at one place, that of the corner (0, 0)
    np.testing.assert_allclose(start[0], at[0], atol=1e-12)
    left, right, bottom, top = plane.ends
    for places in plane.places.values():
        assert left < places[:, 0].min() <= places[:, 0].max() < right
        assert bottom < places[:, 1].min() <= places[:, 1].max() < top
    assert word_plane(CONFIG, {0: {"key": np.zeros((7, 7))}}) is None
    assert word_plane(CONFIG, {0: {"value": np.full((7, 7), np.nan)}}) is None


def test_a_moment_has_words_curves_and_norms() -> None:
    run = train(CONFIG)
    assert isinstance(run, Run)
    plane = word_plane(CONFIG, run.snapshots)
    assert plane is not None
    (section,) = run_moment(run, plane, None, 5)
    assert [figure.name for figure in section.figures] == ["words", "moment-curves"]
    rows = dict(section.tables[0].rows)
    assert rows["W_V (value)"] == f"{run.metrics['norm_value'][5]:.4g}"
    strong = next(one for one in section.figures[1].panels[0].series if not one.thin)  # type: ignore[union-attr]
    assert strong.x[-1] == 5
    (circles,) = samples.panels(plane_figure(plane, 5), Circles)
    assert circles.names == ["1", "", "2", "", "3", ""]
    assert len(set(circles.colours or [])) == 3
    for topics in (1, 2, 10, 60):
        assert len({hue(topic, topics) for topic in range(1, topics + 1)}) == topics
