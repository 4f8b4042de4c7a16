"""The generated half of the documentation: commands, API, the paper's map, the gallery, the notebooks.

`make docs` calls it; `python -m tools.reference` writes the same pages to docs/reference without building anything.
"""

from pathlib import Path

from tools.reference.api import api_pages
from tools.reference.commands import command_pages
from tools.reference.notebooks import notebook_pages
from tools.reference.paper_map import paper_pages

ROOT = Path(__file__).parents[2]
UNSEARCHED = "---\nnosearch: true\n---\n\n"  # the list of changes has every word, and would come first


def pages() -> dict[str, str]:
    """Text by path below docs/reference."""
    return {
        **{f"commands/{name}": text for name, text in command_pages().items()},
        **{f"api/{name}": text for name, text in api_pages().items()},
        **{f"notebooks/{name}": text for name, text in notebook_pages().items()},
        **paper_pages(),
        "changelog.md": UNSEARCHED + (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    }


def write_reference(folder: Path) -> None:
    """Write all pages; a page that is as it was keeps its date, and one that is no more goes."""
    wanted = {folder / name: text for name, text in pages().items()}
    for path in folder.rglob("*.*"):
        if path.is_file() and path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
