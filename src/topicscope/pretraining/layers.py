"""What was measured of a pretraining run, layer by layer: norms, their stages, and the content of results.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from topicscope.measure import Stages, stages
from topicscope.pretraining.config import Part

PARTS: tuple[Part, ...] = ("key", "query", "value")
FIGURES = ("loss", "lr", "gradient_norm", "held_out_loss")  # of a step, before those of its layers
Metrics = dict[str, Float[np.ndarray, " S"]]  # by figure, one row per step; NaN where a step has no such figure


def stages_by_layer(metrics: Metrics) -> dict[str, Stages]:
    """When the norms of each layer have made half of their rise.

    Args:
        metrics: Columns by name, such as norm_key_0.

    Returns:
        Of each layer the half-way steps (t50) of W_V, W_K and W_Q; NaN where a norm has not risen.

    Example:
        >>> rising, flat = np.linspace(0.0, 1.0, 101), np.zeros(101)
        >>> metrics = {"norm_value_0": rising, "norm_key_0": rising**9, "norm_query_0": rising**9}
        >>> stages_by_layer(metrics)["0"]  # the norms of key and query rise late
        Stages(value=48.0, key=89.0, query=89.0)
    """
    return {name: stages(layer_metrics(metrics, name)) for name in layer_names(metrics)}


def layer_names(metrics: Metrics) -> list[str]:
    """The layers of a run.

    Args:
        metrics: Columns by name, such as norm_key_0.

    Returns:
        Names of the layers.

    Example:
        >>> layer_names({"loss": np.zeros(1), "norm_key_0": np.zeros(1), "norm_key_1": np.zeros(1)})
        ['0', '1']
    """
    return [name.removeprefix("norm_key_") for name in metrics if name.startswith("norm_key_")]


def layer_metrics(metrics: Metrics, name: str) -> Metrics:
    """The norms of one layer, under the names that a one-layer run has.

    Args:
        metrics: Columns by name, such as norm_key_0 of layer '0'.
        name: Name of the layer, from `layer_names`.

    Returns:
        Columns norm_key, norm_query and norm_value.

    Example:
        >>> parts = ("key", "query", "value")
        >>> metrics = {f"norm_{part}_{layer}": np.full(2, int(layer)) for part in parts for layer in "01"}
        >>> {name: norm.tolist() for name, norm in layer_metrics(metrics, "1").items()}
        {'norm_key': [1, 1], 'norm_query': [1, 1], 'norm_value': [1, 1]}
    """
    return {f"norm_{part}": metrics[f"norm_{part}_{name}"] for part in PARTS}


@dataclass(frozen=True)
class PretrainResults:
    """The content of results.json: where the run ended, and the stages of every layer.

    Attributes:
        status: 'done' or 'diverged'.
        seed: Seed of the run.
        steps: Number of steps.
        first_loss: Loss at the first step.
        loss: Mean over the last 50 steps.
        held_out_loss: Loss of the final weights, on text that they were not trained on.
        gradient_norm: Before clipping, mean over the last 50 steps.
        tokens: Number of tokens read.
        epochs: Number of passes over the text.
        parameters: Number of weights.
        vocabulary: Number of tokens of the tokenizer.
        layers: Stages by layer; none of a run that diverged.

    Example:
        See `pretrain`.
    """

    status: str
    seed: int
    steps: int
    first_loss: float | None
    loss: float | None
    held_out_loss: float | None
    gradient_norm: float | None
    tokens: int
    epochs: int
    parameters: int
    vocabulary: int
    layers: dict[str, Stages]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"layers": {name: stages.as_dict() for name, stages in self.layers.items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PretrainResults:
        """What `as_dict` wrote; KeyError or TypeError where the data is something else."""
        layers = {
            name: Stages(**{part: np.nan if steps[f"t50_{part}"] is None else steps[f"t50_{part}"] for part in PARTS})
            for name, steps in data["layers"].items()
        }
        return cls(**{**data, "layers": layers})
