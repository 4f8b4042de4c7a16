"""What the maps of the two stages say, in plain sentences with their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topicscope.figures.maps import Axes, Row, tick
from topicscope.figures.panels import TableData
from topicscope.measure import PHASES, TWO_STAGE

DEFAULT_EPS = 1e-8
SETTINGS = ("objective.loss", "model.embedding")


def changes(rows: Sequence[Row], along: str, fixed: str) -> bool:
    """Whether at some value of `fixed` both two-stage and another course occur along the axis; runs that diverge do not count."""
    for value in {row[fixed] for row in rows}:
        here = {row["phase"] for row in rows if row[fixed] == value and row["phase"] != "diverged"}
        if "two-stage" in here and len(here) > 1:
            return True
    return False


def sentences(
    maps: dict[str, tuple[Axes, list[Row]]], along_epsilon: Sequence[Row], along_flow: Sequence[Row]
) -> list[str]:
    return [
        *(
            panel_sentence(name, *key, here)
            for name, (_, rows) in maps.items()
            for key, here in by_setting(rows).items()
        ),
        large_start(maps),
        staggered(maps),
        *(epsilon_sentence(*key, here) for key, here in by_setting(along_epsilon).items()),
        *(flow_sentence(*key, here) for key, here in by_setting(along_flow).items()),
    ]


def by_setting(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row[SETTINGS[0]], row[SETTINGS[1]]), []).append(row)
    return found


def panel_sentence(optimiser: str, loss: str, embedding: str, rows: Sequence[Row]) -> str:
    """Counts, and where the two stages are."""
    counts = {name: sum(row["phase"] == name for row in rows) for name in PHASES}
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    two = [row for row in rows if row["phase"] == "two-stage"]
    where = ""
    if two:
        ends = {
            axis: (min(row[axis] for row in two), max(row[axis] for row in two))
            for axis in ("optimizer.lr", "model.init_scale")
        }
        middle = float(np.median([row["separation"] for row in two]))
        where = "; two-stage at " + " and ".join(
            f"{axis.rsplit('.', 1)[1]} {tick(low)}{'' if low == high else f' to {tick(high)}'}"
            for axis, (low, high) in ends.items()
        )
        where += f", median separation {middle:.3g}"
    return f"{optimiser}, {loss}, {embedding} embedding: of {len(rows)} points {told}{where}."


def large_start(maps: dict[str, tuple[Axes, list[Row]]]) -> str:
    """Where norms cannot tell: the matrices start larger than they end."""
    large = [
        row for _, rows in maps.values() for row in rows if row["model.init_scale"] >= 0.1 and row["phase"] == "never"
    ]
    learnt = [row for row in large if row["contrast"] is not None and row["contrast"] > 0.05]
    return (
        f"'Never' at scales of .1 and more ({len(large)} points) says that norms which start large do not grow, not that nothing is learnt: "
        f"{len(learnt)} of them end with a same-topic contrast above .05."
    )


def staggered(maps: dict[str, tuple[Axes, list[Row]]]) -> str:
    here = [row for _, rows in maps.values() for row in rows if row["phase"] == "staggered"]
    return (
        f"{len(here)} points are 'staggered': key and query start at least twice as late as value, but are not half-way so much later, because W_V rises "
        "again, or goes on rising, after attention has formed."
    )


def mean(rows: Sequence[Row], measure: str) -> float | None:
    known = [row[measure] for row in rows if row.get(measure) is not None]
    return float(np.mean(known)) if known else None


def said(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def epsilon_sentence(loss: str, embedding: str, rows: Sequence[Row]) -> str:
    """Is the separation there without epsilon, and what does epsilon do to it?"""
    epsilons = sorted({row["optimizer.eps"] for row in rows})
    at = {eps: mean([row for row in rows if row["optimizer.eps"] == eps], "separation") for eps in epsilons}
    least, usual = at[epsilons[0]], at.get(DEFAULT_EPS)
    ends = [eps for eps in epsilons if at[eps] is None]
    made = (
        "two stages with hardly any epsilon"
        if least is not None and least >= TWO_STAGE
        else "no two stages with hardly any epsilon"
    )
    largest = max(((value, eps) for eps, value in at.items() if value is not None), default=(None, 0.0))
    return (
        f"Epsilon, {loss}, {embedding} embedding: {made} (separation {said(least)} at {epsilons[0]:g}, {said(usual)} at the usual {DEFAULT_EPS:g}, "
        f"largest {said(largest[0])} at {largest[1]:g})"
        + (f"; from {min(ends):g} on the second stage does not come within the run." if ends else ".")
    )


def flow_sentence(loss: str, embedding: str, rows: Sequence[Row]) -> str:
    """The same time at two rates: agreement means gradient flow."""
    parts = []
    for scale in sorted({row["model.init_scale"] for row in rows}):
        pair = sorted((row for row in rows if row["model.init_scale"] == scale), key=lambda row: -row["optimizer.lr"])
        told = " and ".join(
            f"{row['phase']} ({said(row.get('separation'))}) at rate {row['optimizer.lr']:.2g}" for row in pair
        )
        parts.append(f"from scale {scale:g} {told}")
    return f"Gradient flow, {loss}, {embedding} embedding: {'; '.join(parts)}."


def epsilon_table(rows: Sequence[Row]) -> TableData:
    epsilons, scales = sorted({row["optimizer.eps"] for row in rows}), sorted({row["model.init_scale"] for row in rows})
    lines = []
    for (loss, embedding), here in by_setting(rows).items():
        for scale in scales:
            cells = [
                mean(
                    [row for row in here if row["optimizer.eps"] == eps and row["model.init_scale"] == scale],
                    "separation",
                )
                for eps in epsilons
            ]
            lines.append([loss, embedding, f"{scale:g}", *map(said, cells)])
    return TableData(
        "Stage separation along epsilon (-: no second stage)",
        ["loss", "embedding", "scale", *(f"{eps:g}" for eps in epsilons)],
        lines,
    )


def flow_table(rows: Sequence[Row]) -> TableData:
    """Half-way points in time (rate x steps), which the two rates share where they follow the flow."""
    lines = []
    for row in rows:
        times: list[Any] = [
            None if row.get(name) is None else row[name] * row["optimizer.lr"]
            for name in ("t50_value", "t50_key", "t50_query")
        ]
        place = [
            row["objective.loss"],
            row["model.embedding"],
            f"{row['model.init_scale']:g}",
            f"{row['optimizer.lr']:.3g}",
            str(row["steps_done"]),
        ]
        lines.append([*place, row["phase"], said(row.get("separation")), *map(said, times)])
    columns = [
        "loss",
        "embedding",
        "scale",
        "rate",
        "steps",
        "phase",
        "separation",
        "time of t50 value",
        "key",
        "query",
    ]
    return TableData("SGD over the same time at two rates", columns, lines)
