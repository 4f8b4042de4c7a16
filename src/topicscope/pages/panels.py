"""What a report is made of, as data; who makes it; and what pictures and page share (pens, ticks, places of marks).

sections(read("runs/demo"))     # the same call for a run, a probe, a sweep, ...
"""

import importlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from topicscope.ground import Result, refuse_if


@dataclass
class Heat:
    """A matrix. With `topics` and `words_per_topic` its axes are words in the order of their topics, [MASK] first."""

    title: str
    z: list[list[float]]  # rows of numbers: z[row][column]. The first row is at the top, unless `y` is given
    x_label: str = ""
    y_label: str = ""
    topics: int | None = None  # number of topics, where the axes are words
    words_per_topic: int | None = None
    x: list[float] | None = None  # positions of the columns, where they are numbers
    y: list[float] | None = None  # positions of the rows, where they are numbers
    log: bool = False
    low: float | None = None  # lower end of the colour scale; None: from the data
    high: float | None = None  # upper end of the colour scale; None: from the data
    marks: list[tuple[float, float, str]] = field(default_factory=list)  # x, y and label of stars
    references: list[tuple[float, float, str]] = field(default_factory=list)  # of rings: places to compare with
    contours: int = 0  # about how many lines of equal value are drawn
    z_label: str = ""
    labels: list[str] | None = None  # names of rows and columns alike, where they are words with names
    shown_in: str = ""  # the `map` of texts that show the links of a cell
    kind: Literal["heat"] = "heat"


@dataclass
class Series:
    name: str  # what the legend calls it
    x: list[float]  # where the values stand, such as steps (n numbers)
    y: list[float]
    low: list[float] | None = None  # lower ends of the interval at each x (n numbers); None: no interval is drawn
    high: list[float] | None = None  # upper ends of the interval (n numbers)
    group: str | None = None  # curves of one group share a colour; None: a colour of its own
    markers: bool = False
    thin: bool = False  # a faint curve behind the others


def banded(
    name: str,
    points: Iterable[tuple[float, float | None, tuple[float, float] | None]],
    group: str | None = None,
) -> Series:
    """A curve of (x, y, interval). Points without y are left out; without an interval, both of its ends are y."""
    known = [(x, y, interval or (y, y)) for x, y, interval in points if y is not None]
    low, high = ([interval[end] for _, _, interval in known] for end in (0, 1))
    return Series(name, [x for x, _, _ in known], [y for _, y, _ in known], low, high, group, markers=True)


def curve_of(name: str, points: Iterable[tuple[float, float | None]], *, markers: bool = False) -> Series:
    """A curve of (x, y) without the points that have no y."""
    known = [(float(x), y) for x, y in points if y is not None]
    return Series(name, [x for x, _ in known], [y for _, y in known], markers=markers)


def drawn(series: Iterable[Series]) -> list[Series]:
    """Those that have points."""
    return [one for one in series if one.x]


@dataclass
class Lines:
    title: str
    series: list[Series]
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    bands: list[tuple[float, float, str]] = field(default_factory=list)  # shaded: from x, to x, label
    levels: list[tuple[float, str]] = field(default_factory=list)  # horizontal lines: the y of each, and its label
    kind: Literal["lines"] = "lines"


@dataclass
class Points:
    title: str
    categories: list[str]  # names of the categories, from left to right
    series: list[Series]  # one per kind of number; its x are places in `categories`, from 0
    y_label: str = ""
    levels: list[tuple[float, str]] = field(default_factory=list)  # horizontal lines: the y of each, and its label
    kind: Literal["points"] = "points"


@dataclass
class Map:
    """A measure over two axes of a sweep, one cell per pair of values; the first row is at the bottom."""

    title: str
    z: list[list[float | None]]  # one row per name in `y`, one number per name in `x`; None: nothing to show
    x: list[str]
    y: list[str]
    x_label: str = ""
    y_label: str = ""
    # where cells are words: each word and its colour; z then holds places in `names`, from 0
    names: dict[str, str] | None = None
    low: float | None = None  # lower end of the colour scale; None: from the data
    high: float | None = None  # upper end of the colour scale
    log: bool = False  # a logarithmic colour scale
    marks: list[tuple[int, int]] = field(default_factory=list)  # cells with a cross: column and row, from 0
    kind: Literal["map"] = "map"


@dataclass
class Circles:
    """Circles in a plane, such as topics: near ones are alike. The axes have no unit."""

    title: str
    x: list[float]  # how far to the right each circle stands
    y: list[float]  # how far up it stands
    sizes: list[float]  # areas, relative to the largest
    values: list[float]  # numbers that are shown as colours
    names: list[str]  # what is written in the circles
    texts: list[list[str]]  # for each circle the lines that are shown when the reader points at it
    x_label: str = ""
    y_label: str = ""
    value_label: str = ""
    details: list[list[tuple[str, str]]] = field(default_factory=list)  # of each: names and numbers, shown on a click
    colours: list[str] | None = None  # for each circle, in place of those of `values`; None: by `values`
    diameter: float = 56.0  # of the largest circle: pixels on the page, points in a picture. 56: room for a name
    ends: tuple[float, float, float, float] | None = None  # of the axes: left, right, bottom, top; None: from the data
    kind: Literal["circles"] = "circles"


Panel = Heat | Map | Lines | Points | Circles


Verdict = Literal["reproduced", "not reproduced", "undecided", "skipped"]
# what tables and pages say; claims that are not the paper's are as predicted, or not
VERDICT_WORDS = ("reproduced", "as predicted", "not reproduced", "not as predicted", "undecided", "skipped")


def counted(words: Iterable[str]) -> str:
    counts = Counter(words)
    return ", ".join(f"{counts[kind]} {kind}" for kind in VERDICT_WORDS if counts[kind])


@dataclass
class Figure:
    name: str  # name of its files: letters, digits and '-'
    title: str
    alt: str  # what the figure shows, in words, for those who cannot see it
    panels: Sequence[Panel]  # the panels, row by row
    columns: int = 2
    colours: dict[str, str] = field(default_factory=dict)  # by name or group of a curve; others take those left


@dataclass
class TableData:
    """A table of a report. Its cells are text, rounded as the page shows them."""

    title: str
    columns: list[str]
    rows: list[list[str]]  # the cells, one list per row, as long as `columns`
    folded: bool = False  # whether a page shows only its title until the reader clicks it


@dataclass(frozen=True)
class Compared:
    """The number that stands for a claim in short tables, as the paper has it and as measured here."""

    name: str  # short name of the number
    what: str  # what it is, with its unit
    paper: str  # the paper's number as text; '-' where it prints none
    ours: str  # the number as measured here, as text


@dataclass(frozen=True)
class Judgement:
    claim: str
    rule: str  # how the verdict follows from the numbers; fixed before the run
    paper: str
    theory: str
    measured: str
    verdict: Verdict  # 'reproduced', 'not reproduced', 'undecided' or 'skipped'
    reason: str  # why the rule gives this verdict
    seconds: float | None  # how long the measurement took; None: not known
    number: Compared | None = None  # the number that stands for the claim
    sizes: str = ""  # a sentence where the paper's number and ours are not close; else empty
    shown: str = ""  # what pages say in place of `verdict`; empty: the verdict itself. `words` is the one that is shown

    @property
    def words(self) -> str:
        return self.shown or self.verdict


@dataclass(frozen=True)
class MarkedText:
    """A text whose words are coloured by group (topic), with links from word to word (attention)."""

    title: str
    note: str
    # its words and marks in order: what stands before it (a space, or nothing), the word, and its group as a place in
    # `groups` from 0; None: it has no colour
    pieces: list[tuple[str, str, int | None]]
    # for each group its name, and what is shown when the reader points at one of its words
    groups: list[tuple[str, str]]
    # the links of each head: two names, such as layer and head, and in base64 two tables with one row per piece and
    # `keys` columns. First the pieces that it leads to (two bytes each, the low one first), then the weights w (one
    # byte: 255 times the square root)
    links: list[tuple[str, str, str]] = field(default_factory=list)
    keys: int = 0  # number of links per piece
    link_names: tuple[str, str] = ("", "")  # what the two names of links are, such as ('layer', 'head')
    first: int = 0  # place in `links` of the table that is shown first
    map: str = ""  # name by which a heat map finds the text: see `Heat.shown_in`


@dataclass(frozen=True)
class PointMap:
    axes: dict[str, list[Any]]  # for each axis its values
    rows: list[dict[str, Any]]  # for each point its name, its value on every axis, its state and its measures
    curve_panels: Mapping[str, str]  # panels of a point's curves: title, and how the names of its curves begin
    first: str | None = None  # the measure that the map opens with; None: any
    colours: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of measures in words: by word
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of measures in words: by word


@dataclass(frozen=True)
class Section:
    """One part of a report: figures, tables, texts and what they show. All text is plain text."""

    title: str
    note: str = ""  # what it shows
    command: str = ""  # the command that makes it again, with the settings in `config`
    figures: list[Figure] = field(default_factory=list)
    tables: list[TableData] = field(default_factory=list)
    verdict: Judgement | None = None  # the judgement on a claim, or None
    config: Mapping[str, object] = field(default_factory=dict)  # the settings, as the page lists them
    texts: list[MarkedText] = field(default_factory=list)  # documents with coloured words


BUILDERS = {
    "dynamics": ".theory.dynamics_sections",
    "landscape": ".theory.landscape_sections",
    "optimum": ".theory.optimum_sections",
    "pretrain": ".timelines.pretrain_sections",
    "sweep": ".maps.sweep_sections",
    "theorem": ".theory.theorem_sections",
    "train": ".runs.run_sections",
    "probe": ".probe.probe_sections",
    "timeline": ".timelines.timeline_sections",
    "topics": ".topics.topic_model_sections",
    "words": ".topics.word_sections",
}  # by kind: module of this room (with '.' before it) or any other, and its function from the result to its sections


def sections(result: Result) -> list[Section]:
    known = ", ".join(BUILDERS)
    refuse_if(result.kind not in BUILDERS, f"no figures for results of kind {result.kind!r}; expected one of: {known}")
    module, _, function = BUILDERS[result.kind].rpartition(".")
    return getattr(importlib.import_module(module, __package__), function)(result)


NORM_CURVES = {
    "norm_key": "W_K (key)",
    "norm_query": "W_Q (query)",
    "norm_value": "W_V (value)",
    "norm_embedding": "W_E (embedding)",
    "norm_head": "W_pred (head)",
}  # names of curves by those of metrics
BOTH = "W_K, W_Q (key, query)"  # where they are predicted together
MATRIX_COLOURS = dict(
    zip([*NORM_CURVES.values(), BOTH], ("#0072B2", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#0072B2"), strict=True)
)  # by the name of a curve

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
    others = enumerate(key for key in keys if key not in given)
    chosen = {key: Pen(free[i % len(free)], i // len(free) % DASH_COUNT) for i, key in others}
    return chosen | {key: Pen(colour, 0) for key, colour in given.items()}


def pen_key(series: Series) -> str:
    return series.name if series.group is None else series.group


def groups(panel: Lines | Points) -> dict[str, Series]:
    first: dict[str, Series] = {}
    for series in panel.series:
        first.setdefault(pen_key(series), series)
    return first


def topic_ticks(heat: Heat, length: int) -> tuple[list[float], list[str]] | None:
    """The middles of the topics' blocks and their numbers, or the names of rows and columns; None without either."""
    if heat.labels is not None:
        named = range(0, length, math.ceil(length / MOST_NAMES))
        return [float(i) for i in named], [heat.labels[i] for i in named]
    topics, v = heat.topics, heat.words_per_topic
    if topics is None or v is None or length != topics * v + 1:  # [MASK], then topic by topic
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
    """Stars and rings; one outside the map moves to its edge. Labels stand towards the middle, those of rings below."""
    xs, ys = sorted(positions(heat.x, len(heat.z[0]))), sorted(positions(heat.y, len(heat.z)))
    middle = math.sqrt(xs[0] * xs[-1]) if heat.log else (xs[0] + xs[-1]) / 2
    shapes: list[tuple[Shape, list[tuple[float, float, str]]]] = [("star", heat.marks), ("ring", heat.references)]
    placed = []
    for shape, x, y, label in ((shape, *mark) for shape, marks in shapes for mark in marks):
        sides: dict[Shape, bool] = {"left": x < xs[0], "right": x > xs[-1], "down": y < ys[0], "up": y > ys[-1]}
        side = next((name for name, is_out in sides.items() if is_out), None)
        inside = (min(max(x, xs[0]), xs[-1]), min(max(y, ys[0]), ys[-1]))
        beside: Literal["left", "right"] = "left" if inside[0] > middle else "right"
        text = label if side is None else f"{label} (off the edge)"
        place = "below" if shape == "ring" and side is None else beside
        placed.append(PlacedMark(*inside, text, side or shape, place))
    return placed


def placed_bands(panel: Lines | Points) -> list[tuple[float, float, str]]:
    """An end that the axis cannot show (infinite, or not positive on a log axis) moves to the end of the data."""
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


SMALLEST_CIRCLE = 8.0  # its diameter


def in_order(circles: Circles) -> Circles:
    """In the order of drawing, so that small circles lie on top; with their diameters in place of `sizes`."""
    largest = max(circles.sizes, default=0.0) or 1.0
    across = [max(SMALLEST_CIRCLE, circles.diameter * math.sqrt(max(0.0, size) / largest)) for size in circles.sizes]
    order = sorted(range(len(across)), key=lambda i: (-circles.sizes[i], i))
    names = ["x", "y", "values", "names", "texts", *(["colours"] if circles.colours else [])]
    ordered: dict[str, Any] = {name: [getattr(circles, name)[i] for i in order] for name in names}
    return replace(circles, **ordered, sizes=[across[i] for i in order])


def positions(given: list[float] | None, length: int) -> list[float]:
    return [float(i) for i in range(length)] if given is None else given


def dodge(index: int, count: int) -> float:
    """How far points of one category stand beside its tick, so that their intervals do not cover each other."""
    return (index - (count - 1) / 2) * min(0.18, 0.7 / max(count, 1))
