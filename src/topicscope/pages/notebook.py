"""A result in a notebook, with all that its page has: the same templates and scripts, in a widget (anywidget).

notebook_view(run)      # what a cell shows whose last line is `run`
"""

import gzip
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anywidget
import ipywidgets
import traitlets
from plotly.offline import get_plotlyjs

from topicscope.ground import InputError, Result
from topicscope.pages.page import bundled, curves_of_rows, environment, judged_of, map_parts, source, with_anchors
from topicscope.pages.panels import Section

# from the name of a question and its details: what the view gets, as JSON has it
Answer = Callable[[str, Mapping[str, Any]], object]


class Library(ipywidgets.Widget):  # type: ignore[misc]  # ships no types
    """plotly.js, gzipped. The views of a kernel share one: it is sent to a browser once, not with every result."""

    script = traitlets.Bytes().tag(sync=True)


_library: Library | None = None


def library() -> Library:
    """The kernel's one. It is made anew where a user has closed all widgets."""
    global _library
    if _library is None or _library.comm is None:
        _library = Library(script=gzip.compress(get_plotlyjs().encode()))
    return _library


class NotebookView(anywidget.AnyWidget):
    """A widget that shows a result in a notebook: HTML of the project's templates, made interactive by notebook.js."""

    _esm = f"{bundled('notebook.js')}\nexport default {{ render }};"
    view = traitlets.Unicode().tag(sync=True)
    html = traitlets.Unicode().tag(sync=True)
    style_sheet = traitlets.Unicode().tag(sync=True)
    library = traitlets.Unicode().tag(sync=True)

    def __init__(self, view: str, html: str, answer: Answer | None = None, styles: str = "") -> None:
        sheet = "\n".join([source("style.css"), styles, source("notebook.css")])
        super().__init__(view=view, html=html, style_sheet=sheet, library=library().model_id)
        if answer is not None:
            self.on_msg(partial(reply, answer))


def reply(answer: Answer, view: NotebookView, message: Any, _: object) -> None:
    identity, question, details = (message.get(name) for name in ("id", "question", "details"))
    try:
        said = {"answer": answer(question, details)}
    except InputError as error:
        said = {"error": str(error)}
    except Exception as error:
        said = {"error": f"this is a bug in topicscope: {type(error).__name__}: {error}"}
    view.send({"id": identity, **said})


def notebook_view(result: Result, sections: list[Section]) -> NotebookView:
    """What a notebook shows of a result: its sections as on its page, or of a sweep the map of its points."""
    template = environment().get_template("widget.html.jinja")
    if result.kind != "sweep":
        placed = with_anchors(sections)
        summary, judged = judged_of(placed)
        html = template.render(paragraphs=result.intro(), sections=placed, summary=summary, judged=judged)
        return NotebookView("sections", html)

    from topicscope.pages.maps import point_map

    points = point_map(result)  # type: ignore[arg-type]

    def curves(_: str, details: Mapping[str, Any]) -> object:
        return curves_of_rows(points, result.curves_of, details["rows"])  # type: ignore[attr-defined]

    html = template.render(paragraphs=result.intro(), **map_parts(points, None))
    return NotebookView("sweep", html, curves)
