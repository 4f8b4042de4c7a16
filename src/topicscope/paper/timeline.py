"""When topic structure appears: a question that the paper does not ask.

In the sandbox, where topics are known; on the user's text, where they are fitted.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from topicscope import language, measure as measures, pages, pretraining, training
from topicscope.ground import one_thread
from topicscope.paper.experiment import LANGUAGE, Context, Experiment, Number, Outcome, train_many, verdict


@dataclass(frozen=True)
class Timelines:
    sandbox: Sequence[measures.Timeline]
    text: measures.Timeline | None
    config: dict[str, object]


def timeline_of_text(context: Context) -> tuple[measures.Timeline, pretraining.PretrainConfig]:
    config = pretraining.PretrainConfig.of(
        {
            "text": {"corpus": list(context.corpus)},
            "steps": context.pick(1500, 20_000),
            "model": {"layers": 4, "heads": 4, "dim": context.pick(64, 256), "init_scale": 1e-4, "dropout": 0.0},
            "optimizer": {"lr": 0.001},
            "seed": context.seed,
            "checkpoint_every": None,
            "held_out": {"share": 0.0},  # all of the text is trained on, as it is probed
            "length": context.pick(64, 128),
            "batch_size": context.pick(32, 64),
        }
    )
    with tempfile.TemporaryDirectory() as folder, one_thread():
        run = str(Path(folder) / "run")
        pretraining.pretrain(config, run)
        probed = language.TimelineConfig(
            run, context.corpus, documents=context.pick(100, 250), threshold=0.002, seed=context.seed, device="cpu"
        )
        return language.timeline(probed), config


def measure(context: Context) -> Timelines:
    """The sandbox in the setting nearest to Figure 4, at twice its rate."""
    runs = train_many(
        context,
        objective={"loss": "squared-mean"},
        optimizer={"lr": 0.002},
        model={"embedding": "trained", "init_scale": 1e-3},
        steps=3000,
        snapshots="log",
    )
    effects = [training.sandbox_effects(run.config, run.snapshots, seed=context.seed) for run in runs]
    sandbox, config = list(map(measures.Timeline.of, effects)), runs[0].config.as_dict()
    if not context.corpus:
        return Timelines(sandbox, None, config)
    text, text_config = timeline_of_text(context)
    return Timelines(sandbox, text, {"sandbox": config, "text": text_config.as_dict()})


def numbers_of(timeline: measures.Timeline) -> dict[str, object]:
    whole = timeline.as_dict()
    return {"moments": whole["moments"], "later": whole["order"]}


def judge(found: Timelines) -> Outcome:
    orders = [timeline.order for timeline in found.sandbox]
    later = [order is not None and order.interval is not None and order.interval[0] > 1 for order in orders]
    named = {f"Sandbox, seed {seed}": timeline for seed, timeline in enumerate(found.sandbox)}
    shown = pages.timeline_figures(found.sandbox[0], "timeline-sandbox")
    numbers: dict[str, object] = {"sandbox": [numbers_of(timeline) for timeline in found.sandbox]}
    measured, advice = found.sandbox[0].answer, "; on your own text: topicscope reproduce timeline --corpus FILES"
    if found.text is not None:
        named["On the given text"], numbers["text"] = found.text, numbers_of(found.text)
        shown += pages.timeline_figures(found.text, "timeline-text")
        measured, advice = f"{measured}. On the given text: {found.text.answer}", ""
    return Outcome(
        paper="not asked; the two stages suggest that the embedding comes first",
        theory="from near zero, key and query cannot grow before value and embedding have grown",
        measured=f"sandbox: {measured}",
        verdict=verdict(*later),
        reason=f"attention is later in {sum(later)} of {len(later)} sandbox runs{advice}",
        figures=shown,
        tables=[
            replace(pages.moment_table(timeline), title=f"{where}: when topic structure appears")
            for where, timeline in named.items()
        ],
        numbers=numbers,
        config=found.config,
        ours=None if orders[0] is None else orders[0].ratio,
    )


TIMELINE = Experiment(
    id="timeline",
    claim="From near zero, topic structure appears in the embedding first and in the attention later.",
    rule="Half-way step: where the same-topic minus different-topic mean has made half of its way from start to end. "
    "In every sandbox run the half-way step of attention over that of the embedding's cosine has a 95% interval "
    "(bootstrap over topics) above 1. Results on a given text are reported, not judged.",
    measure=measure,
    judge=judge,
    seconds=30,
    beyond=True,
    number=Number(
        "later by a factor of",
        "the half-way step of attention (half of the way to its final same-topic minus different-topic mean) over that "
        "of the embedding (a ratio), first sandbox run; the paper does not ask",
    ),
    takes=("corpus",),
    uses=LANGUAGE,
)
