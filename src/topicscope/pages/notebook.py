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
from topicscope.pages.builders import points_of
from topicscope.pages.page import environment, judged_of, with_anchors
from topicscope.pages.parts import Section
from topicscope.pages.scripts import bundled, source
from topicscope.pages.sweep_page import curves_of_rows, map_parts

Answer = Callable[[str, Mapping[str, Any]], Any]
"""From the name of a question and its details: what the view gets, as JSON has it."""


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
    """A widget that shows a result in a notebook: HTML of the project's templates, made interactive by notebook.js.

    Args:
        view: What the HTML is: 'sections' of a result, the map of a 'sweep', or 'theory' under sliders.
        html: The HTML, from the templates.
        answer: Called as answer(question, details) when the view asks for more, such as curves; None: it asks nothing.
        styles: More style sheets, as text.

    Example:
        See `notebook_view`.
    """

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
    """Answer a question of the view, or say in one line why there is no answer."""
    identity, question, details = (message.get(name) for name in ("id", "question", "details"))
    try:
        view.send({"id": identity, "answer": answer(question, details)})
    except InputError as error:
        view.send({"id": identity, "error": str(error)})
    except Exception as error:
        fault = f"this is a bug in topicscope: {type(error).__name__}: {error}"
        view.send({"id": identity, "error": fault})


def notebook_view(result: Result, sections: list[Section]) -> NotebookView:
    """What a notebook shows of a result: its sections as on its page, or of a sweep the map of its points.

    Args:
        result: Any result.
        sections: Its figures and tables, from `topicscope.pages.sections`.

    Returns:
        The widget; a cell that ends with it shows it.

    Example:
        >>> from topicscope.pages import sections
        >>> from topicscope.theory import Setting, theorem2
        >>> theorem = theorem2(Setting.of(4, 3))
        >>> view = notebook_view(theorem, sections(theorem))
        >>> view.view, "Numbers of Theorem 2" in view.html
        ('sections', True)
    """
    template = environment().get_template("widget.html.jinja")
    points = points_of(result)
    if points is None:
        placed = with_anchors(sections)
        summary, judged = judged_of(placed)
        html = template.render(paragraphs=result.intro(), sections=placed, summary=summary, judged=judged)
        return NotebookView("sections", html)

    def curves(_: str, details: Mapping[str, Any]) -> Any:
        return curves_of_rows(points, result.curves_of, details["rows"])  # type: ignore[attr-defined]

    html = template.render(paragraphs=result.intro(), **map_parts(points, None))
    return NotebookView("sweep", html, curves)
