"""The reproduction's figures as files: pictures (PNG and SVG) and the numbers behind them (CSV).

draw_figure(figure, Path("out/fig-1")); write_csv(figure, Path("out/fig-1"))
"""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from topicscope.figures import Figure, Heat, Lines, Map, Panel, Points
from topicscope.ground import write
from topicscope.report.layout import (
    BAND_ALPHAS,
    DASHES,
    GREY,
    MOST_TICKS,
    Pen,
    dodge,
    pen_key,
    pens,
    placed_bands,
    placed_marks,
    positions,
    topic_ticks,
)
from topicscope.report.map_panel import draw_map, map_handles
from topicscope.report.run_figure import STYLE, save

PANEL_WIDTH, PANEL_HEIGHT, LINE = 3.7, 3.2, 0.2  # inches; LINE: of text
CATEGORY_WIDTH = 0.48
TITLE_LETTERS, LABEL_LETTERS, LEGEND_LETTERS = 32, 28, 32  # where lines of text end
LABEL_BOX = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5}
LEVEL_DASHES = ((5, 2), (1.5, 1.5), (6, 2, 1.5, 2), (9, 3))

# Small panels and large letters: a figure of two columns is still read at half its width.
LARGE: Any = STYLE | {
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "legend.fontsize": 10.5,
}


def draw_figure(figure: Figure, folder: Path) -> list[Path]:
    """Write NAME.png and NAME.svg into the folder; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(LARGE):
        return save(canvas(figure), folder, figure.name)


def canvas(figure: Figure) -> Canvas:
    """The figure as matplotlib has it, with one axes object per panel, in the order of the panels."""
    columns = max(1, min(figure.columns, len(figure.panels)))
    rows = max(1, math.ceil(len(figure.panels) / columns))
    shared = _shared_legend(figure)
    with mpl.rc_context(LARGE):
        heights = [
            max(
                (_height(panel, legend=not shared) for panel in figure.panels[row * columns : (row + 1) * columns]),
                default=PANEL_HEIGHT,
            )
            for row in range(rows)
        ]
        labels = _legend_labels(figure.panels[0]) if shared else []  # type: ignore[arg-type]
        below = math.ceil(len(labels) / _shared_columns(labels, columns)) if shared else 0
        title = _wrapped(figure.title, 34 * columns)
        width = (
            PANEL_WIDTH * columns if columns > 1 else max(1.4 * PANEL_WIDTH, CATEGORY_WIDTH * most_categories(figure))
        )
        drawn = Canvas(figsize=(width, sum(heights) + LINE * (title.count("\n") + 2 + below)))
        drawn.suptitle(title, fontsize=13)
        grid = drawn.subplots(rows, columns, squeeze=False, height_ratios=heights)
        pens_of = pens(figure)
        for axes, panel in zip(grid.flat, figure.panels, strict=False):
            _draw_panel(axes, panel, pens_of, legend=not shared)
        if shared:
            first: Any = figure.panels[0]
            labels = _legend_labels(first)
            drawn.legend(
                _handles(first, pens_of),
                labels,
                ncols=_shared_columns(labels, columns),
                loc="outside lower center",
                columnspacing=1,
            )
        if handles := map_handles(figure):
            drawn.legend(
                handles=handles, ncols=min(len(handles), 2 * columns), loc="outside lower center", columnspacing=1
            )
        for axes in grid.flat[len(figure.panels) :]:
            axes.set_axis_off()
        return drawn


def most_categories(figure: Figure) -> int:
    return max((len(panel.categories) for panel in figure.panels if isinstance(panel, Points)), default=0)


def write_csv(figure: Figure, folder: Path) -> list[Path]:
    """Write NAME-1.csv, ...: one long table per panel; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, panel in enumerate(figure.panels, start=1):
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows(_csv_rows(panel))
        path = folder / f"{figure.name}-{number}.csv"
        write(path, stream.getvalue().encode())
        paths.append(path)
    return paths


def _csv_rows(panel: Panel) -> Iterable[list[Any]]:
    if isinstance(panel, Map):
        yield ["x", "y", "value"]
        for name, line in zip(panel.y, panel.z, strict=True):
            for place, cell in zip(panel.x, line, strict=True):
                yield [
                    place,
                    name,
                    "" if cell is None else cell if panel.names is None else list(panel.names)[int(cell)],
                ]
        return
    if isinstance(panel, Heat):
        yield ["x", "y", "value"]
        for y, row in zip(panel.y or range(len(panel.z)), panel.z, strict=True):
            for x, value in zip(panel.x or range(len(row)), row, strict=True):
                yield [x, y, value]
        return
    yield ["series", "x", "y", "low", "high"]
    for series in panel.series:
        blank = [""] * len(series.x)
        xs: list[Any] = [panel.categories[round(x)] for x in series.x] if isinstance(panel, Points) else list(series.x)
        for x, y, low, high in zip(xs, series.y, series.low or blank, series.high or blank, strict=True):
            yield [series.name, x, y, low, high]


def _draw_panel(axes: Axes, panel: Panel, pens_of: dict[str, Pen], *, legend: bool) -> None:
    axes.set_title(_wrapped(panel.title, TITLE_LETTERS))
    if isinstance(panel, Map):
        draw_map(axes, panel)
        axes.set(xlabel=_wrapped(panel.x_label, LABEL_LETTERS), ylabel=_wrapped(panel.y_label, LABEL_LETTERS))
        return
    if isinstance(panel, Heat):
        _draw_heat(axes, panel)
        return
    if isinstance(panel, Lines):
        _draw_lines(axes, panel, pens_of)
    else:
        _draw_points(axes, panel, pens_of)
    if legend:
        _legend(axes, panel, pens_of)


def _draw_heat(axes: Axes, heat: Heat) -> None:
    z = np.array(heat.z, dtype=float)
    image: Any
    if heat.x is None and heat.y is None and not heat.log:
        image = axes.imshow(
            z,
            cmap="cividis",
            interpolation="nearest",
            vmin=heat.low,
            vmax=heat.high,
            aspect="equal" if z.shape[0] == z.shape[1] else "auto",
        )
    else:
        xs, ys = positions(heat.x, z.shape[1]), positions(heat.y, z.shape[0])
        image = axes.pcolormesh(
            xs, ys, z, cmap="cividis", shading="nearest", vmin=heat.low, vmax=heat.high, rasterized=True
        )
        if heat.log:
            axes.set(xscale="log", yscale="log")
            axes.minorticks_off()
        if heat.y is None:  # rows of a matrix: the first on top
            axes.invert_yaxis()
    for axis, given, length in ((axes.xaxis, heat.x, z.shape[1]), (axes.yaxis, heat.y, z.shape[0])):
        if (ticks := topic_ticks(heat, length)) is not None:
            axis.set_ticks(*ticks)
            if heat.labels is not None and axis is axes.xaxis:
                axis.set_ticks(ticks[0], ticks[1], rotation=45, ha="right", rotation_mode="anchor")
        elif given is None and not heat.log:
            axis.set_major_locator(mpl.ticker.MaxNLocator(MOST_TICKS, integer=True))
    axes.set(
        xlabel=_wrapped(heat.x_label, LABEL_LETTERS),
        ylabel=_wrapped(heat.y_label, LABEL_LETTERS),
        xlim=axes.get_xlim(),
        ylim=axes.get_ylim(),
    )
    axes.grid(visible=False)
    _draw_marks(axes, heat)
    bar: Any = axes.figure.colorbar(image, ax=axes)
    bar.outline.set_visible(False)


def _draw_marks(axes: Axes, heat: Heat) -> None:
    for x, y, label in placed_marks(heat):
        axes.plot(
            x, y, marker="*", markersize=12, color="#D55E00", markeredgecolor="white", linestyle="none", clip_on=False
        )
        right = (
            axes.transData.transform((x, y))[0] > axes.transAxes.transform((0.5, 0.5))[0]
        )  # towards the middle, to stay inside
        axes.annotate(
            _plain(label),
            (x, y),
            (-9 if right else 9, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            va="center",
            bbox=LABEL_BOX,
            fontsize=10,
        )


def _draw_lines(axes: Axes, lines: Lines, pens_of: dict[str, Pen]) -> None:
    for series in lines.series:
        pen = pens_of[pen_key(series)]
        axes.plot(
            series.x,
            series.y,
            color=pen.colour,
            linestyle=DASHES[pen.dash],
            linewidth=1.6,
            marker="o" if series.markers else None,
            markersize=4,
        )
        if series.low is not None and series.high is not None:
            axes.fill_between(series.x, series.low, series.high, color=pen.colour, alpha=0.2, linewidth=0)
    if lines.log_x:
        axes.set_xscale("log")
    if lines.log_y:
        axes.set_yscale("log")
    for i, (low, high, _) in enumerate(placed_bands(lines)):
        axes.axvspan(low, high, color=GREY, alpha=BAND_ALPHAS[i % 2], linewidth=0)
    axes.set(xlabel=_wrapped(lines.x_label, LABEL_LETTERS), ylabel=_wrapped(lines.y_label, LABEL_LETTERS))
    _draw_levels(axes, lines.levels)


def _draw_points(axes: Axes, points: Points, pens_of: dict[str, Pen]) -> None:
    for i, series in enumerate(points.series):
        x, y = np.array(series.x, dtype=float) + dodge(i, len(points.series)), np.array(series.y, dtype=float)
        error = None
        if series.low is not None and series.high is not None:
            error = np.maximum(0, [y - np.array(series.low), np.array(series.high) - y])
        axes.errorbar(
            x, y, yerr=error, fmt="o", markersize=5, capsize=3, linewidth=1.6, color=pens_of[pen_key(series)].colour
        )
    crowded = len(points.categories) * max(map(len, points.categories), default=0) > 36
    turned: Any = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    axes.set_xticks(
        range(len(points.categories)),
        [_wrapped(category, 24 if crowded else 14) for category in points.categories],
        **turned,
    )
    axes.set(ylabel=_wrapped(points.y_label, LABEL_LETTERS), xlim=(-0.5, len(points.categories) - 0.5))
    _draw_levels(axes, points.levels)


def _draw_levels(axes: Axes, levels: list[tuple[float, str]]) -> None:
    for i, (level, _) in enumerate(levels):
        axes.axhline(level, color=GREY, linestyle=(0, LEVEL_DASHES[i % len(LEVEL_DASHES)]), linewidth=1.4)


def _legend(axes: Axes, panel: Lines | Points, pens_of: dict[str, Pen]) -> None:
    """Under the axes, where it covers nothing."""
    labels = _legend_labels(panel)
    if labels:
        box: Any = (
            axes.xaxis.get_tightbbox()
        )  # in inches below the axes, since the layout is still to change their size
        below = (axes.bbox.y0 - box.y0) / axes.figure.dpi + 0.1
        place = axes.transAxes + mpl.transforms.ScaledTranslation(0, -below, axes.figure.dpi_scale_trans)
        axes.legend(
            _handles(panel, pens_of),
            labels,
            ncols=_legend_columns(labels),
            columnspacing=1,
            loc="upper left",
            bbox_to_anchor=(-0.02, 0),
            bbox_transform=place,
            borderaxespad=0,
        )


def _handles(panel: Lines | Points, pens_of: dict[str, Pen]) -> list[Any]:
    """One a group, one a level, one a band."""
    handles: list[Any] = []
    for key in _groups(panel):
        how: Any = (
            {"marker": "o", "linestyle": "none"}
            if isinstance(panel, Points)
            else {"linestyle": DASHES[pens_of[key].dash]}
        )
        handles.append(mpl.lines.Line2D([], [], color=pens_of[key].colour, linewidth=1.8, **how))
    handles += [
        mpl.lines.Line2D([], [], color=GREY, linestyle=(0, LEVEL_DASHES[i % len(LEVEL_DASHES)]), linewidth=1.4)
        for i in range(len(panel.levels))
    ]
    return handles + [
        mpl.patches.Patch(color=GREY, alpha=BAND_ALPHAS[i % 2], linewidth=0) for i, _ in enumerate(_bands(panel))
    ]


def _legend_labels(panel: Lines | Points) -> list[str]:
    """None where there is nothing to tell apart."""
    names = [*_groups(panel), *(label for _, label in panel.levels), *(label for _, _, label in _bands(panel))]
    return [_wrapped(name, LEGEND_LETTERS) for name in names] if len(names) > 1 else []


def _bands(panel: Lines | Points) -> list[tuple[float, float, str]]:
    return placed_bands(panel) if isinstance(panel, Lines) else []


def _shared_legend(figure: Figure) -> bool:
    """Whether one legend under the whole figure says what one under each panel would."""
    panels = [panel for panel in figure.panels if not isinstance(panel, Heat | Map)]
    legends = {tuple(_legend_labels(panel)) for panel in panels}
    return (
        len(panels) == len(figure.panels) > 1
        and len({type(panel) for panel in panels}) == 1
        and len(legends) == 1
        and legends != {()}
    )


def _shared_columns(labels: list[str], columns: int) -> int:
    return max(1, min(len(labels), columns * _legend_columns(labels)))


def _groups(panel: Lines | Points) -> list[str]:
    return list(dict.fromkeys(pen_key(series) for series in panel.series))


def _legend_columns(labels: list[str]) -> int:
    return 1 if max(map(len, labels)) > 16 else 2


def _height(panel: Panel, *, legend: bool) -> float:
    """Inches: long titles and legends do not make the axes smaller."""
    lines = _wrapped(panel.title, TITLE_LETTERS).count("\n")
    if legend and not isinstance(panel, Heat | Map) and (labels := _legend_labels(panel)):
        lines += math.ceil(sum(label.count("\n") + 1 for label in labels) / _legend_columns(labels))
    return PANEL_HEIGHT + LINE * lines


def _plain(text: str) -> str:
    """Text as it is: a dollar sign does not start a formula."""
    return text.replace("$", r"\$")


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(_plain(text), width)
