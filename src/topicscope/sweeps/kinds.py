"""The kinds of sweep: for every command that can be swept, all that a sweep needs to know about it.

To add a kind, write its `SweepKind` in KINDS; nothing else in this room knows the kinds by name.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from topicscope import language, pretraining, training
from topicscope.ground import Cost, refuse_if

CURVE_POINTS = 200  # of a stored curve, at most
POINT_BYTES = 14_000  # that a point of `train` leaves, on average: its runs have no folders

Measure = float | int | str | bool | None
Settings = TypeVar("Settings")


@dataclass(frozen=True)
class PointResult:
    measures: dict[str, Measure] = field(default_factory=dict)  # numbers and words by name, such as dev_loss and phase
    curves: dict[str, np.ndarray] = field(default_factory=dict)  # curves by name, such as loss: one number per step
    error: str | None = None  # the error in one line; None: the point is done


@dataclass(frozen=True, kw_only=True)
class SweepKind(Generic[Settings]):
    """All that a sweep has to know about a command. `Settings` is the config class of the command."""

    build: Callable[[Mapping[str, Any]], Settings]  # makes a checked config from nested settings
    # runs a pack of points; the paths are folders for runs that have one. A killed run resumes there
    run: Callable[[Sequence[Settings], Sequence[Path]], list[PointResult]]
    reads: tuple[str, ...]  # settings that may name files; a point whose files have changed is run again
    # the main measures and what they mean, the most important first; the map shows the first one that a sweep has
    measures: dict[str, str]
    # settings by which the time grows, and the two sizes at which the cost estimate tries them
    knobs: dict[str, tuple[int, int]]
    # values of the knobs in a whole run; a knob that does not matter to it is left out
    sizes: Callable[[Settings], dict[str, int]]
    # raises InputError where an optional library that a config uses is not installed
    check_libraries: Callable[[Settings], None] = lambda _config: None
    # what a pack of points takes, from its settings alone
    cost: Callable[[Sequence[Settings]], Cost] = lambda _configs: Cost()
    large: Callable[[Sequence[Settings]], str] = lambda _configs: "settings"  # which settings make a pack large
    # what a trial with these knobs changes besides them, by dotted names
    for_trial: Callable[[Settings, dict[str, int]], dict[str, object]] = lambda _config, _sizes: {}
    pack_size: Callable[[Settings], int] = lambda _: 1  # at most so many points run as one program
    may_differ: tuple[str, ...] = ()  # settings in which the points of one pack may differ
    # panels of a point's curves on the page: the title, and how the names of its curves start
    curve_panels: dict[str, str] = field(default_factory=dict)


def kind_of(name: str) -> SweepKind[Any]:
    refuse_if(name not in KINDS, f"kind {name!r}; expected {', '.join(KINDS)}")
    return KINDS[name]


def train_result(run: training.Run) -> PointResult:
    means = next((run.results[name] for name in run.config.model.table_symbols() if name in run.results), None)
    measures = {
        "status": run.status,
        "steps_done": run.results["steps"],
        "loss": run.results["loss"],
        "dev_loss": run.results.get("dev_loss"),
        "contrast": None if means is None or None in means.values() else means["same"] - means["different"],
        **({} if run.course is None else run.course.as_dict()),
    }
    staged: list[str] = [name for name in ("norm_value", "norm_key", "norm_query") if name in run.metrics]
    curves = ["step", "loss", *(staged or (f"norm_{part}" for part in run.config.model.SYMBOLS))]
    return PointResult(finite(measures), thinned({name: run.metrics[name] for name in curves if name in run.metrics}))


def pretrain_result(run: pretraining.PretrainRun) -> PointResult:
    """Losses, phase and half-way steps of the least two-stage layer, and the separation of every layer."""
    measures = {
        "status": run.status,
        "steps_done": run.results.steps,
        "loss": run.results.loss,
        "held_out_loss": run.results.held_out_loss,
        **run.course.as_dict(),
        **{f"separation_{name}": stages.separation for name, stages in run.results.layers.items()},
    }
    # of the loss on held-out text, which few steps have, thinning would leave almost nothing
    curves = {name: values for name, values in run.metrics.items() if name != "held_out_loss"}
    return PointResult(finite(measures), thinned(curves))


def probe_result(probe: language.Probe) -> PointResult:
    """Of the trained model, and with prefixes of random weights and of the words that occur together most."""
    measures: dict[str, Measure] = {"word_count": probe.rows[0].words, "topic_count": probe.rows[0].topics}
    for row in probe.rows:
        for name, effect in (("cosine", row.cosine), ("dot", row.dot), ("attention", row.attention)):
            prefix = f"{'' if row.variant == 'trained' else 'random_'}{name}_"
            measures |= {} if effect is None else {prefix + key: value for key, value in effect.columns().items()}
    for pairs in probe.cooccurrence[:1]:
        measures["cooccurring_cosine"] = pairs.cosine.cooccurring
        measures["cooccurring_attention"] = pairs.attention.cooccurring
    return PointResult(finite(measures))


def on_one_device(config: training.RunConfig) -> training.RunConfig:
    """'auto' is the CPU in a sweep: what a point is may not depend on the machine that it happens to run on."""
    return replace(config, device="cpu") if config.device == "auto" else config


def thinned(metrics: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """At most CURVE_POINTS of each curve, the first and the last among them."""
    length = len(next(iter(metrics.values())))
    pick = np.unique(np.linspace(0, max(0, length - 1), min(length, CURVE_POINTS)).round().astype(int))
    return {name: values[pick].astype(np.float32) for name, values in metrics.items()}


def finite(measures: Mapping[str, Measure]) -> dict[str, Measure]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in measures.items()
    }


COURSE = {
    "phase": "which course the norms of W_V, key and query took",
    "separation": "t50 of key or query, the earlier of them, over t50 of W_V (t50: the step at which half of the rise "
    "is made)",
}
CONTRAST = (
    "mean entry of the value matrix (of W_E' W_E in a run without one) for two words of one topic, less that for "
    "words of different topics"
)
NORMS = {"loss": "loss", "norms": "norm_"}

KINDS: dict[str, SweepKind[Any]] = {  # by the name of the command
    "train": SweepKind[training.RunConfig](
        build=lambda settings: on_one_device(training.RunConfig.of(settings)),
        run=lambda configs, _homes: [train_result(run) for run in training.train(configs, with_floors=False)],
        cost=lambda configs: replace(
            training.cost_of(configs, floors=False, gpu=configs[0].device == "cuda"), disk=POINT_BYTES * len(configs)
        ),
        large=training.settings_that_cost,
        reads=training.RunConfig.FILES,
        measures=COURSE | {"dev_loss": "loss on documents that were not trained on", "contrast": CONTRAST},
        knobs={"steps": (20, 120)},
        sizes=lambda config: {"steps": config.total_steps},
        for_trial=lambda _config, _sizes: {"epochs": None, "snapshots": "none"},
        pack_size=training.together,
        may_differ=("seed", "optimizer.lr", "model.init_scale"),
        curve_panels=NORMS,
    ),
    "pretrain": SweepKind[pretraining.PretrainConfig](
        build=pretraining.PretrainConfig.of,
        check_libraries=pretraining.check_libraries,
        run=lambda configs, homes: [
            pretrain_result(pretraining.pretrain(config, home, resume=True))
            for config, home in zip(configs, homes, strict=True)
        ],
        cost=pretraining.cost_of,
        large=pretraining.settings_that_cost,
        reads=pretraining.PretrainConfig.FILES,
        measures=COURSE | {"loss": "loss of the last step"},
        knobs={"steps": (2, 6)},
        sizes=lambda config: {"steps": config.steps},
        for_trial=lambda config, sizes: {
            "snapshots": "none" if config.snapshots == "none" else "log",
            "optimizer.warmup": min(config.optimizer.warmup, sizes["steps"]),
        },
        curve_panels=NORMS,
    ),
    "probe": SweepKind[language.ProbeConfig](
        build=language.probe_point,
        check_libraries=language.check_libraries,
        run=lambda configs, _homes: [probe_result(language.probe(config)) for config in configs],
        cost=lambda configs: language.cost_of(configs[0]),
        large=lambda configs: language.settings_that_cost(configs[0]),
        reads=language.ProbeConfig.FILES,
        measures={
            "attention_ratio": "attention between words of one topic over that between words of different topics",
            "cosine_difference": "mean cosine of two words of one topic less that of words of different topics",
            "cosine_ratio": "the same two means, one over the other",
        },
        knobs={"documents": (8, 24), "iterations": (10, 20)},
        sizes=lambda config: (
            {"documents": config.documents} | ({"iterations": config.iterations} if config.topics_from is None else {})
        ),
    ),
}
