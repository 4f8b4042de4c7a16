"""The phase diagram of the two stages: where in learning rate and initial scale they appear, and how much of them is Adam's epsilon."""

from __future__ import annotations

import tempfile
from collections import Counter
from typing import Any

from topicscope.figures import Axes, Figure, Map, Row, TableData, map_figure, phase_table, stage_findings as findings
from topicscope.measure import PHASES
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome
from topicscope.sweeps import build_grid, sweep

LOSSES, EMBEDDINGS = ["squared", "cross-entropy"], ["one-hot", "trained"]
LR, SCALE, EPS = "optimizer.lr", "model.init_scale", "optimizer.eps"
RATES: dict[str, dict[str, list[float]]] = {
    "adam": {"quick": [1e-4, 1e-3, 1e-2, 1e-1, 1.0], "full": [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0]},
    "sgd": {"quick": [1e-2, 1e-1, 3e-1, 1.0, 10.0], "full": [1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0]},
}
SCALES = {"quick": [1e-4, 1e-3, 1e-2, 1e-1, 1.0], "full": [1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 1.0]}
EPSILONS = {
    "quick": [1e-20, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2],
    "full": [1e-20, 1e-14, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-2],
}
EPSILON_RATE = 1e-3
"""Adam's learning rate along epsilon: that of Figure 4."""

FLOW_RATES = {
    ("squared", "one-hot"): 0.3,
    ("squared", "trained"): 0.3,
    ("cross-entropy", "one-hot"): 3.0,
    ("cross-entropy", "trained"): 1.0,
}
"""The larger of two rates of SGD; with a third of it and three times the steps the same course is gradient flow's."""

BLIND = {"squared": 0.99, "cross-entropy": 4.605}
"""Loss of a prediction that knows nothing (T = v = 10): the top of the loss maps."""


def run_grid(context: Context, axes: Axes, **base: Any) -> list[Row]:
    """One process, one thread; T = v = 10 as in the paper."""
    shared = {
        "evaluate_every": None,
        "floors": False,
        "data": {"dev_documents": 1000},
        "seed": 1000 * context.seed,
        **base,
    }
    with tempfile.TemporaryDirectory() as folder:
        return sweep(build_grid({"base": shared, "axes": axes}), folder).rows


def rate_maps(context: Context) -> dict[str, tuple[Axes, list[Row]]]:
    """Learning rate x initial scale, for each optimiser (their rates are of different size), loss and embedding."""
    found = {}
    for name, rates in RATES.items():
        axes: Axes = {
            "objective.loss": LOSSES,
            "model.embedding": EMBEDDINGS,
            LR: rates[context.scale],
            SCALE: SCALES[context.scale],
        }
        axes["seed"] = [1000 * context.seed + i for i in range(context.pick(1, 3))]
        found[name] = axes, run_grid(context, axes, steps=context.pick(1000, 3000), optimizer={"name": name})
    return found


def epsilon_map(context: Context) -> tuple[Axes, list[Row]]:
    """Epsilon x initial scale. A loss that is c times as large has the effect of an epsilon that is c times as small."""
    axes: Axes = {
        "objective.loss": LOSSES,
        "model.embedding": EMBEDDINGS,
        EPS: EPSILONS[context.scale],
        SCALE: [1e-3, 1e-2],
    }
    axes["seed"] = [1000 * context.seed + i for i in range(context.pick(1, 3))]
    return axes, run_grid(context, axes, steps=context.pick(1000, 3000), optimizer={"lr": EPSILON_RATE})


def flows(context: Context) -> list[Row]:
    """SGD over the same time (rate x steps) at two rates: where both agree, it is gradient flow."""
    rows = []
    for (loss, embedding), rate in FLOW_RATES.items():
        for part in (1, 3):
            base = {
                "objective": {"loss": loss},
                "model": {"embedding": embedding},
                "optimizer": {"name": "sgd", "lr": rate / part},
            }
            found = run_grid(context, {SCALE: [1e-2, 1e-1]}, steps=part * context.pick(2000, 8000), **base)
            rows += [row | {"objective.loss": loss, "model.embedding": embedding, LR: rate / part} for row in found]
    return rows


def joined(
    maps: dict[str, tuple[Axes, list[Row]]], measure: str, name: str, title: str, *, log: bool = False
) -> Figure:
    """Four panels of each optimiser; numbers of one loss share a scale, and diverged runs have none."""
    panels: list[Any] = []
    for optimiser, (axes, rows) in maps.items():
        kept = rows if measure == "phase" else [row for row in rows if row.get("phase") != "diverged"]
        figure = map_figure(kept, axes, measure, name, title, log=log, across=LR, up=SCALE)
        for panel in figure.panels:
            panel.title = f"{optimiser}, {panel.title}"
        panels += figure.panels
    if measure in ("loss", "contrast"):
        for loss in LOSSES:
            share_scale([panel for panel in panels if loss in panel.title], BLIND[loss] if measure == "loss" else None)
    else:
        share_scale(panels, None)
    return Figure(
        name,
        title,
        f"{title}: learning rate to the right, initial scale upwards; a panel each for optimiser, loss and embedding.",
        panels,
        columns=4,
    )


def share_scale(panels: list[Map], top: float | None) -> None:
    known = [
        value for panel in panels if panel.names is None for line in panel.z for value in line if value is not None
    ]
    for panel in panels:
        if known and panel.names is None:
            panel.low, panel.high = min(known), max(known) if top is None else top


def two_stage(context: Context) -> Outcome:
    maps = rate_maps(context)
    axes, along_epsilon = epsilon_map(context)
    along_flow = flows(context)
    said = findings.sentences(maps, along_epsilon, along_flow)
    panel = [
        row for row in maps["adam"][1] if (row["objective.loss"], row["model.embedding"]) == ("squared", "trained")
    ]
    by_rate, by_scale = findings.changes(panel, LR, SCALE), findings.changes(panel, SCALE, LR)
    figures = [
        joined(maps, "phase", "two-stage", "Which course a run takes"),
        joined(
            maps,
            "separation",
            "two-stage-separation",
            "Stage separation: t50 of key and query over t50 of value",
            log=True,
        ),
        joined(maps, "start_separation", "two-stage-starts", "The same of the starts (a tenth of the rise)", log=True),
        joined(maps, "loss", "two-stage-loss", "Loss at the end"),
        joined(maps, "contrast", "two-stage-contrast", "Same-topic less different-topic mean at the end"),
        map_figure(
            along_epsilon,
            axes,
            "phase",
            "two-stage-epsilon",
            f"Along Adam's epsilon (rate {EPSILON_RATE:g})",
            across=EPS,
            up=SCALE,
        ),
        map_figure(
            along_epsilon,
            axes,
            "separation",
            "two-stage-epsilon-separation",
            f"Stage separation along Adam's epsilon (rate {EPSILON_RATE:g})",
            log=True,
            across=EPS,
            up=SCALE,
        ),
    ]
    counts = Counter(row["phase"] for _, rows in maps.values() for row in rows)
    tables: list[TableData] = []
    for name, (found_axes, rows) in maps.items():
        table = phase_table(rows, found_axes, across=LR, up=SCALE)
        tables.append(TableData(f"{table.title} ({name})", table.columns, table.rows))
    tables += [findings.epsilon_table(along_epsilon), findings.flow_table(along_flow)]
    numbers: dict[str, Any] = {
        "phases": {name: dict(Counter(row["phase"] for row in rows)) for name, (_, rows) in maps.items()},
        "findings": said,
    }
    numbers |= {"adam": maps["adam"][1], "sgd": maps["sgd"][1], "epsilon": along_epsilon, "flow": along_flow}
    return Outcome(
        "the two stages depend on initialisation and learning rate (no map)",
        "near zero the gradients of key and query are of second order",
        ", ".join(f"{counts[name]} {name}" for name in PHASES) + f" of {counts.total()} points",
        "reproduced" if by_rate and by_scale else "not reproduced",
        f"squared loss, Adam, trained embedding: two-stage and other courses occur along the rates ({'yes' if by_rate else 'no'}) and along the scales "
        f"({'yes' if by_scale else 'no'}).\n" + "\n".join(said),
        figures,
        tables,
        numbers,
        {
            "steps": context.pick(1000, 3000),
            "rates": RATES,
            "scales": SCALES[context.scale],
            "epsilons": EPSILONS[context.scale],
            "flow_rates": str(FLOW_RATES),
        },
    )


EXPERIMENT = Experiment(
    "two-stage",
    "Whether the two stages appear depends on initialisation and learning rate.",
    "Phases: diverged (the loss ends above 1.01 of its start), never (W_V does not rise), first stage only (W_V rises, W_K and W_Q do not), two-stage "
    "(separation = t50(key, query) / t50(value) at least 2), staggered (the same of a tenth of the rise, not of half of it), at once. Reproduced if with "
    "squared loss, Adam and trained embedding, at some initial scale both two-stage and another course that does not diverge occur along the rates, and at "
    "some rate both occur along the scales.",
    two_stage,
    240,
)
