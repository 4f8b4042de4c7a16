"""The kinds of panels: each module draws its kind in pictures and on the page, and writes it as CSV."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from matplotlib.axes import Axes

from topicscope.figures import Figure, Lines, Panel
from topicscope.report import heat_panel, lines_panel, map_panel, points_panel
from topicscope.report.layout import Pen, groups, map_words
from topicscope.report.plotly_parts import Spec

NARROW = 3
"""Columns from which on panels of the page are too narrow for legends of their own."""


class PanelKind(Protocol):
    """What a module has for its kind of panels."""

    def draw(self, axes: Axes, panel: Any, pens_of: dict[str, Pen], /) -> None:
        """Into a picture, without the legend."""

    def legend(self, panel: Any, pens_of: dict[str, Pen], /) -> list[tuple[str, Any]]:
        """Names and handles of a picture's legend."""

    def spec(self, panel: Any, pens_of: dict[str, Pen], /, *, legend: bool) -> Spec:
        """Data and layout for plotly."""

    def csv_rows(self, panel: Any, /) -> Iterable[list[Any]]:
        """The numbers, with a heading."""


KINDS: dict[str, PanelKind] = {
    "heat": heat_panel,
    "map": map_panel,
    "lines": lines_panel,
    "points": points_panel,
}


def panel_spec(panel: Panel, pens_of: dict[str, Pen], *, legend: bool = True) -> Spec:
    """What plotly draws on the page."""
    return KINDS[panel.kind].spec(panel, pens_of, legend=legend)


def shared_keys(figure: Figure, pens_of: dict[str, Pen]) -> list[tuple[str, str, str]]:
    """Name, colour and dashes for one legend of a figure on the page.

    Many narrow panels with the same curves have one legend for all of them, which leaves room for the curves.
    """
    if words := map_words(figure):
        return [(name, colour, "solid") for name, colour in words.items()]
    panels = [panel for panel in figure.panels if isinstance(panel, Lines) and not panel.levels and not panel.bands]
    if figure.columns < NARROW or len(panels) < max(2, len(figure.panels)):
        return []
    names = list(groups(panels[0]))
    if len(names) < 2 or any(list(groups(panel)) != names for panel in panels):
        return []
    dashes = ("solid", "dashed", "dotted", "dashed")
    return [(name, pens_of[name].colour, dashes[pens_of[name].dash]) for name in names]
