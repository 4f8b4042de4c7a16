"""Theorem 3: attention trained with the value matrix frozen at its blocks."""

from __future__ import annotations

from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.infinite import second_stage
from topicscope.paper.outcome import Outcome


def theorem3(context: Context) -> Outcome:
    return second_stage(context, "blocks")


EXPERIMENT = Experiment(
    "theorem3",
    "With W_V frozen at blocks, the best attention inside a topic lies in Theorem 3's interval.",
    "gamma of the trained attention lies in (lambda1 (tau-1), lambda2 T) for every seed.",
    theorem3,
    30,
)
