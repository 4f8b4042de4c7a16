"""A report: one HTML file with all sections, which opens from disk and needs no network, and the figures as files.

write_report(Path("runs/demo"), "A run", "What was run, and where.", [Section("Loss", figures=[...]), ...])
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from topicscope.figures import Section, TableData, Verdict
from topicscope.ground import write
from topicscope.report.layout import pens
from topicscope.report.panel_kinds import panel_spec, shared_keys
from topicscope.report.pictures import draw_figure, write_csv


def write_report(folder: Path, title: str, intro: str, sections: list[Section]) -> None:
    """Write report.html and, under figures/, every figure of the sections as PNG, SVG and CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    for figure in (figure for section in sections for figure in section.figures):
        draw_figure(figure, folder / "figures")
        write_csv(figure, folder / "figures")
    write_page(folder / "report.html", title, intro, sections)


def write_page(path: Path, title: str, intro: str, sections: list[Section]) -> None:
    """Write the page, whole or not at all. Blank lines in `intro` part its paragraphs."""
    placed = list(zip(anchors([section.title for section in sections]), sections, strict=True))
    judged = [(anchor, section) for anchor, section in placed if section.verdict is not None]
    counts = Counter(section.verdict.verdict for section in sections if section.verdict is not None)
    page = (
        environment()
        .get_template("page.html.jinja")
        .render(
            title=title,
            paragraphs=[paragraph for paragraph in re.split(r"\n\s*\n", intro) if paragraph.strip()],
            sections=placed,
            judged=judged,
            summary=", ".join(f"{counts[verdict]} {verdict}" for verdict in get_args(Verdict) if counts[verdict]),
            plotly=Markup(get_plotlyjs()),
        )
    )
    write(path, page.encode())


def environment() -> Environment:
    """Templates of this folder; text is escaped wherever it stands."""
    found = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"script_json": _script_json, "config": _config, "numeric": numeric_columns, "duration": _duration}
    found.filters |= {"spec": panel_spec, "pens": pens, "keys": shared_keys}
    return found


def anchors(names: list[str]) -> list[str]:
    """The names as HTML ids that can stand in a link, each once."""
    taken: list[str] = []
    for name in names:
        plain = "section-" + (re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "x")
        anchor, number = plain, 1
        while anchor in taken:
            number += 1
            anchor = f"{plain}-{number}"
        taken.append(anchor)
    return taken


def _script_json(value: Any) -> Markup:
    """JSON that can stand in a script element: nothing in it can close the element or open a comment."""
    return Markup(
        json.dumps(value, separators=(",", ":"), allow_nan=False)
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
    )


def _config(config: dict[str, Any]) -> str:
    return json.dumps(config, indent=2, ensure_ascii=False, default=str)


def numeric_columns(table: TableData) -> list[bool]:
    """Which columns hold numbers only, and stand to the right."""
    return (
        [all(map(_is_number, cells)) for cells in zip(*table.rows, strict=True)]
        if table.rows
        else [False] * len(table.columns)
    )


def _is_number(cell: str) -> bool:
    return (
        cell.strip() in ("", "-", "–", "—")
        or re.fullmatch(r"[-+−±]?\s*[\d.,]+([eE][-+]?\d+)?\s*([%s×x]|±.*|\(.*\)|\[.*\])?", cell.strip()) is not None
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:,.0f}"
