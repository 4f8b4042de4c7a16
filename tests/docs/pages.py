"""The documentation as data: pages, their blocks of code, the commands in them, their links and anchors."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = DOCS / "reference"
SHELL = ("", "sh", "bash", "shell", "console")
OURS = re.compile(r"(?:\S*/)?topicscope (?=\S)|(?:\S*/)?python3? -m topicscope |accelerate launch .*-m topicscope ")
OPERATORS = {"|", "||", "&&", ";", ">", ">>", "<", "&", "2>"}
SLOW = re.compile(r"<!--\s*slow:\s*(\S.*?)\s*-->")


@dataclass(frozen=True)
class Block:
    """A block of code. `slow` is the reason of a comment `<!-- slow: REASON -->` right before it: it is not run."""

    page: Path
    line: int
    language: str
    text: str
    slow: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A call of `topicscope` on a page: its arguments as the shell gives them."""

    place: str
    arguments: tuple[str, ...]
    slow: str


def pages() -> list[Path]:
    """README and all written pages; the generated ones are made from what the tests of the reference look at."""
    written = [path for path in DOCS.rglob("*.md") if not {"_build", "reference"} & set(path.relative_to(DOCS).parts)]
    return [ROOT / "README.md", *sorted(written)]


@cache
def tokens(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def blocks(page: Path) -> Iterator[Block]:
    """Fenced and indented code, in order."""
    slow = ""
    for token in tokens(page):
        if token.type in ("fence", "code_block"):
            assert token.map is not None
            yield Block(page, token.map[0] + 1, token.info.split(" ")[0], token.content, slow)
        comment = SLOW.match(token.content) if token.type == "html_block" else None
        slow = comment[1] if comment else ""


def commands(page: Path) -> list[Command]:
    """Every call of topicscope in the page's blocks of shell."""
    return [
        Command(block.place, arguments, block.slow)
        for block in blocks(page)
        if block.language in SHELL
        for line in re.sub(r"\\\n\s*", " ", block.text).splitlines()
        if (arguments := arguments_of(line)) is not None
    ]


def arguments_of(line: str) -> tuple[str, ...] | None:
    """What follows `topicscope` in a line, up to a pipe or a comment; None where the line is no call of it."""
    call = OURS.match(line.strip().removeprefix("$ "))
    if call is None:
        return None
    words = shlex.split(line.strip().removeprefix("$ ")[call.end() :], comments=True)
    ends = [number for number, word in enumerate(words) if word in OPERATORS]
    return tuple(words[: ends[0]] if ends else words)


def targets(page: Path) -> list[tuple[int, str]]:
    """Links and pictures of a page, with the line of their paragraph."""
    found = []
    for token in tokens(page):
        for child in token.children or ():
            address = child.attrs.get("href") or child.attrs.get("src")
            if isinstance(address, str):
                found.append(((token.map or [0])[0] + 1, address))
    return found


def anchors(page: Path) -> set[str]:
    """What a link into the page may name: headings, as code hosts and MyST make anchors of them, and labels."""
    stream = tokens(page)
    headings = [after.content for token, after in pairwise(stream) if token.type == "heading_open"]
    return {slug(heading) for heading in headings} | set(re.findall(r"^\((\S+)\)=$", page.read_text(), re.M))


def slug(heading: str) -> str:
    """
    >>> slug("W(t), and `--out`")
    'wt-and---out'
    """
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
