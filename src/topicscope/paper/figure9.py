"""Figure 9: the value matrix under uniform attention, without L2."""

from __future__ import annotations

from topicscope.paper.block_panels import RULE, Panel, judge_panels, measure_values
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome

PAPER = [(0.049, -0.005, 0.047), (0.776, -0.250, 0.805), (0.006, 0, 0.006), (0.114, -0.016, 0.118)]
"""Same topic, different topic, diagonal."""


def measure(context: Context) -> list[Panel]:
    return measure_values(context, l2=0, attention=False)


def judge(found: list[Panel]) -> Outcome:
    return judge_panels(found, "figure9", "W_V without L2, uniform attention", PAPER)


EXPERIMENT = Experiment(
    id="figure9",
    claim="Under uniform attention without L2 the trained value matrix is block-wise by topic.",
    rule=RULE,
    measure=measure,
    judge=judge,
    seconds=12,
)
