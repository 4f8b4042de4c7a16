"""What a room shows: sections as HTML for the open page, as a page to keep, as pictures and numbers."""

import io
import zipfile
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from topicscope import pages
from topicscope.explorer.workspace import Place
from topicscope.ground import refuse, shown
from topicscope.reading import read

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
        return pages.page_html(self.title, "\n\n".join(self.intro), self.sections, self.pictures)

    def figure(self, name: str) -> pages.Figure:
        found = [figure for section in self.sections for figure in section.figures if figure.name == name]
        refuse((not found, f"there is no figure {name!r:.80} in this view any more; reload the page"))
        return found[0]

    def file(self, name: str, form: str) -> tuple[str, bytes]:
        """The name and content of a file: a figure as PNG or SVG, or its numbers as CSV (zipped for several panels)."""
        figure = self.figure(name)
        if form != "csv":
            return f"{name}.{form}", pages.canvas(figure).as_bytes(form)
        if len(figure.panels) == 1:
            return f"{name}.csv", pages.csv_of(figure.panels[0]).encode()
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, panel in enumerate(figure.panels, start=1):
                archive.writestr(zipfile.ZipInfo(f"{name}-{number}.csv"), pages.csv_of(panel))
        return f"{name}.zip", stream.getvalue()


def folder_view(place: Place) -> View:
    result = read_again(place)
    return View(f"topicscope {place.kind}: {shown(place.name)}", result.sections(), result.intro())


@lru_cache(maxsize=8)
def read_again(place: Place) -> Any:
    """What a folder holds, kept until the folder is written anew, or other folders are asked for."""
    return read(place.path)
