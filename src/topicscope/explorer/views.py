"""What a room shows: sections of `figures`, as HTML for the open page, as a page to keep, as pictures and numbers."""

import io
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from topicscope import pages
from topicscope.ground import InputError

MEDIA = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv; charset=utf-8", "zip": "application/zip"}
FORMS = ("png", "svg", "csv")  # in which figures are kept


@dataclass(frozen=True)
class View:
    """Sections with a title and the paragraphs that stand before them."""

    title: str
    sections: list[pages.Section]
    intro: list[str] = field(default_factory=list)
    pictures: Path | None = None  # a folder of drawn figures, from which claims have small ones

    def fragment(self, start: str = "") -> str:
        """HTML for a page that has the front-end's scripts already. Ids begin with `start`."""
        return pages.sections_html(self.sections, start, self.pictures)

    def page(self) -> str:
        """One file that opens from disk."""
        return pages.page_html(self.title, "\n\n".join(self.intro), self.sections, self.pictures)

    def figure(self, name: str) -> pages.Figure:
        found = [figure for section in self.sections for figure in section.figures if figure.name == name]
        if not found:
            raise InputError(f"there is no figure {name!r:.80} in this view any more; reload the page")
        return found[0]

    def file(self, name: str, form: str) -> tuple[str, bytes]:
        """A figure as PNG or SVG, or its numbers: a CSV file, or an archive with one for each of several panels.

        Returns:
            The name of the file and what is in it.
        """
        figure = self.figure(name)
        if form != "csv":
            return f"{name}.{form}", report.canvas(figure).as_bytes(form)
        tables = [pages.csv_of(panel) for panel in figure.panels]
        if len(tables) == 1:
            return f"{name}.csv", tables[0].encode()
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, table in enumerate(tables, start=1):
                archive.writestr(zipfile.ZipInfo(f"{name}-{number}.csv"), table)
        return f"{name}.zip", stream.getvalue()
