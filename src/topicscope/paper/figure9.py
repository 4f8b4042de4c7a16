"""Figure 9: the value matrix under uniform attention, without L2."""

from __future__ import annotations

from topicscope.paper.block_figures import RULE, value_settings
from topicscope.paper.experiment import Context, Experiment, four_panels
from topicscope.paper.outcome import Outcome


def figure9(context: Context) -> Outcome:
    means = [(0.049, -0.005, 0.047), (0.776, -0.250, 0.805), (0.006, 0, 0.006), (0.114, -0.016, 0.118)]
    return four_panels(
        context, "figure9", "W_V without L2, uniform attention", "value", lambda a, b: value_settings(context, a, b, l2=0, attention=False), means
    )


EXPERIMENT = Experiment("figure9", "Under uniform attention without L2 the trained value matrix is block-wise by topic.", RULE, figure9, 12)
