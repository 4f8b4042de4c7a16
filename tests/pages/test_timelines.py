"""Pretraining runs, timelines, and one moment of a run."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.pages import samples
from tests.pretraining import small
from topicscope.measure import Effect, Moment, Timeline, TimelineRow
from topicscope.pages import (
    Circles,
    Figure,
    Lines,
    Series,
    dynamics_figure,
    layer_title,
    loss_figure,
    moment_table,
    run_moment,
    stage_table,
    starts,
    timeline_figures,
    word_plane,
)
from topicscope.pages.timelines import (
    POINTS,
    gradient_figure,
    hue,
    levelled,
    plane_figure,
    pretrain_sections,
    timeline_sections,
    until,
)
from topicscope.pretraining import PretrainRun, PretrainRuns
from topicscope.training import Run, RunConfig, train


def ramp(start: int, end: int, steps: int = 101) -> np.ndarray:
    """Near zero until `start`, then straight up to 1 at `end`."""
    return 1e-3 + np.clip((np.arange(steps) - start) / (end - start), 0, 1)


def pretrained(layers: int = 4, seed: int = 0, **norms: np.ndarray) -> PretrainRun:
    metrics = {"loss": np.linspace(5, 3, 101)}
    for layer in range(layers):
        metrics |= {
            f"norm_key_{layer}": ramp(40, 60),
            f"norm_query_{layer}": ramp(45, 70),
            f"norm_value_{layer}": ramp(0, 20),
            f"rotation_{layer}": np.where(np.arange(101) < 10, np.nan, np.linspace(0.5, 0, 101)),
        }
    return small.run_of(metrics | norms, seed)


def series(figure: Figure, panel: int = 0) -> list[Series]:
    lines = figure.panels[panel]
    assert isinstance(lines, Lines)
    return lines.series


def test_starts_are_a_tenth_of_the_rise() -> None:
    flat = pretrained(norm_key_2=np.ones(101))
    assert starts(pretrained().metrics, "2") == {"key": 42, "query": 48, "value": 2}  # 40 + 2, 45 + 2.5, 0 + 2
    assert starts(flat.metrics, "2") == pytest.approx({"key": np.nan, "query": 48, "value": 2}, nan_ok=True)


def test_the_figure_has_a_row_per_norm_and_a_column_per_layer() -> None:
    runs = [pretrained(), pretrained(seed=1, norm_query_1=np.linspace(0, 2, 101)), pretrained()]
    labels = ["near zero, a", "near zero, a", "usual"]
    figure = dynamics_figure(runs, labels)
    assert (figure.name, figure.columns, len(figure.panels)) == ("figure5", 4, 16)
    assert [panel.title for panel in figure.panels][::5] == [
        "||W_K||_F (layer 0)",
        "||W_Q||_F (layer 1)",
        "||W_V||_F (layer 2)",
        "rotation of W_V over 10 steps (layer 3)",
    ]
    query = series(figure, 5)
    assert [(line.name, line.group) for line in query] == [
        ("near zero, a, seed 0", "near zero, a"),
        ("near zero, a, seed 1", "near zero, a"),
        ("usual, seed 0", "usual"),
    ]
    assert query[1].x == list(range(101))
    assert query[1].y == pytest.approx(np.linspace(0, 2, 101))
    assert series(figure, 12)[0].x == list(range(10, 101))  # there is no rotation of the first ten steps
    assert [(line.name, line.group) for line in series(dynamics_figure(runs[:2]))] == [
        ("seed 0", "seed 0"),
        ("seed 1", "seed 1"),
    ]
    short = [pretrained(rotation_0=np.full(101, np.nan), layers=1), pretrained(layers=1)]
    assert len(dynamics_figure(short).panels) == 4  # one run has rotations
    assert len(dynamics_figure(short[:1]).panels) == 3


def test_losses_of_training_and_held_out_documents_are_thinned() -> None:
    steps = np.arange(1300.0)
    (curve,) = series(loss_figure([small.run_of({"loss": 9 - steps / 300})]))
    assert POINTS == 500
    assert len(curve.x) == POINTS
    assert (curve.x[0], curve.x[-1]) == (0, 1299)
    assert curve.y == pytest.approx([9 - x / 300 for x in curve.x], rel=1e-4)
    assert all(value == float(f"{value:.5g}") for value in curve.y)  # pages stay small
    figure = loss_figure([pretrained()], ["mine"])
    assert (figure.name, figure.columns) == ("figure5-loss", 1)
    assert series(figure)[0].name == "mine, seed 0"
    steps = np.arange(3001.0)
    held_out = np.where(steps % 50 == 0, 8 - steps / 1000, np.nan)
    metrics = {
        "loss": np.r_[9 - steps[:-1] / 1000, np.nan],
        "held_out_loss": held_out,
        "gradient_norm": 1 / (1 + steps),
    }
    both = [small.run_of(metrics), small.run_of({"loss": metrics["loss"]}, seed=1)]
    training, other, beside = series(loss_figure(both))
    assert [line.name for line in (training, other, beside)] == ["seed 0", "seed 1", "seed 0, held out"]
    assert (beside.group, beside.markers, training.markers) == (training.group, True, False)
    assert beside.x == list(range(0, 3001, 50))
    assert beside.y == pytest.approx([8 - x / 1000 for x in beside.x])
    assert (training.x[0], training.x[-1], len(training.x)) == (0, 2999, POINTS)
    norm, none = series(gradient_figure(both))
    assert norm.y[:1] == [1.0]
    assert norm.y[-1] == pytest.approx(1 / 3001, rel=1e-4)
    assert none.x == []


@pytest.mark.parametrize(("name", "title"), [("0", "layer 0"), ("decoder_1", "decoder layer 1")])
def test_layers_are_named(name: str, title: str) -> None:
    assert layer_title(name) == title


def test_the_table_has_starts_half_way_steps_and_separations() -> None:
    still = np.concatenate([np.zeros(30), np.linspace(0, 1, 71)])
    runs = [
        pretrained(layers=2),
        pretrained(layers=2, seed=1, norm_key_1=np.ones(101), norm_query_1=np.ones(101), norm_key_0=still),
    ]
    table = stage_table(runs, ["a", "b"])
    assert table.columns == [
        *("setting", "seed", "layer", "value starts", "key starts", "query starts"),
        *("t50 value", "t50 key", "t50 query", "separation"),
    ]
    assert table.rows[0] == ["a", "0", "layer 0", "2", "42", "48", "10", "50", "58", "5"]
    assert table.rows[1] == ["a", "0", "layer 1", *table.rows[0][3:]]
    assert table.rows[2][:3] == ["b", "1", "layer 0"]
    assert table.rows[2][-1] == "5.8 *"  # its key still rises
    assert table.rows[3] == ["b", "1", "layer 1", "2", "never", "never", "10", "never", "never", "-"]
    assert table.title.endswith("(*: a norm still rises at the end, so that t50 depends on the length of the run)")
    assert "*" not in stage_table(runs[:1]).title
    assert [row[0] for row in stage_table(runs).rows] == ["seed 0", "seed 0", "seed 1", "seed 1"]


def tenths(before: float, last: float, start: float = 1.0, tenth: int = 10) -> np.ndarray:
    """A norm of ten tenths: of the last two these are the means."""
    return np.concatenate([np.full(8 * tenth, start), np.full(tenth, before), np.full(tenth, last)])


@pytest.mark.parametrize(
    ("norm", "level"),
    [
        (tenths(2.0, 2.0), True),
        (tenths(1.96, 2.0), True),  # the last tenth adds .04 of a rise of 1
        (tenths(1.94, 2.0), False),
        (tenths(1.875, 2.0), False),  # .125 of the rise
        (tenths(1.9375, 2.0, 0.75), True),  # exactly a twentieth of 1.25
        (tenths(3.0, 2.0), True),  # falling
        (tenths(1.0, 0.9), True),  # and ending below its start
        (tenths(0.88, 0.9), False),  # below its start and rising again by a fifth of the way
        (tenths(0.894, 0.9, tenth=1), False),
        (np.array([1.0, 1.5]), False),  # fewer than ten steps: the last against the one before
        (np.array([1.0, 2.0, 2.0]), True),
        (np.array([1.0]), True),
    ],
)
def test_a_norm_has_levelled_off_when_the_last_tenth_adds_little(norm: np.ndarray, level: bool) -> None:
    flat = np.ones(len(norm))
    for part in ("key", "query", "value"):
        metrics = {f"norm_{other}_0": norm if other == part else flat for other in ("key", "query", "value")}
        assert levelled(metrics, "0") is level


def test_one_run_and_several_have_one_section(tmp_path: Path) -> None:
    one, other = pretrained(), pretrained(seed=1)
    (alone,) = pretrain_sections(one)
    assert alone.command == ""
    assert alone.config == one.config.as_dict()
    assert f"start at scale {one.config.as_dict()['model']['init_scale']}." in alone.note
    assert [figure.name for figure in alone.figures] == ["figure5", "figure5-loss", "gradient-norm"]
    assert [len(table.rows) for table in alone.tables] == [4]
    stored = PretrainRun(one.config, one.results, one.metrics, tmp_path)
    command = f"topicscope pretrain --config {tmp_path / 'config.yaml'}"
    assert pretrain_sections(stored)[0].command == command
    (both,) = pretrain_sections(PretrainRuns([stored, other]))
    assert both.command == f"{command} --runs 2"
    assert both.config == one.config.as_dict()
    assert [line.name for line in series(both.figures[1])] == ["seed 0", "seed 1"]
    assert pretrain_sections(PretrainRuns([stored]))[0].command == command


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
