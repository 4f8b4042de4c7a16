"""Figure 10: the value matrix with key and query trained too."""

from functools import partial

from topicscope.paper.blocks import RULE, contrast_number, judge_panels, measure_values
from topicscope.paper.experiment import Experiment

EXPERIMENT = Experiment(
    id="figure10",
    claim="With key and query trained too the value matrix is block-wise by topic.",
    rule=RULE,
    measure=partial(measure_values, l2=0, attention=True),
    judge=partial(
        judge_panels,
        name="figure10",
        what="W_V with key and query trained",
        paper_means=[(0.045, -0.005, 0.045), (0.455, -0.186, 0.399), (0.0075, 0, 0.004), (0.092, -0.010, 0.083)],
    ),
    seconds=25,
    number=contrast_number("W_V", 0.641),
)
