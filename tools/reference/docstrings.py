"""Docstrings as Sphinx reads them.

They are written for people: plain paragraphs, `code` between single backticks, lists, doctests, indented examples, and
sections such as 'Arguments:' with one 'name: what it is' per line. A sign that means something to Sphinx (a star, a
bar) is an ordinary sign here, so no docstring can break the build.

>>> as_rst(["The norm |W_V|, of `Run`s."])
['The norm \\\\|W_V\\\\|, of ``Run``\\\\ s.', '']
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from itertools import pairwise

SECTION = re.compile(r"(Arguments|Args|Parameters|Fields|Attributes|Returns|Yields|Raises|Examples?|Notes?):$")
ENTRY = re.compile(r"(\*{0,2}\w[\w.]*(?:, \*{0,2}\w[\w.]*)*)(?: \([^)]*\))?: (.+)", re.DOTALL)
ITEM = re.compile(r"(-|\*|\d+\.) ")
FIELD = re.compile(r"    (\w+): (.+?)(?: = .+)?  # (.+)")
CODE = re.compile(r"(``[^`]+``|`[^`\s](?:[^`]*[^`\s])?`)")


def as_rst(lines: Iterable[str]) -> list[str]:
    """The docstring's lines as reStructuredText that Sphinx accepts without a warning."""
    return [line for block in blocks(list(lines)) for line in (*block, "")]


def blocks(lines: list[str]) -> Iterator[list[str]]:
    """One block of reStructuredText for every paragraph, list, section, example or doctest."""
    queue = paragraphs(lines)
    while queue:
        block = queue.pop(0)
        if not block[0].startswith(" ") and SECTION.match(block[0]):
            body = block[1:]
            while queue and queue[0][0].startswith(" "):
                body += ["", *queue.pop(0)]
            yield from section(block[0].rstrip(":"), textwrap.dedent("\n".join(body)).splitlines())
        else:
            yield formatted(block)


def paragraphs(lines: list[str]) -> list[list[str]]:
    """Runs of lines between empty ones; a doctest, an example or a section that follows directly begins a new one."""
    result: list[list[str]] = []
    before = ""
    for line in lines:
        begins = kind(line) != kind(before) and "plain" in (kind(line), kind(before))
        if line.strip():
            if not before.strip() or not result or (begins and not continues(line, result[-1])):
                result.append([])
            result[-1].append(line.rstrip())
        before = line
    return result


def kind(line: str) -> str:
    if line.lstrip().startswith((">>>", "...")):
        return "doctest"
    return "indented" if line.startswith("    ") else "plain"


def continues(line: str, block: list[str]) -> bool:
    """What a doctest prints belongs to it, and what a section or a list item holds to them."""
    return kind(block[0]) == "doctest" or bool(
        line.startswith(" ") and (SECTION.match(block[0]) or ITEM.match(block[0]))
    )


def formatted(block: list[str]) -> list[str]:
    if kind(block[0]) == "doctest":
        return textwrap.dedent("\n".join(block)).splitlines()
    if all(line.startswith("    ") for line in block):
        return [".. code-block:: none", "", *block]
    if ITEM.match(block[0]):
        return [f"- {inline(' '.join(item.split()))}" for item in items(block)]
    return [inline(" ".join(" ".join(block).split()))]


def items(block: list[str]) -> list[str]:
    starts = [number for number, line in enumerate(block) if ITEM.match(line)]
    return [ITEM.sub("", " ".join(block[a:b]), count=1) for a, b in pairwise([*starts, len(block)])]


def section(title: str, body: list[str]) -> Iterator[list[str]]:
    """A title, and one item per 'name: text', or whatever else the section holds."""
    yield [f"**{title}**"]
    entries = [ENTRY.match(entry) for entry in entries_of(body)]
    if title.startswith(("Example", "Note", "Return", "Yield")) or None in entries:
        yield from blocks(body)
        return
    yield [f"- ``{entry[1]}``: {inline(' '.join(entry[2].split()))}" for entry in entries if entry]


def entries_of(body: list[str]) -> list[str]:
    starts = [number for number, line in enumerate(body) if line and not line.startswith(" ")]
    return ["\n".join(body[a:b]) for a, b in pairwise([*starts, len(body)])]


def inline(text: str) -> str:
    """Words as they are, code between double backticks."""
    parts = CODE.split(text.replace("::", ":") if text.endswith("::") else text)
    result = ""
    for number, part in enumerate(parts):
        if number % 2:
            after = parts[number + 1]
            result += ("\\ " if result[-1:].isalnum() else "") + f"``{part.strip('`')}``"
            result += "\\ " if after[:1].isalnum() else ""
        else:
            result += re.sub(r"([\\*|`]|_(?=\W|$))", r"\\\1", part)
    return "\\" + result if re.match(r"(\(?\w{1,4}[.)]|[-+•:.]|>>>) ?", result) and not result[0].isalpha() else result


def fields(kind_: type) -> list[str]:
    """The fields of a class that have a comment behind them: name, type and what it says."""
    try:
        source = inspect.getsource(kind_)
    except (OSError, TypeError):
        return []
    found = [match for line in source.splitlines() if (match := FIELD.fullmatch(line.rstrip()))]
    listed = [f"- ``{name}`` (``{hint}``): {inline(comment)}" for name, hint, comment in (m.groups() for m in found)]
    return ["**Fields**", "", *listed, ""] if listed else []
