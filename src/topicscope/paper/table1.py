"""Table 1: ratios same topic / different topic in language models, one topic per word."""

from functools import partial

from topicscope.paper.experiment import LANGUAGE, Experiment
from topicscope.paper.language_tables import PAPER, STAND_INS, judge_ratios, measure_models, ratio_number
from topicscope.paper.small_models import GROUP

EXPERIMENT = Experiment(
    id="table1",
    claim="Words of a topic have nearer embeddings, and attend each other more, in real language models (one topic per "
    "word).",
    rule="For every model and threshold cosine, dot product and attention have a 95% interval of the difference above "
    "zero; the attention ratio falls from the smallest threshold to the largest; random models have an attention ratio "
    f"within .01 of 1. {STAND_INS} There, each effect must beat 95% of the shuffled topics too.",
    measure=partial(measure_models, topics_per_word=("one",), cooccurrence=False),
    judge=partial(judge_ratios, kind="one", judged=("cosine", "dot", "attention")),
    seconds=40,
    number=ratio_number((1.32, 2.14)),
    needs=("models", "corpus"),
    group=GROUP,
    paper=PAPER,
    uses=LANGUAGE,
)
