"""Theorem 5: attention trained with the value matrix frozen at its diagonal optimum."""

from __future__ import annotations

from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.infinite import second_stage
from topicscope.paper.outcome import Outcome


def theorem5(context: Context) -> Outcome:
    return second_stage(context, "diagonal")


EXPERIMENT = Experiment(
    "theorem5",
    "With W_V frozen at the diagonal, words attend themselves as Theorem 5 bounds.",
    "lambda3 tau < beta < lambda4 T and alpha < lambda5 beta for every seed.",
    theorem5,
    30,
)
