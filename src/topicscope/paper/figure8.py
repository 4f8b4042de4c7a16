"""Figure 8: the loss over alpha and beta, blocks W_V."""

from functools import partial

from topicscope.paper.experiment import Experiment
from topicscope.paper.landscapes import judge_landscapes, measure_landscapes, minimum_number

EXPERIMENT = Experiment(
    id="figure8",
    claim="The loss landscape under block-wise W_V is lowest along an L-shaped curve of constant gamma.",
    rule="For every tau the minimum of the 110 x 110 grid equals the reference to five decimals (difference below "
    "5e-6) and lies inside Theorem 3's bounds, and gamma of the exact minimiser is within .5% of the reference. The "
    "figure prints no numbers: the reference is a separate computation.",
    measure=partial(measure_landscapes, kind="blocks"),
    judge=partial(judge_landscapes, name="figure8", kind="blocks"),
    seconds=1,
    number=minimum_number("blocks"),
)
