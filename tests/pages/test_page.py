"""Pages, the page of a sweep, scripts, and results that show themselves."""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from plotly.offline import get_plotlyjs

from tests.pages import samples
from topicscope.ground import InputError
from topicscope.pages import (
    STATIC,
    Figure,
    Heat,
    Lines,
    Map,
    Panel,
    PointMap,
    Section,
    Series,
    TableData,
    draw_figure,
    page as page_module,
    write_report,
    write_sweep_page,
)
from topicscope.pages.page import (
    CURVE_POINTS,
    EXPORT,
    IMPORT,
    MOST_ROWS,
    anchors,
    bundled,
    duration,
    numeric_columns,
    panel_spec,
    script_json,
    shared_keys,
    source,
    thumbnail,
    write_page,
)
from topicscope.pages.panels import PALETTE, pens

TITLE = f"The reproduction {samples.EVIL}"
PLOTS = sum(len(figure.panels) for figure in samples.figures())
MOST_BYTES = 15_000_000


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(path, TITLE, f"First.\n\nSecond: {samples.EVIL}", samples.sections())
    return path


def outside_plotly(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    library = get_plotlyjs()
    assert text.count(library) == 1
    return text.replace(library, "")


def test_file_is_whole_small_the_same_twice_fetches_nothing_and_is_escaped(page: Path, tmp_path: Path) -> None:
    assert page.stat().st_size < MOST_BYTES
    write_page(tmp_path / "again.html", TITLE, f"First.\n\nSecond: {samples.EVIL}", samples.sections())
    assert (tmp_path / "again.html").read_bytes() == page.read_bytes()
    assert [path.name for path in page.parent.iterdir()] == ["report.html"]
    rest = outside_plotly(page)
    assert not re.search(r"<link|<script[^>]*\ssrc|<img|<iframe|@import|url\(|https?:", rest)
    assert "default-src 'none'" in rest
    assert "<script>window" not in rest
    assert "&lt;script&gt;window" in rest
    assert r"\u003c/script" in rest or r"\u0026lt;/script" in rest
    assert rest.count("</script>") == PLOTS + 2


def test_ids_are_fit_for_links_and_numbers_and_cells_for_json() -> None:
    made = anchors(["figure 4", "figure-4", "<b>", "δ", "figure 4"])
    assert made == ["section-figure-4", "section-figure-4-2", "section-b", "section-x", "section-figure-4-3"]
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) for name in made)
    spec = panel_spec(Heat("", [[0.12345678901, float("nan")], [float("inf"), 1e-9]]), {})
    assert spec["data"][0]["z"] == [[0.123457, None], [None, 1e-9]]
    json.dumps(spec, allow_nan=False)
    text = script_json({"a": "</script><!-- & ü"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"a": "</script><!-- & ü"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json(float("nan"))
    rows = [["1", "-", "1.5 ± 0.1", "3 [1, 2]", "a", "5%"], ["x", "1e-5", "−2", "1,234 (all)", "2", "3 s"]]
    assert numeric_columns(TableData("", list("abcdef"), rows)) == [False, True, True, True, False, True]
    assert numeric_columns(TableData("", ["a", "b"], [])) == [False, False]
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        numeric_columns(TableData("", ["a"], [["1", "2"], ["1"]]))


def test_judged_and_other_sections_may_stand_on_one_page(tmp_path: Path) -> None:
    judged = samples.sections()[0]
    write_page(tmp_path / "page.html", "t", "i", [Section("Before", "A note."), judged])
    page = outside_plotly(tmp_path / "page.html")
    assert page.count('<th scope="row"><a href=') == 1  # only the judged one is in the table of verdicts
    assert "<p>1 reproduced</p>" in page
    assert page.count('class="badge') == 2
    assert "Run just this one (63 seconds)" in page
    assert "The command" not in page  # the other has none
    assert judged.verdict is not None
    write_page(tmp_path / "page.html", "t", "i", [replace(judged, verdict=replace(judged.verdict, seconds=None))])
    page = outside_plotly(tmp_path / "page.html")
    assert '<td class="number">-</td>' in page  # the time is not known
    assert '<p class="panel-title">Run just this one</p>' in page
    sections = [*samples.sections(), samples.sections()[0]]
    write_page(tmp_path / "page.html", "t", "i", sections)
    assert "<p>2 reproduced, 1 not reproduced, 1 skipped</p>" in outside_plotly(tmp_path / "page.html")


def test_a_report_has_every_figure_as_files_and_may_be_written_again(tmp_path: Path) -> None:
    section = Section("x", figures=[samples.map_figure(), samples.curves_figure()])
    write_report(tmp_path / "new", "t", "i", [section, Section("y", figures=[samples.points_figure()])])
    files = sorted(str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*") if path.is_file())
    pictures = [f"figures/{name}.{kind}" for name in ("curves", "map", "points") for kind in ("png", "svg")]
    numbers = ["figures/curves-1.csv", "figures/curves-2.csv", "figures/map-1.csv", "figures/points-1.csv"]
    assert files == sorted([*pictures, *numbers, "report.html"])
    for _ in range(2):
        write_report(tmp_path / "a" / "b", "t", "i", [Section("x", tables=[TableData("t", ["a"], [["1"]])])])
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["report.html"]


def test_narrow_panels_with_the_same_curves_share_a_legend(tmp_path: Path) -> None:
    curves = [Series("a <b>", [0, 1], [0, 1]), Series("c", [0, 1], [1, 0])]
    figure = Figure("f", "title", "alt", [Lines(f"p{i}", curves) for i in range(4)], 4)
    write_page(tmp_path / "page.html", "t", "i", [Section("x", "note", "command", [figure])])
    page = (tmp_path / "page.html").read_text()
    assert page.count('<svg class="key"') == 2
    assert "a &lt;b&gt;</li>" in page
    shown = [panel_spec(figure.panels[0], pens(figure), legend=legend) for legend in (False, True)]
    assert [spec["layout"]["showlegend"] for spec in shown] == [False, True]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0.0"), (9.94, "9.9"), (10.0, "10"), (10.4, "10"), (12345.6, "12,346"), (None, "-")]
)
def test_durations_are_short(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_paragraphs_configurations_and_long_tables(tmp_path: Path) -> None:
    table = TableData("Long", ["name", "number"], [[f"row {i}", f"{i}"] for i in range(41)])
    short = TableData("Short", ["number", "name"], [["1", "a"]] * 40)
    section = Section("x", tables=[table, short], config={"ä": Path("p"), "b": {"c": 1}})
    write_page(tmp_path / "page.html", "t", "First.\n \nSecond.\n\n", [section])
    page = outside_plotly(tmp_path / "page.html")
    assert re.findall('<p class="prose">(.*?)</p>', page) == ["First.", "Second."]
    configuration = '<pre tabindex="0">{\n  "ä": "p",\n  "b": {\n    "c": 1\n  }\n}</pre>'
    assert (
        configuration.replace('"ä": "p"', "&#34;ä&#34;: &#34;p&#34;")
        .replace('"b"', "&#34;b&#34;")
        .replace('"c"', "&#34;c&#34;")
        in page
    )
    assert "<summary>Long (41 rows)</summary>" in page
    assert "<summary>Short" not in page
    assert page.count('<td class="number">') == 41
    assert page.count('<th scope="col" class="number">number</th>') == 1  # a first column is the row's name
    assert "\n\n\n" not in page.split("<main>")[1].split("</main>")[0]  # templates leave no blank lines
    assert '<a class="skip" href="#section-x">To the results</a>' in page


def keys(*panels: Panel, columns: int = 3, **colours: str) -> list[tuple[str, str, str]]:
    figure = Figure("f", "", "", list(panels), columns, colours)
    return shared_keys(figure, pens(figure))


def test_one_legend_for_all_panels_needs_the_same_curves_and_nothing_else_to_name() -> None:
    both = [Series("a", [0], [0]), Series("b", [0], [0])]
    plain = Lines("", both)
    assert keys(plain, plain, a="#123456") == [("a", "#123456", ""), ("b", "#0072B2", "")]
    assert keys(plain, plain, columns=2) == []
    assert keys(plain) == []
    assert keys(Lines("", both[:1]), Lines("", both[:1])) == []
    assert keys(plain, Lines("", both[::-1])) == []
    assert keys(plain, Lines("", both, levels=[(0.0, "zero")])) == []
    assert keys(plain, plain, Lines("", both, bands=[(0.0, 1.0, "early")])) == []
    assert keys(plain, plain, Heat("", [[0.0]])) == []
    assert keys(plain, plain, Lines("", [])) == []
    many = Lines("", [Series(f"{i}", [0], [0]) for i in range(4 * len(PALETTE))])
    dashes = [dash for _, _, dash in keys(many, many)]
    assert dashes[:: len(PALETTE)] == ["", "6 4", "2 4", "9 4 2 4"]
    first, second = (Map("", [[0.0]], ["a"], ["b"], names=names) for names in ({"x": "#1"}, {"y": "#2", "x": "#1"}))
    assert keys(first, second, Map("", [[0.0]], ["a"], ["b"]), columns=1) == [
        ("x", "#1", ""),
        ("y", "#2", ""),
    ]
    assert keys(Map("", [[0.0]], ["a"], ["b"])) == []


def test_a_small_picture_of_a_figure_that_is_there(tmp_path: Path) -> None:
    assert thumbnail(tmp_path, "none") == ""
    (tmp_path / "broken.png").write_bytes(b"no picture")
    assert thumbnail(tmp_path, "broken") == ""
    draw_figure(Figure("a", "title", "alt", [Heat("t", [[0.0, 1.0], [1.0, 0.0]])]), tmp_path)
    small = thumbnail(tmp_path, "a")
    content = base64.b64decode(small.removeprefix("data:image/png;base64,"))
    width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))  # of the PNG's header
    assert 0 < width <= 192
    assert 0 < height <= 112
    assert len(content) < 20_000


ROWS: list[dict[str, Any]] = [
    {"point": "a", "state": "done", "rate": 0.1, "loss": 2.0, "phase": "late", "mood": "good"},
    {"point": "b", "state": "failed", "rate": 1.0, "error": "<b>no</b>", "loss": None},
]
COLOURS = {"phase": {"early": "#111111", "late": "#222222"}}


@pytest.fixture(scope="module")
def sweep_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("sweep") / "page.html"
    steps = np.arange(1000.0)
    curves = [{"step": steps, "loss": steps / 2, "norm_key": steps * 2, "grad_key": steps}, {}]
    panels = {"loss": "loss", "norms": "norm_"}
    points = PointMap({"rate": [0.1, 1.0]}, ROWS, panels, colours=COLOURS)
    write_sweep_page(path, "t", "i", points, curves)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def data(sweep_page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', sweep_page)
    return dict(json.loads(text))


def test_a_sweep_page_has_words_places_measures_curves_and_failures(data: dict[str, Any], sweep_page: str) -> None:
    assert data["words"] == {
        "phase": [{"name": "early", "colour": "#111111"}, {"name": "late", "colour": "#222222"}],
        "mood": [{"name": "good", "colour": PALETTE[0]}],
        "state": [{"name": "done", "colour": PALETTE[0]}, {"name": "failed", "colour": PALETTE[1]}],
    }
    assert data["measures"] == ["loss", "phase", "mood", "state"]
    measures = {"loss": 2.0, "phase": "late", "mood": "good", "state": "done"}
    assert data["rows"] == [
        {"point": "a", "state": "done", "error": None, "at": [0], "measures": measures},
        {"point": "b", "state": "failed", "error": "<b>no</b>", "at": [1], "measures": {"state": "failed"}},
    ]
    assert data["curvePanels"] == {"loss": "loss", "norms": "norm_"}
    assert list(data["curves"]) == ["0"]
    curves = {name: np.frombuffer(base64.b64decode(text), "<f4") for name, text in data["curves"]["0"].items()}
    assert list(curves) == ["step", "loss", "norm_key"]
    assert (len(curves["step"]), curves["step"][0], curves["step"][-1]) == (CURVE_POINTS, 0, 999)
    np.testing.assert_array_equal(curves["norm_key"], 2 * curves["step"])
    assert "1 of 2 points failed" in sweep_page
    assert "<td>&lt;b&gt;no&lt;/b&gt;</td>" in sweep_page


def made(tmp_path: Path, rows: list[dict[str, Any]], curves: Any = (), **more: Any) -> dict[str, Any]:
    axes = {"rate": list(dict.fromkeys(row["rate"] for row in rows))}
    write_sweep_page(tmp_path / "page.html", "t", "i", PointMap(axes, rows, {"loss": "loss"}, **more), curves)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return dict(json.loads(text))


def test_the_first_measure_is_the_one_that_is_asked_for_and_words_come_last(tmp_path: Path) -> None:
    rows = [
        {"point": "a", "state": "done", "rate": 1, "odd": None, "mood": "good", "fine": True, "loss": 1.0},
        {"point": "b", "state": "done", "rate": [2], "mixed": 1, "loss": 2.0},
        {"point": "c", "state": "done", "rate": "x", "mixed": "word", "fine": False},
    ]
    data = made(tmp_path, rows[:1])
    assert data["measures"] == ["loss", "mood", "fine", "state"]
    assert list(data["words"]) == ["mood", "fine", "state"]
    assert made(tmp_path, rows[:1], first="fine")["measures"] == ["fine", "loss", "mood", "state"]
    for row in rows:
        row["rate"] = str(row["rate"])
    data = made(tmp_path, rows)
    assert data["words"]["mixed"] == [{"name": "1", "colour": PALETTE[0]}, {"name": "word", "colour": PALETTE[1]}]
    assert [one["name"] for one in data["words"]["fine"]] == ["True", "False"]
    assert [row["at"] for row in data["rows"]] == [[0], [1], [2]]
    assert data["palette"] == list(PALETTE)
    count = len(PALETTE) + 1
    rows = [{"point": f"{i}", "state": "done", "rate": 1.0, "word": f"w{i}"} for i in range(count)]
    colours = [one["colour"] for one in made(tmp_path, rows)["words"]["word"]]
    assert colours == [*PALETTE, PALETTE[0]]


def test_short_curves_are_whole_and_curves_end_where_the_page_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"point": f"{i}", "state": "done", "rate": 1.0} for i in range(4)]
    curves = [
        {"loss": np.array([3.0, 2.0, 1.0])},
        {"loss": np.array([7.0])},
        {"loss": np.array([])},
        {"other": curve()},
    ]
    data = made(tmp_path, rows, curves)
    read = {key: np.frombuffer(base64.b64decode(of["loss"]), "<f4").tolist() for key, of in data["curves"].items()}
    assert read == {"0": [3.0, 2.0, 1.0], "1": [7.0], "2": []}
    four = len(base64.b64encode(bytes(4 * CURVE_POINTS)))
    for most, kept in ((four - 1, ["0"]), (four, ["0", "1"]), (2 * four, ["0", "1", "2"])):
        monkeypatch.setattr(page_module, "MOST_CURVES", most)
        assert list(made(tmp_path, rows, [{"loss": curve()}] * 4)["curves"]) == kept


def curve() -> np.ndarray:
    return np.arange(float(CURVE_POINTS))


MODULES = sorted(path.name for path in STATIC.glob("*.js"))


@pytest.mark.parametrize("entry", MODULES)
def test_a_bundle_defines_every_name_once_and_before_it_is_used(entry: str) -> None:
    text = bundled(entry)
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)
    made = [
        name
        for names in re.findall(r"^const \{ (.*) \} = \(\(\) => \{$", text, re.MULTILINE)
        for name in names.split(", ")
    ]
    assert len(made) == len(set(made))
    for names, _ in IMPORT.findall(source(entry)):
        for name in names.split(", "):
            assert name in made
            assert text.index(f"const {name} =") < text.rindex(name)


@pytest.mark.parametrize("module", MODULES)
def test_every_import_names_what_its_module_exports(module: str) -> None:
    lines = re.findall(r"^import .*", source(module), re.MULTILINE)
    assert len(lines) == len(IMPORT.findall(source(module)))  # no form of import that a bundle would leave
    for names, needed in IMPORT.findall(source(module)):
        assert set(names.split(", ")) <= set(EXPORT.findall(source(needed)))


PNG = b"\x89PNG\r\n"


def test_a_result_has_a_short_repr_and_plots_its_first_figure() -> None:
    first, second = samples.curves_figure(), samples.map_figure()
    picture = samples.Sample([Section("no figure"), Section("x", figures=[first, second])]).plot()
    assert isinstance(picture, Canvas)
    assert [axes.get_xlabel() for axes in picture.axes] == ["step", "documents"]
    assert picture._repr_png_().startswith(PNG)  # type: ignore[attr-defined]  # so that a notebook shows it
    with pytest.raises(InputError, match=r"^Sample\(1 parts\) has no figure"):
        samples.Sample([Section("x")]).plot()
    assert repr(samples.Sample([Section("x")])) == "Sample(1 parts)"


def test_a_notebook_shows_sentences_figure_and_some_rows_as_text() -> None:
    figure = samples.curves_figure()
    html = samples.Sample(
        [Section("x", figures=[figure], tables=[samples.table(2)]), Section("y", tables=[samples.table(9)])]
    )._repr_html_()
    assert "<script" not in html
    assert "<b>" not in html
    assert html.count("&lt;script&gt;window.hacked=1&lt;/script&gt;") == 1 + 1 + 1 + 2  # sentence, alt, caption, cells
    assert "<p>Two things were measured.</p>" in html
    (source,) = re.findall(r'<img src="data:image/png;base64,([^"]+)"', html)
    assert base64.b64decode(source).startswith(PNG)
    assert html.count("<tr>") == 1 + 2
    assert html.count('<td style="text-align: right">') == 2
    assert "more rows" not in html
    html = samples.Sample([Section("x", tables=[samples.table(MOST_ROWS + 5)])])._repr_html_()
    assert html.count("<tr>") == 1 + MOST_ROWS
    assert "<p>5 more rows; .table() has all numbers.</p>" in html
    assert "<img" not in html
