"""The page of a sweep: a map of any measure over any two axes, the curves of clicked points, and what failed.

write_sweep_page(Path("report.html"), "My sweep", "What was run.", axes, rows, curves)
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from topicscope.figures import PHASE_COLOURS
from topicscope.ground import write
from topicscope.report.layout import PALETTE
from topicscope.report.page import environment

CURVE_POINTS = 100
MOST_CURVES = 20_000_000
"""Bytes of curves in a page; points beyond have theirs in their folders only."""

Curves = Mapping[str, np.ndarray]


def write_sweep_page(
    path: Path,
    title: str,
    intro: str,
    axes: dict[str, list[Any]],
    rows: list[dict[str, Any]],
    curves: Iterable[Curves],
    first: str | None = None,
) -> None:
    """Write the page, whole or not at all.

    `curves` are those of each row, read one after another; `first` is the measure that the map shows first.
    """
    known = {"point", "state", "error", *axes}
    measures = list(
        dict.fromkeys(key for row in rows for key, value in row.items() if key not in known and value is not None)
    )
    kinds = {name: {type(row[name]) for row in rows if row.get(name) is not None} for name in measures}
    words = {
        name: named(name, [row[name] for row in rows if row.get(name) is not None])
        for name in measures
        if str in kinds[name] or bool in kinds[name]
    }
    measures.sort(key=lambda name: (name != first, name in words))  # words last
    places = {name: {json.dumps(value): i for i, value in enumerate(values)} for name, values in axes.items()}
    data = {
        "axes": axes,
        "measures": [*measures, "state"],
        "words": words | {"state": named("state", [row["state"] for row in rows])},
        "curves": packed(curves),
        "rows": [
            {
                "point": row["point"],
                "state": row["state"],
                "error": row.get("error"),
                "at": [places[name][json.dumps(row[name])] for name in axes],
                "measures": {name: row[name] for name in measures if row.get(name) is not None}
                | {"state": row["state"]},
            }
            for row in rows
        ],
    }
    failures = [
        (row["point"], ", ".join(f"{name}={row[name]}" for name in axes), row.get("error"))
        for row in rows
        if row["state"] == "failed"
    ]
    page = (
        environment()
        .get_template("sweep.html.jinja")
        .render(
            title=title,
            paragraphs=[p for p in re.split(r"\n\s*\n", intro) if p.strip()],
            data=data,
            failures=failures,
            plotly=Markup(get_plotlyjs()),
        )
    )
    write(path, page.encode())


def named(measure: str, found: list[Any]) -> list[dict[str, str]]:
    """Words and their colours, the same in every map."""
    if measure == "phase":
        return [{"name": name, "colour": colour} for name, colour in PHASE_COLOURS.items()]
    return [
        {"name": name, "colour": PALETTE[i % len(PALETTE)]} for i, name in enumerate(dict.fromkeys(map(str, found)))
    ]


def packed(curves: Iterable[Curves]) -> dict[str, dict[str, str]]:
    """float32 in base64, by the row's number: a tenth of what the digits would take."""
    found: dict[str, dict[str, str]] = {}
    size = 0
    for number, kept in enumerate(curves):
        if size > MOST_CURVES:
            break
        wanted = {name: values for name, values in kept.items() if name in ("step", "loss") or name.startswith("norm_")}
        for name, values in wanted.items():
            pick = np.unique(
                np.linspace(0, max(0, len(values) - 1), min(len(values), CURVE_POINTS)).round().astype(int)
            )
            text = base64.b64encode(np.asarray(values)[pick].astype("<f4").tobytes()).decode()
            found.setdefault(str(number), {})[name] = text
            size += len(text)
    return found
