"""How the documentation is built: `make docs`, without network, warnings are errors.

Sphinx with MyST, so that every page is a Markdown file that reads as well on a code host. The theme is furo: its
styles, scripts and fonts are in the built folder or in the browser, so pages, dark mode and search work from disk.
sphinx-gallery is not used: it runs scripts at every build, and our figures are outcomes of a reproduction of minutes;
`tools/gallery.py` keeps them in small.
"""

import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from docutils import nodes  # noqa: E402
from sphinx.addnodes import pending_xref  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402
from sphinx.environment import BuildEnvironment  # noqa: E402
from tools.reference import write_reference  # noqa: E402
from tools.reference.api import documented_at  # noqa: E402
from tools.reference.docstrings import as_rst, fields  # noqa: E402

from topicscope import __version__  # noqa: E402

project = "topicscope"
author = "the authors of topicscope"
copyright = f"2026, {author}"  # noqa: A001
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
myst_enable_extensions = ["fieldlist"]
myst_heading_anchors = 4
myst_linkify_fuzzy_links = False
exclude_patterns = ["_build"]
nitpicky = True
smartquotes = False  # "--out" is not a dash
suppress_warnings = ["ref.python"]  # packages may have types of one name; links in signatures are resolved below
highlight_language = "sh"  # most blocks are commands

autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
add_module_names = False
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"topicscope {__version__}"
html_show_sphinx = False
html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses from disk
html_static_path = ["static"]
html_css_files = ["site.css"]
copybutton_exclude = ".linenos, .gp, .go"

PLACES = documented_at()
WRITTEN = ROOT / "docs" / "reference"


def plain_docstring(_: Sphinx, what: str, __: str, value: Any, ___: Any, lines: list[str]) -> None:
    lines[:] = as_rst(lines) + (fields(value) if what == "class" else [])


def readable_signature(
    _: Sphinx, __: str, ___: str, ____: Any, _____: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """A default that a dataclass makes anew each time has no name in Python: '...' stands for it."""
    return signature and signature.replace("<factory>", "..."), returns


def where_described(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Node | None:
    """Types in signatures: a link to where a front door describes them; others (NumPy's, ...) are no links."""
    if node.get("refdomain") != "py" or not node.get("refdoc", "").startswith("reference/api/"):
        return None  # in a written page a wrong name is an error
    place = PLACES.get(node["reftarget"])
    if place is None:
        return content
    domain = env.domains.python_domain
    found = domain.resolve_xref(env, node["refdoc"], app.builder, "obj", place, node, content)
    return found or content


def only_written(app: Sphinx, page: str, source: list[str]) -> None:
    """A pattern of the index that no page matches is left out."""
    if page == "index":
        lines = source[0].splitlines()
        source[0] = "\n".join(line for line in lines if "*" not in line or " " in line or matches(app, line))


def matches(app: Sphinx, pattern: str) -> bool:
    return any(fnmatch(name, pattern) for name in app.env.found_docs if not name.endswith("/index"))


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    write_reference(WRITTEN)
    app.connect("source-read", only_written)
    app.connect("autodoc-process-docstring", plain_docstring)
    app.connect("autodoc-process-signature", readable_signature)
    app.connect("missing-reference", where_described)
