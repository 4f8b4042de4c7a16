"""Table 2: topics are not co-occurrence."""

from __future__ import annotations

from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.language_tables import Found, measure_models
from topicscope.paper.outcome import Outcome, verdict

PAPER = (
    "cosine same topic .468 .461 .425, co-occurring .316 .311 .323; "
    "attention .00659 .00621 .00597, .00751 .00695 .00677"
)


def measure(context: Context) -> Found:
    return measure_models(context, random=False, shuffles=0, attention_shuffles=0, matched=False)


def judge(found: Found) -> Outcome:
    from topicscope.figures import probing

    rows = found.probe.cooccurrence
    nearer = [r["cosine"]["same_topic"] > r["cosine"]["interval"][1] for r in rows]
    return Outcome(
        paper=PAPER,
        theory="-",
        measured="; ".join(
            f"{probing.short(r['model'])} {r['threshold']:g}: "
            f"cosine {r['cosine']['same_topic']:.3g} against {r['cosine']['cooccurring']:.3g}"
            for r in rows
        ),
        verdict=verdict(all(nearer)),
        reason="same-topic pairs have a higher cosine than the top co-occurring pairs "
        f"in {sum(nearer)} of {len(rows)} rows",
        tables=[probing.cooccurrence_table(rows)],
        numbers={"rows": rows},
        config=found.config,
    )


EXPERIMENT = Experiment(
    id="table2",
    claim="Embeddings encode topics beyond co-occurrence: same-topic pairs are nearer than the pairs that co-occur "
    "most.",
    rule="For every model and threshold the same-topic mean cosine is above the 95% interval of the co-occurring "
    "pairs' mean.",
    measure=measure,
    judge=judge,
    seconds=1,
    needs=("models", "corpus"),
    paper=PAPER,
)
