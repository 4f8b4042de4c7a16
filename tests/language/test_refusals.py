"""Bad input is refused before PyTorch or transformers is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.language.samples import corpus_file

HEAVY = ("torch", "transformers", "pyarrow", "matplotlib")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["probe", "{here}/nothing", "--corpus", "{corpus}"], "no such model"),
        (["probe", "{here}", "--corpus", "{corpus}"], "it has no config.json"),
        (["probe", "bert", "--corpus", "{here}/nothing"], "no such corpus"),
        (["probe", "bert", "--corpus", "{corpus}", "--text-field", "body"], "it has 'text', 'title'"),
        (["probe", "bert", "--corpus", "{corpus}", "--topics-from", "{here}/nothing"], "does not exist"),
        (["probe", "bert", "--corpus", "{corpus}", "--bootstrap", "0"], "bootstrap = 0"),
        (["probe", "bert", "--corpus", "{corpus}", "--engine", "spark"], "engine 'spark'"),
        (["timeline", "{here}/nothing", "--corpus", "{corpus}"], "no such folder"),
        (["timeline", "bert@step1", "bert@step2"], "no text is given"),
        (["topics", "{here}/nothing", "--tokenizer", "bert"], "no such corpus"),
        (["topics", "{corpus}"], "tokenizer is missing"),
        (["topics", "{corpus}", "--tokenizer", "{here}"], "has no tokenizer: expected tokenizer.json"),
        (["topics", "{corpus}", "--tokenizer", "bert", "--backend", "x"], "backend = 'x'"),
        (["words", "{here}/nothing", "frog", "toad"], "no such model"),
        (["words", "bert", "frog"], "at least two words"),
    ],
)
def test_nothing_heavy_is_loaded(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    places = {"here": str(tmp_path), "corpus": str(corpus_file(tmp_path))}
    command = [sys.executable, "-X", "importtime", "-m", "topicscope", *(a.format(**places) for a in arguments)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    imported = [line for line in lines if line.startswith("import time:")]
    (said,) = (line for line in lines if not line.startswith("import time:"))
    assert complaint in said
    loaded = {text.rsplit("|", 1)[-1].strip().split(".")[0] for text in imported}
    assert "pydantic" in loaded  # the list is read rightly
    assert loaded.isdisjoint(HEAVY)
