"""Where commands print: narrow terminals, no colours, pipes, readers that leave early; and completion."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import TINY, topicscope
from tests.terminal import ANSI, in_terminal, plain_lines
from topicscope.paper import EXPERIMENTS
from topicscope.theory import Setting, theorem2

NARROW = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("terminals") / "run"
    topicscope("train", *TINY, "--no-floors", "--out", str(place))
    return str(place)


def commands(folder: str) -> dict[str, list[str]]:
    return {
        "help": ["--help"],
        "help of a command": ["train", "--help"],
        "list": ["list"],
        "theory": ["theory", "theorem2"],
        "show": ["show", folder],
        "reproduce": ["reproduce", "figure7", "--engine", "serial", "--out", f"{folder}-paper"],
        "error": ["train", "--topics", "none"],
    }


def colours(text: str) -> list[str]:
    """Codes of colours; bold and dim are none."""
    codes = [number for found in ANSI.finditer(text) if found[1] == "m" for number in found[0][2:-1].split(";")]
    return [code for code in codes if code.isdigit() and 30 <= int(code) <= 107]


@pytest.mark.parametrize("name", commands(""))
def test_a_narrow_terminal_without_colours(folder: str, name: str) -> None:
    code, sent = in_terminal(*commands(folder)[name], columns=NARROW, NO_COLOR="1")
    assert code == (2 if name == "error" else 0), sent
    assert colours(sent) == []
    tables = [line for line in plain_lines(sent) if line[:1] in "│┃╭┏└╰"]  # sentences go on in the next line
    assert all(len(line) <= NARROW for line in tables)


def test_no_digit_is_cut_off(folder: str) -> None:
    _, sent = in_terminal("theory", "theorem2", columns=NARROW)
    shown = "".join(line.split("│")[2].strip() for line in plain_lines(sent) if line.startswith("│"))
    for _, value, _ in theorem2(Setting.of()).entries():
        assert f"{value:.7g}" in shown
    _, sent = in_terminal(*commands(folder)["reproduce"], columns=NARROW)
    assert "figure7" in [line.split(" ")[0] for line in plain_lines(sent)]
    assert "…" not in "".join(plain_lines(sent)[-8:])


def test_a_terminal_has_colours(folder: str) -> None:
    """So that the tests above would see one."""
    assert colours(in_terminal(*commands(folder)["reproduce"])[1])


@pytest.mark.parametrize("name", commands(""))
def test_a_pipe_gets_no_escape_sequences(folder: str, name: str) -> None:
    done = topicscope(*commands(folder)[name], code=2 if name == "error" else 0)
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "options"), [("help", []), ("list", []), ("theory", ["--json"]), ("show", []), ("show", ["--json"])]
)
def test_a_reader_that_leaves_early_is_no_error(folder: str, name: str, options: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)  # as after 'head' has read enough
    given = [*commands(folder)[name], *options]
    with os.fdopen(writer, "w") as pipe:
        done = subprocess.run([sys.executable, "-m", "topicscope", *given], stdout=pipe, stderr=-1, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def completed(shell: str, words: str) -> list[str]:
    """What the shell is told when the tab key is pressed after these words."""
    variables = {
        "_TOPICSCOPE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        [sys.executable, "-m", "topicscope"], env=os.environ | variables, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1] if shell != "zsh" else done.stdout.split('"')[1::2]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_ids_are_completed(shell: str) -> None:
    assert completed(shell, "topicscope reproduce theorem") == [n for n in EXPERIMENTS if n.startswith("theorem")]


def test_commands_and_choices_are_completed() -> None:
    assert completed("bash", "topicscope exp") == ["export", "explore"]  # in the order of the help
    assert completed("bash", "topicscope export runs --to ") == ["tensorboard", "parquet", "hf"]
    assert completed("fish", "topicscope export runs --to p") == ["parquet"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(shell: str) -> None:
    variables = {"_TOPICSCOPE_COMPLETE": f"source_{shell}"}
    done = subprocess.run(
        [sys.executable, "-m", "topicscope"], env=os.environ | variables, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert f"_TOPICSCOPE_COMPLETE=complete_{shell}" in done.stdout
    if shell == "bash":  # which is everywhere
        assert subprocess.run(["bash", "-n"], input=done.stdout, text=True).returncode == 0


def test_bash_completes_with_its_script(tmp_path: Path) -> None:
    """The function that the script defines, called as bash calls it."""
    command = tmp_path / "topicscope"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m topicscope "$@"\n')
    command.chmod(0o755)
    line = """
        eval "$(_TOPICSCOPE_COMPLETE=source_bash topicscope)"
        COMP_WORDS=(topicscope reproduce figure1) COMP_CWORD=2
        _topicscope_completion topicscope figure1 reproduce
        echo "${COMPREPLY[*]}"
    """
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", line], env=os.environ | path, capture_output=True, text=True)
    assert done.stdout.split() == ["figure1", "figure10"], done.stderr
