"""Table 1: ratios same topic / different topic in real language models, one topic per word."""

from functools import partial

from topicscope.paper.experiment import Experiment
from topicscope.paper.language_tables import PAPER, judge_ratios, measure_models

EXPERIMENT = Experiment(
    id="table1",
    claim="Words of a topic have nearer embeddings, and attend each other more, in real language models (one topic per "
    "word).",
    rule="For every model and threshold cosine, dot product and attention have a 95% interval of the difference above "
    "zero; the attention ratio falls from the smallest threshold to the largest; random models have an attention ratio "
    "within .01 of 1.",
    measure=partial(measure_models, topics_per_word=("one",), cooccurrence=False),
    judge=partial(judge_ratios, kind="one", judged=("cosine", "dot", "attention")),
    seconds=1,
    needs=("models", "corpus"),
    paper=PAPER,
)
