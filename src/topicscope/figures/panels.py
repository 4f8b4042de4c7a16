"""What a report is made of, as data: panels, figures, tables, judgements, sections. `topicscope.report` draws them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["reproduced", "not reproduced", "undecided", "skipped"]
VERDICT_WORDS = ("reproduced", "as predicted", "not reproduced", "not as predicted", "undecided", "skipped")
"""What tables and pages say; claims that are not the paper's are as predicted, or not."""


def counted(words: Iterable[str]) -> str:
    """How many verdicts of each kind there are: '3 reproduced, 1 undecided'."""
    counts = Counter(words)
    return ", ".join(f"{counts[kind]} {kind}" for kind in VERDICT_WORDS if counts[kind])


@dataclass
class Heat:
    """A matrix as a heat map.

    With `topics` and `words_per_topic` its axes are words in the order of their topics, [MASK] first.
    """

    title: str
    z: list[list[float]]
    x_label: str = ""
    y_label: str = ""
    topics: int | None = None
    words_per_topic: int | None = None
    x: list[float] | None = None  # positions of the columns, where they are numbers
    y: list[float] | None = None
    log: bool = False  # both axes
    low: float | None = None  # ends of the colour scale; None: from the data
    high: float | None = None
    marks: list[tuple[float, float, str]] = field(default_factory=list)  # x, y, label; drawn as stars
    references: list[tuple[float, float, str]] = field(default_factory=list)  # places to compare with; drawn as rings
    contours: int = 0  # about how many lines of equal value are drawn
    z_label: str = ""  # of the colour scale
    labels: list[str] | None = None  # of rows and columns alike, where they are words with names
    shown_in: str = ""  # the `map` of texts that show the links of a cell, where rows and columns name them
    kind: Literal["heat"] = "heat"


@dataclass
class Series:
    """One curve. `low` and `high` are the ends of an interval around it. Curves of one `group` share a colour."""

    name: str
    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None
    group: str | None = None
    markers: bool = False
    thin: bool = False  # a faint curve behind the others


def banded(
    name: str, points: Sequence[tuple[float, float, tuple[float, float] | None]], group: str | None = None
) -> Series:
    """A curve of (x, y, interval), with markers. Where there is no interval, both of its ends are y."""
    ends = [interval or (y, y) for _, y, interval in points]
    xs, ys = [x for x, _, _ in points], [y for _, y, _ in points]
    return Series(name, xs, ys, [low for low, _ in ends], [high for _, high in ends], group, markers=True)


@dataclass
class Lines:
    """Curves. `bands` shade stretches of the x axis, `levels` are horizontal lines."""

    title: str
    series: list[Series]
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    bands: list[tuple[float, float, str]] = field(default_factory=list)  # from, to, label
    levels: list[tuple[float, str]] = field(default_factory=list)  # y, label
    kind: Literal["lines"] = "lines"


@dataclass
class Points:
    """Numbers with intervals by category: for each category and series a mean, and an interval around it."""

    title: str
    categories: list[str]
    series: list[Series]  # x is the index of the category
    y_label: str = ""
    levels: list[tuple[float, str]] = field(default_factory=list)
    kind: Literal["points"] = "points"


@dataclass
class Map:
    """A measure over two axes with named steps, the first row at the bottom.

    With `names` (each with its colour) the cells are words, and z holds their places in `names`.
    """

    title: str
    z: list[list[float | None]]  # None: nothing to show
    x: list[str]
    y: list[str]
    x_label: str = ""
    y_label: str = ""
    names: dict[str, str] | None = None
    low: float | None = None  # ends of the colour scale; None: from the data
    high: float | None = None
    log: bool = False  # the colour scale
    marks: list[tuple[int, int]] = field(default_factory=list)  # column and row of cells that have a cross
    kind: Literal["map"] = "map"


@dataclass
class Circles:
    """Things in a plane in which near ones are alike: areas are `sizes`, colours are `values`.

    `names` stand in the circles, `texts` where the reader points at one, `details` (things with a number each) where
    one is chosen. The axes have no unit. `colours`, where given, take the place of the colours of `values`.
    """

    title: str
    x: list[float]
    y: list[float]
    sizes: list[float]
    values: list[float]
    names: list[str]
    texts: list[list[str]]  # lines
    x_label: str = ""
    y_label: str = ""
    value_label: str = ""
    details: list[list[tuple[str, str]]] = field(default_factory=list)
    colours: list[str] | None = None
    diameter: float | None = None  # of the largest circle, in pixels; None: large enough for a name
    ends: tuple[float, float, float, float] | None = None  # left, right, bottom, top; None: from the data
    kind: Literal["circles"] = "circles"


Panel = Heat | Map | Lines | Points | Circles


@dataclass
class Figure:
    """Panels in rows of `columns`. `alt` says in words what is to be seen.

    `colours` has the colours of curves by their name or group; the others take the colours that are left.
    """

    name: str  # of the files: letters, digits, '-'
    title: str
    alt: str
    panels: Sequence[Panel]
    columns: int = 2
    colours: dict[str, str] = field(default_factory=dict)


@dataclass
class TableData:
    """A table, cells as text. On a page a long or `folded` one opens with a click."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    folded: bool = False


@dataclass(frozen=True)
class Compared:
    """The one number of a claim that stands for it in short tables. `what` defines it, with its unit."""

    name: str
    what: str
    paper: str  # '-' where the paper prints none
    ours: str


@dataclass(frozen=True)
class Judgement:
    """A claim of the paper and what came of it. `rule` decides the verdict; `reason` says why it came out so."""

    claim: str
    rule: str
    paper: str
    theory: str
    measured: str
    verdict: Verdict
    reason: str
    seconds: float | None  # that the measurement took; None: not known
    number: Compared | None = None
    sizes: str = ""  # one sentence where the paper's number and ours are not close
    shown: str = ""  # the verdict in words, where these are others

    @property
    def words(self) -> str:
        return self.shown or self.verdict


@dataclass(frozen=True)
class TextPiece:
    """A word or mark of a text, with what stands before it. `group`: a place among the groups of the text."""

    before: str
    text: str
    group: int | None = None


@dataclass(frozen=True)
class TextLinks:
    """Where each piece of a text leads to, and how much, in one of several tables; `outer` and `inner` name it.

    `data`: base64 of the numbers of pieces (two bytes each, the low one first), `keys` of them for each piece, then of
    their weights w (one byte each, 255 times the square root of w).
    """

    outer: str
    inner: str
    data: str


@dataclass(frozen=True)
class MarkedText:
    """A text whose pieces are coloured by group, with links from piece to piece that the reader looks at.

    Of each group a name, and what is shown where the reader points at one of its pieces.
    """

    title: str
    note: str
    pieces: list[TextPiece]
    groups: list[tuple[str, str]]
    links: list[TextLinks] = field(default_factory=list)
    keys: int = 0
    link_names: tuple[str, str] = ("", "")  # what the names of links are names of
    first: int = 0  # the links that are shown first
    map: str = ""  # the name by which a heat map finds the text: see `Heat.shown_in`


@dataclass(frozen=True)
class PointMap:
    """All points of a grid, to be drawn over any two of its axes; the reader chooses them, and the measure.

    `rows` have their place on every axis, their state and their measures by name. `curve_panels` says which of the
    curves of a point are shown: by panel title, how their names start. `first` is the measure that the map opens with.
    `colours` has, for measures whose values are words, the words and their colours.
    """

    axes: dict[str, list[Any]]
    rows: list[dict[str, Any]]
    curve_panels: Mapping[str, str]
    first: str | None = None
    colours: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """One part of a report. All text is plain text. `command` makes it again, with the settings in `config`."""

    title: str
    note: str = ""
    command: str = ""
    figures: list[Figure] = field(default_factory=list)
    tables: list[TableData] = field(default_factory=list)
    verdict: Judgement | None = None
    config: dict[str, Any] = field(default_factory=dict)
    texts: list[MarkedText] = field(default_factory=list)
