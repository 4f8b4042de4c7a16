"""A result in a notebook: what the kernel sends, and what stays where there is no anywidget."""

import gzip
import importlib.util
import re
from typing import Any

import ipywidgets
import pytest
from IPython.core.formatters import DisplayFormatter
from plotly.offline import get_plotlyjs

from tests.pages import samples
from topicscope.ground import InputError, results
from topicscope.pages import NotebookView, PointMap, Section, curves_of_rows, notebook_view, page_html
from topicscope.pages.notebook import library
from topicscope.pages.page import MOST_ANSWERED, packed

WIDGET = "application/vnd.jupyter.widget-view+json"
ROWS: list[dict[str, Any]] = [{"point": name, "state": "done", "rate": rate} for rate, name in enumerate("abc")]
POINTS = PointMap({"rate": [0, 1, 2]}, ROWS, {"loss": "loss"})


def curves_of(number: int) -> dict[str, Any]:
    return {"step": [0.0, 1.0], "loss": [number, 2.0 * number]}


def shown(result: Any) -> dict[str, Any]:
    """What IPython sends of a result."""
    data, _ = DisplayFormatter().format(result)  # type: ignore[no-untyped-call]
    return dict(data)


@pytest.fixture
def in_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "in_notebook", lambda: True)


@pytest.mark.usefixtures("in_kernel")
def test_a_notebook_gets_the_view_and_what_is_shown_without_it() -> None:
    one = samples.Sample([Section("x", figures=[samples.map_figure()], tables=[samples.table(2)])])
    data = shown(one)
    assert set(data) == {WIDGET, "text/html", "text/plain"}
    assert data["text/html"] == one._repr_html_()
    assert data["text/plain"] == "Sample(1 parts)"
    view = ipywidgets.Widget.get_manager_state()["state"][data[WIDGET]["model_id"]]["state"]
    assert "<h2" in view["html"]


@pytest.mark.usefixtures("in_kernel")
def test_without_anywidget_the_static_view_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "anywidget" else find(name))
    one = samples.Sample([Section("x", tables=[samples.table(2)])])
    assert shown(one) == {"text/html": one._repr_html_(), "text/plain": "Sample(1 parts)"}


def test_a_view_has_what_the_page_has_runs_nothing_and_fetches_nothing() -> None:
    one = samples.Sample(samples.sections())
    view, page = notebook_view(one, one.sections()), page_html("t", "i", one.sections())
    numbers = r'<script type="application/json">(.*?)</script>'
    assert re.findall(numbers, view.html) == re.findall(numbers, page) != []
    for part in ("<h2.*?</h2>", "<nav.*?</nav>", "<table.*?</table>", '<div class="plot[^>]*>', "<figcaption.*?<"):
        assert re.findall(part, view.html, re.DOTALL) == re.findall(part, page, re.DOTALL) != []
    assert samples.Sample([Section("x")])._repr_mimebundle_() is None
    assert "<script>" not in view.html
    assert "&lt;script&gt;window.hacked=1&lt;/script&gt;" in view.html
    assert not re.search(r"<[^>]*\son\w+=", view.html)
    for text in (view.html, view._esm, view.style_sheet):
        assert not re.search(r"https?:|@import|<link|<iframe", text)
    assert view._esm.count("\nexport ") == 1  # one script, as anywidget runs it


def test_plotly_is_sent_once_for_all_views() -> None:
    first, second = (
        notebook_view(one, one.sections()) for one in (samples.Sample([Section("x")]), samples.Sample([Section("y")]))
    )
    assert first.library == second.library == library().model_id
    assert gzip.decompress(library().script).decode() == get_plotlyjs()
    assert len(library().script) < len(get_plotlyjs()) / 3
    assert sum(len(str(value)) for value in first.get_state().values()) < 100_000
    library().close()
    assert NotebookView("sections", "").library == library().model_id != first.library


def test_a_map_gets_the_curves_that_it_asks_for() -> None:
    answers: list[Any] = []
    view = NotebookView("sweep", "", lambda _, details: curves_of_rows(POINTS, curves_of, details["rows"]))
    view.send = answers.append
    view._handle_custom_msg({"id": "x-1", "question": "curves", "details": {"rows": [2, 0, 3, -1]}}, [])
    assert answers == [{"id": "x-1", "answer": packed([(2, curves_of(2)), (0, curves_of(0))], POINTS)}]
    assert curves_of_rows(POINTS, curves_of, [0] * MOST_ANSWERED + [1]).keys() == {"0"}


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InputError("no such topic"), "no such topic"),
        (KeyError("rows"), "this is a bug in topicscope: KeyError: 'rows'"),
    ],
)
def test_a_question_without_an_answer_gets_one_line(error: Exception, line: str) -> None:
    def refuse(_: str, __: object) -> Any:
        raise error

    answers: list[Any] = []
    view = NotebookView("sections", "", refuse)
    view.send = answers.append
    view._handle_custom_msg({"id": "x-1", "question": "what", "details": {}}, [])
    assert answers == [{"id": "x-1", "error": line}]


def test_a_sweep_is_a_map_of_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples.Sample, "kind", "sweep")
    monkeypatch.setattr("topicscope.pages.maps.point_map", lambda _: POINTS)
    view = notebook_view(samples.Sample([]), [])
    assert view.view == "sweep"
    assert '<section id="map">' in view.html
    assert '"curves":null' in view.html  # they come when they are asked for
