"""Figure 8: the loss over alpha and beta, blocks W_V."""

from functools import partial

from topicscope.paper.experiment import Experiment
from topicscope.paper.landscapes import judge_landscapes, measure_landscapes, minimum_number

EXPERIMENT = Experiment(
    id="figure8",
    claim="The loss landscape under block-wise W_V is lowest along a corner of constant gamma.",
    rule="The minima equal the reference ones to five digits, lie inside Theorem 3's bounds, and the best gamma is "
    "within .5% of the reference.",
    measure=partial(measure_landscapes, kind="blocks"),
    judge=partial(judge_landscapes, name="figure8", kind="blocks"),
    seconds=1,
    number=minimum_number("blocks"),
)
