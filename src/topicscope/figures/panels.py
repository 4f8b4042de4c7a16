"""What a report is made of, as data: panels, figures, tables, judgements, sections. `topicscope.report` draws them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["reproduced", "not reproduced", "undecided", "skipped"]


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
    kind: Literal["map"] = "map"


@dataclass
class Circles:
    """Things in a plane in which near ones are alike: areas are `sizes`, colours are `values`.

    `names` stand in the circles, `texts` where the reader points at one. The axes have no unit.
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
