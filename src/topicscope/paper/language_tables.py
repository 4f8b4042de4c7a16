"""What Tables 1, 2 and 5 share: models probed on text, the user's or small ones on made-up texts; and ratio tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from topicscope import language, pages
from topicscope.measure import Effect
from topicscope.paper.experiment import Context, Number, Outcome, verdict
from topicscope.paper.small_models import DECODED, probe_small, small_models

PAPER = "same topic above different topic for Bert, Albert, Bart, Electra, Roberta"
"""Of Tables 1 and 5, where a model or a text is missing."""

MADE_UP = "(made-up texts)"
STAND_INS = (
    "Without --model and --corpus: five small models of these architectures, trained on made-up texts with known "
    "topics; there is one threshold, at which each topic has all of its words, and the decoder's attention of BART is "
    "judged."
)
SMALL_DIFFERS = (
    "these are small models on made-up texts (known topics, one topic per sentence), the paper's are large ones on "
    "Wikipedia (fitted topics); --model and --corpus measure large ones"
)
OWN_DIFFERS = "models and texts are those that were given; topics, documents and thresholds need not be the paper's"


@dataclass(frozen=True)
class Found:
    """The probes of all models, what they were given, and whether topics were fitted or known."""

    probe: language.Probe
    config: dict[str, Any]
    known: bool = False  # the topics: there is one threshold

    @property
    def differs(self) -> str:
        """Why sizes may differ from the paper's where the models and texts are the user's."""
        return "" if self.known else OWN_DIFFERS


def measure_models(context: Context, words: int | None = None, **settings: Any) -> Found:
    """The user's models on the user's text; without them the small ones, `words` of each known topic (None: all).

    Topics are fitted once per tokenizer on 2,500 documents; attention is read on 250 (full scale: 1,000).
    """
    if not context.models:
        small = small_models(context)
        config = {"models": [model.name for model in small.models], "corpus": [MADE_UP], "losses": small.losses}
        return Found(probe_small(context, words, **settings), config, known=True)
    wanted = language.ProbeConfig(
        context.models,
        context.corpus,
        documents=context.pick(250, 1000),
        seed=context.seed,
        device="cpu",
        ablation=False,
        **settings,
    )
    return Found(language.probe(wanted), {"models": list(context.models), "corpus": list(context.corpus)})


def ratio_number(paper: tuple[float, float]) -> Number:
    """Of Tables 1 and 5."""
    return Number(
        "attention ratio",
        "attention of words to other words of their topic over that to words of other topics (a ratio of means), mean "
        "over models, at the smallest threshold; the paper's range is that of its five models",
        paper,
        SMALL_DIFFERS,
    )


def attention_ratio(effect: Effect | None) -> float:
    """NaN where there is none: comparisons with it are false."""
    return float("nan") if effect is None or effect.ratio is None else effect.ratio


def known(value: float) -> float | None:
    """None for NaN: a number that is not there."""
    return None if math.isnan(value) else value


def above_zero(effect: Effect | None) -> bool:
    """Whether the effect has an interval, and it lies above zero."""
    return effect is not None and effect.interval is not None and effect.interval[0] > 0


def beyond_chance(effect: Effect | None) -> bool:
    """Whether at most 5% of the shuffled topics show as much."""
    return effect is not None and effect.p_value is not None and effect.p_value <= 0.05


def attention_of(row: language.ProbeRow, *, decoded: bool) -> Effect | None:
    """The attention that is judged: that of the encoder, or of the only part. `decoded`: of a decoder where one is."""
    return row.parts.get(DECODED, row.attention) if decoded else row.attention


def judge_ratios(found: Found, kind: str, judged: tuple[str, ...]) -> Outcome:
    """Tables 1 and 5. `judged`: the measures that have to show the effect."""
    rows, heads, models = found.probe.rows, found.probe.heads, found.config["models"]
    trained, fresh = ([row for row in rows if row.variant == variant] for variant in ("trained", "random"))
    effects = [row.effects | {"attention": attention_of(row, decoded=found.known)} for row in trained]
    weak = [
        f"{name} of {language.short(row.model)} at {row.threshold:g}"
        for row, here in zip(trained, effects, strict=True)
        for name in judged
        if not above_zero(here[name]) or (found.known and not beyond_chance(here[name]))
    ]
    ratios = {
        model: [
            attention_ratio(here["attention"]) for row, here in zip(trained, effects, strict=True) if row.model == model
        ]
        for model in models
    }
    falls = found.known or all(here and here[0] > here[-1] for here in ratios.values())
    silent = all(abs(attention_ratio(attention_of(row, decoded=found.known)) - 1) < 0.01 for row in fresh)
    measures = [name for name in pages.MAIN_MEASURES if name in judged] if found.known else pages.MAIN_MEASURES
    course = f"; the attention ratio {'falls' if falls else 'does not fall'} from the smallest threshold to the largest"
    beyond = "has a 95% interval above zero" + (" and is beyond shuffled topics" if found.known else "")
    encoders = [
        f"{language.short(row.model)} {language.ratio_text(row.attention)}"
        for row in trained
        if found.known and DECODED in row.parts
    ]
    return Outcome(
        paper="ratios of cosine, dot product and attention, at the three thresholds: "
        + "; ".join(f"{language.short(model)}: {pages.family(model, kind)}" for model in models),
        theory="-",
        measured=("same-topic against different-topic mean" if found.known else "ratios of cosine, dot, attention")
        + ", by model and threshold: "
        + "; ".join(
            f"{language.short(row.model)} {row.threshold:g}: "
            + (
                ", ".join(f"{name} {difference_text(here[name])}" for name in measures)
                if found.known
                else " ".join(language.ratio_text(here[name]) for name in measures)
            )
            for row, here in zip(trained, effects, strict=True)
        ),
        verdict=verdict(not weak and falls and silent),
        reason=(f"no effect: {', '.join(weak)}" if weak else f"every effect {beyond}")
        + ("" if found.known else course)
        + f"; with random weights attention shows {'none' if silent else 'an effect'}"
        + (f"; shown, not judged: attention ratio of the encoder: {', '.join(encoders)}" if encoders else ""),
        figures=[pages.ratio_figure(rows), *pages.head_figures(heads)],
        tables=[pages.ratio_table(rows), pages.difference_table(rows), pages.head_table(heads)],
        numbers={"rows": [row.as_dict() for row in rows]},
        config=found.config,
        ours=known(float(np.mean([here[0] if here else math.nan for here in ratios.values()]))),
        differs=found.differs,
    )


def difference_text(effect: Effect | None) -> str:
    """Same-topic and different-topic mean, where a ratio says little: the latter may be zero."""
    return "-" if effect is None else f"{effect.same:.3g} against {effect.different:.3g}"
