"""Figure 10: the value matrix with key and query trained too."""

from __future__ import annotations

from topicscope.paper.block_figures import RULE, four_panels, train_pairs, value_settings
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome


def figure10(context: Context) -> Outcome:
    means = [(0.045, -0.005, 0.045), (0.455, -0.186, 0.399), (0.0075, 0, 0.004), (0.092, -0.010, 0.083)]
    panels = train_pairs(context, lambda loss, method: value_settings(context, loss, method, l2=0, attention=True))
    return four_panels("figure10", "W_V with key and query trained", "value", panels, means)


EXPERIMENT = Experiment(
    "figure10", "With key and query trained too the value matrix is block-wise by topic.", RULE, figure10, 25
)
