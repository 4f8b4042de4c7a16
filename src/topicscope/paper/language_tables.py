"""What Tables 1, 2 and 5 share: the user's models probed on the user's text, and the verdict on ratio tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from topicscope import language
from topicscope.ground import one_thread
from topicscope.paper.experiment import Context
from topicscope.paper.outcome import Outcome, verdict

PAPER = "same topic above different topic for Bert, Albert, Bart, Electra, Roberta"
"""Of Tables 1 and 5, where no models are given."""


@dataclass(frozen=True)
class Found:
    """The probes of all models, and what they were given."""

    probe: language.Probe
    models: list[str]
    corpus: list[str]

    @property
    def config(self) -> dict[str, Any]:
        return {"models": self.models, "corpus": self.corpus}


def measure_models(context: Context, **settings: Any) -> Found:
    """Topics are fitted once per tokenizer on 2,500 documents; attention is read on 250 (full scale: 1,000)."""
    probe = language.Probe()
    fitted: dict[str, language.Topics] = {}
    source = language.Corpus(context.corpus)
    models = [language.load_model(name) for name in context.models]
    with one_thread():
        texts = source.sample(context.pick(250, 1000), context.seed + 1)
        for model in models:
            vocabulary = language.whole_words(model.tokenizer, language.read_stop_words("english"))
            if vocabulary.fingerprint not in fitted:
                documents = source.sample(2500, context.seed)
                fitted[vocabulary.fingerprint] = language.fit_topics(documents, vocabulary, 100, seed=context.seed)
            topics, chosen = fitted[vocabulary.fingerprint], language.Settings(seed=context.seed, **settings)
            probe.extend(language.probe_model(model, vocabulary, texts, topics, chosen))
    return Found(probe, list(context.models), list(context.corpus))


def attention_ratio(effect: dict[str, Any] | None) -> float:
    """NaN where there is none: comparisons with it are false."""
    return float("nan") if effect is None or effect["ratio"] is None else effect["ratio"]


def falling(effects: list[dict[str, Any] | None]) -> bool:
    """Whether the ratio at the last threshold is below that at the first."""
    return bool(effects) and attention_ratio(effects[0]) > attention_ratio(effects[-1])


def judge_ratios(found: Found, kind: str, judged: tuple[str, ...]) -> Outcome:
    """Tables 1 and 5. `judged`: the measures that have to show the effect."""
    from topicscope.figures import probing

    rows, heads = found.probe.rows, found.probe.heads
    trained, fresh = ([r for r in rows if r["variant"] == variant] for variant in ("trained", "random"))
    weak = [
        f"{m} of {probing.short(r['model'])} at {r['threshold']:g}"
        for r in trained
        for m in judged
        if r[m] is None or r[m]["interval"] is None or r[m]["interval"][0] <= 0
    ]
    falls = all(falling([r["attention"] for r in trained if r["model"] == model]) for model in found.models)
    silent = all(abs(attention_ratio(r["attention"]) - 1) < 0.01 for r in fresh)
    return Outcome(
        paper="; ".join(f"{probing.short(model)}: {probing.family(model, kind)}" for model in found.models),
        theory="-",
        measured="; ".join(
            f"{probing.short(r['model'])} {r['threshold']:g}: "
            + " ".join(probing.ratio(r[m]) for m in probing.MEASURES)
            for r in trained
        ),
        verdict=verdict(not weak and falls and silent),
        reason=(f"no effect: {', '.join(weak)}" if weak else "every effect has an interval above zero")
        + f"; the attention ratio {'falls' if falls else 'does not fall'} from the smallest threshold to the largest; "
        f"random models {'show none' if silent else 'show an effect'} in attention",
        figures=[probing.ratio_figure(rows), *probing.head_figures(heads)],
        tables=[probing.ratio_table(rows), probing.difference_table(rows), probing.head_table(heads)],
        numbers={"rows": rows},
        config=found.config,
    )
