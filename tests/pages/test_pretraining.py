"""Pretraining runs as figures and tables."""

from pathlib import Path

import numpy as np
import pytest

from tests.pretraining import small
from topicscope.pages import Figure, Lines, Series, dynamics_figure, layer_title, loss_figure, stage_table, starts
from topicscope.pages.timelines import POINTS, gradient_figure, levelled, pretrain_sections
from topicscope.pretraining import PretrainRun, PretrainRuns


def ramp(start: int, end: int, steps: int = 101) -> np.ndarray:
    """Near zero until `start`, then straight up to 1 at `end`."""
    return 1e-3 + np.clip((np.arange(steps) - start) / (end - start), 0, 1)


def run(layers: int = 4, seed: int = 0, **norms: np.ndarray) -> PretrainRun:
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
    flat = run(norm_key_2=np.ones(101))
    assert starts(run().metrics, "2") == {"key": 42, "query": 48, "value": 2}  # 40 + 2, 45 + 2.5, 0 + 2
    assert starts(flat.metrics, "2") == pytest.approx({"key": np.nan, "query": 48, "value": 2}, nan_ok=True)


def test_the_figure_has_a_row_per_norm_and_a_column_per_layer() -> None:
    runs = [run(), run(seed=1, norm_query_1=np.linspace(0, 2, 101)), run()]
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
    short = [run(rotation_0=np.full(101, np.nan), layers=1), run(layers=1)]
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
    figure = loss_figure([run()], ["mine"])
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
    runs = [run(layers=2), run(layers=2, seed=1, norm_key_1=np.ones(101), norm_query_1=np.ones(101), norm_key_0=still)]
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
    one, other = run(), run(seed=1)
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
