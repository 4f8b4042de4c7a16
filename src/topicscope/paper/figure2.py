"""Figure 2: the value matrix under uniform attention, with L2."""

from functools import partial

from topicscope.paper.blocks import RULE, contrast_number, judge_panels, measure_values
from topicscope.paper.experiment import Experiment

EXPERIMENT = Experiment(
    id="figure2",
    claim="Under uniform attention with L2 the trained value matrix is block-wise by topic.",
    rule=RULE,
    measure=partial(measure_values, l2=1e-5, attention=False),
    judge=partial(
        judge_panels,
        name="figure2",
        what="W_V with L2, uniform attention",
        paper_means=[
            (0.333, -0.036, 0.331),
            (0.813, -0.139, 0.824),
            (0.0297, -0.0032, 0.0297),
            (0.0558, -0.0116, 0.0552),
        ],
    ),
    seconds=12,
    number=contrast_number("W_V", 0.952),
)
