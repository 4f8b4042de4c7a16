"""Table 2: topics are not co-occurrence."""

from dataclasses import asdict
from functools import partial

from topicscope import figures, language
from topicscope.paper.experiment import Experiment, Outcome, cell, verdict
from topicscope.paper.language_tables import Found, measure_models

PAPER = (
    "cosine same topic .468 .461 .425, co-occurring .316 .311 .323; "
    "attention .00659 .00621 .00597, .00751 .00695 .00677"
)


def beyond(pairs: language.PairContrast) -> bool:
    """Whether the same-topic mean is above the interval of the co-occurring pairs."""
    return pairs.same_topic is not None and pairs.interval is not None and pairs.same_topic > pairs.interval[1]


def judge(found: Found) -> Outcome:
    rows = found.probe.cooccurrence
    nearer = [beyond(row.cosine) for row in rows]
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
    )


EXPERIMENT = Experiment(
    id="table2",
    claim="Embeddings encode topics beyond co-occurrence: same-topic pairs are nearer than the pairs that co-occur "
    "most.",
    rule="For every model and threshold the same-topic mean cosine is above the 95% interval of the co-occurring "
    "pairs' mean.",
    measure=partial(measure_models, random=False, shuffles=0, matched=False),
    judge=judge,
    seconds=1,
    needs=("models", "corpus"),
    paper=PAPER,
)
