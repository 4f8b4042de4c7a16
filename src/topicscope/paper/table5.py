"""Table 5: ratios same topic / different topic in language models, several topics per word."""

from functools import partial

from topicscope.paper.experiment import LANGUAGE, Experiment
from topicscope.paper.language_tables import PAPER, STAND_INS, judge_ratios, measure_models, ratio_number
from topicscope.paper.small_models import GROUP

EXPERIMENT = Experiment(
    id="table5",
    claim="With several topics per word, words that share a topic still attend to each other more than words that "
    "share none.",
    rule="For every model and threshold the same-topic minus different-topic mean of attention has a 95% interval "
    "above zero; for every model the attention ratio is larger at the smallest threshold than at the largest; with "
    f"random weights it is within .01 of 1. {STAND_INS} Then at most 5% of the shuffled topics may show as large an "
    "effect.",
    measure=partial(measure_models, topics_per_word=("many",), cooccurrence=False),
    judge=partial(judge_ratios, kind="many", judged=("attention",)),
    seconds=6,
    number=ratio_number((1.19, 1.70)),
    needs=("models", "corpus"),
    group=GROUP,
    paper=PAPER,
    uses=LANGUAGE,
)
