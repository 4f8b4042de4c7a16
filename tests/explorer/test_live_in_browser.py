"""The room of runs: what a run shows while it goes on, and what can be done with it."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.support.select import Select

from tests.browser import script
from tests.explorer.in_browser import IN_BROWSER, every, find, folder_id, go, until
from tests.explorer.pretended import PretendedRun, pretended_run
from tests.explorer.serving import PREDICTED, SMALL, Served, begin
from topicscope.explorer.app import PRESETS
from topicscope.explorer.runs import config_of
from topicscope.explorer.theory_room import question
from topicscope.ground import METRICS, flat
from topicscope.laws import predicted_norms
from topicscope.reading import read
from topicscope.training import RunConfig, RunData

pytestmark = [*IN_BROWSER, pytest.mark.usefixtures("no_run_left")]

COVERED = RunConfig.of(PREDICTED, steps=1000, floors=True)


class TwoStages(PretendedRun):
    """Value rises by step 20, key and query from step 100 to 200."""

    def row(self, step: int) -> dict[str, float]:
        value, attention = min(1.0, step / 20), float(np.clip((step - 100) / 100, 0, 1))
        norms = {"norm_key": 1 + attention, "norm_query": 1 + attention, "norm_value": 1 + value}
        return {"step": step, "loss": 1.0, **norms}


def traces(browser: Chrome, title: str) -> dict[str, list[float]]:
    """Of the panel with this title, by name: y of curves and levels, ends of bands."""
    found = script(
        browser,
        "const panel = [...document.querySelectorAll('.run .panel')].find((one) =>"
        " one.querySelector('.panel-title').textContent.startsWith(arguments[0]));"
        "const plot = panel?.querySelector('.plot');"
        "return plot?.data ? [...plot.data.filter(({name}) => name).map(({name, y}) => [name, y]),"
        " ...(plot.layout.shapes ?? []).map(({name, x0, x1, y0, type}) => [name, type === 'rect' ? [x0, x1] : [y0]])]"
        " : []",
        title,
    )
    return dict(found)


def bands(browser: Chrome) -> dict[str, list[float]]:
    return {name: ends for name, ends in traces(browser, "Norms").items() if name.startswith("stage")}


def test_stages_are_shaded_and_named_as_they_come(browser: Chrome, served: Served) -> None:
    with pretended_run(served.workspace / "stages", COVERED, TwoStages) as run:
        go(browser, served, f"/live?id={folder_id(served, 'stages')}")

        def sentence() -> str:
            return str(script(browser, "return document.querySelector('.run .happening')?.textContent ?? ''"))

        until(browser, lambda: sentence().startswith("Stage 1: the value matrix learns which words share a topic"))
        until(browser, lambda: bands(browser) == {"stage 1: value": [0, 9]})
        run.write(80)
        until(browser, lambda: sentence().startswith("Between the stages"))
        until(browser, lambda: bands(browser) == {"stage 1: value": [0, 89]})
        run.write(60)
        until(browser, lambda: sentence().startswith("Stage 2: key and query grow"))
        until(browser, lambda: bands(browser) == {"stage 1: value": [0, 105], "stage 2: key and query": [105, 149]})


def test_floors_and_predicted_norms_are_there_while_it_runs(browser: Chrome, served: Served) -> None:
    floors = RunData(COVERED).task.floors()
    predicted = predicted_norms(COVERED)
    with pretended_run(served.workspace / "floors", COVERED, TwoStages) as run:
        go(browser, served, f"/live?id={folder_id(served, 'floors')}")
        until(browser, lambda: "training, each batch" in traces(browser, "Loss"))
        run.write(1)  # the floors are worked out beside it, and come with the next steps

        def drawn() -> dict[str, list[float]]:
            run.write(1)
            return traces(browser, "Loss")

        until(browser, lambda: "Bayes-optimal" in drawn())
        assert drawn()["Bayes-optimal"] == pytest.approx([floors["bayes"]["loss"]])
        assert drawn()["best uniform-attention fit of dev"] == pytest.approx([floors["least_squares"]["loss"]])
        curves = traces(browser, "Norms")
        assert curves["predicted (theory dynamics)"][-1] == pytest.approx(predicted.norms["value"][-1], rel=1e-4)


def test_a_run_is_stopped_for_good_and_keeps_its_results(browser: Chrome, served: Served) -> None:
    settings = {**SMALL, "steps": "1000000", "evaluate_every": "null", "snapshots": "[0, 100]", "seed": "3"}
    identity = begin(served, settings, "to stop")
    go(browser, served, f"/live?id={identity}")
    run = until(browser, lambda: next(iter(every(browser, ".run")), None))
    until(browser, lambda: run.get_attribute("data-state") == "running")
    next(one for one in every(run, "button") if one.text == "Stop").click()
    until(browser, lambda: run.get_attribute("data-state") == "stopped")
    stored = read(served.workspace / "to-stop-1")
    assert stored.status == "stopped"
    assert f"step {stored.results['steps']:,} of 1,000,000" in find(run, ".state").text
    assert "dev_loss" in stored.results
    offered = [one.text for one in every(run, ".actions button") if one.is_displayed()]
    assert offered == ["Save this view", "Close"]
    assert "is not running" in served.refusal(f"/api/runs/{identity}/stop", method="POST", body={})


def test_a_refused_start_is_said_once_and_two_clicks_start_one_run(browser: Chrome, served: Served) -> None:
    go(browser, served, "/live?preset=Figure+2")
    until(browser, lambda: script(browser, "return document.getElementById('preset')?.value") == "Figure 2")
    more, start = find(browser, "#more"), find(browser, "[type=submit]")
    more.clear()
    more.send_keys("steps")
    start.click()
    refused = find(browser, "#refused")
    until(browser, lambda: refused.text.startswith("more settings: 'steps' is no NAME=VALUE"))
    assert start.is_enabled()
    assert not every(browser, ".run")
    assert not any(one["name"].startswith("Figure") for one in served.json("/api/folders"))
    lines = "\n".join(f"{name}={value}" for name, value in {**SMALL, "steps": "50", "seed": "7"}.items())
    script(browser, "document.getElementById('more').value = arguments[0]", lines)
    said = script(
        browser,
        "const start = document.querySelector('[type=submit]'); start.click(); start.click();"
        " document.getElementById('settings').requestSubmit(); return [start.disabled, start.textContent]",
    )
    assert said == [True, "starting …"]
    until(browser, lambda: every(browser, ".run[data-state=done]"))
    until(browser, lambda: start.is_enabled() and start.text == "Start")
    assert not refused.is_displayed()
    assert [one["name"] for one in served.json("/api/folders") if one["name"].startswith("Figure")] == ["Figure-2-1"]


def test_presets_have_the_papers_names_and_fill_the_form(browser: Chrome, served: Served) -> None:
    go(browser, served, "/live?preset=Figure+2")
    until(browser, lambda: script(browser, "return document.getElementById('preset')?.value") == "Figure 2")
    select = Select(find(browser, "#preset"))
    assert {"Figure 2", "Figure 4", "Theorem 2", "two stages"} <= {one.text for one in select.options}
    for name, (what, settings) in PRESETS.items():
        select.select_by_value(name)
        assert find(browser, "#preset-what").text == what
        given = filled_in(browser)
        assert RunConfig.of(settings) == RunConfig.of(settings_of(given))
        assert set(given) == set(flat(settings))


@pytest.mark.parametrize(
    "asked",
    [
        {"prior": "logistic-normal", "covariance": "2", "length": "100-150", "overlap": "0.2"},
        {"prior": "groups", "groups": "2", "topics": "6", "length": "infinite", "optimizer": "adam", "eps": "1e-6"},
        {"common_words": "5", "loss": "cross-entropy", "attention_dim": "7", "p_mask": "0.3"},
    ],
)
def test_a_setting_of_theory_fills_the_form(browser: Chrome, served: Served, asked: dict[str, str]) -> None:
    """'Train this' trains this, and not something near it."""
    go(browser, served, f"/live?{urlencode(asked)}")
    until(browser, lambda: script(browser, "return document.getElementById('preset')?.value") == "from theory")
    assert settings_of(filled_in(browser)) == settings_of(flat(question(asked).run))


def filled_in(browser: Chrome) -> dict[str, str]:
    boxes = script(browser, "return [...document.querySelectorAll('#settings [name]')].map(b => [b.name, b.value])")
    more = find(browser, "#more").get_attribute("value") or ""
    return {name: value for name, value in boxes if value} | dict(line.split("=", 1) for line in more.splitlines())


def settings_of(given: dict[str, Any]) -> dict[str, object]:
    return config_of({**given, "snapshots": "none"}).as_dict()


def test_a_stream_that_has_ended_is_not_asked_for_again(browser: Chrome, served: Served, tmp_path: Path) -> None:
    with pretended_run(served.workspace / "left"), pretended_run(served.workspace / "right") as right:
        ids = [folder_id(served, name) for name in ("left", "right")]
        go(browser, served, f"/live?id={ids[0]}&id={ids[1]}")
        until(browser, lambda: len(every(browser, ".run[data-state=running]")) == 2)
        left = find(browser, ".run")
        next(one for one in every(left, "button") if one.text == "Close").click()
        right.write(5)
        until(browser, lambda: script(browser, "return document.querySelector('.run').dataset.step") == "14")
        assert browser.current_url.endswith(f"/live?id={ids[1]}")
        lines = (right.folder / METRICS).read_text().splitlines()
        assert json.loads(lines[-1])["step"] == 14


def test_many_runs_side_by_side_leave_room_for_other_requests(browser: Chrome, served: Served) -> None:
    """A browser opens six connections to a server at most: with a stream for each run nothing else would come."""
    with ExitStack() as going_on:
        for number in range(7):
            going_on.enter_context(pretended_run(served.workspace / f"many-{number}"))
        ids = [folder_id(served, f"many-{number}") for number in range(7)]
        go(browser, served, f"/live?{'&'.join(f'id={identity}' for identity in ids)}")
        until(browser, lambda: len(every(browser, ".run[data-state=running]")) == 7)
        script(browser, "fetch('/api/folders').then(({status}) => { window.answered = status; })")
        until(browser, lambda: script(browser, "return window.answered") == 200)
