"""Figure 7: the loss over alpha and beta, diagonal W_V."""

from __future__ import annotations

from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.landscapes import run_landscape
from topicscope.paper.outcome import Outcome


def figure7(_: Context) -> Outcome:
    return run_landscape("diagonal")


EXPERIMENT = Experiment(
    "figure7",
    "The loss landscape under diagonal W_V is lowest for beta in an interval and small alpha.",
    "The minima of the 110 x 110 grid equal the reference ones to five digits and lie inside Theorem 5's bounds.",
    figure7,
    1,
)
