"""The layers of a run in its metrics: their names, their norms, their half-way steps."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from topicscope.measure import Stages, stages

PARTS = ("key", "query", "value")

Metrics = dict[str, Float[np.ndarray, " S"]]
"""One column per figure, one row per step; NaN where a step has no such figure."""


def stages_by_layer(metrics: Metrics) -> dict[str, Stages]:
    """Half-way steps of each layer's norms."""
    return {name: stages(layer_metrics(metrics, name)) for name in layer_names(metrics)}


def layer_names(metrics: Metrics) -> list[str]:
    return [name.removeprefix("norm_key_") for name in metrics if name.startswith("norm_key_")]


def layer_metrics(metrics: Metrics, name: str) -> Metrics:
    """The norms of one layer, under the names that a one-layer run has."""
    return {f"norm_{part}": metrics[f"norm_{part}_{name}"] for part in PARTS}
