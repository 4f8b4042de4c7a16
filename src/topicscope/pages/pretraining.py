"""Pretraining runs as figures and tables: Figure 5, norms and rotation of every layer at every step."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from topicscope.measure import layer_metrics, layer_names, risen
from topicscope.pages.panels import Figure, Lines, Section, Series, TableData
from topicscope.pretraining import PretrainRun, PretrainRuns, stages_by_layer

POINTS = 500  # of a curve, at most

Metrics = dict[str, Float[np.ndarray, " S"]]


def pretrain_sections(result: PretrainRun | PretrainRuns) -> list[Section]:
    runs = [result] if isinstance(result, PretrainRun) else list(result)
    folder, config = runs[0].folder, runs[0].config.as_dict()
    several = f" --runs {len(runs)}" if len(runs) > 1 else ""
    return [
        Section(
            "Do key and query start later than value?",
            f"Masked language modelling; W_K, W_Q and W_V start at scale {config['model']['init_scale']}. A norm has "
            "started when it has made a tenth of its rise from start to plateau (the mean of the run's last tenth). "
            "t50 is the step at half of the rise. Separation: the earlier t50 of key and query over that of value. "
            "Rotation: (1 - cos) / 2 between W_V now and ten steps before. Held out: documents that the run is not "
            "trained on.",
            "" if folder is None else f"topicscope pretrain --config {folder / 'config.yaml'}{several}",
            [dynamics_figure(runs), loss_figure(runs), gradient_figure(runs)],
            [stage_table(runs)],
            config=config,
        )
    ]


def dynamics_figure(runs: Sequence[PretrainRun], labels: Sequence[str] = ()) -> Figure:
    """Norms of W_K, W_Q and W_V, and rotation of W_V, layer by layer in pretraining runs (the paper's Figure 5)."""
    layers = layer_names(runs[0].metrics)
    rows = [(f"||W_{part[0].upper()}||_F", f"norm_{part}", "Frobenius norm") for part in ("key", "query", "value")]
    panels = []
    for title, column, y_label in [*rows, ("rotation of W_V over 10 steps", "rotation", "(1 - cos) / 2")]:
        row = [
            Lines(f"{title} ({layer_title(layer)})", curves(runs, labels, f"{column}_{layer}"), "step", y_label)
            for layer in layers
        ]
        if any(series.x for panel in row for series in panel.series):  # fewer than ten steps: no rotation
            panels += row
    alt = "Norms of key, query and value and the rotation of value against steps, one panel per layer."
    return Figure("figure5", "Norms and rotation, layer by layer", alt, panels, columns=len(layers))


def loss_figure(runs: Sequence[PretrainRun], labels: Sequence[str] = ()) -> Figure:
    """The loss of pretraining runs at every step; markers: the loss on held-out documents."""
    held_out = [
        replace(series, name=f"{series.name}, held out", markers=True)
        for series in curves(runs, labels, "held_out_loss")
        if series.x
    ]
    panel = Lines("masked language modelling", [*curves(runs, labels, "loss"), *held_out], "step", "loss")
    points = " Points: on documents that are held out." if held_out else ""
    return Figure("figure5-loss", "Loss", f"Masked-word loss against steps.{points}", [panel], columns=1)


def gradient_figure(runs: Sequence[PretrainRun], labels: Sequence[str] = ()) -> Figure:
    panel = Lines("norm of the gradient, before clipping", curves(runs, labels, "gradient_norm"), "step", "norm")
    return Figure("gradient-norm", "Gradient norm", "Norm of the whole gradient against steps.", [panel], columns=1)


def curves(runs: Sequence[PretrainRun], labels: Sequence[str], column: str) -> list[Series]:
    return [
        Series(
            f"{setting}, seed {run.config.seed}" if labels else setting, *thinned(run.metrics[column]), group=setting
        )
        for run, setting in zip(runs, settings(runs, labels), strict=True)
    ]


def thinned(values: Float[np.ndarray, " S"]) -> tuple[list[float], list[float]]:
    """Steps and values, where there are some; of a long curve evenly spread ones."""
    steps = np.flatnonzero(np.isfinite(values))
    pick = steps[np.unique(np.linspace(0, len(steps) - 1, min(len(steps), POINTS)).round().astype(int))]
    return [float(step) for step in pick], [float(f"{value:.5g}") for value in values[pick]]


def settings(runs: Sequence[PretrainRun], labels: Sequence[str]) -> Sequence[str]:
    return labels or [f"seed {run.config.seed}" for run in runs]


def layer_title(name: str) -> str:
    part, _, number = name.rpartition("_")
    return f"{part} layer {number}".strip()


def starts(metrics: Metrics, layer: str) -> dict[str, float]:
    """The step at which each norm of a layer has made a tenth of its rise."""
    return {name.removeprefix("norm_"): risen(norm, 0.1) for name, norm in layer_metrics(metrics, layer).items()}


def stage_table(runs: Sequence[PretrainRun], labels: Sequence[str] = ()) -> TableData:
    """When the norms of each layer rise: steps at a tenth and at half of the rise; the separation of the stages."""
    parts = ("value", "key", "query")
    rows = []
    for run, setting in zip(runs, settings(runs, labels), strict=True):
        for layer, stages in stages_by_layer(run.metrics).items():
            started = starts(run.metrics, layer)
            steps = [started[part] for part in parts] + [getattr(stages, part) for part in parts]
            mark = "" if levelled(run.metrics, layer) else " *"
            rows.append(
                [
                    *(setting, str(run.config.seed), layer_title(layer)),
                    *(f"{step:.0f}" if np.isfinite(step) else "never" for step in steps),
                    f"{stages.separation:.3g}{mark}" if np.isfinite(stages.separation) else "-",
                ]
            )
    title = "Starts (a tenth of the rise), half-way points and stage separation"
    if any(row[-1].endswith("*") for row in rows):
        title += " (*: a norm still rises at the end, so that t50 depends on the length of the run)"
    columns = [*(f"{part} starts" for part in parts), *(f"t50 {part}" for part in parts)]
    return TableData(title, ["setting", "seed", "layer", *columns, "separation"], rows)


def levelled(metrics: Metrics, layer: str) -> bool:
    """Whether the norms have reached a plateau: the last tenth of the run adds less than a twentieth of the rise."""

    def rises(norm: Float[np.ndarray, " S"]) -> bool:
        tenth = max(1, len(norm) // 10)
        last, before = norm[-tenth:].mean(), norm[-2 * tenth : -tenth].mean() if len(norm) > tenth else norm[0]
        return bool(last - before > 0.05 * abs(last - norm[0]))

    return not any(map(rises, layer_metrics(metrics, layer).values()))
