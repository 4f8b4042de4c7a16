"""Commands in this process: exit codes, what options become, and what is printed."""

import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from tests.calling import TINY, topicscope
from tests.cli import answer
from tests.cli.test_shell import cells
from tests.paper import samples
from topicscope import __version__, language, pages, pretraining, sweeps, training
from topicscope.cli import main as entry, runs, shell, theory
from topicscope.exporting import TARGETS
from topicscope.ground import InputError
from topicscope.paper import EXPERIMENTS, Context
from topicscope.theory import Certificate


def test_without_a_command_there_is_help_and_the_version() -> None:
    shown = topicscope().stdout
    assert "Usage: " in shown
    assert shown == topicscope("--help").stdout == topicscope("-h").stdout
    assert "--install-completion" in shown
    for name in ("The paper", "reproduce", "list", "theory", "timeline", "words", "pretrain", "sweep", "bench"):
        assert name in shown
    assert topicscope("--version").stdout == f"{__version__}\n"
    assert topicscope("--version", "nonsense").stdout == f"{__version__}\n"
    wrong = topicscope("nonsense", code=2)
    assert (wrong.stdout, wrong.stderr) == ("", "topicscope: No such command 'nonsense' (see topicscope --help)\n")


@pytest.mark.parametrize("command", ["train --lr", "theory theorem2 --topics", "bench --device"])
def test_an_option_without_its_value_names_the_help_of_its_command(command: str) -> None:
    *words, option = command.split()
    said = f"topicscope: Option '{option}' requires an argument (see topicscope {' '.join(words)} --help)\n"
    assert topicscope(*words, option, code=2).stderr == said


def test_the_code_is_that_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for returned, code in ((0, 0), (1, 1), (None, 0), ("text", 0)):
        monkeypatch.setattr(entry, "application", lambda returned=returned: lambda **_: returned)
        assert topicscope(code=code).stderr == ""
    monkeypatch.setattr(entry, "application", lambda: lambda **_: 130)
    assert "interrupted; to continue" in topicscope(code=130).stderr


def test_train_prints_saves_and_shows(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    printed = answer("train", *TINY, "--no-floors", "--out", str(one))
    assert printed == json.loads((one / "results.json").read_text())
    assert "floors" not in printed
    assert answer("train", "--resume", "--out", str(one)) == printed
    picture = one / "figures" / "figure.png"
    assert str(picture) in topicscope("report", str(one)).stdout
    assert picture.stat().st_size > 10_000
    assert not (one / "figure.png").exists()  # drawn once
    said = topicscope("train", *TINY, "--runs", "2", "--no-floors", "--uniform-attention", "--out", str(two)).stdout
    assert cells(said)[0] == ["", "seed 0", "seed 1"]
    assert said.endswith(f"Written to {two}; 'topicscope report {two}' draws it.\n")
    config = yaml.safe_load((two / "run-001" / "config.yaml").read_text())
    assert (config["model"]["key"], config["model"]["query"], config["floors"]) == ("zero", "zero", False)
    assert yaml.safe_load((one / "config.yaml").read_text())["model"]["key"] != "zero"
    again = answer("train", "--resume", "--out", str(two))
    assert [run["seed"] for run in again] == [0, 1]
    entries = answer("show", str(one), str(two))
    assert [Path(entry["folder"]).name for entry in entries] == ["one", "run-000", "run-001"]
    assert entries[0]["results"] == printed
    assert entries[0]["config"]["steps"] == 20
    shown = topicscope("show", str(one), str(two)).stdout
    labels = [row[0] for row in cells(shown)]
    assert {"model.key", "seed"} < set(labels)
    assert "batch_size" not in labels  # the same in all
    assert f"{one} (train):" in shown
    alone = topicscope("show", str(one)).stdout
    assert "(train):" not in alone
    assert "seed" not in [row[0] for row in cells(alone)]
    assert (
        "--resume takes all settings"
        in topicscope("train", "--resume", "--out", str(one), "--steps", "6", code=2).stderr
    )


def test_a_diverging_run_is_said_once_and_keeps_what_it_has(tmp_path: Path) -> None:
    fast = ["--loss", "squared", "--optimizer", "sgd", "--lr", "1e6", "--steps", "40"]
    assert "Written to" not in topicscope("train", *TINY, *fast, code=1).stdout
    said = topicscope("train", *TINY, *fast, "--out", str(tmp_path / "run"), code=1)
    assert json.loads((tmp_path / "run" / "results.json").read_text())["status"] == "diverged"
    assert said.stderr.startswith("topicscope: ")
    assert "diverged at step" in said.stderr
    assert "diverged at step" not in said.stdout


def test_options_of_train_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def note(what: Any, out: Any, **given: Any) -> Any:
        asked.append((what, out, given))
        raise InputError("enough")

    monkeypatch.setattr(training, "train", note)
    topicscope("train", "--snapshots", "[0, 10]", "--force", "--out", "x", "--prior", "fixed", code=2)
    topicscope("train", "--set", "seed=3", code=2)
    (first, out, given), (second, none, plain) = asked
    assert (first.snapshots, first.floors, first.documents.kind) == ([0, 10], True, "fixed")
    assert (out, given["resume"], given["force"]) == (Path("x"), False, True)
    assert (second.seed, second.snapshots, none) == (3, training.RunConfig().snapshots, None)
    assert (plain["resume"], plain["force"]) == (False, False)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Context]:
    """Experiments that take no time; the contexts that they were given."""
    given: list[Context] = []

    def at_once(found: Any, context: Context) -> Any:
        given.append(context)
        return found

    for name in ("figure6", "table1"):
        found = samples.GOOD[name]()
        monkeypatch.setitem(EXPERIMENTS, name, replace(EXPERIMENTS[name], measure=partial(at_once, found)))
    return given


def test_reproduce_takes_the_folder_of_its_scale_and_seed(
    measured: list[Context], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    drawn: list[Path] = []
    monkeypatch.setattr(shell, "draw_result", lambda _, folder, _drawn: drawn.append(folder))
    serial = ["figure6", "--engine", "serial", "--json"]
    said = topicscope("reproduce", *serial)
    assert re.fullmatch(r"figure6: reproduced \(\d+ s\)\n", said.stderr)
    assert [entry["id"] for entry in json.loads(said.stdout)["results"]] == ["figure6"]
    topicscope("reproduce", *serial, "--scale", "full")
    topicscope("reproduce", *serial, "--seed", "3")
    topicscope("reproduce", *serial, "--scale", "full", "--seed", "3")
    Path("c.txt").write_text("some text")
    topicscope("reproduce", "table1", *serial[1:], "--model", "a", "--model", "b", "--corpus", "c.txt", "--out", "mine")
    assert [str(folder) for folder in drawn] == [
        *("runs/reproduce", "runs/reproduce-full", "runs/reproduce-seed-3", "runs/reproduce-full-seed-3", "mine")
    ]
    assert measured[:2] == [Context(), Context("full")]
    assert measured[3:] == [Context("full", 3), Context(models=("a", "b"), corpus=("c.txt",))]


def test_verdicts_are_printed(measured: list[Context], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "draw_result", lambda *_: None)
    shown = topicscope("reproduce", "figure6", "table1", "--engine", "serial", "--out", str(tmp_path / "out")).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert lines[0] == ["id", "verdict", "number", "paper", "ours"]
    assert [line[:2] for line in lines[1:3]] == [["figure6", "reproduced*"], ["table1", "reproduced"]]
    assert shown.endswith(f"page: {tmp_path / 'out' / 'report.html'}\n")
    none = samples.BAD["figure6"]["no diagonal run"]
    monkeypatch.setitem(EXPERIMENTS, "figure6", replace(EXPERIMENTS["figure6"], measure=lambda _: none))
    lost = topicscope("reproduce", "figure6", "--engine", "serial", "--out", str(tmp_path / "lost"), code=1)
    assert lost.stderr.endswith("not reproduced, although the reference runs reproduced it: figure6\n")
    assert "not reproduced, although" not in lost.stdout


def test_the_list_has_every_experiment() -> None:
    shown = topicscope("list").stdout
    assert [row[0] for row in cells(shown) if row[0]] == ["id", *EXPERIMENTS]
    listed = answer("list")
    assert listed[1] == {name: getattr(EXPERIMENTS["figure2"], name) for name in ("id", "claim", "rule", "seconds")}


GRID = {
    "base": {"steps": 5, "data": {"documents": 20, "dev_documents": 10}, "evaluate_every": None, "floors": False},
    "axes": {"optimizer.lr": [0.01, 0.1], "seed": {"seeds": 3}},
}


@pytest.fixture
def grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(GRID))
    return str(tmp_path / "small.yaml")


def test_what_a_sweep_would_cost(grid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def cost(_: Any, missing: set[str], progress: Any) -> sweeps.Estimate:
        asked.append(len(missing))
        return sweeps.Estimate(3, 600.04, 1_000_000) if missing else sweeps.Estimate(0, 0.0, 0)

    monkeypatch.setattr(sweeps, "estimate", cost)
    monkeypatch.setattr("os.cpu_count", lambda: 2)

    def found(*more: str) -> Any:
        return answer("sweep", grid, "--dry-run", *more)

    assert found() == {
        "points": 6,
        "missing": 6,
        "axes": {"optimizer.lr": 2, "seed": 3},
        "packs": 3,
        "core_seconds": 600.0,
        "seconds": 300.0,
        "side_by_side": 2,
        "bytes": 1_000_000 + 5_000_000 + 6 * 4_000,
    }
    assert found("--engine", "serial")["side_by_side"] == 1
    assert found("--workers", "1")["seconds"] == 600.0
    assert found("--workers", "7")["side_by_side"] == 3  # no more than there are packs
    said = " ".join(topicscope("sweep", grid, "--dry-run").stdout.split())
    assert said == (
        "6 points of 'train' (optimizer.lr: 2, seed: 3); 6 still to do, in 3 packs (points that run together) "
        "about 5 min on 2 processes of the engine local (10 min of one core), not counting start-up; "
        "6.02 MB in runs/sweep-small"
    )
    assert "about 10 min in this process (10 min" in topicscope("sweep", grid, "--dry-run", "--engine", "serial").stdout
    (Path(grid).parent / "alone.yaml").write_text(yaml.safe_dump({"base": GRID["base"]}))
    assert (
        "alone.yaml: it has no axes, so it is a single run"
        in topicscope("sweep", "alone.yaml", "--dry-run", code=2).stderr
    )
    assert asked == [6] * 6

    def refused(*_: Any) -> None:
        raise InputError("a point is bad")

    monkeypatch.setattr(sweeps, "estimate", refused)
    assert "6 still to do; no estimate, since a point is bad" in topicscope("sweep", grid, "--dry-run", code=2).stderr


def test_the_device_of_a_sweep(grid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is checked before anything runs; an axis of devices leaves no choice; a GPU has one process."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for device in ("cuda", "abacus"):
        assert f"device {device!r}" in topicscope("sweep", grid, "--device", device, code=2).stderr
    assert "choose cpu or cuda" in topicscope("sweep", grid, "--device", "auto", "--engine", "ray", code=2).stderr
    (Path(grid).parent / "both.yaml").write_text(yaml.safe_dump({**GRID, "axes": {"device": ["cpu", "cuda"]}}))
    assert "device is one of the axes" in topicscope("sweep", "both.yaml", "--device", "cpu", code=2).stderr
    assert "no usable GPU here" in topicscope("sweep", "both.yaml", code=2).stderr
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(sweeps, "estimate", lambda *_: sweeps.Estimate(4, 600.0, 0))
    found = answer("sweep", grid, "--dry-run", "--device", "cuda")
    assert (found["missing"], found["side_by_side"]) == (6, 1)


def test_a_sweep_goes_on_unless_it_is_told_not_to(grid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    serial, out = ["sweep", grid, "--engine", "serial"], Path("runs/sweep-small")
    shown = topicscope(*serial).stdout
    assert "Points: 6 done, 0 failed" in shown
    assert f"table: {out / 'points.csv'}; page: {out / 'report.html'}" in shown
    assert "topicscope sweep" in (out / "report.html").read_text()
    left = answer(*serial, "--dry-run")
    assert (left["missing"], left["bytes"], left["side_by_side"]) == (0, 0, 1)
    printed = answer(*serial)
    assert (printed["folder"], printed["counts"]) == (str(out), {"done": 6, "failed": 0, "missing": 0})
    assert len(printed["rows"]) == 6
    assert "runs/sweep-small" in topicscope(*serial, "--no-resume", code=2).stderr
    asked: list[Any] = []

    def swept(*_: Any, **given: Any) -> None:
        asked.append(given)
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeps, "sweep", swept)
    stopped = topicscope(*serial, "--retry-failed", code=130).stderr
    assert "stopped: 6 of 6 points are done and kept in runs/sweep-small; to continue: topicscope sweep" in stopped
    topicscope(*serial, "--force", code=130)
    assert [(one["resume"], one["force"], one["retry_failed"]) for one in asked] == [
        (True, False, True),
        (False, True, False),
    ]


def test_points_that_fail_are_an_error(grid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = SimpleNamespace(counts={"done": 5, "failed": 1}, rows=[], sections=list, summary=list, meanings=list)
    monkeypatch.setattr(sweeps, "sweep", lambda *_, **__: result)
    monkeypatch.setattr(runs, "write_sweep", lambda _: None)
    assert "1 of 0 points failed" in topicscope("sweep", grid, "--engine", "serial", code=1).stderr


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The settings of the work on texts, and where its result goes; nothing is computed."""
    given: list[Any] = []

    def worker(name: str) -> Callable[..., Any]:
        def work(settings: Any, out: Any, **_: Any) -> Any:
            given.append((name, settings, out))
            tables = {"rows": ["rows"], "heads": ["head"] * 9, "cooccurrence": ["pairs"], "verdicts": ["verdict"]}
            return SimpleNamespace(states=[], labels=[], compared=[], **tables)

        return work

    for name in ("fit_corpus", "probe", "timeline", "map_words"):
        monkeypatch.setattr(language, name, worker(name))
    monkeypatch.setattr(language, "check_inputs", lambda _: None)
    tables = ("verdict_table", "ratio_table", "cooccurrence_table", "topic_model_table", "moment_table", "word_table")
    for name in tables:
        monkeypatch.setattr(pages, name, lambda _, name=name: name)
    monkeypatch.setattr(pages, "head_table", lambda heads, most: f"{len(heads)} heads, {most}")

    def finish(_: Any, out: Any, tables: list[Any], *, as_json: bool) -> int:
        given.append((tables, out, as_json))
        return 0

    monkeypatch.setattr(shell, "finish", finish)
    return given


def test_options_of_probe_are_settings(asked: list[Any]) -> None:
    both = ["--threshold", "0.1", "--threshold", "0.2", "--topics-per-word", "both", "--no-random", "--set", "seed=4"]
    topicscope("probe", "a", "b", "--corpus", "c.txt", *both, "--out", "x", "--json")
    (name, settings, out), finished = asked
    assert (name, tuple(settings.models), tuple(settings.corpus), out) == ("probe", ("a", "b"), ("c.txt",), Path("x"))
    assert (list(settings.thresholds), list(settings.topics_per_word)) == ([0.1, 0.2], ["one", "many"])
    assert (settings.random, settings.matched, settings.seed) == (False, True, 4)
    assert finished == (["verdict_table", "ratio_table", "9 heads, 5", "cooccurrence_table"], Path("x"), True)
    asked.clear()
    topicscope("probe", "a", "--corpus", "c.txt", "--topics-per-word", "many")
    settings = asked[0][1]
    assert list(settings.topics_per_word) == ["many"]
    assert len(settings.thresholds) == 3  # the usual ones
    assert asked[1][1:] == (None, False)
    assert "use: topicscope timeline" in topicscope("probe", "--checkpoints", "x", "--corpus", "c.txt", code=2).stderr
    assert "--checkpoints" not in topicscope("probe", "--help").stdout
    assert "--threshold" in topicscope("timeline", "--help").stdout
    assert "--shuffles" not in topicscope("timeline", "--help").stdout
    assert "engine 'cloud'" in topicscope("probe", "a", "--corpus", "c.txt", "--engine", "cloud", code=2).stderr


def test_options_of_topics_timeline_and_words_are_settings(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    topicscope("topics", "c.txt", "--tokenizer", "t", "--topics", "7")
    topicscope("timeline", "run", "--corpus", "c.txt", "--threshold", "0.3")
    topicscope("words", "m", "frog", "toad", "/", "/", "mozart", "haydn", "--embedding", "layer", "--json")
    (_, topics, _), topic_tables, (_, timeline, _), moments, (_, words, _), word_tables = asked
    assert (tuple(topics.corpus), topics.tokenizer, topics.topics) == (("c.txt",), "t", (7,))
    assert (tuple(timeline.snapshots), timeline.threshold) == (("run",), 0.3)
    assert (words.model, words.groups, words.embedding) == ("m", (("frog", "toad"), ("mozart", "haydn")), "layer")
    assert [tables[0] for tables in (topic_tables, moments, word_tables)] == [
        *(["topic_model_table"], ["moment_table"], ["word_table"])
    ]
    assert [tables[2] for tables in (topic_tables, moments, word_tables)] == [False, False, True]
    asked.clear()
    sandbox: list[Any] = []
    monkeypatch.setattr(training, "is_sandbox", lambda name: name == "sand")
    monkeypatch.setattr(training, "sandbox_timeline", lambda *given, **more: sandbox.append((given, more)))
    topicscope("timeline", "sand", "--out", "x", "--bootstrap", "20", "--seed", "5")
    assert sandbox == [(("sand", Path("x")), {"bootstrap": 20, "seed": 5})]
    assert "give it alone" in topicscope("timeline", "run", "sand", "--corpus", "c.txt", code=2).stderr
    for more in (["--corpus", "c.txt"], ["--topics-from", "t"], ["--engine", "local"], ["--device", "cpu"]):
        assert (
            "leave out --corpus, --topics and all other options" in topicscope("timeline", "sand", *more, code=2).stderr
        )


class Results(list[Any]):
    status = "done"

    def summary(self) -> list[str]:
        return ["All done."]

    def sections(self) -> list[Any]:
        return []


def pretrained(status: str = "done", loss: float = 1.5) -> Any:
    numbers = SimpleNamespace(as_dict=lambda: {"loss": loss})
    return SimpleNamespace(results=numbers, status=status, folder="home", summary=lambda: ["Done."], sections=list)


def test_options_of_pretrain_are_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []
    result: list[Any] = [pretrained()]

    def note(configs: Any, out: Any, **given: Any) -> Any:
        asked.append((configs, out, given))
        return result[0]

    monkeypatch.setattr(pretraining, "pretrain", note)
    drawn: list[Any] = []
    monkeypatch.setattr("topicscope.pages.write_report", lambda *given: drawn.append(given))
    out = tmp_path / "out"
    plain = ["pretrain", "--corpus", "c.txt"]
    said = topicscope(
        *plain, "--init-scale", "[0.1, 0.2]", "--layers", "2", "--dropout", "usual", "--set", "steps=9"
    ).stdout
    assert said == "Done.\n--out DIR keeps the model, its snapshots, metrics and a page\n"
    config, where, given = asked.pop()
    assert (config.model.init_scale, config.model.dropout, config.steps) == ([0.1, 0.2], "usual", 9)
    assert (config.bf16, where, drawn) == (False, None, [])
    assert (given["resume"], given["force"], given["device"]) == (False, False, None)
    said = topicscope(*plain, "--out", str(out), "--force").stdout
    assert f"page: {out / 'report.html'}; probe it with: topicscope probe home/model --corpus ..." in said
    assert drawn.pop()[:3] == (out, "topicscope pretrain: out", "Done.")
    assert asked.pop()[2]["force"] is True
    assert answer(*plain) == {"loss": 1.5}
    result[0] = Results([pretrained(), pretrained(loss=2.5)])
    assert answer(*plain, "--runs", "2", "--device", "cpu") == [{"loss": 1.5}, {"loss": 2.5}]
    configs, _, given = asked.pop()
    assert [(one.seed, one.device) for one in configs] == [(0, "cpu"), (1, "cpu")]
    assert topicscope(*plain, "--runs", "2").stdout.startswith("All done.\n")
    result[0] = pretrained("diverged")
    topicscope(*plain, code=1)
    wrong = topicscope(*plain, "--tokenizer", "t", "--train-tokenizer", "bpe", code=2).stderr
    assert "--tokenizer and --train-tokenizer are both given" in wrong
    topicscope(*plain, "--tokenizer", "t", code=1)
    assert asked[-1][0].tokenizer.existing is not None
    topicscope(*plain, "--train-tokenizer", "bpe", code=1)
    assert asked[-1][0].tokenizer.train == "bpe"
    topicscope(*plain, "--held-out", "0.25", code=1)
    assert (asked[-1][0].held_out.share, asked[-2][0].held_out.share) == (0.25, 0.02)
    assert (
        "--resume takes all settings but --device" in topicscope(*plain, "--resume", "--out", str(out), code=2).stderr
    )


def test_a_run_goes_on_elsewhere_and_only_one_process_speaks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(pretraining, "stored_configs", lambda _: "stored")

    def note(*given: Any, **more: Any) -> Any:
        asked.append((given, more))
        return pretrained()

    monkeypatch.setattr(pretraining, "pretrain", note)
    monkeypatch.setattr("topicscope.pages.write_report", lambda *_: None)
    topicscope("pretrain", "--resume", "--out", str(tmp_path), "--device", "cpu")
    (configs, _), more = asked.pop()
    assert (configs, more["resume"], more["device"]) == ("stored", True, "cpu")
    monkeypatch.setattr(pretraining, "is_main", lambda: False)
    monkeypatch.setattr("topicscope.cli.runs.progress_shown", lambda: nullcontext("shown"))
    quiet = topicscope("pretrain", "--corpus", "c.txt")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    assert asked.pop()[1]["progress"] != "shown"


def certificates() -> list[Certificate]:
    sizes = {"topics": 3, "p_mask": 0.5, "other": 1}
    return [
        Certificate("holds", sizes, 1e-9, 1e-6),
        Certificate("holds", sizes, 2e-9, 1e-6, note="a plain note"),
        Certificate("lost", sizes, 2.0, 1e-6, note="was lost"),
        Certificate("lost", sizes, 0.0, 1e-6, note="first note"),
        Certificate("open", sizes, 0.0, 1e-6, should_hold=False, note="[first]"),
        Certificate("open", sizes, 1.0, 1e-6, should_hold=False, note="second"),
        Certificate("open", sizes, 1.0, 1e-6, should_hold=False, note="strained here"),
        Certificate("open", sizes, 1.0, 1e-6, should_hold=False),
        Certificate("grows", sizes, 0.0, 1e-6, note="exponent 2"),
        Certificate("grows", sizes, 0.0, 1e-6, note="exponent 3"),
    ]


def test_certificates_one_row_per_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topicscope.theory.verify", lambda _: certificates())
    shown = topicscope("theory", "verify", code=1).stdout
    assert cells(shown) == [
        ["claim", "cases", "error", "tolerance", "holds"],
        ["holds", "2", "2e-09", "1e-06", "yes"],
        ["lost", "2", "2", "1e-06", "NO"],
        ["open", "4", "1", "1e-06", "not claimed (1/4)"],
        ["grows", "2", "0", "1e-06", "yes"],
    ]
    assert [line for line in shown.splitlines() if line.startswith("- ")] == [
        *("- lost, T=3 p_m=0.5 other=1: was lost", "- open, T=3 p_m=0.5 other=1: [first]"),
        *("- open, T=3 p_m=0.5 other=1: strained here", "- grows, T=3 p_m=0.5 other=1: exponent 2"),
    ]
    printed = answer("theory", "verify", code=1)
    assert (printed["failed"], len(printed["certificates"])) == (1, 10)
    monkeypatch.setattr("topicscope.theory.verify", lambda _: certificates()[:2])
    assert answer("theory", "verify")["failed"] == 0


def test_theorems_are_drawn_where_they_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ["theory", "theorem2", "--topics", "3", "--words-per-topic", "2"]
    small = topicscope(*flags).stdout
    assert "█" in small
    monkeypatch.setattr(theory, "DRAWN", 7)
    assert topicscope(*flags).stdout == small
    monkeypatch.setattr(theory, "DRAWN", 6)
    assert "█" not in topicscope(*flags).stdout
    assert "topics_per_document" not in answer(*flags)["settings"]
    shown = topicscope(
        "theory", "theorem3", "--topics", "4", "--words-per-topic", "3", "--topics-per-document", "2"
    ).stdout
    assert [row[0] for row in cells(shown)] == ["", "uniform attention", "best attention"]
    assert cells(shown)[1][1:4] == ["1", "1", "1"]
    numbers = answer("theory", "theorem5", "--topics-per-document", "2")
    assert numbers["minimum"]["beta"] > numbers["minimum"]["alpha"]


def test_the_landscape_is_drawn_with_the_lowest_loss_full(tmp_path: Path) -> None:
    out = tmp_path / "out"
    flags = ["theory", "landscape", "--topics", "4", "--words-per-topic", "3", "--topics-per-document", "2"]
    shown = topicscope(*flags, "--out", str(out)).stdout
    assert f"written to {out}: landscape.png, .svg, .npz, .csv, results.json" in shown
    assert {"landscape.png", "landscape.svg", "landscape.csv"} < {path.name for path in out.iterdir()}
    loss = np.load(out / "landscape.npz")["loss"]
    row, column = np.unravel_index(loss.argmin(), loss.shape)
    picture = shown.splitlines()[24:0:-1]  # from the smallest alpha on
    ends = np.cumsum([len(part) for part in np.array_split(np.arange(110), 24)])
    place = [int(np.searchsorted(ends, index, side="right")) for index in (row, column)]
    assert picture[place[0]][2 + 2 * place[1]] == "█"
    assert "written to" not in topicscope(*flags).stdout
    assert "not empty" in topicscope(*flags, "--out", str(out), code=2).stderr
    forced = answer(*flags, "--out", str(out), "--force")
    assert forced == json.loads((out / "results.json").read_text())


def test_export_offers_every_target() -> None:
    refused = topicscope("export", "run", "--to", "nothing", code=2).stderr
    assert refused == f"topicscope: no target 'nothing'; known: {', '.join(sorted(TARGETS))}\n"
    assert f"<{'|'.join(TARGETS)}>" in topicscope("export", "--help").stdout
