"""`topicscope sweep`: results in every form, estimates, interruptions, and bad input in one line."""

import csv
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser import complaints, needs_browser, opened, script
from tests.calling import topicscope as called
from tests.command import error_line, started, topicscope
from tests.sweeps.samples import BASE, LONG, count
from tests.waiting import LIMIT, wait_until
from topicscope.ground import flat
from topicscope.sweeps import build_grid, sweep

GRID = {
    "base": BASE,
    "axes": {"optimizer.lr": [0.001, 0.01, 0.1], "objective.loss": ["squared", "cross-entropy"], "seed": {"seeds": 2}},
}


SEED = {"axes": {"seed": [1]}}
NOWHERE = {"corpus": ["nowhere.txt"], "models": "no-such/model"}


def grid_file(folder: Path, grid: Any) -> Path:
    path = folder / "grid.yaml"
    path.write_text(grid if isinstance(grid, str) else yaml.safe_dump(grid, sort_keys=False))
    return path


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A sweep from the command line, and what it printed."""
    folder = tmp_path_factory.mktemp("sweep")
    options = ["--engine", "serial", "--out", str(folder / "out"), "--json"]
    return folder / "out", json.loads(topicscope("sweep", str(grid_file(folder, GRID)), *options).stdout)


def test_table_json_and_parquet_agree(done: tuple[Path, Any]) -> None:
    folder, printed = done
    assert printed["counts"] == {"done": 12, "failed": 0, "missing": 0}
    with (folder / "points.csv").open() as stream:
        table = list(csv.DictReader(stream))
    parquet = pq.read_table(folder / "points.parquet").to_pylist()
    assert len(table) == len(parquet) == len(printed["rows"]) == 12
    columns = set(flat(build_grid(GRID).points[0].config)) | set(printed["rows"][0]) | {"error"}
    assert columns == set(table[0]) == set(parquet[0])
    for row, line, found in zip(table, parquet, printed["rows"], strict=True):
        assert row["point"] == line["point"] == found["point"]
        for name in ("optimizer.lr", "objective.loss", "seed", "loss", "phase"):
            assert type(found[name])(row[name]) == line[name] == found[name]
        assert line["topic_model.topics"] == 4  # settings that all share are there too
        assert line["steps"] == line["steps_done"] == 60


def test_the_folder_can_be_drawn_again(done: tuple[Path, Any]) -> None:
    folder, _ = done
    kept = {path.name: path.read_bytes() for path in folder.glob("points.*")}
    for path in (*folder.glob("points.*"), folder / "report.html", folder / "map.png"):
        path.unlink()
    topicscope("report", str(folder))
    assert {path.name: path.read_bytes() for path in folder.glob("points.*")} == kept
    assert (folder / "map.png").read_bytes()[:4] == b"\x89PNG"


def test_terminal_shows_points_and_where_they_are(tmp_path: Path) -> None:
    one, other = ({"base": BASE, "axes": {"optimizer.lr": rates}} for rates in ([0.01, 0.1], [0.1, 0.2]))
    sweep(build_grid(one), tmp_path / "out")
    command = ["sweep", str(grid_file(tmp_path, other)), "--engine", "serial", "--out", str(tmp_path / "out")]
    said = topicscope(*command).stdout
    assert "Points: 2 done, 0 failed" in said
    assert "1 point of another grid is also in" in said
    for point in build_grid(other).points:
        assert point.name in said


@needs_browser
def test_the_page_shows_maps_and_the_curves_of_what_is_clicked(done: tuple[Path, Any]) -> None:
    folder, printed = done
    with opened(folder / "report.html", plots=1) as browser:  # rates x losses
        Select(browser.find_element(By.ID, "up")).select_by_visible_text("-")
        WebDriverWait(browser, 10).until(
            lambda _: len(browser.find_elements(By.CSS_SELECTOR, "#panels .plot.map .nsewdrag")) == 2
        )
        titles = [item.text for item in browser.find_elements(By.CSS_SELECTOR, "#panels .panel-title")]
        assert titles == ["objective.loss squared", "objective.loss cross-entropy"]
        place = browser.find_element(By.CSS_SELECTOR, ".plot.map .nsewdrag")
        ActionChains(browser).move_to_element(place).click().perform()
        WebDriverWait(browser, 10).until(lambda _: browser.find_elements(By.CSS_SELECTOR, "#curves .plot svg.main-svg"))
        lines = browser.find_elements(By.CSS_SELECTOR, "#numbers tbody tr")
        assert len(lines) == 2  # both seeds of the middle rate
        clicked = {line.find_element(By.TAG_NAME, "th").text for line in lines}
        assert clicked == {
            row["point"] for row in printed["rows"] if (row["optimizer.lr"], row["objective.loss"]) == (0.01, "squared")
        }
        panels = browser.find_elements(By.CSS_SELECTOR, "#curves .panel-title")
        assert [item.text for item in panels] == ["loss", "norms"]
        Select(browser.find_element(By.ID, "measure")).select_by_visible_text("contrast")
        Select(browser.find_element(By.ID, "up")).select_by_visible_text("objective.loss")
        assert len(browser.find_elements(By.CSS_SELECTOR, "#panels .plot.map")) == 1
        assert script(browser, "return document.documentElement.scrollWidth <= innerWidth")
        assert complaints(browser) == []


def test_text_of_a_config_is_no_markup(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    (tmp_path / "a.jsonl").write_text('{"text": "some text"}\n')
    base = {"corpus": [str(tmp_path / "a.jsonl")], "models": "no-such/model", "text_field": evil}
    grid = {"kind": "probe", "base": base, "axes": {"seed": [0, 1]}}
    options = ["--engine", "serial", "--out", str(tmp_path / "out"), "--json"]
    printed = topicscope("sweep", str(grid_file(tmp_path, grid)), *options, code=1).stdout
    assert json.loads(printed)["counts"] == {"done": 0, "failed": 2, "missing": 0}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<img src=x" not in page
    assert "&lt;/script&gt;&lt;img" in page  # the error names the field that is not there


def test_a_dry_run_counts_and_estimates_and_writes_nothing(done: tuple[Path, Any], tmp_path: Path) -> None:
    def dry(out: Path) -> Any:
        command = ["sweep", str(grid_file(tmp_path, GRID)), "--engine", "serial", "--out", str(out)]
        return json.loads(topicscope(*command, "--dry-run", "--json").stdout)

    found = dry(tmp_path / "out")
    assert (found["points"], found["missing"], found["packs"]) == (12, 12, 2)
    assert found["seconds"] > 0
    assert not (tmp_path / "out").exists()
    sizes = [path.stat().st_size for path in (done[0] / "points").rglob("*") if path.is_file()]
    assert found["bytes"] == pytest.approx(sum(size + 4096 - size % 4096 for size in sizes) + 5_000_000, rel=0.1)
    assert dry(done[0])["missing"] == 0


@pytest.mark.parametrize("engine", ["serial", "local"])
def test_ctrl_c_says_what_is_done_and_how_to_go_on(tmp_path: Path, engine: str) -> None:
    longer = {**LONG, "base": {**BASE, "steps": 5000}}  # it must not be done before the signal comes, on any machine
    path, out = grid_file(tmp_path, longer), tmp_path / "out"
    command = ["sweep", str(path), "--engine", engine, "--out", str(out), "--json"]
    driver = started(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert wait_until(lambda: count(out) >= 4 or driver.poll() is not None)
    driver.send_signal(signal.SIGINT)
    printed, said = driver.communicate(timeout=LIMIT)
    assert driver.returncode == 130
    assert printed == ""
    kept = count(out)
    assert 4 <= kept < 16
    line = error_line(said)
    assert f"stopped: {kept} of 16 points are done" in line
    assert f"topicscope sweep {path} --engine {engine}" in line


@pytest.mark.parametrize(
    ("grid", "options", "said"),
    [
        ({"axes": {"optimizer.lrate": [1]}}, "", "unknown key 'optimizer.lrate'"),
        (SEED, "--engine spark", "engine 'spark'; expected serial, local, ray"),
        (SEED, "--engine local --address auto", "address auto is for the engine ray, but the engine is local"),
        (SEED, "--engine serial --workers 3", "workers 3: the engine serial has no workers"),
        (SEED, "--no-resume --out .", "holds something else"),
        ({"kind": "probe", **SEED}, "", "no model is given"),
        ({"kind": "probe", "base": NOWHERE, **SEED}, "", "no such corpus: nowhere.txt"),
        ("axes: [", "", "is not YAML"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, grid: Any, options: str, said: str) -> None:
    path = grid_file(tmp_path, grid)
    found = called("sweep", str(path), *options.split(), code=2, cwd=tmp_path)
    assert said in found.stderr
    assert said in error_line(found.stderr)
    assert not (tmp_path / "runs").exists()


def test_ray_that_is_not_installed_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    found = called("sweep", str(grid_file(tmp_path, GRID)), "--engine", "ray", code=2, cwd=tmp_path)
    reason = "the engine ray needs ray, which is not installed: pip install 'topicscope[cluster]'"
    assert found.stderr == f"topicscope: {reason}\n"


def test_an_address_where_no_ray_is_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs ray")
    path = grid_file(tmp_path, GRID)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # something listens there, but it is no Ray
        for port, said in ((1, "nothing answers at 127.0.0.1:1"), (silent.getsockname()[1], "cannot connect to Ray")):
            options = ["--engine", "ray", "--address", f"127.0.0.1:{port}", "--out", str(tmp_path / "out")]
            assert said in error_line(topicscope("sweep", str(path), *options, code=2).stderr)
    assert not (tmp_path / "out").exists()
