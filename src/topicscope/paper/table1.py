"""Table 1: ratios same topic / different topic in language models, one topic per word."""

from functools import partial

from topicscope.paper.experiment import LANGUAGE, Experiment
from topicscope.paper.language_tables import PAPER, STAND_INS, judge_ratios, measure_models, ratio_number
from topicscope.paper.small_models import GROUP

EXPERIMENT = Experiment(
    id="table1",
    claim="In language models two words of the same topic have more similar embeddings, and attend to each other more, "
    "than words of different topics (one topic per word).",
    rule="For every model and threshold the same-topic minus different-topic means of cosine, dot product and "
    "attention have 95% intervals above zero; for every model the attention ratio is larger at the smallest threshold "
    f"than at the largest; with random weights the attention ratio is within .01 of 1. {STAND_INS} Then at most 5% of "
    "the shuffled topics may show as large an effect.",
    measure=partial(measure_models, topics_per_word=("one",), cooccurrence=False),
    judge=partial(judge_ratios, kind="one", judged=("cosine", "dot", "attention")),
    seconds=40,
    number=ratio_number((1.32, 2.14)),
    needs=("models", "corpus"),
    group=GROUP,
    paper=PAPER,
    uses=LANGUAGE,
)
