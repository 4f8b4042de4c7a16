"""Figure 2: the value matrix under uniform attention, with L2."""

from __future__ import annotations

from topicscope.paper.block_figures import RULE, four_panels, train_pairs, value_settings
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome


def figure2(context: Context) -> Outcome:
    means = [(0.333, -0.036, 0.331), (0.813, -0.139, 0.824), (0.0297, -0.0032, 0.0297), (0.0558, -0.0116, 0.0552)]
    panels = train_pairs(context, lambda loss, method: value_settings(context, loss, method, l2=1e-5, attention=False))
    return four_panels("figure2", "W_V with L2, uniform attention", "value", panels, means)


EXPERIMENT = Experiment(
    "figure2", "Under uniform attention with L2 the trained value matrix is block-wise by topic.", RULE, figure2, 12
)
