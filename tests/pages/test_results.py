"""Results show themselves: in a notebook, and as a matplotlib figure."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow
import pytest
from matplotlib.figure import Figure as Canvas

from tests.pages import samples
from topicscope.ground import InputError, Result
from topicscope.pages import Section, TableData
from topicscope.pages.page import MOST_ROWS

PNG = b"\x89PNG\r\n"


@dataclass(frozen=True, repr=False)
class Sample(Result):
    """A result with sections of its own."""

    kind: ClassVar[str] = "sample"
    parts: list[Section] = field(default_factory=list)

    def summary(self) -> list[str]:
        return ["Two things were measured.", samples.EVIL]

    def table(self) -> Any:
        return pyarrow.table({"a": [1, 2]})

    def sections(self) -> list[Section]:
        return self.parts

    def _about(self) -> str:
        return f"{len(self.parts)} parts"


def table(rows: int) -> TableData:
    return TableData(samples.EVIL, ["name", "value"], [[samples.EVIL, f"{i}.5"] for i in range(rows)])


def test_the_repr_is_short() -> None:
    assert repr(Sample([Section("x")])) == "Sample(1 parts)"


def test_plot_is_the_first_figure_with_one_axes_per_panel() -> None:
    first, second = samples.curves_figure(), samples.map_figure()
    picture = Sample([Section("no figure"), Section("x", figures=[first, second])]).plot()
    assert isinstance(picture, Canvas)
    assert [axes.get_xlabel() for axes in picture.axes] == ["step", "documents"]
    assert picture._repr_png_().startswith(PNG)  # type: ignore[attr-defined]  # so that a notebook shows it
    with pytest.raises(InputError, match=r"^Sample\(1 parts\) has no figure"):
        Sample([Section("x")]).plot()


def test_a_notebook_shows_sentences_figure_and_table_as_text() -> None:
    figure = samples.curves_figure()
    html = Sample([Section("x", figures=[figure], tables=[table(2)]), Section("y", tables=[table(9)])])._repr_html_()
    assert "<script" not in html
    assert "<b>" not in html
    assert html.count("&lt;script&gt;window.hacked=1&lt;/script&gt;") == 1 + 1 + 1 + 2  # sentence, alt, caption, cells
    assert "<p>Two things were measured.</p>" in html
    (source,) = re.findall(r'<img src="data:image/png;base64,([^"]+)"', html)
    assert base64.b64decode(source).startswith(PNG)
    assert html.count("<tr>") == 1 + 2
    assert html.count('<td style="text-align: right">') == 2
    assert "more rows" not in html


def test_a_notebook_shows_some_rows_of_a_long_table() -> None:
    html = Sample([Section("x", tables=[table(MOST_ROWS + 5)])])._repr_html_()
    assert html.count("<tr>") == 1 + MOST_ROWS
    assert "<p>5 more rows; .table() has all numbers.</p>" in html
    assert "<img" not in html
