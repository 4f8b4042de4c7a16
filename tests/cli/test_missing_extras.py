"""The base package alone: what needs an extra says which, in one line with exit code 2, and the rest works."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from topicscope.ground import EXTRAS

WITHOUT = """
import contextlib, io, json, sys
for library in json.loads(sys.argv[1]):
    sys.modules[library] = None
from topicscope.cli import main
ends = []
for command in json.loads(sys.argv[2]):
    sys.argv = ["topicscope", *command]
    with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()):
        try:
            main.main()
        except SystemExit as end:
            ends.append([end.code, errors.getvalue()])
print(json.dumps(ends))
"""

LANGUAGE = "a language model needs transformers, which is not installed: pip install 'topicscope[language]'"
PRETRAINING = "pretraining needs accelerate, which is not installed: pip install 'topicscope[language]'"
HUB = "a corpus of the hub needs datasets, which is not installed: pip install 'topicscope[hub]'"
ON_MODELS = "an experiment on language models (figure3, table1) needs accelerate, which is not installed: "
GRIDS: dict[str, Any] = {
    "probe": {"kind": "probe", "base": {"corpus": ["text.txt"], "models": "model"}, "axes": {"seed": [0]}},
    "pretrain": {"kind": "pretrain", "base": {"text": {"corpus": ["text.txt"]}}, "axes": {"seed": [0]}},
}
REFUSED = {
    "topics text.txt --tokenizer model": LANGUAGE,
    "probe model --corpus text.txt": LANGUAGE,
    "timeline model --corpus text.txt": LANGUAGE,
    "words model frog toad": LANGUAGE,
    "pretrain --corpus text.txt": PRETRAINING,
    "sweep probe.yaml": LANGUAGE,
    "sweep pretrain.yaml": PRETRAINING,
    "sweep probe.yaml --engine ray": "the engine ray needs ray, which is not installed: "
    "pip install 'topicscope[cluster]'",
    "explore": "the explorer needs starlette, which is not installed: pip install 'topicscope[explorer]'",
    "reproduce figure3 figure7 table1 --out runs/some": ON_MODELS + "pip install 'topicscope[language]'",
    "reproduce table1 --corpus hf:owner/name --out runs/hub": HUB,
    "bench --part language --quick": LANGUAGE,
    "bench --part pretraining --quick": PRETRAINING,
}
WORKS = (
    "theory theorem2",
    *("train --steps 20 --topics 3 --words-per-topic 2 --set data.documents=20 --out run --device cpu", "show run"),
    "reproduce figure7 --out paper --engine serial",
)


def ends(folder: Path, commands: list[str], libraries: list[str]) -> list[tuple[int, str]]:
    """The exit codes of commands, and what they said on stderr, where these libraries cannot be imported."""
    arguments = json.dumps(libraries), json.dumps([command.split() for command in commands])
    done = subprocess.run([sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return [(code, said) for code, said in json.loads(done.stdout)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("a text of some words\n" * 9)
    for name, grid in GRIDS.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(grid))
    return tmp_path


def test_what_needs_an_extra_says_which_and_leaves_nothing(place: Path) -> None:
    before = set(place.rglob("*"))
    found = ends(place, list(REFUSED), list(EXTRAS))
    assert dict(zip(REFUSED, found, strict=True)) == {
        command: (2, f"topicscope: {said}\n") for command, said in REFUSED.items()
    }
    assert set(place.rglob("*")) == before


@pytest.mark.parametrize(
    ("library", "extra", "command"),
    [
        ("tomotopy", "language", "topics text.txt --tokenizer model"),
        ("sklearn", "backends", "topics text.txt --tokenizer model --backend sklearn"),
        ("gensim", "backends", "topics text.txt --tokenizer model --backend gensim"),
        ("zstandard", "language", "pretrain --corpus packed.jsonl.zst"),
        ("datasets", "hub", "pretrain --corpus hf:owner/name"),
    ],
)
def test_each_library_by_itself(place: Path, library: str, extra: str, command: str) -> None:
    (place / "packed.jsonl.zst").write_bytes(b"(\xb5/\xfd")
    [(code, said)] = ends(place, [command], [library])
    assert code == 2
    [line] = said.splitlines()
    assert line.endswith(f", which is not installed: pip install 'topicscope[{extra}]'")


def test_the_rest_works_without_any_extra(place: Path) -> None:
    found = ends(place, list(WORKS), list(EXTRAS))
    assert [code for code, _ in found] == [0] * len(WORKS), found
