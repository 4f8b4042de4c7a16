"""Table 2: topics are not co-occurrence."""

from dataclasses import asdict
from functools import partial

import numpy as np

from topicscope import language, pages
from topicscope.paper.experiment import LANGUAGE, Experiment, Number, Outcome, cell, verdict
from topicscope.paper.language_tables import SMALL_DIFFERS, Found, measure_models
from topicscope.paper.small_models import GROUP

LIKELIEST = 7
"""Words per known topic: it has as many pairs as fixed pairs of the made-up texts are among the commonest."""

PAPER = (
    "same-topic against co-occurring pairs of Bert at three thresholds: cosine .468 .461 .425 against .316 .311 .323; "
    "attention .00659 .00621 .00597 against .00751 .00695 .00677"
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
        measured="mean cosine of same-topic against co-occurring pairs, by model and threshold: "
        + "; ".join(
            f"{language.short(row.model)} {row.threshold:g}: "
            f"{cell(row.cosine.same_topic)} against {cell(row.cosine.cooccurring)}"
            for row in rows
        ),
        verdict=verdict(all(nearer)),
        reason="the mean cosine of same-topic pairs is above that of the pairs that co-occur most (95%) "
        f"in {sum(nearer)} of {len(rows)} rows",
        tables=[pages.cooccurrence_table(rows)],
        numbers={"rows": [asdict(row) for row in rows]},
        config=found.config,
        ours=float(np.mean(gaps)) if gaps else None,
        differs=found.differs,
    )


EXPERIMENT = Experiment(
    id="table2",
    claim="Embeddings encode topics beyond co-occurrence: pairs of words of one topic are more similar than the pairs "
    "that co-occur most.",
    rule="For every model and threshold the mean cosine of same-topic pairs minus that of the pairs that co-occur most "
    "has a 95% interval above zero. Without --model and --corpus: five small models, trained on made-up texts with "
    f"known topics, in which some pairs of words of different topics often stand together; the {LIKELIEST} likeliest "
    "words of each topic.",
    measure=partial(measure_models, words=LIKELIEST, random=False, shuffles=0, matched=False),
    judge=judge,
    seconds=2,
    number=Number(
        "cosine, topic - pairs",
        "mean cosine of the embeddings of two words of the same topic minus that of the pairs that co-occur most, "
        "mean over models and thresholds",
        (0.102, 0.152),
        SMALL_DIFFERS,
    ),
    needs=("models", "corpus"),
    group=GROUP,
    paper=PAPER,
    uses=LANGUAGE,
)
