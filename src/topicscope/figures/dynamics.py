"""What a pretraining run shows, as tables and figures: Figure 5, norms and rotation of every layer, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topicscope.figures.panels import Figure, Lines, Series, TableData
from topicscope.measure import risen
from topicscope.pretraining import PretrainRun, layer_metrics, layer_names, stages_by_layer

POINTS = 500
"""Points of a curve, at most."""


@dataclass(frozen=True)
class Curves:
    """The figures of one run; those of one `setting` share a colour."""

    setting: str
    seed: int
    metrics: dict[str, np.ndarray]

    @property
    def name(self) -> str:
        return self.setting if self.setting == f"seed {self.seed}" else f"{self.setting}, seed {self.seed}"


def curves_of(run: PretrainRun, setting: str = "") -> Curves:
    return Curves(setting or f"seed {run.config.seed}", run.config.seed, run.metrics)


def layer_title(name: str) -> str:
    """'layer 0', 'decoder layer 1'."""
    part, _, number = name.rpartition("_")
    return f"{part} layer {number}".strip()


def dynamics_figure(runs: Sequence[Curves], name: str = "figure5") -> Figure:
    """Rows: norms of key, query and value, rotation of value; a column a layer; a curve a run."""
    layers = layer_names(runs[0].metrics)
    panels = []
    rows = [(f"||W_{part[0].upper()}||_F", f"norm_{part}", "Frobenius norm") for part in ("key", "query", "value")]
    for title, column, y_label in [*rows, ("rotation of W_V over 10 steps", "rotation", "(1 - cos) / 2")]:
        if not any(np.isfinite(run.metrics[f"{column}_{layer}"]).any() for run in runs for layer in layers):
            continue  # a run of fewer than ten steps has no rotation
        for layer in layers:
            series = []
            for run in runs:
                y = run.metrics[f"{column}_{layer}"]
                pick = np.unique(np.linspace(0, len(y) - 1, min(len(y), POINTS)).round().astype(int))
                pick = pick[np.isfinite(y[pick])]
                x = [float(i) for i in pick]
                series.append(Series(run.name, x, [float(f"{v:.5g}") for v in y[pick]], group=run.setting))
            panels.append(Lines(f"{title} ({layer_title(layer)})", series, "step", y_label))
    alt = "Norms of key, query and value and the rotation of value against steps, a column a layer."
    return Figure(name, "Norms and rotation, layer by layer", alt, list(panels), columns=len(layers))


def loss_figure(runs: Sequence[Curves], name: str = "figure5-loss") -> Figure:
    series = []
    for run in runs:
        y = run.metrics["loss"]
        pick = np.arange(0, len(y), max(1, len(y) // POINTS))
        pick = pick[np.isfinite(y[pick])]
        series.append(
            Series(run.name, [float(i) for i in pick], [float(f"{v:.5g}") for v in y[pick]], group=run.setting)
        )
    return Figure(
        name,
        "Loss",
        "Masked-word loss against steps.",
        [Lines("masked language modelling", series, "step", "loss")],
        columns=1,
    )


def starts(metrics: dict[str, np.ndarray], layer: str) -> dict[str, float]:
    """The step at which each norm has made a tenth of its rise; NaN where it has not risen."""
    return {
        part: risen(norm, 0.1)
        for part, norm in zip(("key", "query", "value"), layer_metrics(metrics, layer).values(), strict=True)
    }


def stage_table(runs: Sequence[Curves]) -> TableData:
    """Starts, half-way points and separation of every layer of every run."""
    rows = []
    for run in runs:
        found = stages_by_layer(run.metrics)
        for layer, stage in found.items():
            begun = starts(run.metrics, layer)
            rows.append(
                [
                    run.setting,
                    str(run.seed),
                    layer_title(layer),
                    *(steps(begun[part]) for part in ("value", "key", "query")),
                ]
                + [steps(t) for t in (stage.value, stage.key, stage.query)]
                + [
                    f"{stage.separation:.3g}{'' if levelled(run.metrics, layer) else ' *'}"
                    if np.isfinite(stage.separation)
                    else "-"
                ]
            )
    columns = [
        "setting",
        "seed",
        "layer",
        "value starts",
        "key starts",
        "query starts",
        "t50 value",
        "t50 key",
        "t50 query",
        "separation",
    ]
    note = (
        " (*: a norm still rises at the end, so that t50 depends on the length of the run)"
        if any(row[-1].endswith("*") for row in rows)
        else ""
    )
    return TableData(f"Starts (a tenth of the rise), half-way points and stage separation{note}", columns, rows)


def levelled(metrics: dict[str, np.ndarray], layer: str) -> bool:
    """Whether the norms have reached a plateau: the last tenth of the run adds less than a twentieth of the whole rise."""
    for norm in layer_metrics(metrics, layer).values():
        tenth = max(1, len(norm) // 10)
        last, before = norm[-tenth:].mean(), norm[-2 * tenth : -tenth].mean() if len(norm) > tenth else norm[0]
        if last - before > 0.05 * abs(last - norm[0]):
            return False
    return True


def steps(value: float) -> str:
    return f"{value:.0f}" if np.isfinite(value) else "never"
