"""Figure 5's verdict can fail, layer by layer; and the picture has one column per layer."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pretraining import small
from topicscope.figures import Figure, Lines, Series, dynamics_figure, loss_figure, stage_table, starts
from topicscope.paper.experiment import Context
from topicscope.paper.figure5 import Curves, base_of, outcome_of, settings_of
from topicscope.paper.registry import EXPERIMENTS


def ramp(start: int, end: int, steps: int = 101) -> np.ndarray:
    """Near zero until `start`, then straight up to 1 at `end`."""
    return 1e-3 + np.clip((np.arange(steps) - start) / (end - start), 0, 1)


def curves(setting: str, late: int = 40, layers: int = 4, seed: int = 0) -> Curves:
    metrics = {"loss": np.linspace(5, 3, 101)}
    for layer in range(layers):
        metrics |= {
            f"norm_key_{layer}": ramp(late, 60),
            f"norm_query_{layer}": ramp(late + 5, 70),
            f"norm_value_{layer}": ramp(0, 20),
        }
        metrics |= {f"rotation_{layer}": np.linspace(0.5, 0, 101)}
    return Curves(setting, small.run_of(metrics, seed))


def lines(figure: Figure) -> list[Series]:
    [panel] = figure.panels
    assert isinstance(panel, Lines)
    return panel.series


def test_starts_are_a_tenth_of_the_rise() -> None:
    found = starts(curves("near zero").metrics, "2")
    assert found == {"key": 42, "query": 48, "value": 2}  # 40 + 2, 45 + 2.5, 0 + 2


def test_two_stages_in_every_layer_or_not_reproduced() -> None:
    usual = curves("usual start, AdamW", late=0)
    good = outcome_of([curves("near zero, a"), curves("near zero, b", seed=1), usual], {}, "text")
    assert good.verdict == "reproduced"
    assert "near zero, a: 4 of 4 layers" in good.measured
    one = curves("near zero, a")
    one.metrics["norm_query_3"] = ramp(0, 15)  # one matrix of one layer of one run is first
    bad = outcome_of([one, curves("near zero, b"), usual], {}, "text")
    assert bad.verdict == "not reproduced"
    assert "near zero, a, seed 0, layer 3" in bad.reason
    never = curves("near zero, a")
    never.metrics["norm_key_0"] = np.full(101, 1e-3)  # a norm that never rises has not started later
    assert outcome_of([never, usual], {}, "text").verdict == "not reproduced"
    early = curves("usual start, AdamW", late=0)
    early.metrics["norm_key_0"] = ramp(0, 5)
    assert (
        outcome_of([curves("near zero, a"), early], {}, "text").verdict == "reproduced"
    )  # the usual start is not judged


def test_the_figure_is_four_by_four() -> None:
    runs = [curves("near zero, a").run, curves("near zero, a", seed=1).run, curves("usual").run]
    labels = ["near zero, a", "near zero, a", "usual"]
    figure = dynamics_figure(runs, labels)
    assert figure.columns == 4
    assert len(figure.panels) == 16
    assert [panel.title for panel in figure.panels][::5] == [
        "||W_K||_F (layer 0)",
        "||W_Q||_F (layer 1)",
        "||W_V||_F (layer 2)",
        "rotation of W_V over 10 steps (layer 3)",
    ]
    assert [(line.name, line.group) for line in lines(loss_figure(runs, labels))] == [
        ("near zero, a, seed 0", "near zero, a"),
        ("near zero, a, seed 1", "near zero, a"),
        ("usual, seed 0", "usual"),
    ]
    assert [line.name for line in lines(loss_figure(runs[:2]))] == ["seed 0", "seed 1"]
    table = stage_table(runs[:1], labels[:1])
    assert len(table.rows) == 4
    assert table.rows[0][:6] == ["near zero, a", "0", "layer 0", "2", "42", "48"]
    assert table.rows[0][6:] == ["10", "50", "58", "5"]  # half-way, and the earlier of key and query over value


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_figure_5_has_two_settings_from_near_zero_and_the_usual_start(scale: str) -> None:
    context = Context(scale)  # type: ignore[arg-type]
    settings = settings_of(context)
    assert [s["model"]["init_scale"] for s in settings.values()] == [1e-4, 1e-4, "usual"]
    assert len({s["optimizer"]["lr"] for s in settings.values()}) == 2
    assert base_of(context)["model"]["layers"] == base_of(context)["model"]["heads"] == 4


def test_the_users_text_is_in_no_reference() -> None:
    mine, none = Context(corpus=("a.txt",)), Context()
    for name in ("figure5", "timeline"):
        assert EXPERIMENTS[name].judged(none)
        assert not EXPERIMENTS[name].judged(mine)
        assert EXPERIMENTS[name].key(mine) != EXPERIMENTS[name].key(none)
    assert EXPERIMENTS["figure4"].judged(mine)
    assert EXPERIMENTS["figure4"].key(mine) == EXPERIMENTS["figure4"].key(none)
