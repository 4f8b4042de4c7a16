"""What the page of a sweep holds: colours that are handed over, and the curves that are asked for."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from topicscope.pages import PointMap, sweep_page
from topicscope.pages.layout import PALETTE
from topicscope.pages.sweep_page import CURVE_POINTS, write_sweep_page

ROWS: list[dict[str, Any]] = [
    {"point": "a", "state": "done", "rate": 0.1, "loss": 2.0, "phase": "late", "mood": "good"},
    {"point": "b", "state": "failed", "rate": 1.0, "error": "<b>no</b>", "loss": None},
]
COLOURS = {"phase": {"early": "#111111", "late": "#222222"}}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("sweep") / "page.html"
    steps = np.arange(1000.0)
    curves = [{"step": steps, "loss": steps / 2, "norm_key": steps * 2, "grad_key": steps}, {}]
    panels = {"loss": "loss", "norms": "norm_"}
    points = PointMap({"rate": [0.1, 1.0]}, ROWS, panels, colours=COLOURS)
    write_sweep_page(path, "t", "i", points, curves)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def data(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return dict(json.loads(text))


def test_words_have_the_colours_that_are_handed_over_or_those_of_the_palette(data: dict[str, Any]) -> None:
    assert data["words"] == {
        "phase": [{"name": "early", "colour": "#111111"}, {"name": "late", "colour": "#222222"}],
        "mood": [{"name": "good", "colour": PALETTE[0]}],
        "state": [{"name": "done", "colour": PALETTE[0]}, {"name": "failed", "colour": PALETTE[1]}],
    }
    assert data["measures"] == ["loss", "phase", "mood", "state"]


def test_rows_have_their_places_and_measures(data: dict[str, Any]) -> None:
    measures = {"loss": 2.0, "phase": "late", "mood": "good", "state": "done"}
    assert data["rows"] == [
        {"point": "a", "state": "done", "error": None, "at": [0], "measures": measures},
        {"point": "b", "state": "failed", "error": "<b>no</b>", "at": [1], "measures": {"state": "failed"}},
    ]


def test_the_curves_that_are_asked_for_are_thinned_alike(data: dict[str, Any]) -> None:
    assert data["curvePanels"] == {"loss": "loss", "norms": "norm_"}
    assert list(data["curves"]) == ["0"]
    curves = {name: np.frombuffer(base64.b64decode(text), "<f4") for name, text in data["curves"]["0"].items()}
    assert list(curves) == ["step", "loss", "norm_key"]
    assert (len(curves["step"]), curves["step"][0], curves["step"][-1]) == (CURVE_POINTS, 0, 999)
    np.testing.assert_array_equal(curves["norm_key"], 2 * curves["step"])


def test_failures_are_listed_as_text(page: str) -> None:
    assert "1 of 2 points failed" in page
    assert "<td>&lt;b&gt;no&lt;/b&gt;</td>" in page


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


def test_more_words_than_colours_start_again(tmp_path: Path) -> None:
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
        monkeypatch.setattr(sweep_page, "MOST_CURVES", most)
        assert list(made(tmp_path, rows, [{"loss": curve()}] * 4)["curves"]) == kept


def curve() -> np.ndarray:
    return np.arange(float(CURVE_POINTS))
