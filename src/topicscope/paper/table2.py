"""Table 2: topics are not co-occurrence."""

from __future__ import annotations

from dataclasses import asdict

from topicscope import figures
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.language_tables import probed, skipped
from topicscope.paper.outcome import Outcome


def table2(context: Context) -> Outcome:
    claim = "cosine same topic .468 .461 .425, co-occurring .316 .311 .323; attention .00659 .00621 .00597, .00751 .00695 .00677"
    if not (context.models and context.corpus):
        return skipped("table2", claim)
    rows = probed(context, random=False, shuffles=0, matched=False).cooccurrence
    nearer = [
        r.cosine.same_topic is not None and r.cosine.interval is not None and r.cosine.same_topic > r.cosine.interval[1]
        for r in rows
    ]
    return Outcome(
        claim,
        "-",
        "; ".join(
            f"{figures.short(r.model)} {r.threshold:g}: cosine {r.cosine.same_topic:.3g} against {r.cosine.cooccurring:.3g}"
            for r in rows
        ),
        "reproduced" if all(nearer) else "not reproduced",
        f"same-topic pairs have a higher cosine than the top co-occurring pairs in {sum(nearer)} of {len(rows)} rows",
        [],
        [figures.cooccurrence_table(rows)],
        {"rows": [asdict(r) for r in rows]},
        {"models": list(context.models), "corpus": list(context.corpus)},
    )


EXPERIMENT = Experiment(
    "table2",
    "Embeddings encode topics beyond co-occurrence: same-topic pairs are nearer than the pairs that co-occur most.",
    "For every model and threshold the same-topic mean cosine is above the 95% interval of the co-occurring pairs' mean.",
    table2,
    1,
    needs_models=True,
)
