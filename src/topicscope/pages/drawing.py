"""Figures as matplotlib draws them: PNG, SVG, and the numbers behind them as CSV."""

import csv
import io
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.patheffects
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from topicscope.ground import write
from topicscope.pages.panels import (
    BAND_ALPHAS,
    GREY,
    MARK_COLOUR,
    MOST_TICKS,
    NOTHING,
    Circles,
    Figure,
    Heat,
    Lines,
    Map,
    Panel,
    Pen,
    Points,
    Series,
    dodge,
    groups,
    in_order,
    pen_key,
    pens,
    placed_bands,
    placed_marks,
    positions,
    topic_ticks,
)

# Small panels and large letters: a figure of two columns is still read at half its width.
STYLE: Any = {
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "legend.fontsize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "svg.hashsalt": "topicscope",
    "figure.constrained_layout.use": True,
}
LEGEND_LETTERS = 32  # where lines of text end
DASHES = ("-", "--", ":", "-.")
LEVEL_DASHES = ((5, 2), (1.5, 1.5), (6, 2, 1.5, 2), (9, 3))
LINE_WIDTH, THIN_WIDTH, LEVEL_WIDTH = 1.6, 0.6, 1.4
LABEL_ROOM, MANY_LABELS, SHORT_LABEL = 170, 10, 3  # points of all names of an axis; names; letters
TURNED: Any = {"ha": "right", "rotation_mode": "anchor"}  # tick labels that are turned end at their tick
MOST_MAP_TICKS = 8
SHAPES = {"star": "*", "ring": "o", "left": "<", "right": ">", "down": "v", "up": "^"}
LABEL_PLACES: dict[str, tuple[tuple[int, int], Literal["left", "center", "right"]]] = {
    "left": ((-9, 0), "right"),
    "right": ((9, 0), "left"),
    "below": ((0, -14), "center"),
}  # of a mark's label: points from the mark, and alignment

Pens = dict[str, Pen]
Entries = list[tuple[str, mpl.artist.Artist]]  # names and handles of a legend


def plain(text: str) -> str:
    """Text as it is: a dollar sign does not start a formula."""
    return text.replace("$", r"\$")


def wrapped(text: str, width: float) -> str:
    return textwrap.fill(plain(text), round(width))


def draw_heat(axes: Axes, heat: Heat, _pens: Pens) -> None:
    z = np.array(heat.z, dtype=float)
    xs, ys = positions(heat.x, z.shape[1]), positions(heat.y, z.shape[0])
    colours: Any = {"cmap": "cividis", "vmin": heat.low, "vmax": heat.high}
    if heat.x is None and heat.y is None:
        colours |= {"interpolation": "nearest", "aspect": "equal" if z.shape[0] == z.shape[1] else "auto"}
        image: mpl.cm.ScalarMappable = axes.imshow(z, **colours)
    else:
        image = axes.pcolormesh(xs, ys, z, shading="nearest", rasterized=True, **colours)
        if heat.log:
            axes.set(xscale="log", yscale="log")
            axes.minorticks_off()
        if heat.y is None:  # rows of a matrix: the first on top
            axes.invert_yaxis()
    if heat.contours and np.ptp(z[np.isfinite(z)]) > 0:
        axes.contour(xs, ys, z, levels=heat.contours, colors="white", linewidths=0.4, alpha=0.5)
    for axis, given, length in ((axes.xaxis, heat.x, z.shape[1]), (axes.yaxis, heat.y, z.shape[0])):
        if (ticks := topic_ticks(heat, length)) is not None:
            style = {} if heat.labels is None else label_style(ticks[1], turned=axis is axes.xaxis)
            axis.set_ticks(ticks[0], list(map(plain, ticks[1])), **style)
        elif given is None:
            axis.set_major_locator(mpl.ticker.MaxNLocator(MOST_TICKS, integer=True))
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    axes.grid(visible=False)
    draw_marks(axes, heat)
    add_colour_bar(axes, image, heat.z_label)


def label_style(labels: list[str], *, turned: bool) -> dict[str, Any]:
    """Of many names none may lie across another: they are small, and upright where they are turned."""
    style: dict[str, Any] = {"fontsize": max(5.0, min(10.5, LABEL_ROOM / len(labels)))}
    if not turned or max(map(len, labels)) <= SHORT_LABEL:
        return style
    return style | TURNED | ({"rotation": 45} if len(labels) < MANY_LABELS else {"rotation": 90, "va": "center"})


def add_colour_bar(axes: Axes, image: mpl.cm.ScalarMappable, label: str = "") -> None:
    bar: Any = axes.figure.colorbar(image, ax=axes, label=plain(label))
    bar.outline.set_visible(False)


def draw_marks(axes: Axes, heat: Heat) -> None:
    for mark in placed_marks(heat):
        (x, y), side = LABEL_PLACES[mark.label_at]
        size, colour, edge = (6, "white", "black") if mark.shape == "ring" else (12, MARK_COLOUR, "white")
        marker: Any = {"marker": SHAPES[mark.shape], "markersize": size, "color": colour, "markeredgecolor": edge}
        axes.plot(mark.x, mark.y, **marker, linestyle="none", clip_on=False)
        axes.annotate(
            plain(mark.label),
            (mark.x, mark.y),
            (x, y + {"down": 9, "up": -9}.get(mark.shape, 0)),
            textcoords="offset points",
            ha=side,
            va="center",
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5},
            fontsize=10,
        )


def draw_map(axes: Axes, chart: Map, _pens: Pens) -> None:
    z = np.ma.masked_invalid(np.array(chart.z, dtype=float))  # None is NaN
    colours: dict[str, Any] = {"cmap": "cividis", "vmin": chart.low, "vmax": chart.high}
    if chart.names is not None:
        listed = mpl.colors.ListedColormap(list(chart.names.values()))
        colours = {"cmap": listed, "vmin": -0.5, "vmax": len(chart.names) - 0.5}
    elif chart.log and z.count() and z.min() > 0:
        colours = {"cmap": "cividis", "norm": mpl.colors.LogNorm(chart.low, chart.high)}
    edges = [np.arange(len(names) + 1) - 0.5 for names in (chart.x, chart.y)]
    image = axes.pcolormesh(*edges, z, edgecolors="white", linewidth=0.5, **colours)
    for axis, names in ((axes.xaxis, chart.x), (axes.yaxis, chart.y)):
        pick = range(0, len(names), math.ceil(len(names) / MOST_MAP_TICKS))
        crowded = axis is axes.xaxis and sum(len(names[i]) for i in pick) > 16
        axis.set_ticks(list(pick), [names[i] for i in pick], **({"rotation": 45} | TURNED if crowded else {}))
    axes.grid(visible=False)
    if chart.marks:
        axes.plot(*zip(*chart.marks, strict=True), "x", color="black", markersize=5, markeredgewidth=1.5)
    if not z.count():
        axes.text(0.5, 0.5, NOTHING, transform=axes.transAxes, ha="center", va="center", color=GREY)
    elif chart.names is None:
        add_colour_bar(axes, image)


def draw_lines(axes: Axes, lines: Lines, pens_of: Pens) -> None:
    for series in lines.series:
        pen = pens_of[pen_key(series)]
        axes.plot(series.x, series.y, **look(lines, series, pen))
        if series.low is not None and series.high is not None:
            axes.fill_between(series.x, series.low, series.high, color=pen.colour, alpha=0.2, linewidth=0)
    axes.set(xscale="log" if lines.log_x else "linear", yscale="log" if lines.log_y else "linear")
    for i, (low, high, _) in enumerate(placed_bands(lines)):
        axes.axvspan(low, high, **band_look(i))


def draw_points(axes: Axes, points: Points, pens_of: Pens) -> None:
    for i, series in enumerate(points.series):
        x, y = np.array(series.x, dtype=float) + dodge(i, len(points.series)), np.array(series.y, dtype=float)
        error = None
        if series.low is not None and series.high is not None:
            error = np.maximum(0, [y - np.array(series.low), np.array(series.high) - y])
        colour = pens_of[pen_key(series)].colour
        axes.errorbar(x, y, yerr=error, fmt="o", markersize=5, capsize=3, linewidth=LINE_WIDTH, color=colour)
    names = points.categories
    crowded = len(names) * max(map(len, names), default=0) > 36
    labels = [wrapped(name, 24 if crowded else 14) for name in names]
    axes.set_xticks(range(len(names)), labels, **({"rotation": 35} | TURNED if crowded else {}))
    axes.set_xlim(-0.5, len(names) - 0.5)


def draw_circles(axes: Axes, circles: Circles, _pens: Pens) -> None:
    circles = in_order(circles)
    image = axes.scatter(
        circles.x,
        circles.y,
        s=[diameter**2 for diameter in circles.sizes],
        c=circles.values if circles.colours is None else circles.colours,
        cmap="cividis" if circles.colours is None else None,
        alpha=0.75,
        edgecolors="white",
        linewidths=0.6,
    )
    outline = [mpl.patheffects.withStroke(linewidth=1.6, foreground="black")]
    centred: Any = {"ha": "center", "va": "center", "fontsize": 8, "color": "white", "path_effects": outline}
    for x, y, name in zip(circles.x, circles.y, circles.names, strict=True):
        axes.text(x, y, plain(name), **centred)
    axes.set(xticks=[], yticks=[])
    axes.margins(0.1)
    if circles.ends is not None:
        axes.axis(circles.ends)
    if circles.colours is None:
        add_colour_bar(axes, image, circles.value_label)


def look(panel: Lines | Points, series: Series, pen: Pen) -> dict[str, Any]:
    if isinstance(panel, Points):
        return {"color": pen.colour, "marker": "o", "linestyle": "none"}
    style = {"color": pen.colour, "linestyle": DASHES[pen.dash], "linewidth": THIN_WIDTH if series.thin else LINE_WIDTH}
    return style | ({"marker": "o", "markersize": 4} if series.markers else {})


def level_look(number: int) -> dict[str, Any]:
    return {"color": GREY, "linestyle": (0, LEVEL_DASHES[number % len(LEVEL_DASHES)]), "linewidth": LEVEL_WIDTH}


def band_look(number: int) -> dict[str, Any]:
    return {"color": GREY, "alpha": BAND_ALPHAS[number % 2], "linewidth": 0}


DRAW: dict[str, Callable[[Axes, Any, Pens], None]] = {
    "heat": draw_heat,
    "map": draw_map,
    "lines": draw_lines,
    "points": draw_points,
    "circles": draw_circles,
}  # into a picture, without the legend


def legend(panel: Panel, pens_of: Pens) -> Entries:
    """Words of a map; groups, levels and bands of curves and points, where there is something to tell apart."""
    if isinstance(panel, Heat | Circles):
        return []
    if isinstance(panel, Map):
        return [(name, mpl.patches.Patch(color=colour)) for name, colour in (panel.names or {}).items()]
    line, patch = mpl.lines.Line2D, mpl.patches.Patch
    entries: Entries = [(key, line([], [], **look(panel, one, pens_of[key]))) for key, one in groups(panel).items()]
    entries += [(label, line([], [], **level_look(i))) for i, (_, label) in enumerate(panel.levels)]
    entries += [(label, patch(**band_look(i))) for i, (_, _, label) in enumerate(placed_bands(panel))]
    return [(wrapped(name, LEGEND_LETTERS), handle) for name, handle in entries] if len(entries) > 1 else []


PANEL_WIDTH, PANEL_HEIGHT, LINE = 3.7, 3.2, 0.2  # inches; LINE: of text
CATEGORY_WIDTH, ALONE = 0.48, 1.4  # ALONE: how much larger a panel is that has its row to itself
DPI = 130
SUPTITLE_LETTERS, TITLE_LETTERS, LABEL_LETTERS = 34, 32, 28  # where lines of text end, per panel
TWO_COLUMN_LETTERS = 20  # of a legend's two columns together, that fit under a panel


class Picture(Canvas):
    def _repr_png_(self) -> bytes:
        return self.as_bytes("png", dpi=100)

    def as_bytes(self, kind: str, dpi: int = DPI) -> bytes:
        """A file's content, without its date: the same numbers give the same bytes."""
        stream = io.BytesIO()
        with mpl.rc_context(STYLE):
            self.savefig(stream, format=kind, dpi=dpi, metadata={"Software": None} if kind == "png" else {"Date": None})
        return stream.getvalue()


def draw_figure(figure: Figure, folder: Path) -> list[Path]:
    """Write a figure as NAME.png and NAME.svg into a folder, each whole or not at all."""
    picture = canvas(figure)
    return write_files(folder, {f"{figure.name}.{kind}": picture.as_bytes(kind) for kind in ("png", "svg")})


def write_csv(figure: Figure, folder: Path) -> list[Path]:
    """Write the numbers of a figure as NAME-1.csv, ...: one long table per panel."""
    tables = enumerate(map(csv_of, figure.panels), start=1)
    return write_files(folder, {f"{figure.name}-{number}.csv": table.encode() for number, table in tables})


def write_files(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write(folder / name, content)
    return [folder / name for name in contents]


def csv_of(panel: Panel) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(csv_rows(panel))
    return stream.getvalue()


def csv_rows(panel: Panel) -> list[list[object]]:
    if isinstance(panel, Lines | Points):
        names = panel.categories if isinstance(panel, Points) else None

        def numbers(series: Series) -> Iterable[tuple[Any, ...]]:
            blank = [""] * len(series.x)
            return zip(series.x, series.y, series.low or blank, series.high or blank, strict=True)

        return [
            ["series", "x", "y", "low", "high"],
            *(
                [series.name, x if names is None else names[round(x)], *others]
                for series in panel.series
                for x, *others in numbers(series)
            ),
        ]
    if isinstance(panel, Circles):
        places = zip(panel.names, panel.x, panel.y, panel.sizes, panel.values, panel.texts, strict=True)
        return [["name", "x", "y", "size", "value", "text"], *([*some, "; ".join(text)] for *some, text in places)]
    words = list(panel.names) if isinstance(panel, Map) and panel.names is not None else None
    rows: Sequence[Sequence[float | None]] = panel.z
    return [
        ["x", "y", "value"],
        *(
            [x, y, words[int(value)] if words and value is not None else value]
            for y, row in zip(panel.y or range(len(rows)), rows, strict=True)
            for x, value in zip(panel.x or range(len(row)), row, strict=True)
        ),
    ]


def canvas(figure: Figure) -> Picture:
    """Draw a figure with matplotlib, to save it in any format or to change it."""
    columns = max(1, min(figure.columns, len(figure.panels)))
    rows = max(1, math.ceil(len(figure.panels) / columns))
    scale = ALONE if columns == 1 else 1
    pens_of = pens(figure)
    legends = [legend(panel, pens_of) for panel in figure.panels]
    common = common_legend(figure, legends)
    across = 1
    if common:
        across = min(len(common), columns * (2 if isinstance(figure.panels[0], Map) else legend_columns(common)))
        legends = [[] for _ in legends]
    sizes = [panel_height(*both, scale) for both in zip(figure.panels, legends, strict=True)]
    heights = [max(sizes[row * columns : (row + 1) * columns], default=PANEL_HEIGHT) for row in range(rows)]
    title = wrapped(figure.title, SUPTITLE_LETTERS * columns * scale)
    wide = max((len(panel.categories) for panel in figure.panels if isinstance(panel, Points)), default=0)
    width = max(PANEL_WIDTH * columns * scale, CATEGORY_WIDTH * wide if columns == 1 else 0)
    lines = title.count("\n") + 2 + math.ceil(len(common) / across)
    with mpl.rc_context(STYLE):
        picture = Picture(figsize=(width, sum(heights) + LINE * lines))
        picture.suptitle(title, fontsize=13)
        grid = picture.subplots(rows, columns, squeeze=False, height_ratios=heights)
        for axes, panel, entries in zip(grid.flat, figure.panels, legends, strict=False):
            axes.set(
                title=wrapped(panel.title, TITLE_LETTERS * scale),
                xlabel="" if isinstance(panel, Points) else wrapped(panel.x_label, LABEL_LETTERS * scale),
                ylabel=wrapped(panel.y_label, LABEL_LETTERS * scale),
            )
            DRAW[panel.kind](axes, panel, pens_of)
            for i, (level, _) in enumerate(panel.levels if isinstance(panel, Lines | Points) else []):
                axes.axhline(level, **level_look(i))
            if entries:
                draw_legend(axes, entries)
        if common:
            names, handles = zip(*common, strict=True)
            picture.legend(handles, names, loc="outside lower center", ncols=across, columnspacing=1)
        for axes in grid.flat[len(figure.panels) :]:
            axes.set_axis_off()
    return picture


def common_legend(figure: Figure, legends: list[Entries]) -> Entries:
    """The one legend under the whole figure, where it says what one under each panel would; else nothing."""
    if all(isinstance(panel, Map) for panel in figure.panels):
        return list({name: (name, handle) for entries in legends for name, handle in entries}.values())
    kinds = {
        (panel.kind, *(name for name, _ in entries)) for panel, entries in zip(figure.panels, legends, strict=True)
    }
    return legends[0] if len(kinds) == 1 and len(legends) > 1 else []


def draw_legend(axes: Axes, entries: Entries) -> None:
    names, handles = zip(*entries, strict=True)
    box: Any = axes.xaxis.get_tightbbox()
    below = (axes.bbox.y0 - box.y0) / axes.figure.dpi + 0.1  # inches: the layout is still to change the axes' size
    axes.legend(
        handles,
        names,
        ncols=legend_columns(entries),
        columnspacing=1,
        loc="upper left",
        bbox_to_anchor=(-0.02, 0),
        bbox_transform=axes.transAxes + mpl.transforms.ScaledTranslation(0, -below, axes.figure.dpi_scale_trans),
        borderaxespad=0,
    )


def legend_columns(entries: Entries) -> int:
    """Two where they fit under a panel."""
    lengths, half = [len(name) for name, _ in entries], math.ceil(len(entries) / 2)
    return 2 if max(lengths[:half]) + max(lengths[half:], default=0) <= TWO_COLUMN_LETTERS else 1


def panel_height(panel: Panel, entries: Entries, scale: float) -> float:
    """Inches: long titles and legends do not make the axes smaller, and a heat map that is alone stays about square."""
    lines = wrapped(panel.title, TITLE_LETTERS * scale).count("\n")
    if entries:
        lines += math.ceil(sum(name.count("\n") + 1 for name, _ in entries) / legend_columns(entries))
    return PANEL_HEIGHT * (scale if isinstance(panel, Heat | Circles) else 1) + LINE * lines
