"""What the maps of the two stages show, in plain sentences with their numbers, and as tables."""

from collections.abc import Iterable, Sequence

import numpy as np

from topicscope.measure import PHASES, TWO_STAGE
from topicscope.pages import Row, TableData, tick
from topicscope.paper.experiment import cell

DEFAULT_EPS = 1e-8
LOSS, EMBEDDING = "objective.loss", "model.embedding"
LR, SCALE, EPS = "optimizer.lr", "model.init_scale", "optimizer.eps"
LARGE_SCALE, LEARNT_CONTRAST = 0.1, 0.05


def both_occur(rows: Sequence[Row], at: str) -> bool:
    """Whether at some value of the axis `at` two-stage and another course occur; runs that diverge do not count."""
    courses = [{row["phase"] for row in rows if row[at] == value} - {"diverged"} for value in {row[at] for row in rows}]
    return any("two-stage" in phases and len(phases) > 1 for phases in courses)


def sentences(maps: dict[str, list[Row]], along_epsilon: Sequence[Row], along_flow: Sequence[Row]) -> list[str]:
    """`maps`: the rows of each optimiser."""
    everywhere = [row for rows in maps.values() for row in rows]
    return [
        *(panel_sentence(name, *key, here) for name, rows in maps.items() for key, here in by_setting(rows).items()),
        large_start(everywhere),
        staggered(everywhere),
        *(epsilon_sentence(*key, here) for key, here in by_setting(along_epsilon).items()),
        *(flow_sentence(*key, here) for key, here in by_setting(along_flow).items()),
    ]


def by_setting(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """The rows of every loss and embedding."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row[LOSS], row[EMBEDDING]), []).append(row)
    return groups


def panel_sentence(optimiser: str, loss: str, embedding: str, rows: Sequence[Row]) -> str:
    """Counts, and where the two stages are."""
    counts = {name: sum(row["phase"] == name for row in rows) for name in PHASES}
    listed = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    two = [row for row in rows if row["phase"] == "two-stage"]
    where = ""
    if two:
        where = (
            f"; two-stage at lr {span([row[LR] for row in two])} and init_scale {span([row[SCALE] for row in two])}, "
            f"median separation {np.median([row['separation'] for row in two]):.3g}"
        )
    return f"{optimiser}, {loss}, {embedding} embedding: of {len(rows)} points {listed}{where}."


def span(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return tick(low) if low == high else f"{tick(low)} to {tick(high)}"


def large_start(rows: Sequence[Row]) -> str:
    """Where norms say nothing: the matrices start larger than they end."""
    large = [row for row in rows if row[SCALE] >= LARGE_SCALE and row["phase"] == "never"]
    learnt = [row for row in large if row["contrast"] is not None and row["contrast"] > LEARNT_CONTRAST]
    return (
        f"'Never' at initial scales of .1 and more ({len(large)} points) means that norms which start large do not "
        f"grow, not that nothing is learnt: at {len(learnt)} of these points the same-topic minus different-topic mean "
        "ends above .05."
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
    """Is the separation there without epsilon, and what does epsilon do to it?"""
    epsilons = sorted({row[EPS] for row in rows})
    at = {eps: mean_separation(row for row in rows if row[EPS] == eps) for eps in epsilons}
    least = at[epsilons[0]]
    without = "two stages" if least is not None and least >= TWO_STAGE else "no two stages"
    largest = max(((value, eps) for eps, value in at.items() if value is not None), default=(None, 0.0))
    ends = [eps for eps in epsilons if at[eps] is None]
    return (
        f"Adam's epsilon, {loss}, {embedding} embedding: {without} with hardly any epsilon (mean separation "
        f"{cell(least)} at {epsilons[0]:g}, {cell(at.get(DEFAULT_EPS))} at the usual {DEFAULT_EPS:g}, "
        f"largest {cell(largest[0])} at {largest[1]:g})"
        + (f"; from {min(ends):g} on the second stage does not come within the run." if ends else ".")
    )


def flow_sentence(loss: str, embedding: str, rows: Sequence[Row]) -> str:
    """The same time at two rates: agreement means gradient flow."""
    parts = []
    for scale in sorted({row[SCALE] for row in rows}):
        pair = sorted((row for row in rows if row[SCALE] == scale), key=lambda row: -row[LR])
        courses = [f"{row['phase']} at rate {row[LR]:.2g} (separation {cell(row.get('separation'))})" for row in pair]
        parts.append(f"from initial scale {scale:g} {' and '.join(courses)}")
    return f"SGD over the same time at two rates, {loss}, {embedding} embedding: {'; '.join(parts)}."


def epsilon_table(rows: Sequence[Row]) -> TableData:
    epsilons, scales = sorted({row[EPS] for row in rows}), sorted({row[SCALE] for row in rows})
    lines = []
    for (loss, embedding), here in by_setting(rows).items():
        for scale in scales:
            at = [[row for row in here if (row[SCALE], row[EPS]) == (scale, eps)] for eps in epsilons]
            lines.append([loss, embedding, f"{scale:g}", *(cell(mean_separation(found)) for found in at)])
    return TableData(
        "Mean stage separation along Adam's epsilon, one column each (-: no second stage)",
        ["loss", "embedding", "scale", *(f"{eps:g}" for eps in epsilons)],
        lines,
    )


def flow_table(rows: Sequence[Row]) -> TableData:
    """Half-way points in time (rate x steps), which the two rates share where they follow the flow."""
    lines = []
    for row in rows:
        halves = [row.get(f"t50_{part}") for part in ("value", "key", "query")]
        times = [None if half is None else half * row[LR] for half in halves]
        place = [row[LOSS], row[EMBEDDING], f"{row[SCALE]:g}", f"{row[LR]:.3g}", str(row["steps_done"])]
        lines.append([*place, row["phase"], cell(row.get("separation")), *map(cell, times)])
    return TableData(
        "SGD over the same time at two rates",
        [
            *("loss", "embedding", "scale", "rate", "steps", "phase", "separation"),
            *("time of t50 value", "key", "query"),
        ],
        lines,
    )
