"""When topic structure appears: a question that the paper does not ask.

In the sandbox, where topics are known; on the user's text, where they are fitted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topicscope import figures, language, pretraining, training
from topicscope.figures import TableData
from topicscope.ground import one_thread
from topicscope.paper.experiment import Context, Experiment, train_many
from topicscope.paper.outcome import Outcome, verdict

SANDBOX: dict[str, Any] = {
    "objective": {"loss": "squared-mean"},
    "optimizer": {"lr": 0.002},
    "model": {"embedding": "trained", "init_scale": 1e-3},
    "steps": 3000,
    "snapshots": "log",
}
"""The setting nearest to Figure 4, at twice its rate."""


@dataclass(frozen=True)
class Found:
    """Effects by measure and step of every sandbox run, and on the user's text where there is one."""

    sandbox: Sequence[figures.Effects]
    text: figures.Effects | None
    config: dict[str, Any]


def text_settings(context: Context) -> dict[str, Any]:
    """A transformer from near zero on the user's text."""
    shape = {"layers": 4, "heads": 4, "dim": context.pick(64, 256), "init_scale": 1e-4, "dropout": 0.0}
    return {
        "text": {"corpus": list(context.corpus)},
        "steps": context.pick(1500, 20_000),
        "model": shape,
        "optimizer": {"lr": 0.001},
        "seed": context.seed,
        "checkpoint_every": None,
        "length": context.pick(64, 128),
        "batch_size": context.pick(32, 64),
    }


def timeline_of_text(context: Context) -> tuple[figures.Effects, dict[str, Any]]:
    """The transformer probed as it learns, and its config."""
    source = language.Corpus(context.corpus)
    config = pretraining.PretrainConfig.of(text_settings(context))
    with tempfile.TemporaryDirectory() as folder, one_thread():
        run = pretraining.pretrain(config, Path(folder) / "run")
        vocabulary = language.whole_words(run.tokenizer, language.read_stop_words("english"))
        topics = language.fit_topics(source.sample(2500, context.seed), vocabulary, 100, seed=context.seed)
        texts = source.sample(context.pick(100, 250), context.seed + 1)
        checkpoints = language.find_checkpoints([str(Path(folder) / "run")])
        settings = language.Settings(seed=context.seed)
        effects = language.timeline(checkpoints, texts, language.assign(topics, 0.002), vocabulary, settings)
    return effects, config.as_dict()


def measure(context: Context) -> Found:
    runs = train_many(context, SANDBOX)
    sandbox = [training.sandbox_effects(run.config, run.snapshots, seed=context.seed) for run in runs]
    config = runs[0].config.as_dict()
    if not context.corpus:
        return Found(sandbox, None, config)
    text, text_config = timeline_of_text(context)
    return Found(sandbox, text, {"sandbox": config, "text": text_config})


def judge(found: Found) -> Outcome:
    orders = [figures.later(effects, "embedding", "attention") for effects in found.sandbox]
    holds = [order is not None and order["interval"] is not None and order["interval"][0] > 1 for order in orders]
    shown = figures.timeline_figures(found.sandbox[0], "timeline-sandbox")
    tables = [
        titled(figures.moment_table(effects), f"Sandbox, seed {seed}: when topic structure appears")
        for seed, effects in enumerate(found.sandbox)
    ]
    sandbox = zip(found.sandbox, orders, strict=True)
    numbers: dict[str, Any] = {
        "sandbox": [{"moments": figures.moments(effects), "later": order} for effects, order in sandbox]
    }
    measured = f"sandbox: {figures.sentence(found.sandbox[0])}"
    advice = "; on your own text: topicscope reproduce timeline --corpus FILES"
    if found.text is not None:
        shown += figures.timeline_figures(found.text, "timeline-text")
        tables.append(titled(figures.moment_table(found.text), "On the given text: when topic structure appears"))
        later = figures.later(found.text, "cosine", "attention")
        numbers["text"] = {"moments": figures.moments(found.text), "later": later}
        measured += f". On the given text: {figures.sentence(found.text)}"
        advice = ""
    return Outcome(
        paper="not asked; the two stages suggest that the embedding comes first",
        theory="key and query cannot move before value and embedding have",
        measured=measured,
        verdict=verdict(all(holds)),
        reason=f"attention is later in {sum(holds)} of {len(holds)} sandbox runs{advice}",
        figures=shown,
        tables=tables,
        numbers=numbers,
        config=found.config,
    )


def titled(table: TableData, title: str) -> TableData:
    return TableData(title, table.columns, table.rows)


EXPERIMENT = Experiment(
    id="timeline",
    claim="From near zero, topic structure appears in the embedding first and in the attention later.",
    rule="Half-way step: where the difference of same-topic and different-topic means has made half of its way from "
    "start to end. In every sandbox run the ratio of the half-way steps, attention over embedding, has a 95% interval "
    "(bootstrap over topics) above 1. What is seen on a given text is reported, not judged.",
    measure=measure,
    judge=judge,
    seconds=30,
    takes=("corpus",),
)
