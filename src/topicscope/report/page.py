"""The reproduction's report: one HTML file with every verdict, figure and table, which opens from disk and needs no network.

write_page(Path("report.html"), "How do transformers learn topic structure?", "What was run, and where.", [Section(...), ...])
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from topicscope.figures import Figure, TableData, Verdict
from topicscope.ground import write
from topicscope.report.layout import pens
from topicscope.report.specs import panel_spec, shared_keys


@dataclass(frozen=True)
class Section:
    """One claim of the paper: what was compared, what came out, and how to run it again. All text is plain text."""

    id: str
    claim: str
    rule: str
    paper: str
    theory: str
    measured: str
    verdict: Verdict
    reason: str
    seconds: float
    command: str
    config: dict[str, Any] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    tables: list[TableData] = field(default_factory=list)
    judged: bool = True  # False: measured, with no claim to compare with


def write_page(path: Path, title: str, intro: str, sections: list[Section]) -> None:
    """Write the page, whole or not at all. Blank lines in `intro` part its paragraphs."""
    counts = Counter(section.verdict for section in sections)
    page = (
        environment()
        .get_template("page.html.jinja")
        .render(
            title=title,
            paragraphs=[paragraph for paragraph in re.split(r"\n\s*\n", intro) if paragraph.strip()],
            sections=list(zip(anchors([section.id for section in sections]), sections, strict=True)),
            summary=", ".join(
                f"{counts[verdict]} {verdict}"
                for verdict in ("reproduced", "not reproduced", "skipped")
                if counts[verdict]
            ),
            judged=any(section.judged for section in sections),
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
        plain = "claim-" + (re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "x")
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
