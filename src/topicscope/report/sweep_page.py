"""The page of a sweep: a map of any measure over any two axes, the curves of the points that are clicked, failures.

write_sweep_page(Path("report.html"), "My sweep", "What was run.", axes, rows, curves, curve_panels={"loss": "loss"})
"""

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from topicscope.report.layout import PALETTE
from topicscope.report.page import write_html

CURVE_POINTS = 100
MOST_CURVES = 20_000_000  # bytes of curves in a page; points beyond have theirs in their folders only

Curves = Mapping[str, np.ndarray]


def write_sweep_page(
    path: Path,
    title: str,
    intro: str,
    axes: dict[str, list[Any]],
    rows: list[dict[str, Any]],
    curves: Iterable[Curves],
    *,
    curve_panels: Mapping[str, str],
    first: str | None = None,
    colours: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Write the page, whole or not at all.

    `curves` are those of each row, read one after the other. `curve_panels` says which of them are shown: by panel
    title, how their names start. `first` is the measure that the map opens with. `colours` has, for measures whose
    values are words, the words and their colours.
    """
    known = {"point", "state", "error", *axes}
    measures = list(
        dict.fromkeys(key for row in rows for key, value in row.items() if key not in known and value is not None)
    )
    values = {name: [row[name] for row in rows if row.get(name) is not None] for name in [*measures, "state"]}
    words = {
        name: word_colours(found, (colours or {}).get(name))
        for name, found in values.items()
        if any(isinstance(value, str | bool) for value in found)
    }
    measures.sort(key=lambda name: (name != first, name in words))  # words last
    places = {name: {json.dumps(value): i for i, value in enumerate(steps)} for name, steps in axes.items()}
    data = {
        "axes": axes,
        "measures": [*measures, "state"],
        "words": words,
        "palette": PALETTE,
        "curvePanels": dict(curve_panels),
        "curves": packed(curves, tuple(curve_panels.values())),
        "rows": [
            {
                "point": row["point"],
                "state": row["state"],
                "error": row.get("error"),
                "at": [places[name][json.dumps(row[name])] for name in axes],
                "measures": {name: row[name] for name in [*measures, "state"] if row.get(name) is not None},
            }
            for row in rows
        ],
    }
    failures = [
        (row["point"], ", ".join(f"{name}={row[name]}" for name in axes), row.get("error"))
        for row in rows
        if row["state"] == "failed"
    ]
    write_html(path, "sweep.html.jinja", title, intro, data=data, failures=failures)


def word_colours(values: list[Any], given: Mapping[str, str] | None) -> list[dict[str, str]]:
    """Words and their colours, the same in every map."""
    if given is None:
        given = {word: PALETTE[i % len(PALETTE)] for i, word in enumerate(dict.fromkeys(map(str, values)))}
    return [{"name": name, "colour": colour} for name, colour in given.items()]


def packed(curves: Iterable[Curves], starts: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """float32 in base64, by the row's number: a tenth of what the digits would take."""
    texts: dict[str, dict[str, str]] = {}
    size = 0
    for number, of_point in enumerate(curves):
        if size > MOST_CURVES:
            break
        wanted = {name: values for name, values in of_point.items() if name == "step" or name.startswith(starts)}
        for name, values in wanted.items():
            spread = np.linspace(0, max(0, len(values) - 1), min(len(values), CURVE_POINTS)).round()
            text = base64.b64encode(np.asarray(values)[np.unique(spread.astype(int))].astype("<f4").tobytes()).decode()
            texts.setdefault(str(number), {})[name] = text
            size += len(text)
    return texts
