"""What Tables 1, 2 and 5 share: the user's models probed on the user's text. Without either there is nothing to run."""

from __future__ import annotations

from typing import Any

from topicscope.figures import probing
from topicscope.ground import one_thread
from topicscope.language import (
    Corpus,
    Probe,
    Settings,
    fit_topics,
    load_model,
    probe_model,
    read_stop_words,
    whole_words,
)
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
    """Topics are fitted once for each tokenizer; 2,500 documents, 250 of them for attention (full: 1,000)."""
    found, fitted = Probe(), dict[str, Any]()
    source = Corpus(context.corpus)
    models = [load_model(name) for name in context.models]
    with one_thread():
        texts = source.sample(context.pick(250, 1000), context.seed + 1)
        for model in models:
            vocabulary = whole_words(model.tokenizer, read_stop_words("english"))
            if vocabulary.fingerprint not in fitted:
                fitted[vocabulary.fingerprint] = fit_topics(
                    source.sample(2500, context.seed), vocabulary, 100, seed=context.seed
                )
            found.extend(
                probe_model(
                    model, vocabulary, texts, fitted[vocabulary.fingerprint], Settings(seed=context.seed, **settings)
                )
            )
    return found


def ratio_outcome(context: Context, name: str, kind: str, judged: tuple[str, ...]) -> Outcome:
    """Tables 1 and 5. `judged`: the measures that have to show the effect."""
    if not (context.models and context.corpus):
        return skipped(name, "same topic above different topic for Bert, Albert, Bart, Electra, Roberta")
    found = probed(context, topics_per_word=(kind,), cooccurrence=False)
    trained, fresh = ([r for r in found.rows if r["variant"] == variant] for variant in ("trained", "random"))
    weak = [
        f"{m} of {probing.short(r['model'])} at {r['threshold']:g}"
        for r in trained
        for m in judged
        if r[m] is None or r[m]["interval"] is None or r[m]["interval"][0] <= 0
    ]
    falls = all(
        ratios[0] > ratios[-1]
        for model in context.models
        for ratios in [[r["attention"]["ratio"] for r in trained if r["model"] == model and r["attention"] is not None]]
    )
    none = all(r["attention"] is not None and abs(r["attention"]["ratio"] - 1) < 0.01 for r in fresh)
    ok = not weak and falls and none
    reason = (
        "every effect has an interval above zero" if not weak else f"no effect: {', '.join(weak)}"
    ) + "; the attention ratio "
    reason += f"{'falls' if falls else 'does not fall'} from the smallest threshold to the largest; "
    reason += f"random models {'show none' if none else 'show an effect'} in attention"
    return Outcome(
        "; ".join(f"{probing.short(m)}: {probing.family(m, kind)}" for m in context.models),
        "-",
        "; ".join(
            f"{probing.short(r['model'])} {r['threshold']:g}: "
            + " ".join(probing.ratio(r[m]) for m in probing.MEASURES)
            for r in trained
        ),
        "reproduced" if ok else "not reproduced",
        reason,
        [probing.ratio_figure(found.rows), *probing.head_figures(found.heads)],
        [probing.ratio_table(found.rows), probing.difference_table(found.rows), probing.head_table(found.heads)],
        {"rows": found.rows},
        {"models": list(context.models), "corpus": list(context.corpus)},
    )
