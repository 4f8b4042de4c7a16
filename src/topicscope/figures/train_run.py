"""A single training run as figures: loss, norms with their stages, matrices, and the attention map of some documents."""

from __future__ import annotations

from typing import Any

import numpy as np

from topicscope.figures.panels import Figure, Heat, Lines, Section, Series, TableData
from topicscope.measure import stage_bands
from topicscope.training import Run, RunData, word_scores

DOCUMENTS, POSITIONS = 2, 40
"""Documents whose attention is drawn, and how many of their positions."""


def run_sections(run: Run) -> list[Section]:
    figures = [
        Figure(
            "run-curves",
            "Loss and norms",
            "Loss with floors, and Frobenius norms of the trained parts, against steps.",
            [loss_panel(run), norm_panel(run)],
        )
    ]
    panels = matrix_panels(run)
    if panels:
        figures.append(
            Figure(
                "run-matrices",
                "Matrices at the end",
                "Heat maps of the trained matrices over words, ordered by topic.",
                panels,
            )
        )
    maps = attention_maps(run)
    if maps:
        figures.append(
            Figure(
                "run-attention",
                "Attention of some documents",
                "Heat maps of attention between positions: query in rows, key in columns.",
                maps,
            )
        )
    rows = [
        [key, f"{value:.6g}" if isinstance(value, float) else str(value)]
        for key, value in run.results.items()
        if not isinstance(value, dict)
    ]
    command = f"topicscope train --config {run.folder / 'config.yaml'}" if run.folder is not None else ""
    table = TableData("Results", ["figure", "value"], rows)
    return [
        Section(
            "One training run",
            f"Status: {run.results['status']}.",
            command,
            figures,
            [table],
            config=run.config.as_dict(),
        )
    ]


def thinned(run: Run, name: str) -> tuple[list[float], list[float]]:
    """At most some 500 points, and only where the figure is there."""
    values, steps = run.metrics[name], run.metrics["step"]
    there = np.flatnonzero(np.isfinite(values))
    there = there[:: max(1, len(there) // 500)]
    return steps[there].tolist(), values[there].tolist()


def loss_panel(run: Run) -> Lines:
    series = [Series("training", *thinned(run, "loss")), Series("dev", *thinned(run, "dev_loss"), markers=True)]
    levels = [(floor["loss"], name.replace("_", " ")) for name, floor in run.results.get("floors", {}).items()]
    return Lines("loss", series, "step", "loss", levels=levels)


def norm_panel(run: Run) -> Lines:
    parts = [
        name.removeprefix("norm_") for name in run.metrics if name.startswith("norm_") and not name.endswith("_bias")
    ]
    bands: list[tuple[float, float, str]] = []
    if {"key", "query", "value"} <= set(parts):
        bands = stage_bands(run.metrics)
    return Lines(
        "Frobenius norms", [Series(part, *thinned(run, f"norm_{part}")) for part in parts], "step", "norm", bands=bands
    )


def matrix_panels(run: Run) -> list[Any]:
    model, weights = run.config.topic_model, run.weights
    matrices: dict[str, np.ndarray] = {}
    one_hot = run.config.model.embedding == "one-hot"
    if not one_hot:
        matrices["W_E'W_E"] = weights["embedding"].T @ weights["embedding"]
    elif "value" in weights:
        matrices["W_V"] = weights["head"] @ weights["value"] if "head" in weights else weights["value"]
    if "key" in weights and "query" in weights:
        matrices["attention scores (query word in rows)"] = word_scores(run.weights)
    return [
        Heat(
            name,
            np.round(matrix.astype(float), 5).tolist(),
            topics=model.topics,
            words_per_topic=model.words_per_topic,
        )
        for name, matrix in matrices.items()
        if len(matrix) <= 401
    ]


def attention_maps(run: Run) -> list[Any]:
    """Unmasked dev documents, positions ordered by word so that topics stand together."""
    if "key" not in run.weights or "query" not in run.weights:
        return []
    words = RunData(run.config).dev.words
    if words is None:
        return []
    table, maps = word_scores(run.weights), []
    for number, document in enumerate(words[:DOCUMENTS], start=1):
        present = np.sort(document[document > 0])
        logits = table[np.ix_(present, present)]
        weight = np.exp(logits - logits.max(1, keepdims=True))
        shown = np.unique(np.linspace(0, len(present) - 1, POSITIONS).astype(int))  # spread over the whole document
        maps.append(
            Heat(
                f"dev document {number}, {len(shown)} of {len(present)} positions, ordered by word",
                np.round(weight / weight.sum(1, keepdims=True), 5)[np.ix_(shown, shown)].tolist(),
                "key position",
                "query position",
            )
        )
    return maps
