"""`topicscope reproduce` and `topicscope list` as a user runs them."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.browser import complaints, needs_browser, opened, script
from tests.command import TINY, started, topicscope
from tests.paper import samples
from tests.paper.conftest import IDS
from tests.waiting import wait_until
from topicscope.cli import shell
from topicscope.cli.results import Page, list_, outcome_table, reproduce as command
from topicscope.ground import InputError, folders
from topicscope.pages import Figure, Lines, Series
from topicscope.paper import (
    EXPERIMENTS,
    Context,
    Experiment,
    Outcome,
    Reproduction,
    chosen,
    read_reproduction,
    reproduce,
)
from topicscope.paper.experiment import Number, verdict


def test_the_command(whole: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, result = whole
    assert "figure8: reproduced (" in result.stderr
    printed = json.loads(result.stdout)
    assert {"id", "claim", "paper", "theory", "measured", "verdict", "reason", "seconds"} <= set(printed["results"][0])
    seconds = {entry["id"]: entry.pop("seconds") for entry in printed["results"]}  # no part of the result
    assert seconds == json.loads((out / "environment.json").read_text())["seconds"]
    assert printed == json.loads((out / "results.json").read_text())
    assert [entry["verdict"] for entry in printed["results"]] == ["reproduced"] * len(IDS)
    assert (out / "report.html").stat().st_size < 15e6
    assert {"figure8.png", "figure8.svg", "figure8-1.csv"} <= {path.name for path in (out / "figures").iterdir()}


def at_once(found: Any, _context: Context) -> Any:
    return found


def test_verdicts_are_printed_with_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one_more = samples.BAD["rank"]["one more"]
    undecided = samples.UNDECIDED["figure3"]["six of nine words are no whole tokens"]
    for name, found in (("figure6", samples.GOOD["figure6"]()), ("rank", one_more), ("figure3", undecided)):
        monkeypatch.setitem(EXPERIMENTS, name, replace(EXPERIMENTS[name], measure=partial(at_once, found)))
    assert command(["figure6", "figure3"], out=tmp_path, engine="serial") == 0
    shown = capsys.readouterr()
    assert "re-measured at scale quick, seed 0: 1 reproduced, 1 undecided." in shown.out
    assert "figure3: the mean cosine inside groups is above that between groups; roberta decides nothing" in shown.out
    assert "figure6: pattern reproduced; sizes differ (mean of the diagonal: paper 1.02, ours 0.6) because" in shown.out
    assert f"page: {tmp_path / 'report.html'}" in shown.out
    assert "figure6: reproduced (" in shown.err
    assert command(["rank"], out=tmp_path, engine="serial") == 1
    shown = capsys.readouterr()
    assert "not reproduced, although the reference runs reproduced it: rank" in shown.err
    assert "rank: not as predicted (" in shown.err
    assert "scale quick, seed 0: 1 not as predicted." in shown.out
    assert "rank: the (T - 1)-th singular value over the largest: " in shown.out
    page = (tmp_path / "report.html").read_text()
    assert all(f'id="section-{name}"' in page for name in ("figure6", "figure3", "rank"))
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    assert [entry["id"] for entry in results] == ["figure3", "figure6", "rank"]
    assert [entry["verdict"] for entry in results] == ["undecided", "reproduced", "not reproduced"]  # for programs
    assert "<p>1 reproduced, 1 not as predicted, 1 undecided</p>" in page
    assert "✗ </span>not as predicted</span>" in page


def test_one_line_per_experiment_in_eighty_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    outcomes = {name: samples.judged(name, next(iter(samples.BAD[name].values()))) for name in EXPERIMENTS}
    outcomes["figure6"] = samples.judged("figure6")  # its sizes are not the paper's
    shell.print_all(outcome_table(Reproduction.of(Context(), outcomes, {}, tmp_path)))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(EXPERIMENTS) + 3
    for line, (name, outcome) in zip(lines[1:], outcomes.items(), strict=False):
        number, sign = EXPERIMENTS[name].number.compared(outcome.ours), "*" if name == "figure6" else ""
        shown = outcome.verdict.replace("reproduced", "as predicted") if EXPERIMENTS[name].beyond else outcome.verdict
        assert line.split() == f"{name} {shown}{sign} {number.name} {number.paper} {number.ours}".split()
        assert len(line.rstrip()) <= 80
    assert lines[-2].startswith("'as predicted', 'not as predicted': the claim is this project's")
    assert lines[-1].startswith("* the pattern is reproduced, but our number is more than 10%")


@pytest.mark.parametrize(
    ("paper", "ours", "close"),
    [
        *((None, 1.0, None), ((1.0, 1.0), None, None), ((1.0, 1.0), float("nan"), None)),
        *(((1.0, 1.0), 1.1, True), ((1.0, 1.0), 1.101, False), ((1.0, 2.0), 0.9, True), ((1.0, 2.0), 0.899, False)),
        *(
            ((1.0, 2.0), 2.2, True),
            ((1.0, 2.0), 2.201, False),
            ((-2.0, -1.0), -0.9, True),
            ((-2.0, -1.0), -0.89, False),
        ),
    ],
)
def test_close_is_within_a_tenth(paper: Any, ours: Any, close: bool | None) -> None:
    number = Number("a", "what it is", paper, "the models are small")
    assert number.close(ours) is close
    assert bool(number.sizes("reproduced", ours)) is (close is False)
    assert number.sizes("not reproduced", ours) == ""
    if close is False:
        assert number.sizes("reproduced", ours).endswith(") because the models are small")


def test_every_number_is_defined_and_a_difference_has_a_reason() -> None:
    for name, experiment in EXPERIMENTS.items():
        number = experiment.number
        assert len(number.name) <= 24, name
        assert len(number.what) > 50, name
        assert bool(number.differs) is (number.paper is not None), name
        assert samples.judged(name).ours is not None, name


def test_the_page_is_there_from_the_first_experiment_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_up: list[str]
) -> None:
    seen: list[list[str]] = []
    renew = Page.renew

    def watched(page: Page, so_far: Reproduction) -> None:
        renew(page, so_far)
        html = (tmp_path / "report.html").read_text()
        assert "Still running" in html
        seen.append([name for name in EXPERIMENTS if f'id="section-{name}"' in html])

    monkeypatch.setattr(Page, "renew", watched)
    assert command(["figure6", "theorem3", "theorem1"], out=tmp_path, engine="serial") == 0
    assert made_up == ["theorem3", "theorem1", "figure6"]
    assert seen == [["theorem3"], ["theorem1", "theorem3"], ["figure6", "theorem1", "theorem3"]]
    html = (tmp_path / "report.html").read_text()
    assert "Still running" not in html
    assert html.count('<img src="data:image/png;base64,') == 3
    assert "sizes differ (mean of the diagonal" in html


def test_an_experiment_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A measurement, a judgement and an id are enough: it is listed, run, stored, read back, and on the page."""

    def judge(seeds: int) -> Outcome:
        curve = Lines("Seeds", [Series("seeds", [0.0, 1.0], [0.0, float(seeds)])])
        return Outcome(
            *("-", "3 seeds", f"{seeds} seeds", verdict(seeds == 3), f"there are {seeds} seeds"),
            figures=[Figure("seeds", "Seeds", "A line.", [curve])],
            numbers={"seeds": seeds},
            ours=float(seeds),
        )

    mine = Experiment(
        id="my-claim",
        claim="The quick scale has three seeds.",
        rule="The number of seeds is 3.",
        measure=lambda context: context.runs,
        judge=judge,
        seconds=1,
        number=Number("seeds", "number of seeds per setting; the paper prints none"),
        beyond=True,
    )
    monkeypatch.setitem(EXPERIMENTS, mine.id, mine)
    list_()
    assert "my-claim" in capsys.readouterr().out
    assert command(["my-claim"], out=tmp_path / "quick", engine="serial") == 0
    assert re.search("my-claim +as predicted +seeds +- +3", capsys.readouterr().out)
    stored = read_reproduction(tmp_path / "quick")
    assert (stored.outcomes["my-claim"].numbers, stored.counts) == ({"seeds": 3}, "1 as predicted")
    assert (tmp_path / "quick" / "figures" / "my-claim-seeds.svg").is_file()
    page = (tmp_path / "quick" / "report.html").read_text()
    assert all(text in page for text in ('id="section-my-claim"', mine.claim, mine.rule, "✓ </span>as predicted"))
    assert command(["my-claim"], out=tmp_path / "full", scale="full", engine="serial") == 1
    assert "although the reference runs reproduced it: my-claim" in capsys.readouterr().err
    with pytest.raises(InputError, match="did you mean 'my-claim'"):
        chosen(["my-clam"])


def test_bad_input_is_refused_in_one_line(tmp_path: Path) -> None:
    assert "no experiment 'figure99'" in topicscope("reproduce", "figure99", code=2).stderr
    wrong = topicscope("reproduce", "figure8", "--engine", "cloud", "--out", str(tmp_path / "new"), code=2).stderr
    assert "engine 'cloud'; expected serial, local, ray" in wrong
    topicscope("reproduce", "figure8", "--engine", "serial", "--workers", "2", code=2)
    corpus = topicscope("reproduce", "figure8", "--corpus", "x", "--out", str(tmp_path / "new"), code=2).stderr
    assert (
        "corpus (--corpus) has no effect on these experiments; only figure5, table1, table2, table5, timeline" in corpus
    )
    assert not (tmp_path / "new").exists()


def test_a_folder_is_one_reproductions(tmp_path: Path) -> None:
    out, foreign, run = tmp_path / "out", tmp_path / "foreign", tmp_path / "run"
    reproduce(chosen(["figure8"]), Context(), out)
    assert (
        "holds a reproduction of scale quick, seed 0, not of scale quick, seed 1"
        in topicscope("reproduce", "figure8", "--seed", "1", "--out", str(out), code=2).stderr
    )
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("mine")
    assert "holds something else" in topicscope("reproduce", "figure8", "--out", str(foreign), code=2).stderr
    assert [path.name for path in foreign.iterdir()] == ["thesis.tex"]
    topicscope("train", *TINY, "--out", str(run))
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    topicscope("reproduce", "figure8", "--out", str(run), code=2)
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()} == before
    with folders.lock(out):
        assert "another process is writing" in topicscope("reproduce", "figure8", "--out", str(out), code=2).stderr


def test_the_list_comes_without_torch() -> None:
    assert [entry["id"] for entry in json.loads(topicscope("list", "--json").stdout)] == list(EXPERIMENTS)
    lines = [
        "import sys",
        "sys.argv = ['topicscope', 'list']",
        "from topicscope.cli.main import main",
        "try: main()",
        "except SystemExit: pass",
        "assert 'torch' not in sys.modules",
    ]
    shown = subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, capture_output=True, text=True).stdout
    assert all(name in shown for name in EXPERIMENTS)


@needs_browser
def test_the_page_of_real_outcomes(whole: tuple[Path, Any], tmp_path: Path) -> None:
    """Every figure of the command's own page is drawn, its links lead somewhere, and both themes work."""
    out, _ = whole
    panels = sum(len(figure.panels) for name in IDS for figure in read_reproduction(out).outcomes[name].figures)
    with opened(out / "report.html", panels) as browser:
        links = script(browser, "return [...document.querySelectorAll('nav a')].map(link => link.getAttribute('href'))")
        assert links == ["#verdicts", *(f"#section-{name}" for name in IDS)]
        assert all(
            script(browser, "return document.querySelectorAll(arguments[0]).length", link) == 1 for link in links
        )

        def shade(theme: str) -> str:
            media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            return str(script(browser, "return getComputedStyle(document.body).backgroundColor"))

        light = shade("light")
        assert wait_until(lambda: shade("dark") != light)  # a page takes a moment to change its theme
        assert complaints(browser) == []


@pytest.mark.parametrize(
    ("sent", "engine", "code"),
    [(signal.SIGKILL, ["--engine", "serial"], -signal.SIGKILL), (signal.SIGINT, ["--workers", "2"], 130)],
)
def test_stopped_in_the_middle_and_run_again(
    whole: tuple[Path, Any], tmp_path: Path, sent: signal.Signals, engine: list[str], code: int
) -> None:
    """kill -9 or Ctrl-C while experiments run: finished ones are not computed again, and the results are the same."""
    out = tmp_path / "cut"
    command = ["reproduce", *IDS, *engine, "--json"]
    process = started(
        *command, "--out", str(out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    assert wait_until(lambda: list(out.glob("outcomes/*.json")) or process.poll() is not None)
    os.killpg(process.pid, sent)  # as a terminal does: the workers get it too
    _, complaint = process.communicate()
    assert process.returncode == code
    if sent == signal.SIGINT:
        assert "Traceback" not in complaint
        assert (
            complaint.rstrip()
            .splitlines()[-1]
            .startswith("topicscope: interrupted; to continue, run 'reproduce' or 'sweep' again")
        )
    kept = [path.name for path in (out / "outcomes").iterdir() if path.suffix == ".json"]
    assert 0 < len(kept) < len(IDS)
    stamps = {name: (out / "outcomes" / name).stat().st_mtime_ns for name in kept}
    resumed = json.loads(topicscope(*command, "--out", str(out)).stdout)
    assert {name: (out / "outcomes" / name).stat().st_mtime_ns for name in kept} == stamps
    assert None not in [entry.pop("seconds") for entry in resumed["results"]]
    assert resumed == json.loads((whole[0] / "results.json").read_text())
    for name in ("results.json", *(f"outcomes/{name}.json" for name in IDS)):
        assert (out / name).read_bytes() == (whole[0] / name).read_bytes()
