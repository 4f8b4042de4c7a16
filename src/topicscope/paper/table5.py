"""Table 5: ratios same topic / different topic in real language models, several topics per word."""

from functools import partial

from topicscope.paper.experiment import Experiment
from topicscope.paper.language_tables import PAPER, judge_ratios, measure_models

EXPERIMENT = Experiment(
    id="table5",
    claim="The same with words in several topics: attention still shows it.",
    rule="For every model and threshold attention has a 95% interval of the difference above zero; the attention ratio "
    "falls from the smallest threshold to the largest; random models have an attention ratio within .01 of 1.",
    measure=partial(measure_models, topics_per_word=("many",), cooccurrence=False),
    judge=partial(judge_ratios, kind="many", judged=("attention",)),
    seconds=1,
    needs=("models", "corpus"),
    paper=PAPER,
)
