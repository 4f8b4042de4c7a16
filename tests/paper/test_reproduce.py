from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser import complaints, needs_browser, opened, script
from tests.command import topicscope
from topicscope import InputError, Run, build_config
from topicscope.ground import old_folders as folders
from topicscope.paper.block_figures import four_panels
from topicscope.paper.experiment import Context
from topicscope.paper.outcome import Outcome
from topicscope.paper.registry import EXPERIMENTS, ORDER, chosen
from topicscope.paper.runner import finite, load, outcome_path, reproduce

FAST = ["figure7", "figure8"]


def test_every_id_has_its_file_claim_and_rule() -> None:
    assert list(EXPERIMENTS) == list(ORDER)
    for name, experiment in EXPERIMENTS.items():
        assert experiment.id == name
        assert len(experiment.claim) > 20
        assert len(experiment.rule) > 20
    assert [e.id for e in chosen(["theorem2", "figure7"])] == ["figure7", "theorem2"]
    with pytest.raises(InputError, match="did you mean 'figure7'"):
        chosen(["figur7"])


def test_finished_outcomes_are_kept_and_damaged_ones_made_again(tmp_path: Path) -> None:
    context = Context("quick", 0)
    first = reproduce(chosen(FAST), context, tmp_path, workers=1)
    stamps = {name: outcome_path(tmp_path, name).stat().st_mtime_ns for name in FAST}
    outcome_path(tmp_path, "figure8").write_text('{"format": 2, "outcome"')
    again = reproduce(chosen(FAST), context, tmp_path, workers=1)
    assert outcome_path(tmp_path, "figure7").stat().st_mtime_ns == stamps["figure7"]
    assert outcome_path(tmp_path, "figure8").stat().st_mtime_ns != stamps["figure8"]
    for name in FAST:
        assert asdict(first[name][0]) == asdict(again[name][0])
    assert load(tmp_path, "figure7", Context("quick", 1)) is None  # another seed is another outcome


def test_outcomes_survive_the_file(tmp_path: Path) -> None:
    found = EXPERIMENTS["figure7"].run(Context())
    stored = reproduce(chosen(["figure7"]), Context(), tmp_path, workers=1)["figure7"][0]
    assert json.loads(json.dumps(asdict(found))) == json.loads(json.dumps(asdict(stored)))
    assert found.verdict == "reproduced"


def test_theorem1_is_reproduced() -> None:
    outcome = EXPERIMENTS["theorem1"].run(Context("quick", 3))
    assert outcome.verdict == "reproduced"
    assert max(outcome.numbers["violation_over_c3"]) < 0.01


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = topicscope("reproduce", *FAST, "--out", str(out), "--json")
    printed = json.loads(result.stdout)
    assert printed == json.loads((out / "results.json").read_text())
    for entry in printed["results"]:
        assert {"id", "claim", "paper", "theory", "measured", "verdict", "reason", "seconds"} <= set(entry)
        assert entry["verdict"] == "reproduced"
    assert (out / "report.html").stat().st_size < 15e6
    assert {"figure7.png", "figure7.svg", "figure7-1.csv"} <= {path.name for path in (out / "figures").iterdir()}
    again = json.loads(topicscope("reproduce", *FAST, "--out", str(out), "--json").stdout)
    assert again == printed
    assert "no experiment 'figure99'" in topicscope("reproduce", "figure99", code=2).stderr
    assert len(json.loads(topicscope("list", "--json").stdout)) == len(ORDER)


def test_a_folder_is_one_reproductions(tmp_path: Path) -> None:
    out, foreign, run = tmp_path / "out", tmp_path / "foreign", tmp_path / "run"
    topicscope("reproduce", "figure8", "--out", str(out))
    assert (
        "holds a reproduction of scale quick, seed 0"
        in topicscope("reproduce", "figure8", "--seed", "1", "--out", str(out), code=2).stderr
    )
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("mine")
    assert "holds something else" in topicscope("reproduce", "figure8", "--out", str(foreign), code=2).stderr
    assert [path.name for path in foreign.iterdir()] == ["thesis.tex"]
    topicscope(
        "train", "--steps", "1", "--set", "data.documents=50", "--set", "data.dev_documents=50", "--out", str(run)
    )
    kept = {path.name: path.read_bytes() for path in run.iterdir()}
    topicscope("reproduce", "figure8", "--out", str(run), code=2)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == kept
    with folders.lock(out):
        assert "another process is writing" in topicscope("reproduce", "figure8", "--out", str(out), code=2).stderr


@pytest.mark.parametrize(
    "damage", [{"verdict": "maybe"}, {"figures": 3}, {"figures": [{"panels": [{"kind": "pie"}]}]}, {"tables": None}]
)
def test_a_damaged_outcome_is_none(tmp_path: Path, damage: dict[str, Any]) -> None:
    reproduce(chosen(["figure8"]), Context(), tmp_path, workers=1)
    path = outcome_path(tmp_path, "figure8")
    stored = json.loads(path.read_text())
    stored["outcome"] |= damage
    path.write_text(json.dumps(stored))
    assert load(tmp_path, "figure8", Context()) is None


def test_numbers_that_are_none_become_null() -> None:
    assert finite({"a": [float("nan"), 1.5], "b": {"c": float("inf")}, "d": "x"}) == {
        "a": [None, 1.5],
        "b": {"c": None},
        "d": "x",
    }


@needs_browser
def test_the_page_of_real_outcomes(tmp_path: Path) -> None:
    """Every figure of the command's own page is drawn, its contents lead somewhere, both themes work, and the console stays silent."""
    ids, out = ["figure7", "figure8", "theorem1"], tmp_path / "out"
    topicscope("reproduce", *ids, "--out", str(out))
    panels = sum(len(figure.panels) for name in ids for figure in stored_outcome(out, name).figures)
    with opened(out / "report.html", tmp_path / "browser", panels) as browser:
        links = script(browser, "return [...document.querySelectorAll('nav a')].map(link => link.getAttribute('href'))")
        assert links == ["#verdicts", *(f"#section-{name}" for name in ids)]
        assert all(
            script(browser, "return document.querySelectorAll(arguments[0]).length", link) == 1 for link in links
        )
        shades = []
        for theme in ("light", "dark"):
            browser.execute_cdp_cmd(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
            )
            shades.append(script(browser, "return getComputedStyle(document.body).backgroundColor"))
        assert shades[0] != shades[1]
        assert complaints(browser) == []


def stored_outcome(folder: Path, name: str) -> Outcome:
    found = load(folder, name, Context())
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("sent", "workers", "code"), [(signal.SIGKILL, "1", -signal.SIGKILL), (signal.SIGINT, "2", 130)]
)
def test_stopped_in_the_middle_and_run_again(tmp_path: Path, sent: signal.Signals, workers: str, code: int) -> None:
    """kill -9, or Ctrl-C, while others are at work: what is finished is not computed again, and the results are those of an undisturbed run."""
    ids, out = ["figure7", "figure8", "theorem1"], tmp_path / "cut"
    command = [sys.executable, "-m", "topicscope", "reproduce", *ids, "--workers", workers, "--json"]
    process = subprocess.Popen(
        [*command, "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    while not list(out.glob("outcomes/*.json")) and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, sent)  # as a terminal does: the workers get it too
    _, complaint = process.communicate()
    assert process.returncode == code
    if sent == signal.SIGINT:
        assert "Traceback" not in complaint
        assert (
            complaint.rstrip()
            .splitlines()[-1]
            .startswith("topicscope: interrupted; 'reproduce' and 'sweep' go on when run again")
        )
    kept = [path.name for path in (out / "outcomes").iterdir() if path.suffix == ".json"]
    assert 0 < len(kept) < len(ids)
    stamps = {name: (out / "outcomes" / name).stat().st_mtime_ns for name in kept}
    resumed = json.loads(subprocess.run([*command, "--out", str(out)], capture_output=True, check=True).stdout)
    assert {name: (out / "outcomes" / name).stat().st_mtime_ns for name in kept} == stamps
    whole = json.loads(
        subprocess.run([*command, "--out", str(tmp_path / "whole")], capture_output=True, check=True).stdout
    )
    for a, b in zip(resumed["results"], whole["results"], strict=True):
        assert {**a, "seconds": 0} == {**b, "seconds": 0}


def stub_run(same: float, different: float, diagonal: float, start: float) -> Run:
    config = build_config({"topic_model": {"topics": 2, "words_per_topic": 2}, "model": {"embedding": "trained"}})
    results = {"gram": {"same": same, "different": different, "diagonal": diagonal}}
    noise = np.random.default_rng(0).normal(size=(5, 5))
    return Run(config, "done", results, {"gram_diagonal": np.array([start])}, {"embedding": noise})


@pytest.mark.parametrize(
    ("same", "different", "diagonal", "start", "pattern"),
    [
        (0.2, 0.0, 0.3, 0.04, "blocks"),
        (0.0, 0.0, 1.0, 0.04, "diagonal"),
        (0.0, 0.0, 0.041, 0.04, "neither"),  # the diagonal of small random embeddings is no result
        (0.0, 0.0, 0.0, 0.04, "neither"),
        (-0.2, 0.0, -0.1, 0.04, "neither"),
    ],
)
def test_patterns_of_a_gram_matrix(same: float, different: float, diagonal: float, start: float, pattern: str) -> None:
    runs = [stub_run(same + shift, different, diagonal + shift, start) for shift in (-1e-4, 0, 1e-4)]
    outcome = four_panels("figure1", "", "gram", [runs] * 4, [(0, 0, 0)] * 4)
    assert [row[-1] for row in outcome.tables[0].rows] == [pattern] * 4
    assert outcome.verdict == ("not reproduced" if pattern == "neither" else "reproduced")
    runs[1] = dataclasses.replace(runs[1], status="diverged")
    assert four_panels("figure1", "", "gram", [runs] * 4, [(0, 0, 0)] * 4).verdict == "not reproduced"
