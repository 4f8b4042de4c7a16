"""Figure 9: the value matrix under uniform attention, without L2."""

from __future__ import annotations

from topicscope.paper.block_figures import RULE, four_panels, train_pairs, value_settings
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome


def figure9(context: Context) -> Outcome:
    means = [(0.049, -0.005, 0.047), (0.776, -0.250, 0.805), (0.006, 0, 0.006), (0.114, -0.016, 0.118)]
    panels = train_pairs(context, lambda loss, method: value_settings(context, loss, method, l2=0, attention=False))
    return four_panels("figure9", "W_V without L2, uniform attention", "value", panels, means)


EXPERIMENT = Experiment(
    "figure9", "Under uniform attention without L2 the trained value matrix is block-wise by topic.", RULE, figure9, 12
)
