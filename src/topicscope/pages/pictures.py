"""Figures as pictures: matplotlib objects, PNG and SVG files, and the numbers behind them as CSV.

canvas(figure).savefig("figure.pdf"); draw_figure(figure, Path("out")); write_csv(figure, Path("out"))
"""

import csv
import io
import math
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from topicscope.ground import write
from topicscope.pages.drawing import DRAW, STYLE, Entries, legend, wrapped
from topicscope.pages.layout import pens
from topicscope.pages.panels import Circles, Heat, Lines, Map, Panel, Points
from topicscope.pages.parts import Figure

PANEL_WIDTH, PANEL_HEIGHT, LINE = 3.7, 3.2, 0.2  # inches; LINE: of text
CATEGORY_WIDTH, ALONE = 0.48, 1.4  # ALONE: how much larger a panel is that has its row to itself
DPI = 130
SUPTITLE_LETTERS, TITLE_LETTERS, LABEL_LETTERS = 34, 32, 28  # where lines of text end, per panel
TWO_COLUMN_LETTERS = 20  # of a legend's two columns together, that fit under a panel


class Picture(Canvas):
    """A matplotlib figure that a notebook shows by itself."""

    def _repr_png_(self) -> bytes:
        return self.as_bytes("png", dpi=100)

    def as_bytes(self, kind: str, dpi: int = DPI) -> bytes:
        """A file's content, without its date: the same numbers give the same bytes."""
        stream = io.BytesIO()
        note: Any = {"Software": None} if kind == "png" else {"Date": None}
        with mpl.rc_context(STYLE):
            self.savefig(stream, format=kind, dpi=dpi, metadata=note)
        return stream.getvalue()


def draw_figure(figure: Figure, folder: Path) -> list[Path]:
    """Write a figure as NAME.png and NAME.svg into a folder, each whole or not at all.

    Args:
        figure: The figure; its `name` is that of the files.
        folder: The folder; it is made where it is missing.

    Returns:
        The paths of both files.

    Example:
        >>> import tempfile
        >>> from topicscope.pages import Figure, Lines, Series
        >>> figure = Figure("loss", "Loss", "Loss by step.", [Lines("loss", [Series("loss", [0, 1], [2.0, 1.0])])])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in draw_figure(figure, Path(folder))]
        ['loss.png', 'loss.svg']
    """
    folder.mkdir(parents=True, exist_ok=True)
    picture = canvas(figure)
    paths = [folder / f"{figure.name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        write(path, picture.as_bytes(path.suffix[1:]))
    return paths


def write_csv(figure: Figure, folder: Path) -> list[Path]:
    """Write the numbers of a figure as NAME-1.csv, ...: one long table per panel.

    Args:
        figure: The figure; its `name` begins the names of the files.
        folder: The folder; it is made where it is missing.

    Returns:
        The paths, in the order of the panels.

    Example:
        >>> import tempfile
        >>> from topicscope.pages import Figure, Lines, Series
        >>> figure = Figure("loss", "Loss", "Loss by step.", [Lines("loss", [Series("loss", [0, 1], [2.0, 1.0])])])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [(path.name, path.read_text().split()) for path in write_csv(figure, Path(folder))]
        [('loss-1.csv', ['series,x,y,low,high', 'loss,0,2.0,,', 'loss,1,1.0,,'])]
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, panel in enumerate(figure.panels, start=1):
        paths.append(folder / f"{figure.name}-{number}.csv")
        write(paths[-1], csv_of(panel).encode())
    return paths


def csv_of(panel: Panel) -> str:
    """The numbers of a panel as one long table.

    Args:
        panel: Any panel.

    Returns:
        CSV text with a heading: one row per point of a curve, cell of a map or circle.

    Example:
        >>> from topicscope.pages import Lines, Series
        >>> print(csv_of(Lines("loss", [Series("dev", [0, 100], [2.0, 1.0])])), end="")  # a curve without interval
        series,x,y,low,high
        dev,0,2.0,,
        dev,100,1.0,,
    """
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(csv_rows(panel))
    return stream.getvalue()


def csv_rows(panel: Panel) -> list[list[Any]]:
    """A panel's numbers, with a heading."""
    if isinstance(panel, Lines | Points):
        rows: list[list[Any]] = [["series", "x", "y", "low", "high"]]
        for series in panel.series:
            blank = [""] * len(series.x)
            xs: list[Any] = [panel.categories[round(x)] for x in series.x] if isinstance(panel, Points) else series.x
            columns = zip(xs, series.y, series.low or blank, series.high or blank, strict=True)
            rows += [[series.name, *row] for row in columns]
        return rows
    if isinstance(panel, Circles):
        places = zip(panel.names, panel.x, panel.y, panel.sizes, panel.values, panel.texts, strict=True)
        return [["name", "x", "y", "size", "value", "text"], *([*some, "; ".join(text)] for *some, text in places)]
    z: list[list[Any]] = list(panel.z)
    words = list(panel.names) if isinstance(panel, Map) and panel.names is not None else None
    return [["x", "y", "value"]] + [
        [x, y, words[int(value)] if words and value is not None else value]
        for y, row in zip(panel.y or range(len(z)), z, strict=True)
        for x, value in zip(panel.x or range(len(row)), row, strict=True)
    ]


def canvas(figure: Figure) -> Picture:
    """Draw a figure with matplotlib, to save it in any format or to change it.

    Args:
        figure: The figure, as data.

    Returns:
        A matplotlib figure, whose first axes are the panels in their order.

    Example:
        >>> from topicscope.pages import Figure, Lines, Series
        >>> panel = Lines("dev", [Series("loss", [0, 1], [2.0, 1.0])], x_label="step")
        >>> figure = Figure("loss", "Loss", "Loss by step.", [panel])
        >>> picture = canvas(figure)  # then: picture.savefig("loss.pdf")
        >>> picture.get_suptitle(), picture.axes[0].get_xlabel(), picture.axes[0].get_lines()[0].get_ydata().tolist()
        ('Loss', 'step', [2.0, 1.0])
    """
    columns = max(1, min(figure.columns, len(figure.panels)))
    scale = ALONE if columns == 1 else 1
    rows = max(1, math.ceil(len(figure.panels) / columns))
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
            labels = ("" if isinstance(panel, Points) else panel.x_label, panel.y_label)
            x_label, y_label = (wrapped(label, LABEL_LETTERS * scale) for label in labels)
            axes.set(title=wrapped(panel.title, TITLE_LETTERS * scale), xlabel=x_label, ylabel=y_label)
            DRAW[panel.kind](axes, panel, pens_of)
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
    names = {tuple(name for name, _ in entries) for entries in legends}
    same = len(names) == 1 and len({panel.kind for panel in figure.panels}) == 1
    return legends[0] if same and len(legends) > 1 else []


def draw_legend(axes: Axes, entries: Entries) -> None:
    """Under the axes, where it covers nothing."""
    if not entries:
        return
    names, handles = zip(*entries, strict=True)
    box: Any = axes.xaxis.get_tightbbox()
    below = (axes.bbox.y0 - box.y0) / axes.figure.dpi + 0.1  # inches: the layout is still to change the axes' size
    place = axes.transAxes + mpl.transforms.ScaledTranslation(0, -below, axes.figure.dpi_scale_trans)
    where: Any = {"loc": "upper left", "bbox_to_anchor": (-0.02, 0), "bbox_transform": place, "borderaxespad": 0}
    axes.legend(handles, names, ncols=legend_columns(entries), columnspacing=1, **where)


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
