"""One moment of training: a plane whose axes stay, and curves up to a step."""

from __future__ import annotations

import math

import numpy as np

from topicscope.pages import Circles, Lines, Series, run_moment, word_plane
from topicscope.pages.moments import hue, plane_figure, until
from topicscope.training import Run, RunConfig, train

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


def test_a_run_that_learns_nothing_of_words_has_no_plane() -> None:
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
    (circles,) = plane_figure(plane, 5).panels
    assert isinstance(circles, Circles)
    assert circles.names == ["1", "", "2", "", "3", ""]
    assert len(set(circles.colours or [])) == 3


def test_colours_of_topics_differ() -> None:
    for topics in (1, 2, 10, 60):
        assert len({hue(topic, topics) for topic in range(1, topics + 1)}) == topics
