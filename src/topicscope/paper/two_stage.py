"""The phase diagram of the two stages: in which learning rates and initial scales they appear.

And how much of them is Adam's epsilon, and what gradient flow does.
"""

import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from topicscope import sweeps, training
from topicscope.measure import PHASES
from topicscope.pages import Axes, Figure, Row, map_figure, phase_table
from topicscope.paper import predicted_map, stage_findings as findings
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, verdict
from topicscope.paper.stage_findings import EMBEDDING, EPS, LOSS, LR, SCALE

LOSSES, EMBEDDINGS = ["squared", "cross-entropy"], ["one-hot", "trained"]
RATES: dict[str, dict[str, list[float]]] = {
    "adam": {"quick": [1e-3, 1e-2, 1e-1], "full": [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0]},
    "sgd": {"quick": [1e-1, 1.0], "full": [1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0]},
}
SCALES = {"quick": [1e-3, 1e-2, 1e-1], "full": [1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 1.0]}
EPSILONS = {
    "quick": [1e-20, 1e-8, 1e-4],
    "full": [1e-20, 1e-14, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-2],
}
"""The quick maps are coarse: the cells at the edge of the two stages, which decide the verdict, and those around."""

EPSILON_SCALES = {"quick": [1e-2], "full": [1e-3, 1e-2]}
FLOW_SCALES = {"quick": [1e-1], "full": [1e-2, 1e-1]}
FLOW_EMBEDDINGS = {"quick": ["trained"], "full": EMBEDDINGS}
EPSILON_RATE = 1e-3
"""Adam's learning rate along epsilon: that of Figure 4."""

FLOW_RATES = {
    ("squared", "one-hot"): 0.3,
    ("squared", "trained"): 0.3,
    ("cross-entropy", "one-hot"): 3.0,
    ("cross-entropy", "trained"): 1.0,
}
"""The larger of two rates of SGD; a third of it with three times the steps gives the same course in gradient flow."""

BLIND = {"squared": 0.99, "cross-entropy": 4.605}
"""Loss of a prediction that knows nothing (T = v = 10): the top of the loss maps."""


@dataclass(frozen=True)
class Swept:
    """A grid that was run: its axes, and one row per point; and what all points share, to predict their phases."""

    axes: Axes
    rows: list[Row]
    base: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """Learning rate x initial scale for each optimiser, epsilon x initial scale, and SGD at two rates."""

    maps: dict[str, Swept]
    epsilon: Swept
    flow: list[Row]
    config: dict[str, Any]


def run_grid(context: Context, axes: Axes, **base: Any) -> Swept:
    """One process, one thread; T = v = 10 as in the paper."""
    shared = {"evaluate_every": None, "floors": False, "data": {"dev_documents": 1000}, "seed": 1000 * context.seed}
    with tempfile.TemporaryDirectory() as folder:
        rows = sweeps.sweep(sweeps.build_grid({"base": shared | base, "axes": axes}), folder).rows
    return Swept(axes, rows, shared | base)


def flows(context: Context) -> list[Swept]:
    """SGD over the same time (rate x steps) at two rates: where both agree, it is gradient flow."""
    found = []
    chosen = {key: rate for key, rate in FLOW_RATES.items() if key[1] in FLOW_EMBEDDINGS[context.scale]}
    for (loss, embedding), rate in chosen.items():
        for part in (1, 3):
            swept = run_grid(
                context,
                {SCALE: FLOW_SCALES[context.scale]},
                steps=part * context.pick(1400, 8000),
                objective={"loss": loss},
                model={"embedding": embedding},
                optimizer={"name": "sgd", "lr": rate / part},
            )
            place = {LOSS: loss, EMBEDDING: embedding, LR: rate / part}
            found.append(replace(swept, rows=[row | place for row in swept.rows]))
    return found


def measure(context: Context) -> Found:
    """Optimisers' rates differ in size. A loss that is c times as large acts as an epsilon that is c times as small."""
    steps, scales, epsilons = context.pick(1000, 3000), SCALES[context.scale], EPSILONS[context.scale]
    setting: Axes = {LOSS: LOSSES, EMBEDDING: EMBEDDINGS}
    seeds: Axes = {"seed": [1000 * context.seed + i for i in range(context.pick(1, 3))]}
    maps = {
        name: run_grid(
            context,
            setting | {LR: rates[context.scale], SCALE: scales} | seeds,
            steps=steps,
            optimizer={"name": name},
        )
        for name, rates in RATES.items()
    }
    epsilon = run_grid(
        context,
        setting | {EPS: epsilons, SCALE: EPSILON_SCALES[context.scale]} | seeds,
        steps=steps,
        optimizer={"lr": EPSILON_RATE},
    )
    config = {"steps": steps, "rates": RATES, "scales": scales, "epsilons": epsilons, "flow_rates": str(FLOW_RATES)}
    adam, sgd, epsilon, *along_flow = predicted([maps["adam"], maps["sgd"], epsilon, *flows(context)])
    flow = [row for swept in along_flow for row in swept.rows]
    return Found({"adam": adam, "sgd": sgd}, epsilon, flow, config)


def predicted(every: list[Swept]) -> list[Swept]:
    """The same with columns of what the laws predict. All at once: runs from the same start share a law."""
    configs = [
        training.RunConfig.of(swept.base).changed({name: row[name] for name in swept.axes if name in row})
        for swept in every
        for row in swept.rows
    ]
    columns = iter(predicted_map.predictions(configs))
    return [replace(swept, rows=[row | next(columns) for row in swept.rows]) for swept in every]


def joined(maps: dict[str, Swept], measure: str, name: str, title: str, *, log: bool = False) -> Figure:
    """Four panels per optimiser. Panels of one loss share a scale, and diverged runs have no numbers."""
    panels: list[Any] = []
    for optimiser, swept in maps.items():
        rows = swept.rows if measure == "phase" else [row for row in swept.rows if row.get("phase") != "diverged"]
        figure = map_figure(rows, swept.axes, measure, name, title, log=log, across=LR, up=SCALE)
        panels += [replace(panel, title=f"{optimiser}, {panel.title}") for panel in figure.panels]
    for loss in LOSSES if measure in ("loss", "contrast") else [""]:
        numeric = [panel for panel in panels if loss in panel.title and panel.names is None]
        known = [value for panel in numeric for line in panel.z for value in line if value is not None]
        for panel in numeric if known else []:
            panel.low, panel.high = min(known), BLIND[loss] if measure == "loss" else max(known)
    alt = f"{title}: learning rate to the right, initial scale upwards; one panel per optimiser, loss and embedding."
    return Figure(name, title, alt, panels, columns=4)


def figures_of(found: Found) -> list[Figure]:
    over_rates = partial(joined, found.maps)
    along_epsilon = partial(map_figure, found.epsilon.rows, found.epsilon.axes, across=EPS, up=SCALE)
    epsilon = f"Adam's epsilon (rate {EPSILON_RATE:g})"
    return [
        over_rates("phase", "two-stage", "Which course a run takes"),
        over_rates(
            "separation", "two-stage-separation", "Stage separation: t50 of key and query over t50 of value", log=True
        ),
        over_rates(
            "start_separation",
            "two-stage-starts",
            "Stage separation of the starts (a tenth of the rise, not half of it)",
            log=True,
        ),
        over_rates("loss", "two-stage-loss", "Loss at the end"),
        over_rates("contrast", "two-stage-contrast", "Same-topic minus different-topic mean at the end"),
        along_epsilon("phase", "two-stage-epsilon", f"Along {epsilon}"),
        along_epsilon("separation", "two-stage-epsilon-separation", f"Stage separation along {epsilon}", log=True),
        predicted_map.figure(*((one.axes, one.rows) for one in (found.maps["sgd"], found.maps["adam"], found.epsilon))),
    ]


def judge(found: Found) -> Outcome:
    maps = {name: swept.rows for name, swept in found.maps.items()}
    counts = {name: Counter(row["phase"] for row in rows) for name, rows in maps.items()}
    total = sum(counts.values(), Counter())
    panel = findings.by_setting(maps["adam"])["squared", "trained"]
    by_rate, by_scale = findings.both_occur(panel, at=SCALE), findings.both_occur(panel, at=LR)
    law = predicted_map.Law.of(maps, found.epsilon.rows, found.flow)
    sentences = [*findings.sentences(maps, found.epsilon.rows, found.flow), *law.sentences]
    tables = {name: phase_table(swept.rows, swept.axes, across=LR, up=SCALE) for name, swept in found.maps.items()}
    return Outcome(
        paper="the two stages depend on initialisation and learning rate (no map)",
        theory="near zero the gradients of key and query are of second order",
        measured=", ".join(f"{total[name]} {name}" for name in PHASES) + f" of {total.total()} points",
        verdict=verdict(by_rate and by_scale),
        reason="squared loss, Adam, trained embedding: both two-stage and another phase occur along the rates at some "
        f"scale ({'yes' if by_rate else 'no'}) and along the scales at some rate ({'yes' if by_scale else 'no'}).\n"
        + "\n".join(sentences),
        figures=figures_of(found),
        tables=[
            *(replace(table, title=f"{table.title} ({name})") for name, table in tables.items()),
            findings.epsilon_table(found.epsilon.rows),
            findings.flow_table(found.flow),
            law.table,
        ],
        numbers={
            "phases": {name: dict(phases) for name, phases in counts.items()},
            "findings": sentences,
            "law": law.numbers,
            **maps,
            "epsilon": found.epsilon.rows,
            "flow": found.flow,
        },
        config=found.config,
        ours=total["two-stage"] / total.total(),
    )


EXPERIMENT = Experiment(
    id="two-stage",
    claim="Whether the two stages appear depends on initialisation and learning rate.",
    rule="Phases, the first that holds: diverged (the loss ends above 1.01 times its start, or is not finite); never "
    "(the norm of W_V rises by 5% or less); first stage only (the norms of W_K and W_Q do); two-stage (the earlier t50 "
    "of key and query is at least twice that of value); staggered (the same holds for a tenth of the rise instead of "
    "half); at once. Reproduced if, with squared loss, Adam and trained embedding, at some initial scale both "
    "two-stage and another phase occur along the rates, and at some rate both occur along the scales; diverged runs do "
    "not count. Reported, not judged: the laws hold if at least 90% of the SGD and gradient-flow cells take the "
    "predicted phase; a cell without a prediction counts as a miss.",
    measure=measure,
    judge=judge,
    seconds=75,
    number=Number(
        "share of two-stage",
        "share of all points of the maps over rate and scale whose phase is two-stage; the paper has no map",
    ),
)
