"""The notebooks as pages to read: their text and their code. `make notebooks` executes them."""

from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
INTRODUCTION = """# Notebooks

Five notebooks that run in seconds to half a minute each. They are kept as Python files
(docs/notebooks) so that changes can be read; jupytext makes notebooks of them. These pages show their
text and code; the outputs come when you run them:

```sh
pip install "topicscope[all]" jupyterlab jupytext
jupytext --to ipynb docs/notebooks/theory.py    # then open docs/notebooks/theory.ipynb
make notebooks                                  # in a checkout: all of them, executed, in build/notebooks
```

"""


def notebook_pages() -> dict[str, str]:
    """Markdown by name, and an index of them."""
    pages = {path.stem: as_markdown(path) for path in sorted(NOTEBOOKS.glob("*.py"))}
    titles = {name: text.splitlines()[0].removeprefix("# ") for name, text in pages.items()}
    entries = "".join(f"- [{title}]({name}.md)\n" for name, title in titles.items())
    tree = "\n".join(["", "```{toctree}", ":hidden:", "", *pages, "```", ""])
    return {"index.md": INTRODUCTION + entries + tree, **{f"{name}.md": text for name, text in pages.items()}}


def as_markdown(path: Path) -> str:
    """A notebook's cells in order; code in blocks of Python."""
    _, *cells = path.read_text(encoding="utf-8").split("\n# %%")  # jupytext's percent format, after a header
    return "\n\n".join(one_cell(cell.rstrip()) for cell in cells) + "\n"


def one_cell(cell: str) -> str:
    """A cell, from what follows its mark on."""
    kind, *lines = cell.split("\n")
    if kind.strip() == "[markdown]":
        return "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines)
    return "\n".join(("```python", *lines, "```"))
