"""Wraps paragraphs and list items of Markdown files to 100 characters; tables, code and headings stay as they are.

python tools/wrap_markdown.py README.md docs/*.md

Only a block that has a longer line changes. Longer lines of code are listed, for you to shorten.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

WIDTH = 100
ITEM = re.compile(r"\s*([-*+]|\d+[.)]) ")
BREAKS = re.compile(r"([-+*>#|=]+|\d+[.)]|```.*)$")  # a word that begins a list, a heading, ... at the start of a line
FENCE = re.compile(r"\s*(```+|~~~+|:::+)")


def lines_of(text: str) -> Iterator[tuple[str, list[str]]]:
    """The file in blocks: ('text', lines) can be wrapped, ('other', lines) stay."""
    block: list[str] = []
    fence = ""
    after_blank, in_list = True, False
    for line in text.splitlines():
        found = FENCE.match(line)
        code = line.startswith("    ") and after_blank and not in_list
        other = bool(fence or found or code or not line.strip() or line.startswith(("|", "#", "<!--")))
        if block and (other or ITEM.match(line)):
            yield "text", block
            block = []
        if other:
            yield "other", [line]
        else:
            block.append(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence):
            fence = ""
        in_list = bool(ITEM.match(line)) or (in_list and (not line.strip() or line.startswith(" ")))
        after_blank = not line.strip() or (code and after_blank)
    if block:
        yield "text", block


def wrapped(block: list[str], width: int = WIDTH) -> list[str]:
    """The block's words in lines of at most `width`, where one of its lines is longer."""
    if max(map(len, block)) <= width:
        return block
    item = ITEM.match(block[0])
    first = item[0] if item else re.match(r"\s*", block[0])[0]  # type: ignore[index]
    rest = " " * len(first)
    lines, line = [], first
    for word in "\n".join([block[0][len(first) :], *block[1:]]).split():
        if line not in (first, rest) and len(line) + 1 + len(word) > width:
            if BREAKS.match(word):  # it would begin a list or the like: the word before it comes along
                line, _, before = line.rpartition(" ")
                word = f"{before} {word}"
            lines.append(line)
            line = rest
        line += word if line in (first, rest) else f" {word}"
    return [*lines, line]


def wrap(text: str) -> str:
    lines = [line for kind, block in lines_of(text) for line in (wrapped(block) if kind == "text" else block)]
    return "\n".join(lines) + "\n"


def too_long(text: str) -> list[int]:
    """The numbers of the lines that are too long; rows of tables may be."""
    lines = enumerate(text.splitlines(), start=1)
    return [number for number, line in lines if len(line) > WIDTH and not line.lstrip().startswith("|")]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        text = wrap(path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
        for number in too_long(text):
            print(f"{name}:{number}: {text.splitlines()[number - 1]}")
