"""Links of README and docs: files and anchors exist, addresses are well formed; lines are short."""

from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tools.reference import pages as generated_pages
from tools.wrap_markdown import WIDTH, too_long, wrap

from tests.docs.pages import DOCS, GENERATED, ROOT, anchors, pages, slug, targets

NAMES = [str(page.relative_to(ROOT)) for page in pages()]


@cache
def generated() -> dict[Path, str]:
    return {GENERATED / name: text for name, text in generated_pages().items()}


@pytest.mark.parametrize("page", pages(), ids=NAMES)
def test_every_link_leads_somewhere(page: Path) -> None:
    for line, target in targets(page):
        place = f"{page.relative_to(ROOT)}:{line}: {target}"
        address = urlsplit(target)
        if address.scheme:
            assert address.scheme == "https", place
            assert "." in address.netloc, place
            continue
        path = (page.parent / unquote(address.path)).resolve() if address.path else page
        assert ROOT in path.parents, place
        if path in generated():
            text = generated()[path]
            headings = {slug(row.lstrip("# ")) for row in text.splitlines() if row.startswith("#")}
            assert not address.fragment or address.fragment in headings or f"({address.fragment})=" in text, place
        else:
            assert path.exists(), place
            assert not address.fragment or address.fragment in anchors(path), place


def test_every_page_is_in_the_index() -> None:
    """By its name or by a pattern: what no list names, nobody finds."""
    index = (DOCS / "index.md").read_text()
    for page in pages():
        if DOCS in page.parents and page != DOCS / "index.md":
            name = page.relative_to(DOCS).with_suffix("").as_posix()
            folder = f"{page.parent.relative_to(DOCS).as_posix()}/*"
            assert {name, f"{name}*", folder} & set(index.splitlines()), name


@pytest.mark.parametrize("page", pages(), ids=NAMES)
def test_lines_are_short(page: Path) -> None:
    assert too_long(page.read_text()) == [], f"at most {WIDTH} characters: python tools/wrap_markdown.py {page}"


def test_wrapping_keeps_words_lists_code_and_tables() -> None:
    words = " ".join(f"word{i}" for i in range(40))
    text = f"# {words}\n\n{words}\n- {words}\n  {words}\n\nCode:\n\n    {words}\n\n| {words} |\n\n```sh\n{words}\n```\n"
    result = wrap(text)
    assert wrap(result) == result
    assert result.split() == text.split()
    for kept in (f"# {words}", f"    {words}", f"| {words} |", f"```sh\n{words}\n```"):
        assert kept in result
    assert too_long(result) == [1, *(n for n, line in enumerate(result.splitlines(), 1) if line.strip() == words)]
    assert len([line for line in result.splitlines() if line.startswith("- ")]) == 1


def test_wrapping_never_begins_a_line_with_what_would_be_a_list() -> None:
    for sign in ("+", "-", "*", "1.", "#", ">"):
        for length in range(60, 100):
            result = wrap(f"{'x' * length} and then {sign} more\nof {'y' * 101}\n")
            assert not any(line.startswith(f"{sign} ") for line in result.splitlines()), result
