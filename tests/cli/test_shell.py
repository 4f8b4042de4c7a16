"""What commands print: tables, sentences, shades, word for word."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from topicscope import pages
from topicscope.cli import runs as commands, shell
from topicscope.ground import InputError, size
from topicscope.pages import Section, TableData
from topicscope.training import RunConfig

Capture = pytest.CaptureFixture[str]


def cells(shown: str) -> list[list[str]]:
    """The cells of a printed table, line by line; its rules are left out."""
    lines = [line.replace("┃", "│") for line in shown.splitlines() if line[:1] in "│┃"]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_a_pipe_is_wide_and_a_terminal_has_its_own_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert shell.results().width == 120
    monkeypatch.setenv("COLUMNS", "200")
    assert shell.results().width == 200
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal
    assert shell.results().width == 80


def test_sentences_are_printed_as_they_are(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "[red]12[/red] of 'a' " + "word " * 60
    shell.print_all([sentence, "second"])
    assert capsys.readouterr().out == f"{sentence}\nsecond\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    shell.print_all(["12 'a'"])
    assert capsys.readouterr().out == "12 'a'\n"  # no colours of numbers and texts


def test_tables_are_printed_with_their_titles(capsys: Capture) -> None:
    shell.print_all(shell.tables([TableData("A title", ["one", "two"], [["1", "[x]"], ["3", "4"]])]))
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].startswith("A title")
    assert cells(shown) == [["one", "two"], ["1", "[x]"], ["3", "4"]]


def print_side_by_side(*given: Any, **more: Any) -> None:
    shell.print_all([shell.side_by_side(*given, **more)])


def test_facts_side_by_side(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    facts: list[dict[str, Any]] = [{"lr": 0.1, "loss": 1.234567}, {"lr": 0.01, "phase": "never", "none": None}]
    print_side_by_side("", ["a", "b"], facts, marked=1)
    shown = capsys.readouterr().out
    assert cells(shown) == [
        *(["", "a", "b"], ["lr", "0.1", "0.01"], ["loss", "1.2346", "-"]),
        *(["phase", "-", "never"], ["none", "-", "-"]),
    ]
    assert shown.startswith("┏")  # no title, no line for it
    print_side_by_side("A title", ["a"], [{"x": 3}])
    assert capsys.readouterr().out.startswith("A title")
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_side_by_side("", ["a", "b"], facts, marked=1)
    coloured = [line for line in capsys.readouterr().out.splitlines() if "\x1b[36m" in line]
    assert len(coloured) == 1
    assert "lr" in coloured[0]
    print_side_by_side("", ["a", "b"], facts)
    assert "\x1b[36m" not in capsys.readouterr().out


def test_cells() -> None:
    assert [shell.cell(value) for value in (None, 1.23456789, 3, "x", True)] == ["-", "1.2346", "3", "x", "True"]


def test_matrices_in_shades() -> None:
    shown = shell.heat_map(np.array([[0.0, 0.3], [0.6, 1.0]]), "title").plain
    assert shown == "title\n    ░░\n  ▓▓██"  # fifths of the range: 0, 1, 3, 4
    assert shell.heat_map(np.array([[2.0, 7.0], [12.0, 4.0]]), "t").plain == "t\n    ▒▒\n  ██░░"
    assert shell.heat_map(np.ones((2, 3)), "flat").plain == "flat\n" + "\n".join(["  " + " " * 6] * 2)
    blocks = np.kron(np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones((20, 20)))
    small = shell.heat_map(blocks, "t", size=4).plain.splitlines()
    assert small == ["t", *["  ████    "] * 2, *["      ████"] * 2, "  40 x 40, averaged into 4 x 4 cells"]
    largest = shell.heat_map(np.eye(60), "t").plain.splitlines()
    assert (len(largest), len(largest[1])) == (26, 2 + 2 * 24)
    assert "averaged" not in shell.heat_map(np.eye(24), "t").plain


def test_a_map_of_words_has_a_cell_of_its_own_for_mask_and_none_over_a_border_of_topics() -> None:
    def blocks(topics: int, v: int) -> np.ndarray:
        matrix = np.zeros((1 + topics * v, 1 + topics * v))
        matrix[1:, 1:] = np.kron(np.eye(topics), np.ones((v, v)))
        matrix[1:, 0] = 0.5
        return matrix

    words = shell.word_map(blocks(2, 2), "t", [2, 2]).plain
    assert words == "t\n" + "\n".join(["  " + " " * 10, *["  ▒▒████    "] * 2, *["  ▒▒    ████"] * 2])
    title, *rows = shell.word_map(blocks(20, 7), "t", [7] * 20).plain.splitlines()
    assert title == "t, one cell per topic"
    assert rows[0] == "  " + "  " * 21
    assert rows[1:] == ["  ▒▒" + "  " * at + "██" + "  " * (19 - at) for at in range(20)]  # exact: nothing is grey
    many = shell.word_map(blocks(46, 2), "t", [2] * 46).plain.splitlines()
    assert many[-1] == "  [MASK], and 46 topics averaged into 23 x 23 cells"
    assert many[2:-1] == ["  ██" + "  " * at + "██" + "  " * (22 - at) for at in range(23)]


def made(**more: Any) -> Any:
    sections = [Section("a"), Section("b", command="mine")]
    says: dict[str, Any] = dict.fromkeys(("summary", "intro"), lambda: ["First.", "Second."])
    plain: dict[str, Any] = {"kind": "words", "sections": lambda: sections} | says
    return SimpleNamespace(**plain | {"as_dict": lambda: {"x": 1.5}} | more)


def test_a_result_is_printed_or_written_or_both(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(pages, "write_report", lambda *given: drawn.append(given))
    tables = [TableData("T", ["c"], [["v"]])]
    assert shell.finish(made(), None, tables, as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {"x": 1.5}
    assert shell.finish(made(), None, tables, as_json=False) == 0
    shown = capsys.readouterr().out
    assert cells(shown) == [["c"], ["v"]]
    assert shown.endswith("First.\nSecond.\n--out DIR writes a page and the numbers\n")
    assert drawn == []
    assert shell.finish(made(), tmp_path, tables, as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {"x": 1.5}
    assert shell.finish(made(), tmp_path, tables, as_json=False) == 0
    assert f"Second.\nWritten to {tmp_path}; its page is {tmp_path / 'report.html'}\n" in capsys.readouterr().out
    assert len(drawn) == 2
    folder, title, text, sections, _ = drawn[0]
    assert (folder, title, text) == (tmp_path, f"topicscope words: {tmp_path.name}", "First.\n\nSecond.")
    assert [section.command for section in sections] == ["", "mine"]  # a folder that says nothing about itself
    with pytest.raises(ValueError, match="JSON"):
        shell.finish(made(as_dict=lambda: {"x": float("nan")}), None, [], as_json=True)


def test_the_page_has_the_command_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(pages, "write_report", lambda *given: drawn.append(given))
    monkeypatch.setattr(shell, "read_about", lambda _: SimpleNamespace(command="topicscope words"))
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "figure.svg").touch()
    assert shell.draw_result(made(), tmp_path) == [tmp_path / "figures" / "figure.svg", tmp_path / "report.html"]
    assert [section.command for section in drawn[0][3]] == ["topicscope words", "mine"]


@pytest.mark.parametrize(
    ("count", "text"),
    [(1e9, "1 GB"), (2.345e9, "2.35 GB"), (0.9994e9, "999 MB"), (1e6, "1 MB"), (999_499, "999 kB"), (4096, "4 kB")],
)
def test_sizes(count: float, text: str) -> None:
    assert size(count) == text


def run_of(seed: int, **facts: Any) -> Any:
    return SimpleNamespace(config=SimpleNamespace(seed=seed), facts=lambda: facts)


def test_few_runs_stand_side_by_side_and_many_below_each_other(capsys: Capture) -> None:
    runs = [run_of(seed, status="done", phase="never", **{"dev loss": 2.0 * seed}) for seed in range(4)]
    shell.print_all([commands.runs_table(runs[:3])])
    shown = capsys.readouterr().out
    assert cells(shown)[0] == ["", "seed 0", "seed 1", "seed 2"]
    assert cells(shown)[-1] == ["dev loss", "0", "2", "4"]
    last = run_of(9, status="done", **{"dev loss": None, "W_V, diagonal": 5.0})
    shell.print_all([commands.runs_table([*runs, last])])
    table = cells(capsys.readouterr().out)
    assert table[0] == ["seed", "status", "dev loss", "phase", "W_V, diagonal"]
    assert table[3] == ["2", "done", "4", "never", "-"]
    assert table[5] == ["9", "done", "-", "-", "5"]
    assert table[6] == ["mean", "", "3", "", ""]  # of one number there is neither mean nor spread
    assert table[7] == ["sd", "", "2.582", "", ""]  # (9 + 1 + 1 + 9) / 3, its root


def stored(_folder: Path) -> Any:
    return "stored"


def test_a_run_or_one_per_seed_or_those_of_a_folder(tmp_path: Path) -> None:
    def configs(flags: Any = None, *given: Any, resume: bool = False, force: bool = False) -> Any:
        file, assignments, runs, out = given or (None, (), 1, None)
        return commands.run_configs(
            RunConfig, stored, flags or {}, file, assignments, runs, out, resume=resume, force=force
        )

    assert configs({"steps": 7, "seed": None}) == RunConfig(steps=7)
    assert configs({}, None, ["steps=8"], 1, None) == RunConfig(steps=8)
    assert configs({"seed": 4}, None, (), 2, None) == [RunConfig(seed=4), RunConfig(seed=5)]
    assert configs({"device": None}, None, (), 1, tmp_path, resume=True) == "stored"
    with pytest.raises(InputError, match=r"\(--resume\) needs out"):
        configs(resume=True)
    refused: list[Any] = [
        ({"steps": 7, "seed": None}, None, (), 1, tmp_path),
        ({}, tmp_path / "x.yaml", (), 1, tmp_path),
        ({}, None, ["steps=7"], 1, tmp_path),
        ({}, None, (), 2, tmp_path),
    ]
    for given in refused:
        with pytest.raises(InputError, match="takes all settings from the folder"):
            configs(*given, resume=True)
    with pytest.raises(InputError, match="takes all settings from the folder"):
        configs({}, None, (), 1, tmp_path, resume=True, force=True)


def test_tasks_of_ray_ask_for_the_gpu_they_compute_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "open_engine", lambda name, **given: (name, given))
    monkeypatch.setattr(shell, "usable_device", lambda device: "cuda" if device == "auto" else device)
    asked: Any = shell.chosen_engine
    assert asked("ray", "auto", 3, device="cuda") == ("ray", {"workers": 3, "address": "auto", "gpus": 1})
    assert asked("ray", device="auto")[1]["gpus"] == 1
    assert asked("ray", device="cpu")[1]["gpus"] == asked("ray")[1]["gpus"] == 0
    assert asked("local", device="cuda")[1]["gpus"] == 0
