"""Figure 8: the loss over alpha and beta, blocks W_V."""

from __future__ import annotations

from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.landscapes import Found, judge_landscapes, measure_landscapes
from topicscope.paper.outcome import Outcome


def measure(_: Context) -> Found:
    return measure_landscapes("blocks")


def judge(found: Found) -> Outcome:
    return judge_landscapes(found, "figure8", "blocks")


EXPERIMENT = Experiment(
    id="figure8",
    claim="The loss landscape under block-wise W_V is lowest along a corner of constant gamma.",
    rule="The minima equal the reference ones to five digits, lie inside Theorem 3's bounds, and the best gamma is "
    "within .5% of the reference.",
    measure=measure,
    judge=judge,
    seconds=1,
)
