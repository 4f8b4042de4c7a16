"""Figure 5: the two stages in a transformer of four layers. From near zero value moves first, key and query later."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topicscope import language, pages, pretraining
from topicscope.measure import layer_names
from topicscope.paper.experiment import LANGUAGE, Context, Experiment, Number, Outcome, verdict
from topicscope.paper.made_up import build_tokenizer, sample_texts, word_lists

STEPS = 400  # as in the figure
PARTS = ("value", "key", "query")


@dataclass(frozen=True)
class Curves:
    setting: str
    run: pretraining.PretrainRun

    @property
    def label(self) -> str:
        return f"{self.setting}, seed {self.run.config.seed % 1000}"

    def starts(self) -> dict[str, dict[str, float]]:
        """By layer the steps at which its norms have made a tenth of their rise; NaN where one has not risen."""
        metrics = self.run.metrics
        return {layer: pages.starts(metrics, layer) for layer in layer_names(metrics)}


@dataclass(frozen=True)
class LayerRuns:
    near: list[Curves]
    usual: list[Curves]
    given_text: bool


def measure(context: Context) -> LayerRuns:
    """Two rates from near zero, as the figure has two groups of curves; and the library's own start."""
    quick = context.scale == "quick"
    length, batch_size = context.pick((64, 32), (128, 64))
    if context.corpus:
        texts = list(language.Corpus(context.corpus).sample(context.pick(2000, 20_000), context.seed))
        tokenizer = pretraining.train_tokenizer(texts, "wordpiece", 8000, length, exact=False)
    else:  # made-up texts stand in: they have short rows and a small vocabulary
        length, batch_size, lists = 50, context.pick(16, 64), word_lists()
        texts, tokenizer = sample_texts(lists, context.seed), build_tokenizer(lists)
    # dropout takes half of the time on a CPU, and changes nothing that is measured here
    shape = {"layers": 4, "heads": 4, "dim": context.pick(64, 256), "dropout": 0.0 if quick else "usual"}

    def runs(start: str, lr: float) -> list[Curves]:
        settings = {
            "text": {"corpus": list(context.corpus) or ["(made-up texts)"]},
            "steps": STEPS,
            "snapshots": "none",
            "held_out": {"share": 0.0},  # all of the text is trained on; nothing here asks for another loss
            "model": {**shape, "init_scale": 1e-4 if start == "near zero" else "usual"},
            "optimizer": {"lr": lr},
            "length": length,
            "batch_size": batch_size,
            "micro_batch": batch_size if quick else None,  # small batches cost mostly their calls
        }
        configs = [pretraining.PretrainConfig.of(settings | {"seed": seed}) for seed in context.seeds(1, 3)]
        return [
            Curves(f"{start}, AdamW {lr:g}", pretraining.pretrain(config, texts=texts, tokenizer=tokenizer))
            for config in configs
        ]

    slow, fast = context.pick((0.001, 0.003), (0.0003, 0.001))  # wider models take smaller steps
    return LayerRuns(runs("near zero", fast) + runs("near zero", slow), runs("usual start", slow), bool(context.corpus))


def value_first(steps: dict[str, float]) -> bool:
    return all(steps[part] > steps["value"] for part in ("key", "query"))


def judge(found: LayerRuns) -> Outcome:
    runs = found.near + found.usual
    starts = {one.label: one.starts() for one in runs}
    counts = Counter(one.setting for one in runs for _ in starts[one.label])
    first = Counter(one.setting for one in runs for steps in starts[one.label].values() if value_first(steps))
    failed = [
        f"{one.label}, {pages.layer_title(layer)}"
        for one in found.near
        for layer, steps in starts[one.label].items()
        if not value_first(steps)
    ]
    near = {part: [steps[part] for one in found.near for steps in starts[one.label].values()] for part in PARTS}
    spans = ", ".join(f"{part} {min(steps):.0f} to {max(steps):.0f}" for part, steps in near.items())
    shown = [one.run for one in runs], [one.setting for one in runs]
    return Outcome(
        paper="value moves from step 0 on; key and query stay near 0 until step 60 to 200, in all four layers",
        theory="near zero the gradients of key and query are of second order",
        measured=f"on {'the given text' if found.given_text else 'made-up texts'}, layers of all runs in which key and "
        "query start after value: " + "; ".join(f"{name}: {first[name]} of {count}" for name, count in counts.items()),
        verdict=verdict(not failed),
        reason=(f"not in {', '.join(failed)}" if failed else f"near-zero runs start at step: {spans}")
        + f"; norms end at {growth(found.near)} their start from near zero, "
        f"and at {growth(found.usual)} from the usual start",
        figures=[pages.dynamics_figure(*shown), pages.loss_figure(*shown)],
        tables=[pages.stage_table(*shown)],
        numbers=starts,
        config=runs[0].run.config.as_dict(),
        ours=float(np.median(near["key"] + near["query"])),
    )


def growth(runs: Sequence[Curves]) -> str:
    metrics = [item for one in runs for item in one.run.metrics.items()]
    factors = [norm[-1] / norm[0] for name, norm in metrics if name.startswith("norm_")]
    return " to ".join(f"{x:.0f}" if x >= 10 else f"{x:.2g}" for x in (min(factors), max(factors))) + " times"


FIGURE5 = Experiment(
    id="figure5",
    claim="In a transformer of four layers that starts near zero, value moves first and key and query later, in every "
    "layer.",
    rule="A norm starts at the step where it has made a tenth of its rise from start to plateau (mean of the last "
    "tenth of the run); one that rises by 5% or less does not start. In every layer of every near-zero run all three "
    "norms start, key and query later than value. Runs from the usual start (the library's own initial scale) are "
    "shown, not judged. Without --corpus the texts are made up.",
    measure=measure,
    judge=judge,
    seconds=60,
    number=Number(
        "step key, query start",
        "the step at which the norm of a key or query matrix has made a tenth of its rise, median over layers and "
        "near-zero runs; in the paper they leave zero at step 60 to 200",
        (60, 200),
        "the model, its text and its learning rates are not the paper's, whose hyperparameters are not printed",
    ),
    takes=("corpus",),
    uses=LANGUAGE,
)
