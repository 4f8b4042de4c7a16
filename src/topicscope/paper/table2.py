"""Table 2: topics are not co-occurrence."""

from dataclasses import asdict
from functools import partial

import numpy as np

from topicscope import figures, language
from topicscope.paper.experiment import LANGUAGE, Experiment, Number, Outcome, cell, verdict
from topicscope.paper.language_tables import SMALL_DIFFERS, Found, measure_models
from topicscope.paper.small_models import GROUP

LIKELIEST = 7
"""Words per known topic: it has as many pairs as fixed pairs of the made-up texts are among the commonest."""

PAPER = (
    "cosine same topic .468 .461 .425, co-occurring .316 .311 .323; "
    "attention .00659 .00621 .00597, .00751 .00695 .00677"
)


def beyond(pairs: language.PairContrast) -> bool:
    """Whether pairs of one topic show more, with an interval above zero."""
    return pairs.margin_interval is not None and pairs.margin_interval[0] > 0


def difference(pairs: language.PairContrast) -> float | None:
    return None if pairs.same_topic is None or pairs.cooccurring is None else pairs.same_topic - pairs.cooccurring


def judge(found: Found) -> Outcome:
    rows = found.probe.cooccurrence
    nearer = [beyond(row.cosine) for row in rows]
    gaps = [gap for row in rows if (gap := difference(row.cosine)) is not None]
    return Outcome(
        paper=PAPER,
        theory="-",
        measured="; ".join(
            f"{language.short(row.model)} {row.threshold:g}: "
            f"cosine {cell(row.cosine.same_topic)} against {cell(row.cosine.cooccurring)}"
            for row in rows
        ),
        verdict=verdict(all(nearer)),
        reason="same-topic pairs have a higher cosine than the top co-occurring pairs "
        f"in {sum(nearer)} of {len(rows)} rows",
        tables=[figures.cooccurrence_table(rows)],
        numbers={"rows": [asdict(row) for row in rows]},
        config=found.config,
        ours=float(np.mean(gaps)) if gaps else None,
    )


EXPERIMENT = Experiment(
    id="table2",
    claim="Embeddings encode topics beyond co-occurrence: same-topic pairs are nearer than the pairs that co-occur "
    "most.",
    rule="For every model and threshold the same-topic mean cosine is above the 95% interval of the co-occurring "
    "pairs' mean. Without --model and --corpus: five small models, trained on made-up texts with known topics and with "
    f"fixed pairs of words of different topics; the {LIKELIEST} likeliest words of each topic.",
    measure=partial(measure_models, words=LIKELIEST, random=False, shuffles=0, matched=False),
    judge=judge,
    seconds=2,
    number=Number(
        "cosine, topic - pairs",
        "mean cosine of the word embeddings of two words of a topic minus that of the pairs that co-occur most, "
        "mean over models and thresholds",
        (0.102, 0.152),
        SMALL_DIFFERS,
    ),
    needs=("models", "corpus"),
    group=GROUP,
    paper=PAPER,
    uses=LANGUAGE,
)
