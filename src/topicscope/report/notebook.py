"""A result as a notebook shows it: its sentences, its main figure and its main table in one piece of HTML."""

from __future__ import annotations

import base64

from topicscope.figures import Section
from topicscope.report.page import environment
from topicscope.report.pictures import canvas

MOST_ROWS = 20
"""Rows of the table that a notebook shows."""


def notebook_html(summary: list[str], sections: list[Section]) -> str:
    """The sentences, the first figure as a PNG inside the HTML, and the first table. All text is escaped."""
    figure = next((figure for section in sections for figure in section.figures), None)
    table = next((table for section in sections for table in section.tables), None)
    png = b"" if figure is None else canvas(figure).as_bytes("png", dpi=100)
    return (
        environment()
        .get_template("notebook.html.jinja")
        .render(
            summary=summary,
            figure=figure,
            picture=base64.b64encode(png).decode(),
            table=table,
            most_rows=MOST_ROWS,
        )
    )
