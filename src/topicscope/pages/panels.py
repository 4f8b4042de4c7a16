"""Panels as data: heat maps, curves, points, maps and circles. `topicscope.pages` draws them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass
class Heat:
    """A matrix as a heat map.

    With `topics` and `words_per_topic` its axes are words in the order of their topics, [MASK] first.

    Attributes:
        title: Title of the panel.
        z: Rows of numbers: z[row][column]. The first row is at the top, unless `y` is given.
        x_label: Label of the columns.
        y_label: Label of the rows.
        topics: Number of topics, where the axes are words.
        words_per_topic: Number of words in each topic.
        x: Positions of the columns, where they are numbers.
        y: Positions of the rows, where they are numbers.
        log: Both axes are logarithmic.
        low: Lower end of the colour scale; None: from the data.
        high: Upper end of the colour scale; None: from the data.
        marks: x, y and label of places that are drawn as stars.
        references: x, y and label of places to compare with, drawn as rings.
        contours: About how many lines of equal value are drawn.
        z_label: Label of the colour scale.
        labels: Names of rows and columns alike, where they are words with names.
        shown_in: The `map` of texts that show the links of a cell.
        kind: 'heat'.

    Example:
        >>> from topicscope.pages import csv_of
        >>> loss = [[0.9, 0.7], [0.8, 0.6]]  # rows go with y, columns with x
        >>> print(csv_of(Heat("loss", loss, "beta", "alpha", x=[1.0, 10.0], y=[0.1, 1.0], log=True)), end="")
        x,y,value
        1.0,0.1,0.9
        10.0,0.1,0.7
        1.0,1.0,0.8
        10.0,1.0,0.6
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
    """One curve of a panel, with or without an interval around it.

    Attributes:
        name: What the legend calls it.
        x: Where the values stand, such as steps (n numbers).
        y: The values (n numbers).
        low: Lower ends of the interval at each x (n numbers); None: no interval is drawn.
        high: Upper ends of the interval (n numbers).
        group: Curves of one group share a colour; None: a colour of its own.
        markers: Draw a marker at each place.
        thin: A faint curve behind the others.

    Example:
        >>> loss = Series("seed 0", x=[0, 100], y=[2.0, 1.0], low=[1.9, 0.8], high=[2.1, 1.2])
        >>> from topicscope.pages import csv_of
        >>> print(csv_of(Lines("dev loss", [loss], x_label="step")), end="")
        series,x,y,low,high
        seed 0,0,2.0,1.9,2.1
        seed 0,100,1.0,0.8,1.2
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
        title: Title of the panel.
        series: The curves.
        x_label: Label of the x axis.
        y_label: Label of the y axis.
        log_x: A logarithmic x axis.
        log_y: A logarithmic y axis.
        bands: Shaded stretches of the x axis: where each begins, where it ends, its label.
        levels: Horizontal lines: the y of each, and its label.
        kind: 'lines'.

    Example:
        >>> from topicscope.pages import Figure
        >>> from topicscope.pages import canvas
        >>> panel = Lines("loss", [Series("dev", [0, 100], [2.0, 1.0])], "step", "loss", levels=[(0.5, "floor")])
        >>> axes = canvas(Figure("loss", "Loss", "Loss by step.", [panel])).axes[0]  # what matplotlib draws
        >>> [[float(y) for y in line.get_ydata()] for line in axes.get_lines()]  # the curve, and the level
        [[2.0, 1.0], [0.5, 0.5]]
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
        title: Title of the panel.
        categories: Names of the categories, from left to right.
        series: One per kind of number; its x are places in `categories`, from 0.
        y_label: Label of the y axis.
        levels: Horizontal lines: the y of each, and its label.
        kind: 'points'.

    Example:
        >>> from topicscope.pages import csv_of
        >>> cosine = Series("same topic", x=[0, 1], y=[0.3, 0.2], low=[0.2, 0.1], high=[0.4, 0.3])
        >>> print(csv_of(Points("cosine", ["bert", "gpt2"], [cosine])), end="")
        series,x,y,low,high
        same topic,bert,0.3,0.2,0.4
        same topic,gpt2,0.2,0.1,0.3
    """

    title: str
    categories: list[str]
    series: list[Series]
    y_label: str = ""
    levels: list[tuple[float, str]] = field(default_factory=list)
    kind: Literal["points"] = "points"


@dataclass
class Map:
    """A measure over two axes of a sweep, one cell per pair of values; the first row is at the bottom.

    With `names` the cells are words, and z holds the place of each word in `names`, from 0.

    Attributes:
        title: Title of the panel.
        z: One row per name in `y`, one number per name in `x`; None: nothing to show.
        x: Names of the columns.
        y: Names of the rows.
        x_label: Label of the x axis.
        y_label: Label of the y axis.
        names: Where cells are words: each word and its colour.
        low: Lower end of the colour scale; None: from the data.
        high: Upper end of the colour scale.
        log: A logarithmic colour scale.
        marks: Cells with a cross: column and row, from 0.
        kind: 'map'.

    Example:
        >>> from topicscope.pages import csv_of
        >>> phases = {"two-stage": "#0072B2", "at once": "#E69F00"}
        >>> phase = Map("phase", [[0.0, 1.0, None]], x=["0.001", "0.01", "0.1"], y=["seed 0"], names=phases)
        >>> print(csv_of(phase), end="")  # the third point has not been run
        x,y,value
        0.001,seed 0,two-stage
        0.01,seed 0,at once
        0.1,seed 0,
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
    """Circles in a plane, such as topics: near ones are alike. The axes have no unit.

    Attributes:
        title: Title of the panel.
        x: How far to the right each circle stands.
        y: How far up it stands.
        sizes: Areas, relative to the largest.
        values: Numbers that are shown as colours.
        names: What is written in the circles.
        texts: Of each circle the lines that are shown when the reader points at it.
        x_label: Label of the x axis.
        y_label: Label of the y axis.
        value_label: Label of the colours.
        details: Of each circle a list of (name, number as text), shown when the reader clicks it.
        colours: Of each circle, in place of those of `values`; None: by `values`.
        diameter: Diameter of the largest circle, in pixels; None: large enough for a name.
        ends: Left, right, bottom and top end of the axes; None: from the data.
        kind: 'circles'.

    Example:
        >>> from topicscope.pages import csv_of
        >>> share, coherence, words = [0.6, 0.4], [0.5, 0.2], [["frog toad"], ["opera violin"]]
        >>> print(csv_of(Circles("topics", [0.5, -0.5], [0.0, 0.0], share, coherence, ["0", "1"], words)), end="")
        name,x,y,size,value,text
        0,0.5,0.0,0.6,0.5,frog toad
        1,-0.5,0.0,0.4,0.2,opera violin
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
