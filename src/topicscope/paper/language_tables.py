"""What Tables 1, 2 and 5 share: the user's models probed on the user's text, and the verdict on ratio tables."""

from dataclasses import dataclass
from typing import Any

from topicscope import figures, language
from topicscope.measure import Effect
from topicscope.paper.experiment import Context, Outcome, verdict

PAPER = "same topic above different topic for Bert, Albert, Bart, Electra, Roberta"
"""Of Tables 1 and 5, where no models are given."""


@dataclass(frozen=True)
class Found:
    """The probes of all models, and what they were given."""

    probe: language.Probe
    config: dict[str, list[str]]


def measure_models(context: Context, **settings: Any) -> Found:
    """Topics are fitted once per tokenizer on 2,500 documents; attention is read on 250 (full scale: 1,000)."""
    config = language.ProbeConfig(
        context.models,
        context.corpus,
        documents=context.pick(250, 1000),
        seed=context.seed,
        device="cpu",
        **settings,
    )
    return Found(language.probe(config), {"models": list(context.models), "corpus": list(context.corpus)})


def attention_ratio(effect: Effect | None) -> float:
    """NaN where there is none: comparisons with it are false."""
    return float("nan") if effect is None or effect.ratio is None else effect.ratio


def above_zero(effect: Effect | None) -> bool:
    """Whether the effect has an interval, and it lies above zero."""
    return effect is not None and effect.interval is not None and effect.interval[0] > 0


def judge_ratios(found: Found, kind: str, judged: tuple[str, ...]) -> Outcome:
    """Tables 1 and 5. `judged`: the measures that have to show the effect."""
    rows, heads, models = found.probe.rows, found.probe.heads, found.config["models"]
    trained, fresh = ([row for row in rows if row.variant == variant] for variant in ("trained", "random"))
    weak = [
        f"{name} of {language.short(row.model)} at {row.threshold:g}"
        for row in trained
        for name in judged
        if not above_zero(row.effects[name])
    ]
    ratios = {model: [attention_ratio(row.attention) for row in trained if row.model == model] for model in models}
    falls = all(here and here[0] > here[-1] for here in ratios.values())
    silent = all(abs(attention_ratio(row.attention) - 1) < 0.01 for row in fresh)
    return Outcome(
        paper="; ".join(f"{language.short(model)}: {figures.family(model, kind)}" for model in models),
        theory="-",
        measured="; ".join(
            f"{language.short(row.model)} {row.threshold:g}: "
            + " ".join(language.ratio_text(row.effects[name]) for name in figures.MAIN_MEASURES)
            for row in trained
        ),
        verdict=verdict(not weak and falls and silent),
        reason=(f"no effect: {', '.join(weak)}" if weak else "every effect has an interval above zero")
        + f"; the attention ratio {'falls' if falls else 'does not fall'} from the smallest threshold to the largest; "
        f"random models {'show none' if silent else 'show an effect'} in attention",
        figures=[figures.ratio_figure(rows), *figures.head_figures(heads)],
        tables=[figures.ratio_table(rows), figures.difference_table(rows), figures.head_table(heads)],
        numbers={"rows": [row.as_dict() for row in rows]},
        config=found.config,
    )
