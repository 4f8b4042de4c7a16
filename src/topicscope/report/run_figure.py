"""One picture of a training run: loss against its floors, the norms (do the two stages show?), the blocks, and the matrix itself.

draw_run(read_run("runs/demo"), Path("runs/demo"))   # figure.png and figure.svg
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from topicscope.ground import StoredRun, write

COLOURS = {"key": "#0072B2", "query": "#56B4E9", "value": "#D55E00", "embedding": "#009E73", "head": "#CC79A7"}
"""Okabe and Ito's palette: told apart by colour-blind readers."""

SYMBOLS = {"key": "W_K", "query": "W_Q", "value": "W_V", "embedding": "W_E", "head": "W_{pred}"}

STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "svg.hashsalt": "topicscope",
    "figure.constrained_layout.use": True,
}


def draw_run(run: StoredRun, folder: Path) -> list[Path]:
    """Write figure.png and figure.svg; returns their paths."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 7))
        (loss, norms), (means, matrix) = figure.subplots(2, 2)
        draw_loss(loss, run)
        draw_norms(norms, run)
        draw_means(means, run)
        draw_matrix(matrix, run)
        return save(figure, folder, "figure")


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """PNG and SVG, whole or not at all, and without dates: the same numbers give the same bytes."""
    paths = []
    for kind, note in (("png", {"Software": None}), ("svg", {"Date": None})):
        path, temporary = folder / f"{name}.{kind}", folder / f"{name}.tmp.{kind}"
        figure.savefig(temporary, dpi=130, metadata=note)
        write(path, temporary.read_bytes())
        temporary.unlink()
        paths.append(path)
    return paths


def draw_loss(axes: Axes, run: StoredRun) -> None:
    step, loss = run.metrics["step"], run.metrics["loss"]
    axes.plot(step, loss, color="#BBBBBB", linewidth=0.5, label="training, each batch")
    dev = np.isfinite(run.metrics["dev_loss"])
    axes.plot(
        step[dev], run.metrics["dev_loss"][dev], color="black", marker="o", markersize=3, linewidth=1.2, label="dev"
    )
    names = {
        "bayes": "Bayes-optimal",
        "bayes_topics": "Bayes, from topics alone",
        "least_squares": "best uniform-attention fit of dev",
    }
    for (name, floor), dash in zip(run.results.get("floors", {}).items(), ("-", "--", ":"), strict=False):
        axes.axhline(floor["loss"], color="#009E73", linestyle=dash, linewidth=1, label=names[name])
    axes.set(xlabel="step", ylabel="loss", title="Loss and its floors")
    axes.legend(fontsize=8)


def draw_norms(axes: Axes, run: StoredRun) -> None:
    for part, colour in COLOURS.items():
        if f"norm_{part}" in run.metrics:
            axes.plot(
                run.metrics["step"], run.metrics[f"norm_{part}"], color=colour, label=f"${SYMBOLS[part]}$ ({part})"
            )
    axes.set(xlabel="step", ylabel="Frobenius norm", title="Norms: which part moves first?")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=8)


def draw_means(axes: Axes, run: StoredRun) -> None:
    what = "value" if "value_same" in run.metrics else "gram"
    if f"{what}_same" not in run.metrics:
        axes.set_axis_off()
        return
    labels = {
        "same": ("same topic", "#D55E00"),
        "different": ("different topic", "#0072B2"),
        "diagonal": ("diagonal", "#999999"),
    }
    for relation, (label, colour) in labels.items():
        if f"{what}_{relation}" in run.metrics:
            axes.plot(run.metrics["step"], run.metrics[f"{what}_{relation}"], color=colour, label=label)
    name = "$W_V$" if what == "value" else "$W_E^T W_E$"
    axes.set(xlabel="step", ylabel="mean entry", title=f"{name}: means by word relation")
    axes.legend(fontsize=8)


def draw_matrix(axes: Axes, run: StoredRun) -> None:
    """The value matrix (one-hot embedding) or the embedding's Gram matrix, words in the order of their topics."""
    one_hot = run.config["model"]["embedding"] == "one-hot"
    name = "$W_V$" if one_hot else "$W_E^T W_E$"
    matrix = run.weights.get("value") if one_hot else run.weights["embedding"].T @ run.weights["embedding"]
    if one_hot and "head" in run.weights:  # the outputs of W_V are no words then; those of the head are
        name, matrix = "$W_{pred} W_V$", run.weights["head"] if matrix is None else run.weights["head"] @ matrix
    if matrix is None:
        axes.set_axis_off()
        return
    topics, v = run.config["topic_model"]["topics"], run.config["topic_model"]["words_per_topic"]
    image = axes.imshow(
        matrix,
        cmap="cividis",
        interpolation="nearest",
        vmin=np.quantile(matrix, 0.002),
        vmax=np.quantile(matrix, 0.998),
    )
    every = -(-topics // 10)
    ticks = [1 + v * t + (v - 1) / 2 for t in range(0, topics, every)]
    labels = [f"{t + 1}" for t in range(0, topics, every)]
    axes.set_xticks(ticks, labels)
    axes.set_yticks(ticks, labels)
    sides = (
        ("topic of the input word", "topic of the output word")
        if one_hot
        else ("topic of the word", "topic of the word")
    )
    axes.set(xlabel=sides[0], ylabel=sides[1], title=f"{name} at the end")
    axes.grid(visible=False)
    bar: Any = axes.figure.colorbar(image, ax=axes, shrink=0.85)
    bar.outline.set_visible(False)
