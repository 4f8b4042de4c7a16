"""What Tables 1, 2 and 5 share: the user's models probed on the user's text. Without either there is nothing to run."""

from __future__ import annotations

from typing import Any

from topicscope import figures
from topicscope.language import Probe, ProbeConfig, probe
from topicscope.measure import Effect
from topicscope.paper.experiment import Context
from topicscope.paper.outcome import Outcome

CHECKPOINTS = (
    "bert-base-uncased",
    "albert-base-v2",
    "facebook/bart-base",
    "google/electra-base-discriminator",
    "roberta-base",
)
WIKIPEDIA = "hf:wikimedia/wikipedia/20231101.en"


def skipped(name: str, claim: str) -> Outcome:
    command = (
        f"topicscope reproduce {name} "
        + " ".join(f"--model {model}" for model in CHECKPOINTS)
        + f" --corpus {WIKIPEDIA}"
    )
    return Outcome(
        claim,
        "-",
        "-",
        "skipped",
        f"needs models and text; run: {command} (or your own: folders and files)",
        [],
        [],
        {},
        {},
    )


def probed(context: Context, **settings: Any) -> Probe:
    """Topics are fitted once per tokenizer on 2,500 documents; attention is read on 250 (full scale: 1,000)."""
    documents = context.pick(250, 1000)
    return probe(
        ProbeConfig(
            context.models,
            context.corpus,
            documents=documents,
            seed=context.seed,
            device="cpu",
            **settings,
        )
    )


def attention_ratio(effect: Effect | None) -> float:
    """NaN where there is none: comparisons with it are false."""
    return float("nan") if effect is None or effect.ratio is None else effect.ratio


def ratio_outcome(context: Context, name: str, kind: str, judged: tuple[str, ...]) -> Outcome:
    """Tables 1 and 5. `judged`: the measures that have to show the effect."""
    if not (context.models and context.corpus):
        return skipped(name, "same topic above different topic for Bert, Albert, Bart, Electra, Roberta")
    result = probed(context, topics_per_word=kind, cooccurrence=False)
    trained, fresh = ([row for row in result.rows if row.variant == variant] for variant in ("trained", "random"))
    weak = [
        f"{m} of {figures.short(row.model)} at {row.threshold:g}"
        for row in trained
        for m in judged
        for effect in [row.effects[m]]
        if effect is None or effect.interval is None or effect.interval[0] <= 0
    ]
    falls = all(
        ratios[0] > ratios[-1]
        for model in context.models
        for ratios in [[attention_ratio(row.attention) for row in trained if row.model == model]]
    )
    none = all(abs(attention_ratio(row.attention) - 1) < 0.01 for row in fresh)
    ok = not weak and falls and none
    reason = (
        "every effect has an interval above zero" if not weak else f"no effect: {', '.join(weak)}"
    ) + "; the attention ratio "
    reason += f"{'falls' if falls else 'does not fall'} from the smallest threshold to the largest; "
    reason += f"random models {'show none' if none else 'show an effect'} in attention"
    return Outcome(
        "; ".join(f"{figures.short(m)}: {figures.family(m, kind)}" for m in context.models),
        "-",
        "; ".join(
            f"{figures.short(row.model)} {row.threshold:g}: "
            + " ".join(figures.ratio_text(row.effects[m]) for m in figures.MAIN_MEASURES)
            for row in trained
        ),
        "reproduced" if ok else "not reproduced",
        reason,
        [figures.ratio_figure(result.rows), *figures.head_figures(result.heads)],
        [figures.ratio_table(result.rows), figures.difference_table(result.rows), figures.head_table(result.heads)],
        {"rows": [row.as_dict() for row in result.rows]},
        {"models": list(context.models), "corpus": list(context.corpus)},
    )
