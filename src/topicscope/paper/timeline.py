"""When topic structure appears: a question that the paper does not ask. In the sandbox, where topics are known; on the user's text, where they are fitted."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from topicscope.figures import Figure, TableData, moment_table, timeline_figures
from topicscope.ground import one_thread
from topicscope.language import TimelineConfig, timeline
from topicscope.measure import Timeline
from topicscope.paper.experiment import Context, Experiment, train_many
from topicscope.paper.outcome import Outcome
from topicscope.pretraining import build_config, pretrain
from topicscope.training import sandbox_effects

SANDBOX: dict[str, Any] = {
    "objective": {"loss": "squared-mean"},
    "optimizer": {"lr": 0.002},
    "model": {"embedding": "trained", "init_scale": 1e-3},
    "steps": 3000,
    "snapshots": "log",
}
"""The setting nearest to Figure 4, at twice its rate."""


def timeline_of_text(context: Context) -> tuple[Timeline, dict[str, Any]]:
    """A transformer from near zero on the user's text, probed as it learns."""
    steps = context.pick(1500, 20_000)
    shape = {"layers": 4, "heads": 4, "dim": context.pick(64, 256), "init_scale": 1e-4, "dropout": 0.0}
    rows = {"length": 64, "batch_size": 32} if context.scale == "quick" else {"length": 128, "batch_size": 64}
    settings = {
        "text": {"corpus": list(context.corpus)},
        "steps": steps,
        "model": shape,
        "optimizer": {"lr": 0.001},
        "seed": context.seed,
        "save_every": None,
    }
    config = build_config({**settings, **rows})
    with tempfile.TemporaryDirectory() as folder, one_thread():
        run = Path(folder) / "run"
        pretrain(config, run)
        documents = context.pick(100, 250)
        found = timeline(
            TimelineConfig(
                [str(run)], context.corpus, documents=documents, threshold=0.002, seed=context.seed, device="cpu"
            )
        )
    return found, config.as_dict()


def course(one: Timeline) -> dict[str, Any]:
    """Its moments, and what is later, as JSON has them."""
    return {"moments": one.as_dict()["moments"], "later": one.as_dict()["order"]}


def timeline_(context: Context) -> Outcome:
    runs = train_many(context, SANDBOX)
    found = [Timeline.of(sandbox_effects(run.config, run.snapshots, seed=context.seed)) for run in runs]
    orders = [one.order for one in found]
    holds = [order is not None and order.interval is not None and order.interval[0] > 1 for order in orders]
    figures: list[Figure] = timeline_figures(found[0], "timeline-sandbox")
    tables: list[TableData] = []
    for run, effects in zip(runs, found, strict=True):
        table = moment_table(effects)
        table.title = f"Sandbox, seed {run.config.seed % 1000}: when topic structure appears"
        tables.append(table)
    numbers: dict[str, Any] = {"sandbox": [course(one) for one in found]}
    config, said = runs[0].config.as_dict(), f"sandbox: {found[0].answer}"
    if context.corpus:
        text, config_of_text = timeline_of_text(context)
        figures += timeline_figures(text, "timeline-text")
        tables.append(moment_table(text))
        tables[-1].title = "On the given text: when topic structure appears"
        numbers["text"], config = (
            course(text),
            {"sandbox": config, "text": config_of_text},
        )
        said += f". On the given text: {text.answer}"
    return Outcome(
        "not asked; the two stages suggest that the embedding comes first",
        "key and query cannot move before value and embedding have",
        said,
        "reproduced" if all(holds) else "not reproduced",
        f"attention is later in {sum(holds)} of {len(holds)} sandbox runs"
        + ("" if context.corpus else "; on your own text: topicscope reproduce timeline --corpus FILES"),
        figures,
        tables,
        numbers,
        config,
    )


EXPERIMENT = Experiment(
    "timeline",
    "From near zero, topic structure appears in the embedding first and in the attention later.",
    "Half-way step: where the difference of same-topic and different-topic means has made half of its way from start to end. In every sandbox run the ratio of "
    "the half-way steps, attention over embedding, has a 95% interval (bootstrap over topics) above 1. What is seen on a given text is reported, not judged.",
    timeline_,
    30,
    takes_corpus=True,
)
