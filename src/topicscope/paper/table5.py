"""Table 5: ratios same topic / different topic in real language models, several topics per word."""

from __future__ import annotations

from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.language_tables import PAPER, Found, judge_ratios, measure_models
from topicscope.paper.outcome import Outcome


def measure(context: Context) -> Found:
    return measure_models(context, topics_per_word=("many",), cooccurrence=False)


def judge(found: Found) -> Outcome:
    return judge_ratios(found, "many", ("attention",))


EXPERIMENT = Experiment(
    id="table5",
    claim="The same with words in several topics: attention still shows it.",
    rule="For every model and threshold attention has a 95% interval of the difference above zero; the attention ratio "
    "falls from the smallest threshold to the largest; random models have an attention ratio within .01 of 1.",
    measure=measure,
    judge=judge,
    seconds=1,
    needs=("models", "corpus"),
    paper=PAPER,
)
