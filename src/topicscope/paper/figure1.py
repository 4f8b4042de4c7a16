"""Figure 1: inner products of the trained embeddings, everything trained."""

from __future__ import annotations

from typing import Any

from topicscope.paper.block_figures import RULE
from topicscope.paper.experiment import Context, Experiment, four_panels, optimizer
from topicscope.paper.outcome import Outcome


def figure1_settings(context: Context, loss: str, method: str) -> dict[str, Any]:
    """Everything trained, embedding and head tied."""
    return {"steps": context.pick(1500, 5000), "model": {"embedding": "trained"}, "objective": {"loss": loss}, "optimizer": optimizer(method)}


def figure1(context: Context) -> Outcome:
    means = [(0.156, -0.016, 0.188), (6.44, -0.70, 19.0), (-0.0004, 0, 0.0398), (0.018, -0.002, 0.171)]
    return four_panels(
        context, "figure1", "W_E'W_E, everything trained", "gram", lambda loss, method: figure1_settings(context, loss, method), means, weak=(2,)
    )


EXPERIMENT = Experiment(
    "figure1",
    "Trained embeddings have inner products that are block-wise by topic (diagonal as a special case).",
    RULE + " The squared-SGD panel looks untrained in the paper and does not decide.",
    figure1,
    40,
)
