"""Figure 5: the two stages in a transformer of four layers. From near-zero attention the value matrices move first, key and query later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from topicscope.figures import dynamics_figure, layer_title, loss_figure, stage_table, starts
from topicscope.language import Corpus
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome
from topicscope.paper.word_texts import build_tokenizer, sample_texts, word_lists
from topicscope.pretraining import PretrainConfig, PretrainRun, layer_names, pretrain, train_tokenizer

NEAR_ZERO = 1e-4
STEPS = 400
"""As in the figure."""


@dataclass(frozen=True)
class Curves:
    """A run, and the name of its setting."""

    setting: str
    run: PretrainRun

    @property
    def metrics(self) -> dict[str, np.ndarray]:
        return self.run.metrics

    @property
    def seed(self) -> int:
        return self.run.config.seed


def settings_of(context: Context) -> dict[str, dict[str, Any]]:
    """Two rates from near zero, as the figure has two groups of curves; and the library's own start."""
    slow, fast = (0.001, 0.003) if context.scale == "quick" else (0.0003, 0.001)  # wider models take smaller steps
    return {
        f"near zero, AdamW {fast:g}": {"model": {"init_scale": NEAR_ZERO}, "optimizer": {"lr": fast}},
        f"near zero, AdamW {slow:g}": {"model": {"init_scale": NEAR_ZERO}, "optimizer": {"lr": slow}},
        f"usual start, AdamW {slow:g}": {"model": {"init_scale": "usual"}, "optimizer": {"lr": slow}},
    }


def base_of(context: Context) -> dict[str, Any]:
    """Sizes; without a corpus made-up texts, whose rows are short and vocabulary small."""
    quick = context.scale == "quick"
    rows = {"length": 64, "batch_size": 32} if quick else {"length": 128, "batch_size": 64}
    if not context.corpus:
        rows = {"length": 50, "batch_size": 16 if quick else 64}
    # dropout costs half of the time on a CPU, and changes nothing that is looked at here
    shape = {"layers": 4, "heads": 4, "dim": 64 if quick else 256, "dropout": 0.0 if quick else "usual"}
    return {"steps": STEPS, "snapshots": "none", "model": shape, **rows}


def figure5(context: Context) -> Outcome:
    texts: Any
    if context.corpus:
        texts = list(Corpus(context.corpus).sample(context.pick(2000, 20_000), context.seed))
        tokenizer = train_tokenizer(texts, "wordpiece", 8000, base_of(context)["length"], exact=False)
    else:
        lists = word_lists()
        texts, tokenizer = sample_texts(lists, context.seed), build_tokenizer(lists)
    curves: list[Curves] = []
    config: dict[str, Any] = {}
    for name, settings in settings_of(context).items():
        for number in range(context.pick(2, 3)):
            base = base_of(context)
            whole = base | settings | {"model": base["model"] | settings["model"], "seed": 1000 * context.seed + number}
            run = pretrain(
                PretrainConfig.of({"text": {"corpus": list(context.corpus) or ["(made-up texts)"]}, **whole}),
                texts=texts,
                tokenizer=tokenizer,
            )
            curves.append(Curves(name, run))
            config = config or run.config.as_dict()
    return outcome_of(curves, config, "the given text" if context.corpus else "made-up texts")


def outcome_of(curves: list[Curves], config: dict[str, Any], text: str) -> Outcome:
    """Every layer of every run either starts in two stages or does not."""
    counts: dict[str, list[bool]] = {}
    failed = []
    for run in curves:
        for layer in layer_names(run.metrics):
            begun = starts(run.metrics, layer)
            ok = min(begun["key"], begun["query"]) > begun["value"]  # False where one never rises
            counts.setdefault(run.setting, []).append(bool(ok))
            if not ok and run.setting.startswith("near"):
                failed.append(f"{run.setting}, seed {run.seed}, {layer_title(layer)}")
    near = [run for run in curves if run.setting.startswith("near")]
    said = "; ".join(f"{name}: {sum(holds)} of {len(holds)} layers (all runs)" for name, holds in counts.items())
    spread = {
        part: [starts(run.metrics, layer)[part] for run in near for layer in layer_names(run.metrics)]
        for part in ("value", "key", "query")
    }
    ranges = ", ".join(f"{part} {np.nanmin(values):.0f} to {np.nanmax(values):.0f}" for part, values in spread.items())
    numbers = {
        run.setting + f", seed {run.seed}": {layer: starts(run.metrics, layer) for layer in layer_names(run.metrics)}
        for run in curves
    }
    runs, labels = [one.run for one in curves], [one.setting for one in curves]
    return Outcome(
        "value moves from step 0 on; key and query stay near 0 until step 60 to 200, in all four layers",
        "near zero the gradients of key and query are of second order",
        f"on {text}, key and query start after value in: {said}",
        "not reproduced" if failed else "reproduced",
        (f"starts from near zero, in steps: {ranges}" if not failed else f"not in {', '.join(failed)}")
        + f"; over the run norms grow {growth(near)} from near zero, and {growth([run for run in curves if run not in near])} from the usual start",
        [dynamics_figure(runs, labels), loss_figure(runs, labels)],
        [stage_table(runs, labels)],
        numbers,
        config,
    )


def growth(runs: list[Curves]) -> str:
    """How much norms grow, over all layers."""
    ratios = [
        run.metrics[f"norm_{part}_{layer}"]
        for run in runs
        for layer in layer_names(run.metrics)
        for part in ("key", "query", "value")
    ]
    factors = [norm[-1] / norm[0] for norm in ratios]
    return " to ".join(f"{x:.0f}" if x >= 10 else f"{x:.2g}" for x in (min(factors), max(factors))) + " times"


EXPERIMENT = Experiment(
    "figure5",
    "In a transformer of four layers too, started near zero, the value matrices move first and key and query later, in every layer.",
    "A norm has started once it has made a tenth of its rise from start to plateau (the mean of the last tenth of the run). In every layer of every near-zero "
    "run both key and query start later than value. The usual start is shown beside it and not judged. Without --corpus on made-up texts.",
    figure5,
    120,
    takes_corpus=True,
)
