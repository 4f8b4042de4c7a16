"""Table 1: ratios same topic / different topic in real language models, one topic per word."""

from __future__ import annotations

from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.language_tables import PAPER, Found, judge_ratios, measure_models
from topicscope.paper.outcome import Outcome


def measure(context: Context) -> Found:
    return measure_models(context, topics_per_word=("one",), cooccurrence=False)


def judge(found: Found) -> Outcome:
    return judge_ratios(found, "one", ("cosine", "dot", "attention"))


EXPERIMENT = Experiment(
    id="table1",
    claim="Words of a topic have nearer embeddings, and attend each other more, in real language models (one topic per "
    "word).",
    rule="For every model and threshold cosine, dot product and attention have a 95% interval of the difference above "
    "zero; the attention ratio falls from the smallest threshold to the largest; random models have an attention ratio "
    "within .01 of 1.",
    measure=measure,
    judge=judge,
    seconds=1,
    needs=("models", "corpus"),
    paper=PAPER,
)
