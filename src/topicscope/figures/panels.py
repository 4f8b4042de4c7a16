"""Panels as data: heat maps, curves, points, maps and circles. `topicscope.report` draws them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass
class Heat:
    """A matrix as a heat map.

    With `topics` and `words_per_topic` its axes are words in the order of their topics, [MASK] first.

    Attributes:
        title: Of the panel.
        z: Rows of numbers.
        x_label: Of the columns.
        y_label: Of the rows.
        topics: Number of topics.
        words_per_topic: Words of each.
        x: Positions of the columns, where they are numbers.
        y: Positions of the rows, where they are numbers.
        log: Both axes are logarithmic.
        low: Lower end of the colour scale; None: from the data.
        high: Upper end.
        marks: x, y and label of places that are drawn as stars.
        references: x, y and label of places to compare with, drawn as rings.
        contours: About how many lines of equal value are drawn.
        z_label: Of the colour scale.
        labels: Of rows and columns alike, where they are words with names.
        shown_in: The `map` of texts that show the links of a cell.
        kind: 'heat'.

    Example:
        >>> Heat("W_V", [[1.0, 0.0], [0.0, 1.0]]).kind
        'heat'
    """

    title: str
    z: list[list[float]]
    x_label: str = ""
    y_label: str = ""
    topics: int | None = None
    words_per_topic: int | None = None
    x: list[float] | None = None
    y: list[float] | None = None
    log: bool = False
    low: float | None = None
    high: float | None = None
    marks: list[tuple[float, float, str]] = field(default_factory=list)
    references: list[tuple[float, float, str]] = field(default_factory=list)
    contours: int = 0
    z_label: str = ""
    labels: list[str] | None = None
    shown_in: str = ""
    kind: Literal["heat"] = "heat"


@dataclass
class Series:
    """One curve. Curves of one `group` share a colour.

    Attributes:
        name: In the legend.
        x: Places.
        y: Values.
        low: Lower ends of an interval around it.
        high: Upper ends.
        group: Its group, or None.
        markers: Draw a marker at each place.
        thin: A faint curve behind the others.

    Example:
        >>> Series("loss", [0, 1], [2.0, 1.0]).thin
        False
    """

    name: str
    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None
    group: str | None = None
    markers: bool = False
    thin: bool = False


def banded(
    name: str, points: Sequence[tuple[float, float, tuple[float, float] | None]], group: str | None = None
) -> Series:
    """A curve of (x, y, interval), with markers. Where there is no interval, both of its ends are y."""
    ends = [interval or (y, y) for _, y, interval in points]
    xs, ys = [x for x, _, _ in points], [y for _, y, _ in points]
    return Series(name, xs, ys, [low for low, _ in ends], [high for _, high in ends], group, markers=True)


@dataclass
class Lines:
    """Curves in one panel.

    Attributes:
        title: Of the panel.
        series: The curves.
        x_label: Of the x axis.
        y_label: Of the y axis.
        log_x: A logarithmic x axis.
        log_y: A logarithmic y axis.
        bands: From, to and label of shaded stretches of the x axis.
        levels: y and label of horizontal lines.
        kind: 'lines'.

    Example:
        >>> Lines("loss", [Series("loss", [0, 1], [2.0, 1.0])], levels=[(0.5, "floor")]).kind
        'lines'
    """

    title: str
    series: list[Series]
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    bands: list[tuple[float, float, str]] = field(default_factory=list)
    levels: list[tuple[float, str]] = field(default_factory=list)
    kind: Literal["lines"] = "lines"


@dataclass
class Points:
    """Numbers with intervals by category: for each category and series a mean, and an interval around it.

    Attributes:
        title: Of the panel.
        categories: Their names.
        series: x is the index of the category.
        y_label: Of the y axis.
        levels: y and label of horizontal lines.
        kind: 'points'.

    Example:
        >>> Points("cosine", ["bert"], [Series("same", [0], [0.3], low=[0.2], high=[0.4])]).categories
        ['bert']
    """

    title: str
    categories: list[str]
    series: list[Series]
    y_label: str = ""
    levels: list[tuple[float, str]] = field(default_factory=list)
    kind: Literal["points"] = "points"


@dataclass
class Map:
    """A measure over two axes with named steps, the first row at the bottom.

    With `names` (each with its colour) the cells are words, and z holds their places in `names`.

    Attributes:
        title: Of the panel.
        z: Rows of numbers; None: nothing to show.
        x: Names of the columns.
        y: Names of the rows.
        x_label: Of the x axis.
        y_label: Of the y axis.
        names: Words and their colours.
        low: Lower end of the colour scale; None: from the data.
        high: Upper end.
        log: A logarithmic colour scale.
        marks: Column and row of cells that have a cross.
        kind: 'map'.

    Example:
        >>> Map("loss", [[1.0, None]], ["0.1", "0.2"], ["seed 0"]).kind
        'map'
    """

    title: str
    z: list[list[float | None]]
    x: list[str]
    y: list[str]
    x_label: str = ""
    y_label: str = ""
    names: dict[str, str] | None = None
    low: float | None = None
    high: float | None = None
    log: bool = False
    marks: list[tuple[int, int]] = field(default_factory=list)
    kind: Literal["map"] = "map"


@dataclass
class Circles:
    """Things in a plane in which near ones are alike. The axes have no unit.

    Attributes:
        title: Of the panel.
        x: Places to the right.
        y: Places upwards.
        sizes: Areas.
        values: Give the colours.
        names: Stand in the circles.
        texts: Lines that are shown where the reader points at a circle.
        x_label: Of the x axis.
        y_label: Of the y axis.
        value_label: Of the colours.
        details: Things with a number each, shown where a circle is chosen.
        colours: Take the place of the colours of `values`.
        diameter: Of the largest circle, in pixels; None: large enough for a name.
        ends: Left, right, bottom and top; None: from the data.
        kind: 'circles'.

    Example:
        >>> Circles("topics", [0.0], [0.0], [1.0], [0.5], ["water"], [["frog toad"]]).kind
        'circles'
    """

    title: str
    x: list[float]
    y: list[float]
    sizes: list[float]
    values: list[float]
    names: list[str]
    texts: list[list[str]]
    x_label: str = ""
    y_label: str = ""
    value_label: str = ""
    details: list[list[tuple[str, str]]] = field(default_factory=list)
    colours: list[str] | None = None
    diameter: float | None = None
    ends: tuple[float, float, float, float] | None = None
    kind: Literal["circles"] = "circles"


Panel = Heat | Map | Lines | Points | Circles
