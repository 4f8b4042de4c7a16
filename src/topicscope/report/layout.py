"""What pictures and page share: pens, ticks, and where marks and bands are placed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from topicscope.figures import Figure, Heat, Lines, Map, Series
from topicscope.report.run_figure import COLOURS

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C8C8C")
DASHES = ("-", "--", ":", "-.")
GREY = "#808080"  # levels and bands: seen on white and on black
BAND_ALPHAS = (0.13, 0.28)
MOST_TICKS = 10


@dataclass(frozen=True)
class Pen:
    """How the curves of one group are drawn, the same in all panels of a figure."""

    colour: str
    dash: int  # index into DASHES


def pens(figure: Figure) -> dict[str, Pen]:
    """A pen for each group (or curve without one). Parts of the model keep the colours that they have in a run's picture."""
    keys = dict.fromkeys(
        pen_key(series) for panel in figure.panels if not isinstance(panel, Heat | Map) for series in panel.series
    )
    taken = {COLOURS[key] for key in keys if key in COLOURS}
    free = [colour for colour in PALETTE if colour not in taken] or list(PALETTE)
    others = [key for key in keys if key not in COLOURS]
    chosen = {key: Pen(free[i % len(free)], i // len(free) % len(DASHES)) for i, key in enumerate(others)}
    return chosen | {key: Pen(COLOURS[key], 0) for key in keys if key in COLOURS}


def pen_key(series: Series) -> str:
    return series.name if series.group is None else series.group


def topic_ticks(heat: Heat, length: int) -> tuple[list[float], list[str]] | None:
    """The middles of the topics' blocks and their numbers, or the names of rows and columns; None where the axis is of neither kind.

    An axis of words has [MASK], then topic by topic.
    """
    if heat.labels is not None:
        return [float(i) for i in range(length)], heat.labels
    topics, v = heat.topics, heat.words_per_topic
    if topics is None or v is None or length != topics * v + 1:
        return None
    shown = range(0, topics, math.ceil(topics / MOST_TICKS))
    return [1 + v * t + (v - 1) / 2 for t in shown], [f"{t + 1}" for t in shown]


def placed_marks(heat: Heat) -> list[tuple[float, float, str]]:
    """The marks; one outside the map is moved to its edge, and its label says so."""
    xs, ys = positions(heat.x, len(heat.z[0])), positions(heat.y, len(heat.z))
    placed = []
    for x, y, label in heat.marks:
        inside = float(np.clip(x, min(xs), max(xs))), float(np.clip(y, min(ys), max(ys)))
        placed.append((*inside, label if inside == (x, y) else f"{label} (off the edge)"))
    return placed


def placed_bands(lines: Lines) -> list[tuple[float, float, str]]:
    """The bands; an end that the axis cannot show (infinite, or not positive on a log axis) moves to the end of the data."""
    xs = [x for series in lines.series for x in series.x if math.isfinite(x) and (x > 0 or not lines.log_x)]
    if not xs:
        return []

    def shown(x: float, end: float) -> float:
        return x if math.isfinite(x) and (x > 0 or not lines.log_x) else end

    return [(shown(low, min(xs)), shown(high, max(xs)), label) for low, high, label in lines.bands]


def positions(given: list[float] | None, length: int) -> list[float]:
    return [float(i) for i in range(length)] if given is None else given


def dodge(index: int, count: int) -> float:
    """How far points of one category stand beside its tick, so that their intervals do not cover each other."""
    return (index - (count - 1) / 2) * min(0.18, 0.7 / max(count, 1))
