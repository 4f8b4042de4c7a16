"""Figure 7: the loss over alpha and beta, diagonal W_V."""

from functools import partial

from topicscope.paper.experiment import Experiment
from topicscope.paper.landscapes import judge_landscapes, measure_landscapes, minimum_number

EXPERIMENT = Experiment(
    id="figure7",
    claim="The loss landscape under diagonal W_V is lowest for beta in an interval and small alpha.",
    rule="The minima of the 110 x 110 grid equal the reference ones to five digits and lie inside Theorem 5's bounds.",
    measure=partial(measure_landscapes, kind="diagonal"),
    judge=partial(judge_landscapes, name="figure7", kind="diagonal"),
    seconds=1,
    number=minimum_number("diagonal"),
)
