"""Figure 10: the value matrix with key and query trained too."""

from __future__ import annotations

from topicscope.paper.block_panels import RULE, Panel, judge_panels, measure_values
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome

PAPER = [(0.045, -0.005, 0.045), (0.455, -0.186, 0.399), (0.0075, 0, 0.004), (0.092, -0.010, 0.083)]
"""Same topic, different topic, diagonal."""


def measure(context: Context) -> list[Panel]:
    return measure_values(context, l2=0, attention=True)


def judge(found: list[Panel]) -> Outcome:
    return judge_panels(found, "figure10", "W_V with key and query trained", PAPER)


EXPERIMENT = Experiment(
    id="figure10",
    claim="With key and query trained too the value matrix is block-wise by topic.",
    rule=RULE,
    measure=measure,
    judge=judge,
    seconds=25,
)
