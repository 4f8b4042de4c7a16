"""Figure 9: the value matrix under uniform attention, without L2."""

from functools import partial

from topicscope.paper.blocks import RULE, contrast_number, judge_panels, measure_values
from topicscope.paper.experiment import Experiment

EXPERIMENT = Experiment(
    id="figure9",
    claim="Under uniform attention without L2 the trained value matrix is block-wise by topic.",
    rule=RULE,
    measure=partial(measure_values, l2=0, attention=False),
    judge=partial(
        judge_panels,
        name="figure9",
        what="W_V without L2, uniform attention",
        paper_means=[(0.049, -0.005, 0.047), (0.776, -0.250, 0.805), (0.006, 0, 0.006), (0.114, -0.016, 0.118)],
    ),
    seconds=12,
    number=contrast_number("W_V", 1.026),
)
