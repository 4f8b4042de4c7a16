"""Table 5: ratios same topic / different topic in real language models, several topics a word."""

from __future__ import annotations

from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.language_tables import ratio_outcome
from topicscope.paper.outcome import Outcome


def table5(context: Context) -> Outcome:
    return ratio_outcome(context, "table5", "many", ("attention",))


EXPERIMENT = Experiment(
    "table5",
    "The same with words in several topics: attention still shows it.",
    "For every model and threshold attention has a 95% interval of the difference above zero; "
    "the attention ratio falls from the smallest threshold to the largest; random models have an attention ratio within .01 of 1.",
    table5,
    1,
    needs_models=True,
)
