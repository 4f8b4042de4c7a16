"""Figure 7: the loss over alpha and beta, diagonal W_V."""

from __future__ import annotations

from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.landscapes import Found, judge_landscapes, measure_landscapes
from topicscope.paper.outcome import Outcome


def measure(_: Context) -> Found:
    return measure_landscapes("diagonal")


def judge(found: Found) -> Outcome:
    return judge_landscapes(found, "figure7", "diagonal")


EXPERIMENT = Experiment(
    id="figure7",
    claim="The loss landscape under diagonal W_V is lowest for beta in an interval and small alpha.",
    rule="The minima of the 110 x 110 grid equal the reference ones to five digits and lie inside Theorem 5's bounds.",
    measure=measure,
    judge=judge,
    seconds=1,
)
