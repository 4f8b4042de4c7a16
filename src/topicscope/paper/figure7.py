"""Figure 7: the loss over alpha and beta, diagonal W_V."""

from functools import partial

from topicscope.paper.experiment import Experiment
from topicscope.paper.landscapes import judge_landscapes, measure_landscapes, minimum_number

EXPERIMENT = Experiment(
    id="figure7",
    claim="The loss landscape under diagonal W_V is lowest for beta in an interval and small alpha.",
    rule="For every tau the minimum of the 110 x 110 grid equals the reference to five decimals (difference below "
    "5e-6) and lies inside Theorem 5's bounds. The figure prints no numbers: the reference is a separate computation.",
    measure=partial(measure_landscapes, kind="diagonal"),
    judge=partial(judge_landscapes, name="figure7", kind="diagonal"),
    seconds=1,
    number=minimum_number("diagonal"),
)
