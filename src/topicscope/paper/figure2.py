"""Figure 2: the value matrix under uniform attention, with L2."""

from __future__ import annotations

from topicscope.paper.block_panels import RULE, Panel, judge_panels, measure_values
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome

PAPER = [(0.333, -0.036, 0.331), (0.813, -0.139, 0.824), (0.0297, -0.0032, 0.0297), (0.0558, -0.0116, 0.0552)]
"""Same topic, different topic, diagonal."""


def measure(context: Context) -> list[Panel]:
    return measure_values(context, l2=1e-5, attention=False)


def judge(found: list[Panel]) -> Outcome:
    return judge_panels(found, "figure2", "W_V with L2, uniform attention", PAPER)


EXPERIMENT = Experiment(
    id="figure2",
    claim="Under uniform attention with L2 the trained value matrix is block-wise by topic.",
    rule=RULE,
    measure=measure,
    judge=judge,
    seconds=12,
)
