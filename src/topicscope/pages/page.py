"""Reports as HTML that opens from disk: pages of sections, the page of a sweep, and static HTML for notebooks."""

import base64
import io
import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from topicscope.ground import write
from topicscope.pages.drawing import canvas, draw_figure, write_csv
from topicscope.pages.panels import (
    MATRIX_COLOURS,
    NORM_CURVES,
    PALETTE,
    Figure,
    Lines,
    Map,
    Panel,
    Pen,
    PointMap,
    Points,
    Section,
    TableData,
    counted,
    groups,
    pens,
)
from topicscope.pages.plotly_specs import Spec, circles_spec, heat_spec, lines_spec, map_spec, points_spec

STATIC = Path(__file__).parent / "static"
IMPORT = re.compile(r'^import \{ ([^}]*) \} from "\./([\w-]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export const (\w+)", re.MULTILINE)


@cache
def bundled(name: str) -> str:
    """A module and all that it imports as one script: each a function of its own, in the order of need."""
    order: list[str] = []

    def visit(module: str) -> None:
        for _, needed in IMPORT.findall(source(module)):
            if needed not in order:
                visit(needed)
        order.append(module)

    visit(name)
    return "\n".join(wrapped(module) for module in order)


def wrapped(module: str) -> str:
    text = source(module)
    names = ", ".join(EXPORT.findall(text))
    body = EXPORT.sub(r"const \1", IMPORT.sub("", text)).strip()
    made = f"const {{ {names} }} = " if names else ""
    given = f"\nreturn {{ {names} }};" if names else ""
    return f"{made}(() => {{\n{body}{given}\n}})();"


@cache
def source(module: str) -> str:
    return (STATIC / module).read_text()


NARROW = 3  # columns from which on panels of the page are too narrow for legends of their own
THUMBNAIL = (192, 112)  # pixels, at most: shown at half of it, for fine screens
MOST_ROWS = 20  # of the table that a notebook shows
NUMBER = re.compile(r"[-–—]?|[-+−±]?\s*[\d.,]+([eE][-+]?\d+)?\s*([%s×x]|±.*|\(.*\)|\[.*\])?")

Judged = tuple[str, Section, list[str]]  # of a claim: its anchor, its section, its small pictures as data


def write_report(
    folder: Path, title: str, intro: str, sections: list[Section], drawn: Collection[str] = frozenset()
) -> None:
    """Write report.html and, under figures/, every figure of the sections as PNG, SVG and CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    for figure in (figure for section in sections if section.title not in drawn for figure in section.figures):
        draw_figure(figure, folder / "figures")
        write_csv(figure, folder / "figures")
    write_page(folder / "report.html", title, intro, sections)


def write_page(path: Path, title: str, intro: str, sections: list[Section]) -> None:
    """Write the page, whole or not at all. Claims have a small picture, from the figures beside the page."""
    write(path, page_html(title, intro, sections, path.parent / "figures").encode())


def page_html(title: str, intro: str, sections: list[Section], pictures: Path | None = None) -> str:
    placed = with_anchors(sections)
    summary, judged = judged_of(placed, pictures)
    return html_of("page.html.jinja", title, intro, sections=placed, judged=judged, summary=summary)


def sections_html(sections: list[Section], start: str = "", pictures: Path | None = None) -> str:
    """Sections as a piece of HTML, with their verdicts, for a page that has the scripts already."""
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


def html_of(template: str, title: str, intro: str, **parts: object) -> str:
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
    """A result as static HTML, for notebooks without widgets: sentences, the first figure as a PNG, the first table."""
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


def script_json(value: object) -> Markup:
    """JSON that can stand in a script element: nothing in it can close the element or open a comment."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def numeric_columns(table: TableData) -> list[bool]:
    if not table.rows:
        return [False] * len(table.columns)
    return [all(NUMBER.fullmatch(cell.strip()) for cell in cells) for cells in zip(*table.rows, strict=True)]


def duration(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f}" if seconds < 10 else f"{seconds:,.0f}"


SPECS: dict[str, Callable[..., Spec]] = {
    "heat": heat_spec,
    "map": map_spec,
    "lines": lines_spec,
    "points": points_spec,
    "circles": circles_spec,
}


def panel_spec(panel: Panel, pens_of: dict[str, Pen], *, legend: bool = True) -> Spec:
    return SPECS[panel.kind](
        panel, **({"pens_of": pens_of, "legend": legend} if isinstance(panel, Lines | Points) else {})
    )


def shared_keys(figure: Figure, pens_of: dict[str, Pen]) -> list[tuple[str, str, str]]:
    """Name, colour and SVG dashes of the one legend of many narrow panels with the same curves."""
    words = [word for panel in figure.panels if isinstance(panel, Map) for word in (panel.names or {}).items()]
    if words:
        return [(name, colour, "") for name, colour in dict(words).items()]
    plain = [panel for panel in figure.panels if isinstance(panel, Lines) and not panel.levels and not panel.bands]
    kinds = {tuple(groups(panel)) for panel in plain}
    if figure.columns < NARROW or len(plain) < max(2, len(figure.panels)) or len(kinds) > 1:
        return []
    (names,) = kinds
    dashes = ("", "6 4", "2 4", "9 4 2 4")
    return [(name, pens_of[name].colour, dashes[pens_of[name].dash]) for name in names] if len(names) > 1 else []


CURVE_POINTS = 100
MOST_CURVES = 20_000_000  # bytes of curves in a page; points beyond have theirs in their folders only
MOST_ANSWERED = 50  # points whose curves one question brings

Curves = Mapping[str, np.ndarray]
PackedCurves = dict[str, dict[str, str]]  # by the number of a point and the name of a curve


def write_sweep_page(path: Path, title: str, intro: str, points: PointMap, curves: Iterable[Curves]) -> None:
    write(path, kept_map_html(title, intro, points, packed(enumerate(curves), points)).encode())


def kept_map_html(
    title: str, intro: str, points: PointMap, curves: PackedCurves, chosen: Mapping[str, object] | None = None
) -> str:
    return html_of("sweep.html.jinja", title, intro, **map_parts(points, curves, chosen))


def map_html(points: PointMap, chosen: Mapping[str, object] | None = None) -> str:
    """The map of a sweep as a piece of HTML, for a page that has its script; curves come when they are asked for."""
    return environment().get_template("points.html.jinja").render(**map_parts(points, None, chosen))


def map_parts(
    points: PointMap, curves: PackedCurves | None, chosen: Mapping[str, object] | None = None
) -> dict[str, object]:
    axes, rows = points.axes, points.rows
    known = {"point", "state", "error", *axes}
    measures = list(
        dict.fromkeys(key for row in rows for key, value in row.items() if key not in known and value is not None)
    )
    values = {name: [row[name] for row in rows if row.get(name) is not None] for name in [*measures, "state"]}
    words = {
        name: word_colours(found, points.colours.get(name))
        for name, found in values.items()
        if any(isinstance(value, str | bool) for value in found)
    }
    measures.sort(key=lambda name: (name != points.first, name in words))  # words last
    places = {name: {json.dumps(value): i for i, value in enumerate(steps)} for name, steps in axes.items()}
    data = {
        "axes": axes,
        "measures": [*measures, "state"],
        "words": words,
        "meanings": {name: dict(meanings) for name, meanings in points.meanings.items()},
        "chosen": None if chosen is None else dict(chosen),
        "palette": PALETTE,
        "curveNames": {metric: [name, MATRIX_COLOURS[name]] for metric, name in NORM_CURVES.items()},
        "curvePanels": dict(points.curve_panels),
        "curves": curves,
        "rows": [
            {
                "point": row["point"],
                "state": row["state"],
                "error": row.get("error"),
                "at": [places[name][json.dumps(row[name])] for name in axes],
                "measures": {name: row[name] for name in [*measures, "state"] if row.get(name) is not None},
            }
            for row in rows
        ],
    }
    failures = [
        (row["point"], ", ".join(f"{name}={row[name]}" for name in axes), row.get("error"))
        for row in rows
        if row["state"] == "failed"
    ]
    return {"data": data, "failures": failures}


def word_colours(values: Iterable[object], given: Mapping[str, str] | None) -> list[dict[str, str]]:
    colours = given or dict(zip(dict.fromkeys(map(str, values)), itertools.cycle(PALETTE), strict=False))
    return [{"name": name, "colour": colour} for name, colour in colours.items()]


def curves_of_rows(points: PointMap, curves_of: Callable[[int], Curves], rows: Sequence[int]) -> PackedCurves:
    numbers = [number for number in rows[:MOST_ANSWERED] if 0 <= number < len(points.rows)]
    return packed(((number, curves_of(number)) for number in numbers), points)


def packed(curves: Iterable[tuple[int, Curves]], points: PointMap) -> PackedCurves:
    """Curves for a page: float32 in base64, a tenth of what the digits would take."""
    texts: PackedCurves = {}
    starts = tuple(points.curve_panels.values())
    size = 0
    for number, of_point in curves:
        if size > MOST_CURVES:
            break
        for name, values in of_point.items():
            if name == "step" or name.startswith(starts):
                spread = np.linspace(0, max(0, len(values) - 1), min(len(values), CURVE_POINTS)).round().astype(int)
                text = base64.b64encode(np.asarray(values)[np.unique(spread)].astype("<f4").tobytes()).decode()
                texts.setdefault(str(number), {})[name] = text
                size += len(text)
    return texts
