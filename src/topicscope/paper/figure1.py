"""Figure 1: inner products of the trained embeddings, everything trained, and their way there: blocks first, the diagonal later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topicscope.figures import Figure, Lines, Series
from topicscope.paper.block_figures import PAIRS, RULE, four_panels, optimizer, train_pairs
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome
from topicscope.training import Run


def figure1_settings(context: Context, loss: str, method: str) -> dict[str, Any]:
    """Everything trained, embedding and head tied."""
    return {
        "steps": context.pick(1500, 5000),
        "model": {"embedding": "trained"},
        "objective": {"loss": loss},
        "optimizer": optimizer(loss, method),
    }


def figure1(context: Context) -> Outcome:
    means = [(0.156, -0.016, 0.188), (6.44, -0.70, 19.0), (-0.0004, 0, 0.0398), (0.018, -0.002, 0.171)]
    panels = train_pairs(context, lambda loss, method: figure1_settings(context, loss, method))
    outcome = four_panels("figure1", "W_E'W_E, everything trained", "gram", panels, means, weak=(2,))
    lines: list[Any] = [
        path(f"{loss}, {method.upper() if method == 'sgd' else 'Adam'}", runs)
        for (loss, method), runs in zip(PAIRS, panels, strict=True)
    ]
    outcome.figures.append(
        Figure(
            "figure1-path",
            "When blocks come and go",
            "Contrast between topics and height of the diagonal of W_E'W_E against training steps.",
            lines,
        )
    )
    return outcome


def path(title: str, runs: Sequence[Run]) -> Lines:
    """Same minus different topic, and diagonal minus same topic, against the step; the band is from the lowest to the highest seed."""
    length = min(len(run.metrics["step"]) for run in runs)
    at = np.unique(np.geomspace(1, length, 150).astype(int)) - 1
    series = []
    for name, high, low in (
        ("same minus different topic", "gram_same", "gram_different"),
        ("diagonal minus same topic", "gram_diagonal", "gram_same"),
    ):
        curves = np.array([(run.metrics[high] - run.metrics[low])[at] for run in runs])
        series.append(
            Series(
                name, (at + 1.0).tolist(), *(part.tolist() for part in (curves.mean(0), curves.min(0), curves.max(0)))
            )
        )
    return Lines(title, series, "step", "difference of means", log_x=True)


EXPERIMENT = Experiment(
    "figure1",
    "Trained embeddings have inner products that are block-wise by topic (diagonal as a special case).",
    RULE
    + " 'Diagonal' counts as the claim allows: no such contrast, but a diagonal that has doubled from the start and stands above the rest, over seeds."
    " The squared-SGD panel looks untrained in the paper and does not decide.",
    figure1,
    40,
)
