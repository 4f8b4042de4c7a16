"""What pictures and page share: pens, ticks, legends, and where marks and bands are placed."""

import math
from dataclasses import dataclass
from typing import Literal

from topicscope.pages.panels import MATRIX_COLOURS, Circles, Figure, Heat, Lines, Map, Points, Series

# Okabe and Ito's colours, which colour-blind readers can tell apart.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C8C8C")
GREY, MARK_COLOUR = "#808080", "#D55E00"  # levels and bands: seen on white and on black
BAND_ALPHAS = (0.13, 0.28)
MOST_TICKS = 10
MOST_NAMES = 31  # along a side: [MASK] and 30 words; of more, every second, third, ... has its name
DASH_COUNT = 4
NOTHING = "nothing to show"


@dataclass(frozen=True)
class Pen:
    """How the curves of one group are drawn, the same in all panels of a figure."""

    colour: str
    dash: int  # number of the dash pattern, below DASH_COUNT


def pens(figure: Figure) -> dict[str, Pen]:
    """A pen for each group (or curve without one): the figure's own colour, or the next free one of the palette."""
    keys = dict.fromkeys(
        pen_key(series)
        for panel in figure.panels
        if not isinstance(panel, Heat | Map | Circles)
        for series in panel.series
    )
    own = MATRIX_COLOURS | figure.colours  # a matrix has one colour in all figures
    given = {key: own[key] for key in keys if key in own}
    free = [colour for colour in PALETTE if colour not in given.values()] or list(PALETTE)
    others = [key for key in keys if key not in given]
    chosen = {key: Pen(free[i % len(free)], i // len(free) % DASH_COUNT) for i, key in enumerate(others)}
    return chosen | {key: Pen(colour, 0) for key, colour in given.items()}


def pen_key(series: Series) -> str:
    return series.name if series.group is None else series.group


def groups(panel: Lines | Points) -> dict[str, Series]:
    first: dict[str, Series] = {}
    for series in panel.series:
        first.setdefault(pen_key(series), series)
    return first


def topic_ticks(heat: Heat, length: int) -> tuple[list[float], list[str]] | None:
    """The middles of the topics' blocks and their numbers, or the names of rows and columns.

    None where the axis is of neither kind. An axis of words has [MASK], then topic by topic.
    """
    if heat.labels is not None:
        named = range(0, length, math.ceil(length / MOST_NAMES))
        return [float(i) for i in named], [heat.labels[i] for i in named]
    topics, v = heat.topics, heat.words_per_topic
    if topics is None or v is None or length != topics * v + 1:
        return None
    shown = range(0, topics, math.ceil(topics / MOST_TICKS))
    return [1 + v * t + (v - 1) / 2 for t in shown], [f"{t + 1}" for t in shown]


Shape = Literal["star", "ring", "left", "right", "down", "up"]


@dataclass(frozen=True)
class PlacedMark:
    """A mark where it can be seen. `shape` is the side at which it left the map, where it lies outside."""

    x: float
    y: float
    label: str
    shape: Shape
    label_at: Literal["left", "right", "below"]


def placed_marks(heat: Heat) -> list[PlacedMark]:
    """Marks (stars) and references (rings); one outside the map is moved to its edge, and its label says so.

    Labels of marks stand towards the middle, to stay inside; those of references below, to keep apart from them.
    """
    xs, ys = sorted(positions(heat.x, len(heat.z[0]))), sorted(positions(heat.y, len(heat.z)))
    middle = math.sqrt(xs[0] * xs[-1]) if heat.log else (xs[0] + xs[-1]) / 2
    shapes: list[tuple[Shape, list[tuple[float, float, str]]]] = [("star", heat.marks), ("ring", heat.references)]
    placed = []
    for shape, x, y, label in ((shape, *mark) for shape, marks in shapes for mark in marks):
        sides: dict[Shape, bool] = {"left": x < xs[0], "right": x > xs[-1], "down": y < ys[0], "up": y > ys[-1]}
        side = next((name for name, is_out in sides.items() if is_out), None)
        inside = (min(max(x, xs[0]), xs[-1]), min(max(y, ys[0]), ys[-1]))
        text = label if side is None else f"{label} (off the edge)"
        beside: Literal["left", "right"] = "left" if inside[0] > middle else "right"
        place = "below" if shape == "ring" and side is None else beside
        placed.append(PlacedMark(*inside, text, side or shape, place))
    return placed


def placed_bands(panel: Lines | Points) -> list[tuple[float, float, str]]:
    """The bands, those of points being none.

    An end that the axis cannot show (infinite, or not positive on a log axis) moves to the end of the data.
    """
    if isinstance(panel, Points):
        return []

    def can_show(x: float) -> bool:
        return math.isfinite(x) and (x > 0 or not panel.log_x)

    xs = [x for series in panel.series for x in series.x if can_show(x)]
    if not xs:
        return []
    return [
        (low if can_show(low) else min(xs), high if can_show(high) else max(xs), label)
        for low, high, label in panel.bands
    ]


LARGEST_CIRCLE = 56.0  # its diameter: pixels on the page, points in a picture
SMALLEST_CIRCLE = 8.0


def diameters(circles: Circles) -> list[float]:
    largest = max(circles.sizes, default=0.0) or 1.0
    diameter = LARGEST_CIRCLE if circles.diameter is None else circles.diameter
    return [max(SMALLEST_CIRCLE, diameter * math.sqrt(max(0.0, size) / largest)) for size in circles.sizes]


def largest_first(circles: Circles) -> list[int]:
    """The order of drawing, so that small circles lie on top."""
    return sorted(range(len(circles.sizes)), key=lambda i: (-circles.sizes[i], i))


def positions(given: list[float] | None, length: int) -> list[float]:
    return [float(i) for i in range(length)] if given is None else given


def dodge(index: int, count: int) -> float:
    """How far points of one category stand beside its tick, so that their intervals do not cover each other."""
    return (index - (count - 1) / 2) * min(0.18, 0.7 / max(count, 1))
