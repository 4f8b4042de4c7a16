"""Table 5: ratios same topic / different topic in language models, several topics per word."""

from functools import partial

from topicscope.paper.experiment import LANGUAGE, Experiment
from topicscope.paper.language_tables import PAPER, STAND_INS, judge_ratios, measure_models, ratio_number
from topicscope.paper.small_models import GROUP

EXPERIMENT = Experiment(
    id="table5",
    claim="The same with words in several topics: attention still shows it.",
    rule="For every model and threshold attention has a 95% interval of the difference above zero; the attention ratio "
    "falls from the smallest threshold to the largest; random models have an attention ratio within .01 of 1. "
    f"{STAND_INS} There, attention must beat 95% of the shuffled topics too.",
    measure=partial(measure_models, topics_per_word=("many",), cooccurrence=False),
    judge=partial(judge_ratios, kind="many", judged=("attention",)),
    seconds=6,
    number=ratio_number((1.19, 1.70)),
    needs=("models", "corpus"),
    group=GROUP,
    paper=PAPER,
    uses=LANGUAGE,
)
