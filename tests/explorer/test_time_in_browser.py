"""The room of time: a slider over steps; words in a plane, norms and contrasts at each of them."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from tests.browser import script
from tests.explorer.in_browser import IN_BROWSER, drawn_folder, every, find, folder_id, go, until
from tests.explorer.serving import Served
from tests.pretraining import small
from topicscope.explorer.results_rooms import saved_steps, some_steps
from topicscope.explorer.workspace import Workspace
from topicscope.ground import InputError
from topicscope.measure import layer_names, read_timeline
from topicscope.pretraining import PretrainRun, pretrain, read_pretrain
from topicscope.training import Run, RunConfig, read_run, sandbox_timeline, train

pytestmark = IN_BROWSER

SETTINGS = {
    "steps": 60,
    "topic_model": {"topics": 3, "words_per_topic": 4},
    "documents": {"kind": "fixed", "topics_per_document": 2, "length": 30},
    "data": {"documents": 200, "dev_documents": 50},
    "optimizer": {"name": "adam", "lr": 0.05},
    "floors": False,
}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("space")
    runs, corpus = home / "runs", home / "corpus.txt"
    train(RunConfig.of(SETTINGS | {"snapshots": "log"}), runs / "one-hot")
    embedded = {"model": {"embedding": "trained", "head": "untied", "dim": 5}, "snapshots": "log"}
    train(RunConfig.of(SETTINGS | embedded), runs / "embedded")
    train(RunConfig.of(SETTINGS), runs / "bare")
    sandbox_timeline(runs / "one-hot", runs / "timeline", bootstrap=50)
    corpus.write_text("\n".join(small.texts()))
    pretrain(small.config(str(corpus), steps=12), runs / "pretrain")
    return runs


def open_folder(browser: Chrome, served: Served, name: str) -> None:
    identity = folder_id(served, name)
    go(browser, served, f"/time?id={identity}")
    drawn_folder(browser, identity)


def move_to(browser: Chrome, step: int, *keys: str) -> None:
    find(browser, ".scrub input").send_keys(*keys)
    until(browser, lambda: script(browser, "return document.body.dataset.step") == str(step))
    assert find(browser, ".scrub output").text == f"step {step:,}"


def plane_shown(browser: Chrome) -> np.ndarray:
    """Words that the plot shows, in the order of the data, and the ends of its axes."""
    plot = "document.querySelector('[data-name=words] .plot')"
    until(browser, lambda: script(browser, f"return !!{plot}?.data"))
    x, y = script(browser, f"const [trace] = {plot}.data; return [trace.x, trace.y]")
    return np.stack([x, y], 1)


def axes_shown(browser: Chrome) -> list[float]:
    plot = "document.querySelector('[data-name=words] .plot')"
    return list(script(browser, f"const l = {plot}.layout; return [...l.xaxis.range, ...l.yaxis.range]"))


def table_cells(browser: Chrome, title: str) -> dict[str, list[str]]:
    for table in every(browser, ".moment table"):
        if title in find(table, "caption").text:
            rows = [every(row, "th, td") for row in every(table, "tr")]
            return {cells[0].text: [cell.text for cell in cells[1:]] for cells in rows[1:]}
    raise AssertionError(title)


def principal(vectors: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The plane by another way: eigenvectors of the covariance at the last step."""
    centre = last.mean(0)
    _, axes = np.linalg.eigh((last - centre).T @ (last - centre))
    return np.asarray((vectors - centre) @ axes[:, ::-1][:, :2])


@pytest.mark.parametrize("name", ["one-hot", "embedded"])
def test_words_move_in_a_plane_whose_axes_stay(browser: Chrome, served: Served, space: Path, name: str) -> None:
    open_folder(browser, served, name)
    run = read_run(space / name)
    assert isinstance(run, Run)

    def vectors(step: int) -> np.ndarray:
        weights = run.snapshots[step]
        whole = weights["embedding"].T if "embedding" in weights else weights["value"]
        return whole[1:].astype(float)

    axes = axes_shown(browser)
    for step, key in ((60, Keys.END), (0, Keys.HOME), (1, Keys.ARROW_RIGHT)):
        move_to(browser, step, key)
        expected, seen = principal(vectors(step), vectors(60)), plane_shown(browser)
        for axis in range(2):  # signs are free
            off = min(abs(seen[:, axis] - sign * expected[:, axis]).max() for sign in (1, -1))
            assert off < 1e-4 * abs(expected).max() + 1e-5
        assert axes_shown(browser) == axes
    norm = table_cells(browser, "Norms at step 1")["W_V (value)"][0]
    assert norm == f"{run.metrics['norm_value'][1]:.4g}"


def test_contrasts_are_those_of_the_timeline(browser: Chrome, served: Served, space: Path) -> None:
    timeline = read_timeline(space / "timeline")
    for name in ("one-hot", "timeline"):
        open_folder(browser, served, name)
        for step, key in ((60, Keys.END), (0, Keys.HOME)):
            move_to(browser, step, key)
            cells = table_cells(browser, f"topic at step {step}")
            (row,) = (row for row in timeline.rows if row.measure == "attention" and row.step == step)
            assert cells["attention"][2] == f"{row.effect.difference:.3g}"
    drawn = script(
        browser,
        "return [...document.querySelectorAll('[data-name=timeline] .plot')].map(plot =>"
        " plot.data.filter(trace => trace.line?.width === 1.8).map(trace => trace.x.length))",
    )
    assert all(lengths == [1] for lengths in drawn)  # step 0 alone is drawn strongly


def test_a_run_plays_through_its_steps(browser: Chrome, served: Served) -> None:
    steps = RunConfig.of(SETTINGS | {"snapshots": "log"}).snapshot_steps
    open_folder(browser, served, "one-hot")
    script(
        browser,
        "window.seen = []; new MutationObserver(() => window.seen.push(Number(document.body.dataset.step)))"
        ".observe(document.body, {attributeFilter: ['data-step']})",
    )
    button = find(browser, ".scrub button")
    button.click()
    assert button.text == "Pause"
    until(browser, lambda: button.text == "Play")
    assert script(browser, "return window.seen") == list(steps)
    assert "step=60" in browser.current_url


def test_a_run_without_snapshots_shows_its_norms_and_says_so(browser: Chrome, served: Served, space: Path) -> None:
    open_folder(browser, served, "bare")
    assert "--snapshots log" in find(browser, "#view").text
    move_to(browser, 0, Keys.HOME)
    run = read_run(space / "bare")
    assert isinstance(run, Run)
    assert table_cells(browser, "Norms at step 0")["W_K (key)"][0] == f"{run.metrics['norm_key'][0]:.4g}"


def test_a_pretraining_run_has_norms_by_layer(browser: Chrome, served: Served, space: Path) -> None:
    open_folder(browser, served, "pretrain")
    move_to(browser, 0, Keys.HOME)
    run = read_pretrain(space / "pretrain")
    assert isinstance(run, PretrainRun)
    last = layer_names(run.metrics)[-1]  # of rows with the same seed the last one stays
    norms = [f"{run.metrics[f'norm_{part}_{last}'][0]:.4g}" for part in ("key", "query", "value")]
    assert table_cells(browser, "norms at step 0")[str(run.config.seed)] == [f"layer {last}", *norms]


def test_the_view_of_a_step_can_be_kept(served: Served) -> None:
    identity = folder_id(served, "one-hot")
    status, page, _ = served.ask("/api/keep/time", {"id": identity, "step": 0})
    assert status == 200
    assert b"Words at step 0" in page
    status, picture, _ = served.ask("/api/keep/time/words.png", {"id": identity, "step": 0})
    assert (status, picture[:4]) == (200, b"\x89PNG")
    assert "nothing was saved at step 59" in served.refusal(f"/api/time/{identity}/step/59")


def test_steps_are_closer_at_the_start() -> None:
    steps = some_steps(100_001)
    assert steps[:3] == [0, 1, 2]
    assert steps[-1] == 100_000
    assert steps == sorted(set(steps))
    assert len(steps) <= 81
    assert some_steps(1) == [0]


def test_runs_that_were_trained_together_are_there_one_by_one(tmp_path: Path) -> None:
    train(RunConfig.of(SETTINGS | {"steps": 3}).with_seeds(2), tmp_path / "runs" / "two")
    found = {place.name: place for place in Workspace(tmp_path / "runs").places()}
    assert sorted(found) == ["two", "two/run-000", "two/run-001"]
    with pytest.raises(InputError, match="holds several runs"):
        saved_steps(found["two"])
    moment = saved_steps(found["two/run-001"]).moment
    assert isinstance(moment, partial)
    assert moment.args[0].config.seed == 1
