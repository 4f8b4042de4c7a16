"""The room of maps: any measure over any two axes, the predicted map beside the measured one, curves of a point."""

import io
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.support.select import Select

from tests.browser import complaints, opened, script
from tests.explorer.in_browser import IN_BROWSER, click_point, drawn_folder, every, find, folder_id, go, until
from tests.explorer.serving import PREDICTED, Served
from tests.waiting import wait_until
from topicscope.explorer import results_rooms
from topicscope.explorer.results_rooms import Prediction
from topicscope.ground import InputError
from topicscope.laws import predicted_phases
from topicscope.measure import PHASES
from topicscope.sweeps import build_grid, read_sweep, sweep
from topicscope.training import RunConfig

pytestmark = IN_BROWSER

MORE: dict[str, Any] = {"topic_model": {"topics": 4, "words_per_topic": 3}, "optimizer": {"name": "sgd"}}
BASE: dict[str, Any] = PREDICTED | MORE | {"steps": 300, "evaluate_every": None}
AXES: dict[str, Any] = {"optimizer.lr": [0.01, 3.0, 100.0], "model.init_scale": [0.01, 0.1]}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("space") / "runs"
    sweep(build_grid({"kind": "train", "base": BASE, "axes": AXES}), runs / "grid", engine="serial")
    return runs


def map_cells(browser: Chrome, number: int) -> list[list[float | None]]:
    return list(script(browser, "return document.querySelectorAll('#panels .plot')[arguments[0]].data[0].z", number))


def open_map(browser: Chrome, served: Served, more: str = "") -> str:
    identity = folder_id(served, "grid")
    go(browser, served, f"/maps?id={identity}{more}")
    drawn_folder(browser, identity)
    until(browser, lambda: "is shown beside" in find(browser, "#tools").text)
    return identity


def test_the_predicted_map_stands_beside_the_measured_one(browser: Chrome, served: Served, space: Path) -> None:
    open_map(browser, served)
    found = read_sweep(space / "grid")
    laws = predicted_phases([RunConfig.of(point.config) for point in found.grid.points])
    titles = [title.text for title in every(browser, "#panels .panel-title")]
    assert titles == ["measured", "predicted"]
    names = [item.text for item in every(browser, "#keys li")]
    assert names == [*PHASES, "not covered"]
    rates, scales = AXES["optimizer.lr"], AXES["model.init_scale"]
    measured, predicted = map_cells(browser, 0), map_cells(browser, 1)
    for row, law in zip(found.rows, laws, strict=True):
        x, y = rates.index(row["optimizer.lr"]), scales.index(row["model.init_scale"])
        assert measured[y][x] == names.index(row["phase"])
        assert predicted[y][x] == names.index(law.phase or "not covered")
    assert len({value for line in predicted for value in line}) >= 2


def test_a_cell_that_is_clicked_shows_its_curves_and_numbers(browser: Chrome, served: Served, space: Path) -> None:
    open_map(browser, served)
    click_point(browser, "#panels .plot", 1, 0)
    until(browser, lambda: every(browser, "#curves .plot"))
    row = next(
        row for row in read_sweep(space / "grid").rows if (row["optimizer.lr"], row["model.init_scale"]) == (3, 0.01)
    )
    heads = [cell.text for cell in every(browser, "#numbers thead th")]
    cells = [cell.text for cell in every(browser, "#numbers tbody th, #numbers tbody td")]
    table = dict(zip(heads, cells, strict=True))
    assert table["point"] == row["point"]
    assert table["phase"] == row["phase"]
    assert float(table["contrast"]) == float(f"{row['contrast']:.4g}")
    assert table["predicted_phase"]


def test_measure_and_axes_are_kept_in_the_address_and_in_what_is_saved(browser: Chrome, served: Served) -> None:
    identity = open_map(browser, served)
    Select(find(browser, "#measure")).select_by_value("contrast")
    Select(find(browser, "#across")).select_by_value("model.init_scale")
    Select(find(browser, "#up")).select_by_value("optimizer.lr")
    cells = map_cells(browser, 0)
    assert (len(cells), len(cells[0])) == (3, 2)
    assert "measure=contrast&across=model.init_scale&up=optimizer.lr" in browser.current_url
    links = [str(one.get_attribute("href")) for one in every(browser, "#map .keep a")]
    assert len(links) == 3
    assert all("measure=contrast" in link and f"id={identity}" in link for link in links)
    open_map(browser, served, "&measure=contrast&across=model.init_scale&up=optimizer.lr")
    assert map_cells(browser, 0) == cells


@pytest.mark.parametrize("measure", ["phase", "contrast", "state", "status"])
def test_a_map_is_kept_as_page_and_files(served: Served, measure: str) -> None:
    query = {"id": folder_id(served, "grid"), "measure": measure, "across": "optimizer.lr", "up": "model.init_scale"}
    status, page, _ = served.ask("/api/keep/maps", query)
    assert status == 200
    assert f'"chosen":{{"measure":"{measure}","across":"optimizer.lr","up":"model.init_scale"}}'.encode() in page
    for form, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("csv", b"x,y,")):
        assert served.ask(f"/api/keep/maps/map.{form}", query)[1].startswith(start)


def seen(browser: Chrome) -> list[Any]:
    """What the panels of the map and of the curves draw, with their titles, and the words beside them."""
    plots = (
        "return [...document.querySelectorAll('#panels .plot, #curves .plot')].map(plot => ["
        "plot.previousElementSibling.textContent, plot.getAttribute('aria-label'),"
        " plot.data.map(({x, y, z, name}) => [x, y, z, name])])"
    )
    texts = [find(browser, f"[id='{name}']").text for name in ("keys", "meanings")]
    lines = [[cell.text for cell in every(line, "th, td")] for line in every(browser, "#numbers tr")]
    return [script(browser, plots), texts, sorted(zip(*lines, strict=True))]  # columns in any order


@pytest.mark.parametrize(
    ("choice", "panels"),
    [
        ("measure=contrast&across=optimizer.lr&up=optimizer.lr&points=3", 2),  # strips: one axis alone
        ("measure=contrast&across=optimizer.lr&up=-&points=1,4", 2),
        ("measure=phase&across=model.init_scale&up=optimizer.lr", 2),  # measured and predicted
    ],
)
def test_the_saved_page_shows_what_the_view_shows(
    browser: Chrome, served: Served, tmp_path: Path, choice: str, panels: int
) -> None:
    open_map(browser, served, f"&{choice}")
    points = "points" in choice
    until(browser, lambda: bool(every(browser, "#curves .plot")) == points)
    on_screen = seen(browser)
    assert len(every(browser, "#panels .plot")) == panels
    (link,) = (one for one in every(browser, "#map .keep a") if one.text == "CSV")
    query = dict(parse_qsl(urlsplit(str(link.get_attribute("href"))).query))
    (tmp_path / "kept.html").write_bytes(served.ask("/api/keep/maps", query)[1])
    with opened(tmp_path / "kept.html", len(on_screen[0])) as other:
        assert seen(other) == on_screen
        assert complaints(other) == []


def test_files_of_a_map_over_one_axis_have_one_axis(served: Served) -> None:
    """The same cells as the view: one strip for each value of the other axis."""
    query = {"id": folder_id(served, "grid"), "measure": "contrast", "across": "optimizer.lr", "up": "optimizer.lr"}
    content = served.ask("/api/keep/maps/map.csv", query)[1]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        tables = [archive.read(name).decode().splitlines() for name in archive.namelist()]
    assert [len(table) for table in tables] == [4, 4]  # a head, and three rates: no diagonal of rate by rate


def test_what_the_sweep_does_not_have_is_said_and_leaves_the_address(browser: Chrome, served: Served) -> None:
    identity = open_map(browser, served, "&measure=nonsense&up=zzz&across=model.init_scale&points=1,99")
    (line,) = every(browser, "#view .ignored")
    assert line.text == "This sweep has no such measure, up, points as the link says; ignored."
    assert browser.current_url.endswith(f"/maps?id={identity}&across=model.init_scale&points=1")
    assert Select(find(browser, "#across")).first_selected_option.text == "model.init_scale"


def test_words_of_the_map_are_explained(browser: Chrome, served: Served) -> None:
    open_map(browser, served)
    names = [item.text for item in every(browser, "#keys li")]
    cells = [value for number in (0, 1) for line in map_cells(browser, number) for value in line]
    words = {names[int(value)] for value in cells if value is not None}
    lines = dict(item.text.split(": ", 1) for item in every(browser, "#meanings li"))
    assert set(lines) == words
    assert {"never"} <= words
    assert lines["never"] == "the norm of W_V rises by less than 5%; the loss may still fall"
    Select(find(browser, "#measure")).select_by_value("contrast")
    assert every(browser, "#meanings li") == []


def test_the_predicted_map_is_kept_too(served: Served) -> None:
    identity = folder_id(served, "grid")
    while served.json(f"/api/maps/{identity}/predicted")["rows"] is None:
        pass
    query = {"id": identity, "measure": "phase", "predicted": "yes"}
    assert b'"predicted_phase"' in served.ask("/api/keep/maps", query)[1]
    assert served.ask("/api/keep/maps/predicted-map.png", query)[1].startswith(b"\x89PNG")


def test_bad_questions_get_one_line(served: Served) -> None:
    identity = folder_id(served, "grid")
    assert "no such measure" in served.refusal("/api/keep/maps", {"id": identity, "measure": "x"})
    assert "no such folder" in served.refusal("/api/maps/0000000000000000/predicted")


def test_predictions_for_which_nobody_asks_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_rooms, "PATIENCE", -1.0)
    given_up = Prediction([RunConfig.of(BASE).as_dict()])
    while not given_up.given_up:
        assert given_up.rows is None
    monkeypatch.setattr(results_rooms, "PATIENCE", 600.0)
    assert wait_until(lambda: given_up.as_dict()["rows"])  # who asks again gets it


def test_a_prediction_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise FloatingPointError("no number")

    monkeypatch.setattr("topicscope.laws.predicted_phases", failing)
    failed = Prediction([RunConfig.of(BASE).as_dict()])
    assert wait_until(lambda: failed.trouble)
    with pytest.raises(InputError, match="it failed: no number"):
        failed.as_dict()
