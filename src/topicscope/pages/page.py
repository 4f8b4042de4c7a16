"""A report: one HTML file with all sections, which opens from disk and needs no network, and the figures as files.

write_report(Path("runs/demo"), "A run", "What was run, and where.", [Section("Loss", figures=[...]), ...])
"""

import base64
import io
import json
import re
from collections.abc import Collection
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from topicscope.ground import write
from topicscope.pages.layout import Pen, groups, pens
from topicscope.pages.panels import Circles, Heat, Lines, Map, Panel, Points
from topicscope.pages.parts import Figure, Section, TableData, counted
from topicscope.pages.pictures import canvas, draw_figure, write_csv
from topicscope.pages.plotly_circles import circles_spec
from topicscope.pages.plotly_curves import lines_spec, points_spec
from topicscope.pages.plotly_maps import heat_spec, map_spec
from topicscope.pages.plotly_parts import Spec
from topicscope.pages.scripts import bundled, source

NARROW = 3  # columns from which on panels of the page are too narrow for legends of their own
THUMBNAIL = (192, 112)  # pixels, at most: shown at half of it, for fine screens
MOST_ROWS = 20  # of the table that a notebook shows
NUMBER = re.compile(r"[-–—]?|[-+−±]?\s*[\d.,]+([eE][-+]?\d+)?\s*([%s×x]|±.*|\(.*\)|\[.*\])?")

Judged = tuple[str, Section, list[str]]
"""Of a claim: its anchor, its section, its small pictures as data."""


def write_report(
    folder: Path, title: str, intro: str, sections: list[Section], drawn: Collection[str] = frozenset()
) -> None:
    """Write report.html and, under figures/, every figure of the sections as PNG, SVG and CSV.

    Args:
        folder: Folder of the page; it is made where it is missing.
        title: Title of the page.
        intro: First paragraphs; blank lines part them.
        sections: The sections, in order.
        drawn: Titles of sections whose figures are there already and are not drawn again.

    Example:
        >>> import tempfile
        >>> from topicscope.pages import Lines, Series
        >>> panel = Lines("loss", [Series("dev", [0, 100], [2.0, 1.0])])
        >>> section = Section("Loss", figures=[Figure("loss", "Loss", "Loss by step.", [panel])])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_report(Path(folder), "A run", "What was run.", [section])
        ...     sorted(path.name for path in Path(folder).rglob("*.*"))
        ['loss-1.csv', 'loss.png', 'loss.svg', 'report.html']
    """
    folder.mkdir(parents=True, exist_ok=True)
    for figure in (figure for section in sections if section.title not in drawn for figure in section.figures):
        draw_figure(figure, folder / "figures")
        write_csv(figure, folder / "figures")
    write_page(folder / "report.html", title, intro, sections)


def write_page(path: Path, title: str, intro: str, sections: list[Section]) -> None:
    """Write the page, whole or not at all. Claims have a small picture, from the figures beside the page."""
    write(path, page_html(title, intro, sections, path.parent / "figures").encode())


def page_html(title: str, intro: str, sections: list[Section], pictures: Path | None = None) -> str:
    """A report as one HTML page, which opens from disk and needs no network.

    Args:
        title: Title of the page.
        intro: First paragraphs; blank lines part them.
        sections: The sections, in order.
        pictures: Folder of drawn figures (PNG), for small pictures beside verdicts; None: without them.

    Returns:
        The page, scripts included; text such as titles is escaped.

    Example:
        >>> from topicscope.pages import TableData
        >>> table = TableData("Losses", ["step", "loss"], [["0", "2.0"], ["100", "1.0"]])
        >>> page = page_html("A run", "What was run.", [Section("Loss", tables=[table])])
        >>> [line.strip() for line in page.splitlines() if "<h1" in line or "<caption>" in line]
        ['<h1>A run</h1>', '<caption><span>Losses</span></caption>']
    """
    placed = with_anchors(sections)
    summary, judged = judged_of(placed, pictures)
    return html_of("page.html.jinja", title, intro, sections=placed, judged=judged, summary=summary)


def sections_html(sections: list[Section], start: str = "", pictures: Path | None = None) -> str:
    """Sections as a piece of HTML, with their verdicts, for a page that has the scripts already.

    Args:
        sections: The sections, in order.
        start: What all ids begin with, so that several pieces fit into one page.
        pictures: As in `page_html`.

    Returns:
        The piece of HTML; text is escaped.

    Example:
        >>> from topicscope.pages import Section
        >>> piece = sections_html([Section("Is a < b?", "What was run.")], start="run-")
        >>> [line.strip() for line in piece.splitlines() if "<h2" in line or "<p " in line]
        ['<h2 id="run-section-Is-a-b-heading">Is a &lt; b?</h2>', '<p class="prose">What was run.</p>']
    """
    template: Any = environment().get_template("sections.html.jinja").module
    placed = [(f"{start}{anchor}", section) for anchor, section in with_anchors(sections)]
    table = template.verdict_table(*judged_of(placed, pictures)) if any(section.verdict for section in sections) else ""
    return str(table) + "".join(template.part(anchor, section) for anchor, section in placed)


def with_anchors(sections: list[Section]) -> list[tuple[str, Section]]:
    return list(zip(anchors([section.title for section in sections]), sections, strict=True))


def judged_of(placed: list[tuple[str, Section]], pictures: Path | None = None) -> tuple[str, list[Judged]]:
    """What the table of verdicts shows: how many there are of each kind, and the claims with their small pictures."""
    judged = [
        (anchor, section, [thumbnail(pictures, figure.name) for figure in section.figures[:1]] if pictures else [])
        for anchor, section in placed
        if section.verdict is not None
    ]
    return counted(section.verdict.words for _, section, _ in judged if section.verdict is not None), judged


def html_of(template: str, title: str, intro: str, **parts: Any) -> str:
    """A page of any template, with plotly inside."""
    paragraphs = [paragraph for paragraph in re.split(r"\n\s*\n", intro) if paragraph.strip()]
    page = environment().get_template(template)
    return page.render(title=title, paragraphs=paragraphs, plotly=Markup(get_plotlyjs()), **parts)


def thumbnail(folder: Path, name: str) -> str:
    """A figure that was drawn there, small, as data inside the page; nothing where no picture can be read there."""
    path = folder / f"{name}.png"
    try:
        return _small(path, path.stat().st_mtime_ns)
    except (OSError, ValueError, SyntaxError):  # what is missing or damaged leaves an empty cell
        return ""


@lru_cache(maxsize=256)
def _small(path: Path, _written: int) -> str:
    from PIL import Image  # matplotlib brings it

    stream = io.BytesIO()
    with Image.open(path) as picture:
        small = picture.convert("RGB")
        small.thumbnail(THUMBNAIL)
        small.save(stream, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"


def notebook_html(summary: list[str], sections: list[Section]) -> str:
    """A result as static HTML, for notebooks without widgets: sentences, the first figure as a PNG, the first table.

    Args:
        summary: The sentences, `result.summary()`.
        sections: Its figures and tables.

    Returns:
        The HTML; text is escaped, and of a long table the first rows are shown.

    Example:
        >>> from topicscope.pages import TableData
        >>> table = TableData("Losses", ["step", "loss"], [["0", "2.0"], ["100", "1.0"]])
        >>> html = notebook_html(["The loss is < 2 at the end."], [Section("Loss", tables=[table])])
        >>> [line for line in html.splitlines() if line.startswith(("<p>", "<caption>"))]
        ['<p>The loss is &lt; 2 at the end.</p>', '<caption>Losses</caption>']
    """
    figure = next((figure for section in sections for figure in section.figures), None)
    table = next((table for section in sections for table in section.tables), None)
    picture = "" if figure is None else base64.b64encode(canvas(figure)._repr_png_()).decode()
    template = environment().get_template("notebook.html.jinja")
    return template.render(summary=summary, figure=figure, picture=picture, table=table, most_rows=MOST_ROWS)


@cache
def environment(*folders: Path) -> Environment:
    """Templates of this folder, and of others before it; text is escaped wherever it stands."""
    templates = Environment(
        loader=FileSystemLoader([*folders, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "script_json": script_json,
        "config": partial(json.dumps, indent=2, ensure_ascii=False, default=str),
        "numeric": numeric_columns,
        "duration": duration,
        "spec": panel_spec,
        "pens": pens,
        "keys": shared_keys,
        "script": lambda name: Markup(bundled(name)),
        "static": lambda name: Markup(source(name)),
        "link_lists": lambda links: [(one.outer, one.inner, one.data) for one in links],
    }
    return templates


def anchors(names: list[str]) -> list[str]:
    """The names as HTML ids that can stand in a link, each once."""
    taken: list[str] = []
    for name in names:
        plain = "section-" + (re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "x")
        numbered = [f"{plain}-{number}" for number in range(2, len(names) + 1)]
        taken.append(next(anchor for anchor in (plain, *numbered) if anchor not in taken))
    return taken


def script_json(value: Any) -> Markup:
    """JSON that can stand in a script element: nothing in it can close the element or open a comment."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def numeric_columns(table: TableData) -> list[bool]:
    """Which columns hold numbers only, and stand to the right."""
    if not table.rows:
        return [False] * len(table.columns)
    return [all(NUMBER.fullmatch(cell.strip()) for cell in cells) for cells in zip(*table.rows, strict=True)]


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:,.0f}"


def panel_spec(panel: Panel, pens_of: dict[str, Pen], *, legend: bool = True) -> Spec:
    """What plotly draws on the page."""
    match panel:
        case Heat():
            return heat_spec(panel)
        case Map():
            return map_spec(panel)
        case Lines():
            return lines_spec(panel, pens_of, legend=legend)
        case Points():
            return points_spec(panel, pens_of, legend=legend)
        case Circles():
            return circles_spec(panel)


def shared_keys(figure: Figure, pens_of: dict[str, Pen]) -> list[tuple[str, str, str]]:
    """Name, colour and dashes (as SVG has them) for one legend of a figure on the page.

    Many narrow panels with the same curves have one legend for all of them, which leaves room for the curves.
    """
    maps = [panel.names or {} for panel in figure.panels if isinstance(panel, Map)]
    words = {name: colour for names in maps for name, colour in names.items()}
    if words:
        return [(name, colour, "") for name, colour in words.items()]
    panels = [panel for panel in figure.panels if isinstance(panel, Lines) and not panel.levels and not panel.bands]
    if figure.columns < NARROW or len(panels) < max(2, len(figure.panels)):
        return []
    names = list(groups(panels[0]))
    if len(names) < 2 or any(list(groups(panel)) != names for panel in panels):
        return []
    dashes = ("", "6 4", "2 4", "9 4 2 4")
    return [(name, pens_of[name].colour, dashes[pens_of[name].dash]) for name in names]
