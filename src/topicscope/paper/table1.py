"""Table 1: ratios same topic / different topic in real language models, one topic a word."""

from __future__ import annotations

from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.language_tables import ratio_outcome
from topicscope.paper.outcome import Outcome


def table1(context: Context) -> Outcome:
    return ratio_outcome(context, "table1", "one", ("cosine", "dot", "attention"))


EXPERIMENT = Experiment(
    "table1",
    "Words of a topic have nearer embeddings, and attend each other more, in real language models (one topic a word).",
    "For every model and threshold cosine, dot product and attention have a 95% interval of the difference above zero; "
    "the attention ratio falls from the smallest threshold to the largest; random models have an attention ratio within .01 of 1.",
    table1,
    1,
    needs_models=True,
)
