"""The phase diagram of the two stages: in which learning rates and initial scales they appear.

And how much of them is Adam's epsilon, and what gradient flow does.
"""

import itertools
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import mode
from typing import Any, NamedTuple, Self

import numpy as np

from topicscope import laws, sweeps, training
from topicscope.measure import NOT_COVERED, PHASES, TWO_STAGE as TWO_STAGE_FROM
from topicscope.pages import Axes, Figure, Map, Row, TableData, map_figure, phase_table, tick
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, cell, verdict

DEFAULT_EPS = 1e-8
LOSS, EMBEDDING = "objective.loss", "model.embedding"
LR, SCALE, EPS = "optimizer.lr", "model.init_scale", "optimizer.eps"
T50 = ("t50_value", "t50_key", "t50_query")


@dataclass(frozen=True)
class Swept:
    axes: Axes
    rows: list[Row]
    base: Mapping[str, object] = field(default_factory=dict)

    def maps(self, measure: str, across: str = LR, *, log: bool = False) -> list[Map]:
        panels = map_figure(self.rows, self.axes, measure, "", "", log=log, across=across, up=SCALE).panels
        return [panel for panel in panels if isinstance(panel, Map)]


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by their values of these columns; None where a row has no such column."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return groups


def by_setting(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    return {(loss, embedding): here for (loss, embedding), here in grouped(rows, LOSS, EMBEDDING).items()}


def both_occur(rows: Sequence[Row], at: str) -> bool:
    """Whether at some value of the axis `at` two-stage and another course occur; runs that diverge do not count."""
    courses = [{row["phase"] for row in here} - {"diverged"} for here in grouped(rows, at).values()]
    return any("two-stage" in phases and len(phases) > 1 for phases in courses)


def findings(maps: dict[str, list[Row]], along_epsilon: Sequence[Row], along_flow: Sequence[Row]) -> list[str]:
    everywhere = list(itertools.chain(*maps.values()))
    return [
        *(panel_sentence(name, *key, here) for name, rows in maps.items() for key, here in by_setting(rows).items()),
        large_start(everywhere),
        staggered(everywhere),
        *(epsilon_sentence(*key, here) for key, here in by_setting(along_epsilon).items()),
        *(flow_sentence(*key, here) for key, here in by_setting(along_flow).items()),
    ]


def panel_sentence(optimiser: str, loss: str, embedding: str, rows: Sequence[Row]) -> str:
    counts = Counter(row["phase"] for row in rows)
    listed = ", ".join(f"{counts[name]} {name}" for name in PHASES if counts[name])
    two = [row for row in rows if row["phase"] == "two-stage"]
    said = f"{optimiser}, {loss}, {embedding} embedding: of {len(rows)} points {listed}"
    if not two:
        return f"{said}."
    ends = [(min(values), max(values)) for values in (values_of(two, LR), values_of(two, SCALE))]
    rates, scales = (" to ".join(dict.fromkeys(map(tick, pair))) for pair in ends)
    return (
        f"{said}; two-stage at lr {rates} and init_scale {scales}, median separation "
        f"{np.median([row['separation'] for row in two]):.3g}."
    )


def large_start(rows: Sequence[Row]) -> str:
    large = [row["contrast"] for row in rows if row[SCALE] >= 0.1 and row["phase"] == "never"]
    learnt = sum(contrast is not None and contrast > 0.05 for contrast in large)
    return (
        f"'Never' at initial scales of .1 and more ({len(large)} points) means that norms which start large do not "
        f"grow, not that nothing is learnt: at {learnt} of these points the same-topic minus different-topic mean ends "
        "above .05."
    )


def staggered(rows: Sequence[Row]) -> str:
    return (
        f"{sum(row['phase'] == 'staggered' for row in rows)} points are 'staggered': key and query start at least "
        "twice as late as value, but are not half-way so much later, because W_V rises again, or goes on rising, after "
        "attention has formed."
    )


def mean_separation(rows: Iterable[Row]) -> float | None:
    known = [row["separation"] for row in rows if row.get("separation") is not None]
    return float(np.mean(known)) if known else None


def epsilon_sentence(loss: str, embedding: str, rows: Sequence[Row]) -> str:
    at = {eps: mean_separation(row for row in rows if row[EPS] == eps) for eps in values_of(rows, EPS)}
    smallest, least = next(iter(at.items()))
    without = "two stages" if least is not None and least >= TWO_STAGE_FROM else "no two stages"
    largest = max(((value, eps) for eps, value in at.items() if value is not None), default=(None, 0.0))
    ends = [eps for eps, value in at.items() if value is None]
    return (
        f"Adam's epsilon, {loss}, {embedding} embedding: {without} with hardly any epsilon (mean separation "
        f"{cell(least)} at {smallest:g}, {cell(at.get(DEFAULT_EPS))} at the usual {DEFAULT_EPS:g}, "
        f"largest {cell(largest[0])} at {largest[1]:g})"
        + (f"; from {min(ends):g} on the second stage does not come within the run." if ends else ".")
    )


def flow_sentence(loss: str, embedding: str, rows: Sequence[Row]) -> str:
    courses = {
        scale: [
            f"{row['phase']} at rate {row[LR]:.2g} (separation {cell(row.get('separation'))})"
            for row in sorted(rows, key=lambda row: -row[LR])
            if row[SCALE] == scale
        ]
        for scale in values_of(rows, SCALE)
    }
    parts = (f"from initial scale {scale:g} {' and '.join(here)}" for scale, here in courses.items())
    return f"SGD over the same time at two rates, {loss}, {embedding} embedding: {'; '.join(parts)}."


def values_of(rows: Iterable[Row], name: str) -> list[float]:
    return sorted({row[name] for row in rows})


def epsilon_table(rows: Sequence[Row]) -> TableData:
    epsilons, scales = values_of(rows, EPS), values_of(rows, SCALE)
    at = grouped(rows, LOSS, EMBEDDING, SCALE, EPS)
    return TableData(
        "Mean stage separation along Adam's epsilon, one column each (-: no second stage)",
        ["loss", "embedding", "scale", *(f"{eps:g}" for eps in epsilons)],
        [
            [*map(str, setting), f"{scale:g}"]
            + [cell(mean_separation(at.get((*setting, scale, eps), []))) for eps in epsilons]
            for setting in by_setting(rows)
            for scale in scales
        ],
    )


def flow_table(rows: Sequence[Row]) -> TableData:
    return TableData(
        "SGD over the same time at two rates",
        [
            *("loss", "embedding", "scale", "rate", "steps", "phase", "separation"),
            *("time of t50 value", "key", "query"),
        ],
        [
            [
                *(row[LOSS], row[EMBEDDING], f"{row[SCALE]:g}", f"{row[LR]:.3g}", str(row["steps_done"]), row["phase"]),
                cell(row.get("separation")),
                *(cell(None if half is None else half * row[LR]) for half in map(row.get, T50)),
            ]
            for row in rows
        ],
    )


# Share of the SGD and gradient-flow cells that must take the predicted phase; one that is not covered does not.
ENOUGH = 0.9
PLACE = (LOSS, EMBEDDING, LR, EPS, SCALE)


class Cell(NamedTuple):
    """One place of a map: the phase that most seeds take, the one that most predictions say, and a row of it."""

    optimiser: str
    measured: str
    predicted: str
    row: Row

    @property
    def right(self) -> bool:
        return self.measured == self.predicted

    @property
    def covered(self) -> bool:
        return self.predicted != NOT_COVERED


def cells(optimiser: str, rows: Iterable[Row]) -> list[Cell]:
    found = []
    for here in grouped(rows, *PLACE).values():
        measured, predicted = (mode(row[name] for row in here) for name in ("phase", "predicted_phase"))
        found.append(Cell(optimiser, measured, predicted, next(row for row in here if row["phase"] == measured)))
    return found


class Shares(NamedTuple):
    cells: int
    covered: int
    right: int
    share: float

    @classmethod
    def of(cls, found: Sequence[Cell]) -> Self:
        right = sum(one.right for one in found)
        return cls(len(found), sum(one.covered for one in found), right, right / len(found) if found else 0.0)

    @property
    def sentence(self) -> str:
        return (
            f"{self.right} of {self.cells} cells take the predicted phase ({self.share:.0%}; "
            f"{f'{self.right / self.covered:.0%}' if self.covered else '-'} of the {self.covered} that the laws cover)"
        )


def difference_table(found: Iterable[Cell]) -> TableData:
    return TableData(
        "Cells in another phase than predicted",
        [
            *("optimiser", "loss", "embedding", "rate", "epsilon", "scale", "measured phase", "predicted phase"),
            *("separation", "predicted separation", "why"),
        ],
        [
            [
                one.optimiser,
                *("-" if one.row.get(name) is None else tick(one.row[name]) for name in PLACE),
                *(one.measured, one.predicted),
                *(cell(one.row.get(name)) for name in ("separation", "predicted_separation")),
                why(one),
            ]
            for one in found
            if one.covered and not one.right
        ],
    )


def why(one: Cell) -> str:
    row = one.row
    if "diverged" in (one.measured, one.predicted):
        return "the law has no noise of batches: it describes gradient flow, or descent with full batches"
    if (one.measured, one.predicted) == ("staggered", "two-stage"):
        return "W_V rises again once attention has formed: the third act is not in the law"
    if "never" in (one.measured, one.predicted):
        return f"W_V's norm is predicted to rise by {100 * (row.get('predicted_rise') or 0):.2g}%; from 5% on it counts"
    starts = [cell(row.get(name)) for name in ("start_separation", "predicted_start_separation")]
    return f"the limit between them is a separation of 2; that of the starts is {starts[0]}, predicted {starts[1]}"


def predicted_figure(sgd: Swept, adam: Swept, along_epsilon: Swept) -> Figure:
    title = "Which course a run takes: measured, and predicted by the laws (x: they differ)"
    over, under = zip(*pairs("sgd", sgd, LR), strict=True)
    beside = [
        panel
        for pair in (*pairs("adam", adam, LR), *pairs("adam", along_epsilon, EPS))
        if any(value != len(PHASES) for line in pair[1].z for value in line)
        for panel in pair
    ]
    return Figure(
        "two-stage-predicted",
        title,
        f"{title}: learning rate or Adam's epsilon to the right, initial scale upwards. SGD: four measured maps over "
        "those of the laws; Adam: a measured map beside that of the laws.",
        [*over, *under, *beside],
        columns=4,
    )


def pairs(optimiser: str, swept: Swept, across: str) -> list[tuple[Map, Map]]:
    measured, predicted = (swept.maps(name, across) for name in ("phase", "predicted_phase"))
    return [
        (
            replace(left, title=f"{optimiser}, {left.title}"),
            replace(right, title=f"law, {right.title}", marks=crosses(left, right)),
        )
        for left, right in zip(measured, predicted, strict=True)
    ]


def crosses(measured: Map, predicted: Map) -> list[tuple[int, int]]:
    """Cells that have a prediction and another phase. Phases have the same places in both lists of names."""
    return [
        (column, row)
        for row, (left, right) in enumerate(zip(measured.z, predicted.z, strict=True))
        for column, (here, there) in enumerate(zip(left, right, strict=True))
        if there != len(PHASES) and here != there
    ]


LOSSES, EMBEDDINGS = ["squared", "cross-entropy"], ["one-hot", "trained"]
RATES: dict[str, dict[str, list[float]]] = {
    "adam": {"quick": [1e-3, 1e-2, 1e-1], "full": [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0]},
    "sgd": {"quick": [1e-1, 1.0], "full": [1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0]},
}
SCALES = {"quick": [1e-3, 1e-2, 1e-1], "full": [1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 1.0]}
# The quick maps are coarse: the cells at the edge of the two stages, which decide the verdict, and those around.
EPSILONS = {
    "quick": [1e-20, 1e-8, 1e-4],
    "full": [1e-20, 1e-14, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-2],
}
EPSILON_RATE = 1e-3  # Adam's learning rate along epsilon: that of Figure 4

# The larger of two rates of SGD; a third of it with three times the steps gives the same course in gradient flow.
FLOW_RATES = {
    ("squared", "one-hot"): 0.3,
    ("squared", "trained"): 0.3,
    ("cross-entropy", "one-hot"): 3.0,
    ("cross-entropy", "trained"): 1.0,
}

# Loss of a prediction that knows nothing (T = v = 10): the top of the loss maps.
BLIND = {"squared": 0.99, "cross-entropy": 4.605}


@dataclass(frozen=True)
class StageMaps:
    maps: dict[str, Swept]
    epsilon: Swept
    flow: list[Row]
    config: dict[str, object]


def run_grid(context: Context, axes: Axes, **base: object) -> Swept:
    shared = {"evaluate_every": None, "floors": False, "data": {"dev_documents": 1000}, "seed": 1000 * context.seed}
    with tempfile.TemporaryDirectory() as folder:
        rows = sweeps.sweep(sweeps.build_grid({"base": shared | base, "axes": axes}), folder).rows
    return Swept(axes, rows, shared | base)


def flows(context: Context) -> list[Swept]:
    """SGD over the same time (rate x steps) at two rates: where both agree, it is gradient flow."""
    found = []
    for (loss, embedding), rate in FLOW_RATES.items():
        for part in (1, 3) if embedding in context.pick(["trained"], EMBEDDINGS) else ():
            swept = run_grid(
                context,
                {SCALE: context.pick([1e-1], [1e-2, 1e-1])},
                steps=part * context.pick(1400, 8000),
                objective={"loss": loss},
                model={"embedding": embedding},
                optimizer={"name": "sgd", "lr": rate / part},
            )
            place = {LOSS: loss, EMBEDDING: embedding, LR: rate / part}
            found.append(replace(swept, rows=[row | place for row in swept.rows]))
    return found


def measure(context: Context) -> StageMaps:
    """Optimisers' rates differ in size. A loss that is c times as large acts as an epsilon that is c times as small."""
    steps, scales, epsilons = context.pick(1000, 3000), SCALES[context.scale], EPSILONS[context.scale]
    setting: Axes = {LOSS: LOSSES, EMBEDDING: EMBEDDINGS}
    seeds: Axes = {"seed": [*context.seeds(1, 3)]}
    maps = {
        name: run_grid(
            context, setting | {LR: rates[context.scale], SCALE: scales} | seeds, steps=steps, optimizer={"name": name}
        )
        for name, rates in RATES.items()
    }
    along_epsilon: Axes = {EPS: epsilons, SCALE: context.pick([1e-2], [1e-3, 1e-2])}
    epsilon = run_grid(context, setting | along_epsilon | seeds, steps=steps, optimizer={"lr": EPSILON_RATE})
    adam, sgd, epsilon, *flow = predicted([maps["adam"], maps["sgd"], epsilon, *flows(context)])
    return StageMaps(
        {"adam": adam, "sgd": sgd},
        epsilon,
        [row for swept in flow for row in swept.rows],
        {"steps": steps, "rates": RATES, "scales": scales, "epsilons": epsilons, "flow_rates": str(FLOW_RATES)},
    )


def predicted(every: list[Swept]) -> list[Swept]:
    """The same with columns of what the laws predict. All at once: runs from the same start share a law."""
    configs = [
        training.RunConfig.of(swept.base).changed({name: row[name] for name in swept.axes if name in row})
        for swept in every
        for row in swept.rows
    ]
    # |mean| / rms of the gradients of key and query over batches of 40 documents (T = v = 10, Dirichlet of .1). In
    # topic contrasts it is .19 where queries are random and .75 where they lie in topic contrasts; this is the
    # geometric mean.
    phases = iter(laws.predicted_phases(configs, batch_noise=0.38))
    return [replace(swept, rows=[row | next(phases).as_dict() for row in swept.rows]) for swept in every]


def joined(maps: dict[str, Swept], measure: str, name: str, title: str, *, log: bool = False) -> Figure:
    """Four panels per optimiser. Panels of one loss share a scale, and diverged runs have no numbers."""
    shown = {
        name: [row for row in swept.rows if measure == "phase" or row.get("phase") != "diverged"]
        for name, swept in maps.items()
    }
    panels = [
        replace(panel, title=f"{name}, {panel.title}")
        for name, rows in shown.items()
        for panel in replace(maps[name], rows=rows).maps(measure, log=log)
    ]
    for loss in LOSSES if measure in ("loss", "contrast") else [""]:
        numeric = [panel for panel in panels if loss in panel.title and panel.names is None]
        known = [value for panel in numeric for line in panel.z for value in line if value is not None]
        for panel in numeric if known else []:
            panel.low, panel.high = min(known), BLIND[loss] if measure == "loss" else max(known)
    return Figure(
        name,
        title,
        f"{title}: learning rate to the right, initial scale upwards; one panel per optimiser, loss and embedding.",
        panels,
        columns=4,
    )


def figures_of(found: StageMaps) -> list[Figure]:
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
        predicted_figure(found.maps["sgd"], found.maps["adam"], found.epsilon),
    ]


def judge(found: StageMaps) -> Outcome:
    maps = {name: swept.rows for name, swept in found.maps.items()}
    counts = {name: Counter(row["phase"] for row in rows) for name, rows in maps.items()}
    total = sum(counts.values(), Counter())
    panel = by_setting(maps["adam"])["squared", "trained"]
    by_rate, by_scale = both_occur(panel, at=SCALE), both_occur(panel, at=LR)
    flow = [*cells("sgd", maps["sgd"]), *cells("gradient flow", found.flow)]
    adam = [*cells("adam", maps["adam"]), *cells("adam", found.epsilon.rows)]
    holds = Shares.of(flow).share >= ENOUGH
    sentences = [
        *findings(maps, found.epsilon.rows, found.flow),
        f"The laws {'hold' if holds else 'do not hold'} (at least {ENOUGH:.0%} of the SGD and gradient-flow cells must "
        f"take the predicted phase): {Shares.of(flow).sentence}.",
        f"Adam, which is not judged: {Shares.of(adam).sentence}.",
    ]
    return Outcome(
        paper="the two stages depend on initialisation and learning rate (no map)",
        theory="near zero the gradients of key and query are of second order",
        measured=", ".join(f"{total[name]} {name}" for name in PHASES) + f" of {total.total()} points",
        verdict=verdict(by_rate, by_scale),
        reason="squared loss, Adam, trained embedding: both two-stage and another phase occur along the rates at some "
        f"scale ({'yes' if by_rate else 'no'}) and along the scales at some rate ({'yes' if by_scale else 'no'}).\n"
        + "\n".join(sentences),
        figures=figures_of(found),
        tables=[
            *(
                replace(table, title=f"{table.title} ({name})")
                for name, swept in found.maps.items()
                for table in [phase_table(swept.rows, swept.axes, across=LR, up=SCALE)]
            ),
            epsilon_table(found.epsilon.rows),
            flow_table(found.flow),
            difference_table([*flow, *adam]),
        ],
        numbers={
            "phases": {name: dict(phases) for name, phases in counts.items()},
            "findings": sentences,
            "law": {"holds": holds}
            | {"sgd and gradient flow": Shares.of(flow)._asdict(), "adam": Shares.of(adam)._asdict()},
            **maps,
            "epsilon": found.epsilon.rows,
            "flow": found.flow,
        },
        config=found.config,
        ours=total["two-stage"] / total.total(),
    )


TWO_STAGE = Experiment(
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
