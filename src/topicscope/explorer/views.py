"""What a room shows: sections of `figures`, as HTML for the open page, as a page to keep, as pictures and numbers."""

import io
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from topicscope import figures, report
from topicscope.ground import InputError

MEDIA = {"png": "image/png", "svg": "image/svg+xml", "csv": "application/zip"}


@dataclass(frozen=True)
class View:
    """Sections with a title and the paragraphs that stand before them."""

    title: str
    sections: list[figures.Section]
    intro: list[str] = field(default_factory=list)
    pictures: Path | None = None  # a folder of drawn figures, from which claims have small ones

    def fragment(self, start: str = "") -> str:
        """HTML for a page that has the front-end's scripts already. Ids begin with `start`."""
        return report.sections_html(self.sections, start, self.pictures)

    def page(self) -> str:
        """One file that opens from disk."""
        return report.page_html(self.title, "\n\n".join(self.intro), self.sections, self.pictures)

    def figure(self, name: str) -> figures.Figure:
        found = [figure for section in self.sections for figure in section.figures if figure.name == name]
        if not found:
            raise InputError(f"there is no figure {name!r:.80} in this view any more; reload the page")
        return found[0]

    def picture(self, name: str, kind: str) -> bytes:
        """A figure as PNG or SVG, or its numbers: one CSV per panel, in a zip archive."""
        figure = self.figure(name)
        if kind != "csv":
            return report.canvas(figure).as_bytes(kind)
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, panel in enumerate(figure.panels, start=1):
                archive.writestr(zipfile.ZipInfo(f"{figure.name}-{number}.csv"), report.csv_of(panel))
        return stream.getvalue()
